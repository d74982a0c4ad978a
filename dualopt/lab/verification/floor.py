r"""The level above rounding at which errors stay: of a biased method, or of local problems that are not solved.

Errors that converge to zero and errors that stay at a level are told by what is still to come. Let a, b, c be means of
:math:`\log e_n` over three successive windows. If their differences shrink by a factor
:math:`\rho = (c - b)/(b - a) < 1`, and go on so, what is still to fall is a geometric sum,

.. math:: \frac{\rho}{1 - \rho}(b - c)

(Aitken). With :math:`e_n = F + Cq^n` and windows of equal length, that is :math:`\log(e_n/F)` to first order; with
:math:`e_n = Cq^n` no difference shrinks, however near q is to 1, and nothing bounds what is still to fall. The same
holds of :math:`F + Cn^{-p}` and :math:`Cn^{-p}` with windows whose ends are a geometric sequence. Errors *stall* if by
both kinds of windows at most a tenth of the error is still to fall. All windows are in the second half of the rounds,
where what fell fast at first is gone. Errors like :math:`(\log n)^{-a}`, to which no law above fits, stall only if a is
below 0.1.

That needs means which are known: chance, which is the scatter of batches about a straight line through
:math:`\log e_n`, must not move the line by more than a hundredth over the second half of the rounds. Errors that go up
and down stall if in the second half of 200 rounds or more the line does not fall with confidence 0.975, and with the
same confidence falls by less than a tenth. Where they jump by more nothing is said.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dualopt.lab.rates import student_quantile

__all__ = ["Floor", "floor"]

LEFT = -math.log(0.9)  # more than this of log e is still to fall where errors converge
CHANCE = 0.01  # of log e
BATCHES = 15
LEAST, LONG = 60, 200  # rounds: for windows of a few of them, and for as many as ups and downs need
REST = 1e-9  # what log e moves by is rounding below this


class Floor(NamedTuple):
    """Where errors stay.

    Attributes
    ----------
    level : float
        The error that remains.
    start : int
        From this round on errors are within a tenth of it, or no farther from it than in the second half of the rounds.
    """

    level: float
    start: int


def floor(errors: np.ndarray) -> Floor | None:
    """Return the level at which errors stay; None where they may converge to zero, or nothing can be told.

    Parameters
    ----------
    errors : array, shape (n + 1,)
        Errors by round, the start first.

    Examples
    --------
    >>> n = np.arange(301)
    >>> found = floor(1e-3 + 0.9**n)
    >>> round(found.level, 9), found.start
    (0.001, 88)
    >>> [floor(errors) for errors in (0.9999**n, 1.0 / (n + 1) ** 0.1, 0.9**n + 1e-3 * 0.9999**n)]
    [None, None, None]
    """
    n = len(errors) - 1
    last = np.asarray(errors[n // 2 + 1 :], dtype=float)
    if n < LEAST or not np.all(last > 0):
        return None
    logs = np.log(last)
    slope, width = _trend(logs)
    equal, ratio = _windows(n)
    if np.ptp(logs) <= REST or (n >= LONG and abs(slope) <= width and abs(slope) + width <= LEFT):
        ahead = 0.0
    elif width <= CHANCE and max(abs(_ahead(logs, equal)), abs(_ahead(logs, ratio))) <= LEFT:
        ahead = _ahead(logs, equal)
    else:
        return None
    level = math.exp(logs[-(logs.size // 3) :].mean() - ahead)
    low, high = min(last.min(), 0.9 * level), max(last.max(), 1.1 * level)
    outside = np.flatnonzero((errors < low) | (errors > high))
    return Floor(level, int(outside[-1]) + 1 if outside.size else 0)


def _windows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of three windows in the second half of n rounds: of equal length, and in a geometric sequence.

    >>> [ends.tolist() for ends in _windows(63)]
    [[0, 11, 21, 32], [0, 8, 19, 32]]
    """
    half = n // 2 + 1
    equal, ratio = np.linspace(0, n + 1 - half, 4), (n + 1.0) * 2.0 ** (np.arange(4) / 3.0 - 1.0) - half
    return np.round(equal).astype(int), np.round(ratio).astype(int)


def _ahead(logs: np.ndarray, ends: np.ndarray) -> float:
    """Return how much is still to fall after three windows; infinity where nothing bounds it."""
    a, b, c = (float(logs[i:j].mean()) for i, j in pairwise(ends))
    if not abs(c - b) < abs(b - a):
        return math.inf
    shrinks = (c - b) / (b - a)
    return (b - c) * shrinks / (1.0 - shrinks)


def _trend(logs: np.ndarray) -> tuple[float, float]:
    """Return by how much a straight line through the means of batches rises, and the half-width of its interval."""
    means = np.array([batch.mean() for batch in np.array_split(logs, BATCHES)])
    x = np.linspace(-0.5, 0.5, BATCHES)
    slope = float(x @ means / (x @ x))
    rest = means - means.mean() - slope * x
    error = math.sqrt(float(rest @ rest) / (BATCHES - 2) / float(x @ x))
    return slope, float(student_quantile(0.975, BATCHES - 2)) * error
