r"""Averages of local work on quadratics: a fixed point in closed form, which is not the solution.

A client that ends at :math:`\theta_j = \theta - Q_j \nabla f_j(\theta)`, with a matrix :math:`Q_j` that commutes with
:math:`A_j`, makes of the model :math:`\theta` the average

.. math:: \theta^+ = \theta - \tfrac1N \textstyle\sum_j Q_j (A_j\theta - b_j), \qquad
          \theta_\infty = \bigl(\sum_j Q_j A_j\bigr)^{-1} \sum_j Q_j b_j
                        = \theta^* - \bigl(\sum_j Q_j A_j\bigr)^{-1} \sum_j Q_j \nabla f_j(\theta^*).

The expectation over uniform cohorts is the same map, and a cohort is an affine map of the model alone, so that the
expectation of the model follows it exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality
from dualopt.engine import State, initial_state
from dualopt.objectives import Quadratic
from dualopt.xp import Array
from theory._chance import expectation
from theory._claims import ROUNDING
from theory.compared._cases import Federation
from theory.compared._one_step import smooth_and_strongly_convex

__all__ = ["compare_limits", "enough", "quadratic_clients"]


def compare_limits(case: Federation, Q: Array, r: float) -> Iterator[Inequality]:
    """Compare the expected models with their closed form and its limit, which they approach by the factor ``r``.

    In the end they must be nearer to the limit than to the solution, or the solution must be the limit.
    """
    f = case.objective
    pull = np.mean(Q @ f.A, axis=0)
    end = limit(case, Q)
    away = norm(end - f.zeros())
    expected, theta = f.zeros() - end, f.zeros()
    for n, theta in enumerate(mean_models(case), start=1):
        expected = expected - pull @ expected
        yield Inequality(n, norm(theta - end - expected) / away, ROUNDING, "closed form")
        yield Inequality(n, norm(theta - end) / away, r**n, "distance from the limit")
    bias = -np.linalg.solve(pull, np.mean(Q @ case.subgradients[..., None], axis=0))[:, 0]
    measured = theta - case.theta
    yield Inequality(case.rounds, norm(measured - bias) / away, r**case.rounds + ROUNDING, "bias")
    if norm(bias) > 3.0 * ROUNDING * away:
        yield Inequality(case.rounds, norm(theta - end), norm(measured), "nearer to the limit")


def norm(v: Array) -> float:
    """Return the Euclidean norm."""
    return float(np.linalg.norm(v))


def enough(r: float) -> int:
    """Return the number of rounds after which the factor ``r`` leaves only rounding.

    Examples
    --------
    >>> enough(0.5), enough(0.0)
    (34, 1)
    """
    return max(1, math.ceil(math.log(ROUNDING) / math.log(r))) if r > 0 else 1


def limit(case: Federation, Q: Array) -> Array:
    """Return the fixed point of the mean model."""
    f = case.objective
    return np.linalg.solve(np.sum(Q @ f.A, axis=0), np.sum(Q @ f.b[..., None], axis=0))[:, 0]


def mean_models(case: Federation) -> Iterator[Array]:
    """Yield the exact expectation of the model after each round from zero."""
    state = initial_state(case.algorithm, case.objective, case.objective.zeros())
    for _ in range(case.rounds):
        theta = expectation(lambda s: s.server.theta, case.algorithm, case.objective, state, case.outcomes)
        yield theta
        state = State(state.server._replace(theta=theta), theta, state.clients, state.solver)


def quadratic_clients(case: Federation) -> list[str]:
    """Return what fails: every client is a quadratic with a minimiser."""
    quadratic = [] if isinstance(case.objective, Quadratic) else ["quadratic clients"]
    return quadratic + smooth_and_strongly_convex(case)
