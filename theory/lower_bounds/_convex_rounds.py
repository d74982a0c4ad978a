"""Rounds to an accuracy: that nobody can do without, that a method takes, that its theorem admits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import count

import numpy as np

from dualopt.algorithms import OptimizedDualFL
from dualopt.algorithms.optimized_dualfl import growth
from dualopt.claims import Inequality
from dualopt.xp import Array
from theory._cases import Case
from theory.dualfl._runs import dual_optimum

__all__ = ["between", "distances", "needed", "tails", "theorem"]


def distances(case: Case) -> Iterator[float]:
    r"""Yield :math:`|\theta^n - \theta^*|^2` after every round."""
    return (float(np.sum((s.server.theta - case.theta) ** 2)) for s in case.snapshots())


def tails(theta: Array) -> Array:
    r"""Return :math:`\sum_{k > n} \theta_k^2` for n = 1, 2, ..., d - 1: nothing in the first n coordinates is nearer.

    Examples
    --------
    >>> tails(np.array([3.0, 2.0, 1.0])).tolist()
    [5.0, 1.0]
    """
    return np.cumsum((theta**2)[:0:-1])[::-1]


def theorem(case: Case) -> Iterator[float]:
    r"""Yield the bounds that are proved of :math:`|\theta^n - \theta^*|^2`, without end.

    Of DualFL :math:`(1-\sqrt\rho)^{n-1} |\xi^*|^2/(N\nu^2)` (Theorem 3.3), for :math:`\rho = 0`
    :math:`4|\xi^*|^2/(N\nu^2(n+1)^2)` (Theorem 3.2); of OptimizedDualFL :math:`2|\zeta^*|^2/(N A_n)`.
    """
    method = case.algorithm
    rho, scale = method.rho, 1.0 / (case.objective.n_clients * method.nu**2)
    if isinstance(method, OptimizedDualFL):
        A, size = 0.0, 2.0 * scale * float(np.sum(case.subgradients**2))
        while True:
            A = growth(A, rho)
            yield size / A
    size = scale * float(np.sum(dual_optimum(case) ** 2))
    for n in count(1):
        yield size * (4.0 / (n + 1.0) ** 2 if rho == 0 else (1.0 - math.sqrt(rho)) ** (n - 1))


def needed(numbers: Iterable[float], level: float) -> float:
    """Return how many numbers it takes to get to the level; infinite if they end before.

    Examples
    --------
    >>> needed([3.0, 2.0, 1.0], 2.0), needed([3.0], 2.0)
    (2, inf)
    """
    return next((n for n, number in enumerate(numbers, start=1) if number <= level), math.inf)


def between(case: Case, level: float, factor: float) -> Iterator[Inequality]:
    """Compare the three numbers of rounds to a squared distance, and the last with so many times the first."""
    lower, measured, upper = (needed(x, level) for x in (tails(case.theta), distances(case), theorem(case)))
    n = int(upper)
    yield Inequality(n, lower, measured, "least rounds of any method and those measured")
    yield Inequality(n, measured, upper, "rounds measured and those of the theorem")
    yield Inequality(n, upper, factor * lower, f"rounds of the theorem and {factor:g} times the least")
