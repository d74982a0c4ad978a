"""Plans: which questions find the numbers that features are prepared with."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays._checks import require
from dualopt.problem.preprocessing import _exact
from dualopt.problem.preprocessing._questions import NOTHING, Question

__all__ = ["PLANNED", "Found", "Plan", "answered", "fills", "plan_of_numbers"]

Plan = Generator[Question, Any, Any]
KEYS = 2**63 - 2**52  # the key of infinity: finite doubles are between its negative and it
QUARTERS = (0.25, 0.5, 0.75)


class Found(NamedTuple):
    """What a scaling ``(x - centre) / unit * factor`` has found in the rows, in their type, shapes ``(d,)``."""

    centre: np.ndarray
    unit: np.ndarray
    factor: np.ndarray


def answered(plan: Plan, ask: Callable[[Question], Any]) -> Any:
    """Ask the questions of a plan one after the other, and return what it finds.

    Examples
    --------
    >>> from dualopt.problem.preprocessing import Numbers, asked_of_peers
    >>> from dualopt.arrays.communicator import ALONE
    >>> rows = Numbers(np.array([[1.0], [3.0]]))
    >>> answered(plan_of_numbers("standard", "float64"), asked_of_peers(rows, ALONE)).centre.tolist()
    [2.0]
    """
    try:
        question = next(plan)
        while True:
            question = plan.send(ask(question))
    except StopIteration as end:
        return end.value


def plan_of_numbers(how: str, dtype: Any) -> Plan:
    """Return the plan of a scaling of the columns, of which nothing is missing; it finds `Found`.

    Parameters
    ----------
    how : {"standard", "minmax", "robust", "max"}
        The scaling (`dualopt.problem.data.scale`).
    dtype : data type
        That of the rows.
    """
    return PLANNED[how](np.dtype(dtype))


def fills(missing: str) -> Plan:
    """Return the plan of what is put where a number is missing: the mean or the median of the others of its column.

    It finds one number for each column; 0 where there are none at all, and how many there are.
    """
    counts = (yield Question("count"))[0]
    if missing == "mean":
        return _exact.mean((yield Question("sum")), counts), counts
    return (yield from _quantiles(counts, (0.5,)))[0], counts


def _standard(dtype: np.dtype) -> Plan:
    """Find means and deviations.

    Deviations are measured in the power of two below the largest one, so that no square overflows and none that counts
    vanishes; of the extreme row this tells the order of magnitude. A constant column has no deviation, since the mean
    of equal numbers is this number, and gets the factor 0.
    """
    counts = (yield Question("count"))[0]
    centre = _exact.mean((yield Question("sum")), counts).astype(dtype)
    exponents = (yield Question("exponent", (centre,)))[0]
    unit = np.ldexp(1.0, np.where(exponents > NOTHING, exponents, 0.0).astype(np.int64)).astype(dtype)
    squares = yield Question("squares", (centre, unit))
    deviations = np.sqrt(_exact.mean(squares, counts))
    factor = np.where(deviations > 0, 1 / np.where(deviations > 0, deviations, 1.0), 0.0)
    return Found(centre, unit, factor.astype(dtype))


def _minmax(dtype: np.dtype) -> Plan:
    low, high = (yield Question("least"))[0], (yield Question("largest"))[0]
    return Found(low.astype(dtype), _nonzero(high - low).astype(dtype), (low < high).astype(dtype))


def _robust(dtype: np.dtype) -> Plan:
    counts = (yield Question("count"))[0]
    low, middle, high = yield from _quantiles(counts, QUARTERS)
    return Found(middle.astype(dtype), _nonzero(high - low).astype(dtype), np.ones(len(counts), dtype))


def _max(dtype: np.dtype) -> Plan:
    size = (yield Question("size"))[0]
    return Found(np.zeros(1, dtype), _nonzero(size).astype(dtype), np.ones(1, dtype))


PLANNED = {"standard": _standard, "minmax": _minmax, "robust": _robust, "max": _max}
"""Scalings whose numbers are found in the rows of all."""


def _nonzero(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 1.0)


def _quantiles(counts: np.ndarray, levels: Sequence[float]) -> Plan:
    """Find quantiles, between two numbers of a column by linear interpolation, shape ``(levels, d)``."""
    places = np.array(levels)[:, None] * np.maximum(counts - 1, 0)
    below = np.floor(places)
    ranks = np.concatenate([below + 1, np.minimum(below + 2, np.maximum(counts, 1))])
    low, high = np.split((yield from _order_statistics(ranks)), 2)
    return low + (places - below) * (high - low)


def _order_statistics(ranks: np.ndarray) -> Plan:
    """Find the numbers of given ranks, from 1, in each column, by bisection on the doubles in at most 64 questions.

    Doubles in their order are whole numbers, their **keys**: there are fewer than 2^64 of them.
    """
    low, high = np.full(ranks.shape, -KEYS + 1), np.full(ranks.shape, KEYS - 1)
    while (low < high).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # rounded down, without overflow
        counts = yield Question("below", (_double(middle),))
        enough = counts >= ranks
        low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
    found = _double(low)
    require(np.isfinite(found).all(), "counts must be those of finite numbers")
    return found


def _double(keys: np.ndarray) -> np.ndarray:
    """Return the doubles with these keys; those of negative numbers are negative.

    >>> _double(np.array([0, 1, -1])).tolist()
    [0.0, 5e-324, -5e-324]
    """
    return np.where(keys < 0, -(np.abs(keys).view(np.float64)), keys.view(np.float64))
