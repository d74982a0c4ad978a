r"""Two clients of one variable, whose local work brings each a fraction of the way to its own minimum.

A client that ends at :math:`\theta_j = \theta - w_j(\theta - m_j)` makes of the model the average
:math:`\theta^+ = \theta - \frac12\sum_j w_j(\theta - m_j)`, whose fixed point is
:math:`\theta_\infty = \frac{w_1m_1 + w_2m_2}{w_1 + w_2}`. The solution is
:math:`\theta^* = \frac{a_1m_1 + a_2m_2}{a_1 + a_2}`, the same point if the weights are proportional to the curvatures.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import numpy as np

from dualopt.claims import Inequality
from dualopt.xp import Array
from theory._claims import ROUNDING, deviation
from theory.counterexamples._recursion import Run, follow

__all__ = ["follow_weighted", "minima", "weighted"]


def follow_weighted(run: Run, weights: Array, bias: float | None = None) -> Iterator[Inequality]:
    """Follow the model to the mean of the minima with these weights, at ``bias``, if given, from the solution."""
    if bias is not None:
        measured = weighted(weights, minima(run)) - run.solution
        yield Inequality(0, deviation(measured, bias, scale=1.0), ROUNDING, "bias")
    factor = 1.0 - float(np.mean(weights))
    yield from follow(run, repeat(np.array([1.0, -factor])), abs(factor))


def weighted(weights: Array, values: Array) -> float:
    """Return the mean with these weights.

    Examples
    --------
    >>> weighted(np.array([1.0, 3.0]), np.array([0.0, 1.0]))
    0.75
    """
    return float(weights @ values / np.sum(weights))


def minima(run: Run) -> Array:
    """Return the minimum of each client."""
    return run.objective.b[:, 0] / run.curvatures
