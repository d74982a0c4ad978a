"""Rational numbers that take floating-point ones for the simplest fractions that round to them, and arrays of these."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dualopt.lab.proofs._tracked import ALWAYS

__all__ = ["Rational", "Rationals", "rational", "simplest"]


@lru_cache(maxsize=1024)
def simplest(x: float) -> Fraction:
    """Return a fraction with few digits that rounds to a number.

    Examples
    --------
    >>> simplest(0.1), simplest(2 / 3), simplest(2.0**-20)
    (Fraction(1, 10), Fraction(2, 3), Fraction(1, 1048576))
    """
    found = (Fraction(x).limit_denominator(10**k) for k in range(1, 17))
    return next((q for q in found if float(q) == x), Fraction(x))


class Rational(Fraction):
    """A rational number that takes a float for the simplest fraction that rounds to it: P/N is what it says.

    Examples
    --------
    >>> 0.5 * Rational(1, 3) + np.float64(0.1)
    Rational(4, 15)
    """

    def sqrt(self) -> Rational:
        """Return the square root, rounded; only measures of work, which no proof reads, ask for it."""
        return Rational(simplest(math.sqrt(self)))

    def __bool__(self) -> bool:
        return self.numerator != 0


def _rational(operation: str) -> Callable[[Any, Any], Any]:
    def found(self: Any, other: Any) -> Any:
        if isinstance(other, float | np.floating | np.integer):
            other = simplest(float(other))
        result = getattr(Fraction, operation)(self, other)
        return result if result is NotImplemented else Rational(result)

    return found


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "mod", "rmod"):
    setattr(Rational, f"__{_name}__", _rational(f"__{_name}__"))
for _name in ("neg", "pos", "abs"):
    setattr(Rational, f"__{_name}__", lambda self, _name=f"__{_name}__": Rational(getattr(Fraction, _name)(self)))


class Rationals(np.ndarray):
    """An array of rational numbers, all of which are finite."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc in ALWAYS:
            return np.full(np.shape(inputs[0]), ALWAYS[ufunc])
        plain = (np.asarray(x) if isinstance(x, Rationals) else x for x in inputs)
        if "out" in kwargs:
            kwargs["out"] = tuple(np.asarray(x) for x in kwargs["out"])
        found = getattr(ufunc, method)(*plain, **kwargs)
        return found.view(Rationals) if isinstance(found, np.ndarray) and found.dtype == object else found


def rational(value: Any) -> Any:
    """Return a number, or numbers and parameters of an object, as rational numbers; what is infinite stays.

    Examples
    --------
    >>> rational((0.5, 2 / 3, math.inf))
    (Rational(1, 2), Rational(2, 3), inf)
    """
    if isinstance(value, float) and math.isfinite(value):
        return Rational(simplest(value))
    if isinstance(value, tuple):
        return tuple(map(rational, value))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    found = copy(value)
    for field in fields(value):
        object.__setattr__(found, field.name, rational(getattr(value, field.name)))
    return found
