"""Values one by one: what a list or a column of objects holds, and numbers made of it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

__all__ = ["as_numbers", "first_kinds", "is_missing", "kind_of", "object_array", "shown"]


def object_array(values: Sequence[Any]) -> np.ndarray:
    """Return a vector of objects, whatever they are: NumPy would make a matrix of a list of tuples.

    >>> object_array([(1, 2), (3, 4)]).shape
    (2,)
    """
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for one that is missing: None, NaN, NaT, or NA of pandas.

    >>> [is_missing(value) for value in (None, float("nan"), np.datetime64("NaT"), 0, "", "nan")]
    [True, True, True, False, False, False]
    """
    if value is None:
        return True
    if isinstance(value, str | bytes | tuple):
        return False
    try:
        return not bool(value == value)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):  # NA of pandas, which is neither true nor false
        return type(value).__name__ == "NAType"


def kind_of(value: Any) -> str:
    """Name what a value is: ``numbers``, ``words``, or its type.

    >>> kind_of(True), kind_of(np.float32(1)), kind_of("a"), kind_of({})
    ('numbers', 'numbers', 'words', 'dict')
    """
    if isinstance(value, numbers.Real | Decimal | np.bool):
        return "numbers"
    return "words" if isinstance(value, str) else type(value).__name__


def as_numbers(values: np.ndarray, what: str, rows: Any = None) -> np.ndarray:
    """Return a vector of real numbers of any type as one of a NumPy type; objects become float64.

    ``rows`` are the numbers of the values in the data, where these are some of them.

    Raises
    ------
    ValueError
        If a value is missing, or no real number; the sentence names the row.
    """
    if values.dtype.kind in "biuf":
        return values
    if values.dtype.kind in "mM":
        raise ValueError(f"{what} must hold numbers, not times ({values.dtype}): make numbers of them or drop them.")
    if values.dtype.kind != "O":
        words = f" such as {shown(values.flat[0])}" if values.size and values.dtype.kind in "USTc" else ""
        raise ValueError(f"{what} must hold numbers, not {_type(values)}{words}.")
    numbered = zip(range(len(values)) if rows is None else rows, values.tolist(), strict=False)
    return np.asarray([_number(value, what, row) for row, value in numbered], dtype=np.float64)


def _number(value: Any, what: str, row: int) -> float:
    if is_missing(value):
        raise ValueError(f"{what} must not have missing values, but row {row} (counted from 0) has one.")
    if kind_of(value) != "numbers":
        raise ValueError(f"{what} must hold numbers, but row {row} (counted from 0) holds {shown(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{what} must hold finite numbers, but row {row} (counted from 0) holds {shown(value)}.")
    return number


def first_kinds(values: Iterable[Any]) -> list[tuple[str, Any]]:
    """Return the kinds of values that occur, each with its first value."""
    found: dict[str, Any] = {}
    for value in values:
        found.setdefault(kind_of(value), value)
    return list(found.items())


def _type(values: np.ndarray) -> str:
    return {"U": "words", "S": "words", "T": "words", "c": "complex numbers"}.get(values.dtype.kind, str(values.dtype))


def shown(value: Any) -> str:
    """Write a value so that a sentence can hold it."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 40 else f"{text[:37]}..."
