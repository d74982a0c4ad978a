"""What the student moves, and what a lesson shows, which becomes JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from figures.lessons._charts import Chart
from figures.lessons._planes import Plane
from figures.lessons._words import Answer, Judged, Table

__all__ = ["Scene", "Slider", "to_json"]

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
        If ``start`` or an exported value is none of the values, or ``start`` is not exported.

    Examples
    --------
    >>> kappa = Slider(name="kappa", label="κ", values=(2, 8, 32), start=8, exported=(2, 8))
    >>> kappa.nearest(30), kappa.exported_indices()
    (2, [0, 1])
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
        if self.start not in (self.exported or self.values):
            raise ValueError(f"slider {self.name}: an exported page starts at {self.start!r}, which it must offer.")

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
    >>> from figures.lessons._planes import Text
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
