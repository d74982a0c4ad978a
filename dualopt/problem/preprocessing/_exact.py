"""Sums of columns without rounding, which do not depend on the order of the rows, nor on how they are grouped.

A double is split into a high part, a multiple of a power of two so large that high parts add up without rounding, and
a rest, which is split again until nothing is left (Rump, Ogita and Oishi, SIAM J. Sci. Comput. 31(1), 2008). The sum is
kept as its **expansion**: the sum rounded to a double, what is left of it rounded, and so on. It depends on the exact
sum alone, and few rows of it hold the sum of many numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

__all__ = ["LARGEST", "expansion", "mean", "sum_of_expansions"]

LARGEST = 2.0**1000
"""Numbers up to this size are added; larger ones could overflow in their sums."""


def expansion(pieces: Iterable[np.ndarray], columns: int) -> np.ndarray:
    """Return the exact sums of the columns over all pieces, as numbers below each other whose sum they are.

    Parameters
    ----------
    pieces : iterable of arrays, shape (rows, columns)
        Finite numbers in float64; the arrays are overwritten.
    columns : int
        How many columns there are, also where there are no pieces.

    Returns
    -------
    array, shape (K, columns)
        From the largest on; each is the rest rounded to a double.

    Raises
    ------
    ValueError
        If a number is larger than 2^1000.

    Examples
    --------
    >>> expansion([np.array([[1e16, 0.1], [1.0, 0.2]]), np.array([[-1e16, 0.3]])], 2).T.tolist()
    [[1.0, 0.0], [0.6, 2.7755575615628914e-17]]
    """
    parts = [part for piece in pieces for part in _parts(piece)]
    return sum_of_expansions([np.stack(parts)] if parts else [], columns)


def sum_of_expansions(found: Iterable[np.ndarray], columns: int) -> np.ndarray:
    """Return the expansion of the sum of all numbers in each column, however they are grouped.

    >>> sum_of_expansions([np.array([[1.0], [2.0**-60]]), np.array([[-1.0]])], 1).tolist()
    [[8.673617379884035e-19]]
    """
    rows = np.concatenate([np.zeros((0, columns)), *found])
    each = [_reduced(column) for column in rows.T.tolist()]
    sums = np.zeros((max(map(len, each), default=1), columns))
    for place, numbers in enumerate(each):
        sums[: len(numbers), place] = numbers
    return sums


def mean(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the exact sums divided by counts, rounded once: of equal numbers it is this number.

    >>> mean(expansion([np.full((7, 1), 0.1)], 1), np.array([7])).tolist()
    [0.1]
    """
    exact = (sum(map(Fraction, column)) for column in sums.T.tolist())
    return np.array([float(Fraction(s) / int(m)) if m else 0.0 for s, m in zip(exact, counts.tolist(), strict=True)])


def _parts(A: np.ndarray) -> Iterator[np.ndarray]:
    """Yield vectors whose sum is the exact sum of the rows of a matrix, which becomes zero.

    With fewer than ``2^b`` numbers below ``2^e``, high parts are multiples of ``2^(e + b - 53)``, and neither they nor
    their sums exceed ``2^(e + b)``: every such sum is a double.
    """
    largest = np.maximum(A.max(axis=0, initial=0.0), -A.min(axis=0, initial=0.0))
    if largest.max(initial=0.0) > LARGEST:
        raise ValueError("X must hold numbers of at most 2^1000, about 1e301, to be prepared.")
    bits, exponents = A.shape[0].bit_length(), np.frexp(largest)[1]
    high = np.empty_like(A)
    while A.any():
        sigma = np.ldexp(1.0, exponents + bits)
        np.add(A, sigma, out=high)
        high -= sigma
        yield high.sum(axis=0)
        A -= high
        exponents = np.maximum(exponents + bits - 52, -1080)  # of the rests, which are at most 2^(e + b - 53)


def _reduced(numbers: list[float]) -> list[float]:
    """Return the exact sum of some numbers as the double nearest to it, that nearest to the rest, and so on."""
    found = [math.fsum(numbers)]
    while rest := math.fsum(numbers + [-x for x in found]):
        found.append(rest)
    return found
