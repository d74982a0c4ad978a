r"""What a chapter is made of.

Texts may hold numbers of the page in braces: ``{error}`` is a quantity in the round that is shown, ``{local.0}`` its
first entry, ``{K}`` the value of a slider, ``{n}`` the round. Colours are names: ``one``, ``two``, ``three``,
``four`` of the clients, ``model``, ``other``, ``third`` of methods, ``bound`` of what theorems say, ``guess`` of the
reader, ``ink`` of the text. What has ``after=True`` is drawn when the reader has asked for the answer,
``after=False`` until then, and without it always. No two things in a picture differ in colour alone: each has a
``dash``, a ``shape`` or a thickness of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

import numpy as np

from dualopt.lab.claims import Claim
from figures.lessons._quantities import Measure

__all__ = [
    "Arrow",
    "AskChoice",
    "AskCurve",
    "AskNumber",
    "AskPoint",
    "Bars",
    "Chapter",
    "Chart",
    "Curve",
    "Dash",
    "Derived",
    "Drag",
    "If",
    "Level",
    "Line",
    "Map",
    "Plane",
    "Said",
    "Shape",
    "Slider",
    "Spot",
    "Theorem",
    "Trail",
    "Valley",
    "to_json",
]

Dash = Literal["solid", "dashed", "dotted", "dash-dot", "dash-dot-dot", "fine"]
Shape = Literal[
    "square", "diamond", "triangle", "disc", "open square", "open diamond", "open disc", "cross", "star", "flag"
]

# What the reader moves.


@dataclass(frozen=True, kw_only=True)
class Drag:
    """A point of the plane that is dragged; its coordinates are two of the position."""

    name: str
    label: str  # beside the point
    spoken: str  # what it is, for those who do not see it
    start: tuple[float, float]
    ink: str = "ink"
    shape: Shape = "disc"
    after: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Slider:
    """A parameter of the methods: its values are all that there are."""

    name: str
    label: str
    values: Sequence[Any]
    start: Any
    says: Sequence[str] = ()  # what is written for each value, where it is not the number
    after: bool | None = None

    def __post_init__(self) -> None:
        if self.start not in self.values:
            raise ValueError(f"slider {self.name}: {self.start!r} is none of its values.")


# What follows from quantities without another run.


@dataclass(frozen=True, kw_only=True)
class Derived:
    """A number that a page makes of others.

    ``root`` takes the square root of ``of[0]``, ``ratio`` divides ``of[0]`` by ``of[1]``, ``less`` subtracts, ``mix``
    adds with ``weights``, ``least`` and ``most`` take the smaller and the larger one, ``last`` the last round of it,
    ``largest`` the largest over the rounds, ``sum`` adds its entries, and ``first`` is the first value of the
    parameter ``over`` for which ``of[0]`` is at least (``sign`` 1) or at most (-1) ``of[1]``, a quantity or a number;
    ``final`` the last value for which that is so. Both look at all values of the parameter, and are NaN where there
    is none.
    """

    does: Literal["root", "ratio", "less", "mix", "least", "most", "last", "largest", "first", "final", "sum"]
    of: tuple[Any, ...]
    over: str = ""
    sign: int = 1
    weights: tuple[float, ...] = ()


# What is drawn in the plane.


@dataclass(frozen=True, kw_only=True)
class Valley:
    """A line of constant height of a client, around a point."""

    at: str
    outline: Any  # around the origin, shape (k, 2)
    ink: str
    dash: Dash = "solid"
    after: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Trail:
    """The way of a point up to the round that is shown, with a dot where it is."""

    of: str
    label: str
    ink: str
    dash: Dash = "solid"
    shape: Shape = "disc"
    start: tuple[float, float] | None = (0.0, 0.0)
    after: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A point, or one for each entry of ``of``."""

    of: str
    label: str | Sequence[str] = ""
    ink: str | Sequence[str] = "ink"
    shape: Shape | Sequence[Shape] = "disc"
    after: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """An arrow at each point of ``at``, along the vectors ``of``; ``length`` is what a vector of length 1 has."""

    at: str
    of: str
    ink: Sequence[str]
    dash: Sequence[Dash]
    length: float
    label: Sequence[str]
    after: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Plane:
    """A part of the plane: the ranges that are seen, and what is drawn there."""

    title: str
    marks: Sequence[Any]
    x: tuple[float, float] = (-0.8, 5.2)
    y: tuple[float, float] = (-0.7, 3.2)


