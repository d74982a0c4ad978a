"""What a lesson shows, as dataclasses that become JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, Self

import numpy as np

from dualopt.claims import Claim, Verdict

__all__ = [
    "Answer",
    "Arrows",
    "Cells",
    "Chart",
    "Curve",
    "Dots",
    "Handle",
    "Judged",
    "Lines",
    "Path",
    "Plane",
    "Row",
    "Scene",
    "Slider",
    "Table",
    "Text",
    "to_json",
]

ROLES = ("error", "certificate", "theorem", "limit", "bars", "points")
DIGITS = 5  # of every number that goes to the page, which shows three


@dataclass(frozen=True, kw_only=True)
class Slider:
    """A quantity that the student moves.

    Attributes
    ----------
    name : str
        The argument of ``scene``.
    label : str
        What is written beside it, such as "κ".
    values : sequence of numbers, or of str
        All its values, in order; strings make a list of choices.
    start : number or str
        The value at first, one of them.
    unit : str
        Written after the value.
    exported : sequence, optional
        The values that an exported page offers, some of ``values``; all when not given.

    Raises
    ------
    ValueError
        If ``start`` or an exported value is none of the values.

    Examples
    --------
    >>> kappa = Slider(name="kappa", label="κ", values=(2, 8, 32), start=8, exported=(2, 32))
    >>> kappa.nearest(30), kappa.exported_indices()
    (2, [0, 2])
    """

    name: str
    label: str
    values: Sequence[Any]
    start: Any
    unit: str = ""
    exported: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        for value in (self.start, *(self.exported or ())):
            if value not in self.values:
                raise ValueError(f"slider {self.name}: {value!r} is none of its values.")

    def exported_indices(self) -> list[int]:
        """Return the indices of the values that an exported page offers."""
        offered = self.values if self.exported is None else self.exported
        return sorted({list(self.values).index(value) for value in offered})

    def nearest(self, value: Any) -> int:
        """Return the index of the nearest value; a choice must be one of them."""
        if isinstance(self.values[0], str):
            if value not in self.values:
                raise ValueError(f"{self.name} must be one of {', '.join(self.values)}; not {value!r}.")
            return list(self.values).index(value)
        if isinstance(value, str) or not math.isfinite(value):
            raise ValueError(f"{self.name} must be a finite number, not {value!r}.")
        return int(np.argmin(np.abs(np.asarray(self.values, dtype=float) - value)))


# What a plane may hold. A colour is an index into the palette of the page, or None for that of the text.


@dataclass(frozen=True, kw_only=True)
class Path:
    """The way of a point, drawn up to the round that is shown: points of shape (rounds, 2)."""

    points: Any
    label: str = ""
    colour: int | None = None
    dashed: bool = False


@dataclass(frozen=True, kw_only=True)
class Dots:
    """Points of shape (k, 2), or (rounds, k, 2) if they move; ``colours`` one for each of the k, or one for all."""

    points: Any
    label: str = ""
    colours: Any = None
    shape: Literal["disc", "ring", "cross", "star"] = "disc"


@dataclass(frozen=True, kw_only=True)
class Arrows:
    """Vectors at tails, both (k, 2) or (rounds, k, 2); the longest of a round has ``length`` of the plane's width."""

    tails: Any
    vectors: Any
    label: str = ""
    colours: Any = None
    length: float = 0.15


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Polylines that stand still, such as contour lines: a sequence of arrays of shape (n, 2)."""

    lines: Sequence[Any]
    label: str = ""
    colour: int | None = None
    faint: bool = True


@dataclass(frozen=True, kw_only=True)
class Text:
    """Words at a point."""

    at: Sequence[float]
    text: str
    colour: int | None = None


@dataclass(frozen=True, kw_only=True)
class Handle:
    """A point that is dragged: its coordinates are the values of two sliders."""

    at: Sequence[float]
    x: str
    y: str
    label: str = ""
    colour: int | None = None


@dataclass(frozen=True, kw_only=True)
class Cells:
    """A map of classes: ``classes[i][k]`` is an index into ``names`` at ``x[k]``, ``y[i]``.

    A click sets the sliders ``on_x`` and ``on_y``, where they are given, to the values of its cell.
    """

    x: Any
    y: Any
    classes: Any
    names: Sequence[str]
    colours: Sequence[int | None]
    on_x: str = ""
    on_y: str = ""


@dataclass(frozen=True, kw_only=True)
class Plane:
    """A part of the plane: the ranges ``x`` and ``y``, and what is drawn there, the first below the others.

    ``equal`` means one unit has the same length on both axes, which is done by widening one range. Without labels
    there are no axes.
    """

    marks: Sequence[Path | Dots | Arrows | Lines | Text | Handle | Cells]
    x: tuple[float, float]
    y: tuple[float, float]
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    equal: bool = True
    log_x: bool = False
    log_y: bool = False

    @classmethod
    def around(cls, points: Any, *, margin: float = 0.15, **options: Any) -> Self:
        """Return a plane that shows all points, an array whose last axis has length 2, with a margin."""
        flat = np.asarray(points, dtype=float).reshape(-1, 2)
        low, high = flat.min(axis=0), flat.max(axis=0)
        room = margin * max(float(np.max(high - low)), 1e-9)
        x, y = ((float(a - room), float(b + room)) for a, b in zip(low, high, strict=True))
        return cls(x=x, y=y, **options)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Numbers ``y`` over ``x``, both of shape (n,); ``y`` of shape (rounds, n) if it changes with the round."""

    x: Any
    y: Any
    label: str
    colour: int | None = None
    role: str = "error"  # or one of ROLES
    moving: bool = False

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"role must be one of {', '.join(ROLES)}; not {self.role!r}.")


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Curves with common axes; ``rounds`` says that x counts rounds, of which the page marks the one that is shown.

    ``marks`` are pairs of a value of x and words: vertical lines. A logarithmic axis shows positive numbers alone.
    """

    curves: Sequence[Curve]
    x_label: str
    y_label: str
    title: str = ""
    log_x: bool = False
    log_y: bool = False
    rounds: bool = False
    marks: Sequence[tuple[float, str]] = ()
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table: cells are numbers, strings, or one number for every round."""

    label: str
    cells: Sequence[Any]
    colour: int | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """Numbers: the heading of the first column, those of the others, and the rows."""

    first: str
    columns: Sequence[str]
    rows: Sequence[Row]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A theorem and the verdict on it."""

    label: str
    claim: str
    source: str
    file: str
    verdict: str
    detail: str

    @classmethod
    def of(cls, claim: Claim, verdict: Verdict, label: str) -> Self:
        """Return what is shown of a verdict of :func:`dualopt.claims.check`."""
        if verdict.failed:
            detail = "; ".join(verdict.failed)
        elif verdict.witness is not None:
            q = verdict.witness
            what = f", {q.what}" if q.what else ""
            detail = f"at n = {q.n}{what}: {q.lhs:.3g} > {q.rhs:.3g}"
        elif math.isfinite(verdict.worst_ratio):
            detail = f"{verdict.compared} inequalities, the tightest at {verdict.worst_ratio:.3g} of its bound"
        else:
            detail = "nothing to compare"
        file = f"{claim.compare.__module__.replace('.', '/')}.py"
        return cls(
            label=label, claim=claim.name, source=claim.source, file=file, verdict=verdict.verdict, detail=detail
        )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Whether the position of the sliders answers the question, in a sentence."""

    right: bool
    text: str

    @classmethod
    def of(cls, verdict: Verdict, *, right: Callable[[Verdict], bool], yes: str, no: str) -> Self:
        """Let a verdict decide.

        Examples
        --------
        >>> v = Verdict(claim="halves", case="x", verdict="holds", worst_ratio=0.5, compared=3)
        >>> Answer.of(v, right=lambda v: v.verdict == "violated", yes="It fails here.", no="It holds here.")
        Answer(right=False, text='It holds here.')
        """
        found = bool(right(verdict))
        return cls(right=found, text=yes if found else no)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """All that a page shows for one position of the sliders.

    ``rounds`` is the number of rounds that can be looked at, 0 if there is nothing to choose; ``shown`` the first one.
    """

    planes: Sequence[Plane] = ()
    charts: Sequence[Chart] = ()
    table: Table | None = None
    verdicts: Sequence[Judged] = ()
    answer: Answer | None = None
    rounds: int = 0
    shown: int = 1
    note: str = ""


def to_json(value: Any) -> Any:
    """Turn scenes into what :mod:`json` writes: floats to five digits, NumPy's numbers to Python's.

    Raises
    ------
    ValueError
        If a number is not finite.

    Examples
    --------
    >>> to_json(Text(at=np.array([1 / 3, 2]), text="here"))
    {'at': [0.33333, 2.0], 'text': 'here', 'colour': None, 'kind': 'Text'}
    """
    if is_dataclass(value):
        found = {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
        return found | {"kind": type(value).__name__}
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a scene must consist of finite numbers, not {value}.")
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {name: to_json(entry) for name, entry in value.items()}
    if isinstance(value, str | int | bool | None):
        return value
    return [to_json(entry) for entry in value]
