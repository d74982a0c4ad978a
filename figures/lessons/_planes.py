"""Planes, and what is drawn there. A colour is an index into the palette of the page, or None for that of the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from dualopt.objectives import Quadratic
from theory._valleys import ellipse

__all__ = [
    "Arrows",
    "Cells",
    "Dots",
    "Handle",
    "Lines",
    "Mark",
    "Path",
    "Plane",
    "Text",
    "contours",
    "minimisers",
    "way",
]


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


Mark = Path | Dots | Arrows | Lines | Text | Handle | Cells


@dataclass(frozen=True, kw_only=True)
class Plane:
    """A part of the plane: the ranges ``x`` and ``y``, and what is drawn there, the first below the others.

    ``equal`` means one unit has the same length on both axes, which is done by widening one range. Without labels
    there are no axes.
    """

    marks: Sequence[Mark]
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


def minimisers(f: Quadratic) -> np.ndarray:
    """Return where the clients have their minima, shape (N, 2)."""
    return np.linalg.solve(f.A, f.b[..., None])[..., 0]


def contours(f: Quadratic, colours: Iterable[int | None], levels: Sequence[float] = (0.2,)) -> list[Lines]:
    """Return contour lines of every client."""
    clients = zip(f.A, minimisers(f), colours, strict=True)
    return [Lines(lines=[ellipse(A, own, level) for level in levels], colour=colour) for A, own, colour in clients]


def way(
    points: np.ndarray, *, colour: int, label: str, shape: Literal["disc", "ring"] = "disc", **options: Any
) -> list:
    """Return the way of a point and, as a dot, where it is in the round that is shown."""
    return [
        Path(points=points, colour=colour, label=label, **options),
        Dots(points=points[:, None], colours=colour, shape=shape),
    ]