# What is drawn in a chart.


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A quantity over the rounds, over the values of the slider ``over``, or its entries over ``x``."""

    of: str
    label: str
    ink: str
    dash: Dash = "solid"
    over: str = ""
    x: Sequence[float] = ()
    entry: int = 0  # of a quantity that has several in a round
    points: bool = False  # in place of a line
    shape: Shape = "disc"
    after: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Level:
    """A quantity or a number as a line across the chart."""

    of: str | float
    label: str
    ink: str = "ink"
    dash: Dash = "dash-dot"
    after: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Bars:
    """The entries of a quantity, as bars; ``links`` says which client owns what lies between two of them."""

    of: str
    label: str
    ink: str
    links: Sequence[str] = ()
    faint: bool = False
    after: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Curves with common axes; the range of y is that of the curves, or ``y``, and covers at most ``decades``."""

    title: str
    curves: Sequence[Any]
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False
    y: tuple[float | str, float | str] | None = None
    decades: int = 12
    least: float = 0.0  # the range reaches at least so far: rounding is not worth an axis
    theorem: int | None = None  # whose witness is marked
    after: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Map:
    """Classes over two sliders, by the values of both; a click chooses both.

    ``classes[i][k]`` is an index into ``names``, at the value i of the slider ``y`` and k of ``x``. ``border`` is a
    line over them, shape (k, 2).
    """

    title: str
    x: str
    y: str
    classes: Any
    names: Sequence[str]
    inks: Sequence[str]
    x_label: str
    y_label: str
    border: Any = ()
    border_label: str = ""
    after: bool | None = True


# What is said.


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the algorithm, with the numbers of the round that is shown."""

    who: str
    does: str
    now: str = ""


@dataclass(frozen=True)
class If:
    """A condition: two quantities, numbers or sliders, compared."""

    left: str | float
    sign: Literal["<", "<=", ">", ">=", "=", "none"]  # the last: there is no such number on the left
    right: str | float = 0.0


@dataclass(frozen=True)
class Said:
    """A sentence, where all conditions hold."""

    text: str
    where: tuple[If, ...] = ()
    after: bool | None = None


@dataclass(frozen=True, kw_only=True)
class AskNumber:
    """The reader guesses a number between ``low`` and ``high``; the answer is a quantity."""

    answer: str
    label: str
    low: float
    high: float
    step: float
    start: float
    kind: str = "number"


@dataclass(frozen=True, kw_only=True)
class AskPoint:
    """The reader puts a flag into the plane; the answer is a point."""

    answer: str
    start: tuple[float, float]
    kind: str = "point"


@dataclass(frozen=True, kw_only=True)
class AskChoice:
    """The reader chooses; ``answer`` is a quantity, the number of the right option, counted from 0."""

    options: Sequence[str]
    answer: str | int
    kind: str = "choice"


@dataclass(frozen=True, kw_only=True)
class AskCurve:
    """The reader draws a curve over the rounds into the chart: its heights at ``knots``, at first ``start``."""

    answer: str
    knots: Sequence[int]
    start: Sequence[float]
    kind: str = "curve"


@dataclass(frozen=True, kw_only=True)
class Theorem:
    r"""A claim, judged wherever the reader moves, in the quantity that it compares.

    Attributes
    ----------
    label : str
        What it says, in a few words.
    claim : Claim
        The theorem.
    case : callable
        ``case(u, **parameters)`` returns where it is checked.
    what : str
        Which of its inequalities are shown; the names of its sides are ``lhs`` and ``rhs`` with the number of the
        theorem, from 0: ``lhs0``.
    sides : callable, optional
        ``sides(u, **parameters)`` measures ``lhs`` and ``rhs`` instead, where those of the claim are no quadratic
        functions of the position but quotients of such.
    quantity : str
        What is compared, in words.
    force : bool, default False
        Whether inequalities are compared where the assumptions fail, as ``check_assumptions=False`` does.
    tolerance : float, default 1e-9
        Share of the right-hand side by which the left one may be larger.
    """

    label: str
    claim: Claim
    case: Callable[..., Any]
    what: str = ""
    sides: Measure | None = None
    quantity: str = "the left-hand side"
    force: bool = False
    tolerance: float = 1e-9
    after: bool | None = True


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """All that a page shows beside its text."""

    title: str
    minutes: int
    needs: Sequence[str]
    drags: Sequence[Drag]
    measures: Sequence[Measure]
    ask: Any
    said: Sequence[Said]
    box: Sequence[Line] = ()
    sliders: Sequence[Slider] = ()
    derived: Mapping[str, Derived] = field(default_factory=dict)
    plane: Plane | Chart | None = None
    chart: Chart | Map | None = None
    theorems: Sequence[Theorem] = ()
    rounds: int = 0
    shown: int = 1
    errors: Chart | None = None  # of the methods in the plane, where the reader's is drawn beside them
    beside: Callable[..., Any] | None = None  # beside(method, u, **parameters): the case of the reader's method


def to_json(value: Any) -> Any:
    """Turn the parts of a chapter into what :mod:`json` writes; what computes is left out.

    Examples
    --------
    >>> to_json(Spot(of="solution", label="θ*"))
    {'of': 'solution', 'label': 'θ*', 'ink': 'ink', 'shape': 'disc', 'after': None, 'mark': 'Spot'}
    """
    if is_dataclass(value) and not isinstance(value, type):
        shown = [f.name for f in fields(value) if f.name not in ("measures", "theorems", "beside")]
        return {name: to_json(getattr(value, name)) for name in shown} | {"mark": type(value).__name__}
    if isinstance(value, np.ndarray):  # outlines
        return value.round(5).tolist()
    if isinstance(value, Mapping):
        return {name: to_json(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(entry) for entry in value]
    return value
