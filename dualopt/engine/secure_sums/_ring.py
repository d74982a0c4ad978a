"""Numbers as integers modulo 2^64, whose sums are exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualopt.arrays._checks import require

__all__ = ["LARGEST", "OutOfRangeError", "decoded", "encoded", "fraction_bits", "units_of"]

LARGEST = 2.0**20
"""How large a number of a host may be where nothing else was agreed: sums of 8 hosts are then multiples of 2^-39."""


class OutOfRangeError(ValueError):
    """A number is not finite, or larger than was agreed."""


def fraction_bits(largest: float, n: int) -> int:
    r"""Return an f for which ``n`` numbers of at most ``largest``, times :math:`2^f`, add up to at most :math:`2^{62}`.

    Raises
    ------
    ValueError
        If ``largest`` is not a positive number, or so large that f would be negative.

    Examples
    --------
    >>> fraction_bits(2.0**20, 8), fraction_bits(2.0**20, 9), fraction_bits(1000.0, 3)
    (39, 38, 50)
    """
    require(0.0 < largest < math.inf, "largest must be a positive finite number", largest)
    mantissa, exponent = math.frexp(largest)  # largest <= 2^exponent, and equal to half of it for a power of two
    up = exponent - 1 if mantissa == 0.5 else exponent
    bits = 62 - up - (n - 1).bit_length()
    require(bits >= 0, f"largest must be at most 2^{62 - (n - 1).bit_length()} for {n} hosts", largest)
    return min(bits, 1000)


def encoded(x: Any, bits: int, largest: float, *, up: bool = False) -> np.ndarray:
    """Return numbers as integers of the ring: rounded to the nearest one, or ``up``.

    Raises
    ------
    OutOfRangeError
        If a number is larger than ``largest``, or not finite; nothing ever wraps.

    Examples
    --------
    >>> encoded([0.5, -0.25, 0.3], 2, 1.0).tolist() == [2, 2**64 - 1, 1]
    True
    >>> encoded([0.3], 2, 1.0, up=True).tolist()
    [2]
    >>> encoded([1.5], 2, 1.0)
    Traceback (most recent call last):
    dualopt.engine.secure_sums._ring.OutOfRangeError: a number is beyond the range that was agreed for sums
    """
    x = np.asarray(x, dtype=np.float64)
    if not np.all(np.abs(x) <= largest):  # also where there is a NaN
        raise OutOfRangeError("a number is beyond the range that was agreed for sums")
    scaled = np.ldexp(x, bits)  # exact
    return np.asarray((np.ceil if up else np.rint)(scaled), dtype=np.int64).view(np.uint64)


def decoded(words: np.ndarray, bits: int, *, up: bool = False) -> np.ndarray:
    """Return the numbers that integers of the ring stand for, rounded to the nearest number, or ``up``.

    Examples
    --------
    >>> words = encoded([0.5, -0.25], 2, 1.0) + encoded([0.5, 1.0], 2, 1.0)
    >>> decoded(words, 2).tolist()
    [1.0, 0.75]
    """
    whole = np.asarray(words, dtype=np.uint64).view(np.int64)
    found = whole.astype(np.float64)
    if up:
        low = np.array([int(a) < int(b) for a, b in zip(found.flat, whole.flat, strict=True)], dtype=bool)
        found = np.where(low.reshape(found.shape), np.nextafter(found, math.inf), found)
    return np.ldexp(found, -bits)


def units_of(n: int) -> int:
    r"""Return how many multiples of :math:`2^{-f}` rounding moves a vector of ``n`` numbers by, at most.

    Each moves by at most one half, so that the norm does by at most :math:`\sqrt n/2`.

    Examples
    --------
    >>> units_of(1), units_of(4), units_of(650)
    (1, 1, 13)
    """
    return -(-(math.isqrt(max(n, 1) - 1) + 1) // 2)
