"""Curves and their axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

__all__ = ["Chart", "Curve"]

ROLES = ("error", "certificate", "theorem", "limit", "bars", "points")


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Numbers ``y`` over ``x``, both of shape (n,); ``y`` of shape (rounds, n) if it changes with the round.

    ``x`` counts from 1 when not given.
    """

    y: Any
    label: str
    x: Any = None
    colour: int | None = None
    role: str = "error"  # or one of ROLES
    moving: bool = False

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"role must be one of {', '.join(ROLES)}; not {self.role!r}.")
        if self.x is None:
            object.__setattr__(self, "x", np.arange(1, np.shape(self.y)[-1] + 1))

    @classmethod
    def level(cls, y: float, ends: tuple[float, float], label: str, **options: Any) -> Self:
        """Return one number over a range, dotted when no other role is given."""
        return cls(x=ends, y=(y, y), label=label, **{"role": "limit", **options})


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

    @classmethod
    def over_rounds(cls, y_label: str, curves: Sequence[Curve], **options: Any) -> Self:
        """Return curves over rounds with a logarithmic axis, where nothing else is said."""
        return cls(curves=curves, x_label="round", y_label=y_label, rounds=True, **{"log_y": True, **options})
