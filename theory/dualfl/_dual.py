r"""The dual problem (6.4) and the sequences that DualFL leaves on it.

With :math:`g_j = f_j - \frac{\nu}{2}|\cdot|^2`, the dual problem is
:math:`E_d(\xi) = \sum_j g_j^*(\xi_j) + \frac{1}{2N\nu}|\sum_j \xi_j|^2`, and :math:`\min E_d = -N \min E`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dualopt.certificates import dual_point
from dualopt.claims import Case
from dualopt.objectives import LocalProblem, Quadratic
from dualopt.objectives.local_problem import client_dot
from dualopt.solvers import NewtonCG
from dualopt.stopping import GradientNorm
from dualopt.xp import Array

__all__ = ["Step", "conjugates", "dual_optimum", "dual_value", "local_dual", "steps", "trivial"]


class Step(NamedTuple):
    """One round of DualFL with what it means in the dual; ``n`` counts from 1."""

    n: int
    snapshot: Any
    zeta: Array  # zeta_j^(n-1), which the round started from
    xi: Array  # xi_j^(n) of (6.9a)
    dual_error: float  # E_d(xi^(n)) - min E_d
    local_error: float  # sum_j |r_j|^2/(2 nu), an upper bound of delta_n at the dual-corrected points


def dual_optimum(case: Case) -> Array:
    r"""Return :math:`\xi_j^* = s_j - \nu\theta^*` (6.5) for subgradients :math:`s_j` that sum to zero.

    Shape (N, *shape).
    """
    return case.subgradients - case.algorithm.nu * case.theta


def trivial(case: Case) -> float:
    r"""Return :math:`|\xi^*|^2/(2\nu)`, the dual error that one proximal gradient step already guarantees."""
    return float(np.sum(dual_optimum(case) ** 2)) / (2.0 * case.algorithm.nu)


def dual_value(case: Case, xi: Array, conjugate: Array) -> float:
    """Return ``E_d(xi)`` from the points and the values of the conjugates there."""
    return float(np.sum(conjugate) + np.sum(np.sum(xi, axis=0) ** 2) / (2.0 * len(xi) * case.algorithm.nu))


def local_dual(conjugate: Array, xi: Array, centre: Array, nu: float) -> Array:
    r"""Return :math:`g_j^*(\xi_j) + \frac{1}{2\nu}|\xi_j - \text{centre}_j|^2`, shape (N,): (3.5) and Lemma 6.4."""
    return conjugate + client_dot(xi - centre, xi - centre) / (2.0 * nu)


def conjugates(objective: Any, nu: float, xi: Array) -> Array:
    r"""Evaluate :math:`g_j^*(\xi_j)` from its definition, shape (N,).

    In closed form for quadratics; by Newton's method on :math:`g_j - \langle\xi_j, \cdot\rangle`, which must then be
    strongly convex (``nu < mu``), for other smooth objectives. It is infinite for all ``xi`` when ``nu > mu``.

    Examples
    --------
    >>> f = Quadratic(A=np.array([[[3.0]]]), b=np.array([[1.0]]))  # g = theta^2 - theta for nu = 1
    >>> conjugates(f, 1.0, np.array([[1.0]])).tolist()
    [1.0]
    """
    if np.min(objective.mu) < nu * (1.0 - 1e-12):
        return np.full(objective.n_clients, np.inf)
    if isinstance(objective, Quadratic):
        right = xi + objective.b
        solution = np.linalg.solve(objective.A - nu * np.eye(objective.shape[0]), right[..., None])[..., 0]
        return 0.5 * client_dot(right, solution) - (0.0 if objective.c is None else objective.c)
    problem = LocalProblem(objective=objective, linear=-xi, weight=-nu, center=objective.zeros())
    found = NewtonCG()(problem, np.zeros_like(xi), GradientNorm(tol=1e-12))
    return -problem.value(found.theta)


def steps(case: Case) -> Iterator[Step]:
    r"""Run DualFL and follow the dual sequence.

    Quadratics with ``nu < mu`` are followed at :math:`\xi_j = \nu(\zeta_j - \text{sent}_j)`, with conjugates in closed
    form. All others at the dual points of the local solutions, which are the same for the dual-corrected method,
    with the conjugates that come with them (exact for smooth losses, upper bounds for others).
    """
    nu, f = case.algorithm.nu, case.objective
    closed_form = isinstance(f, Quadratic) and nu < (1.0 - 1e-6) * np.min(f.mu)
    best = -f.n_clients * float(np.mean(f.value(case.theta)))
    zeta = np.zeros_like(case.subgradients)
    for n, s in enumerate(case.snapshots(), start=1):
        if closed_form:
            xi = nu * (zeta - s.clients.sent)
            conjugate = conjugates(f, nu, xi)
        else:
            xi, conjugate = _from_local_solutions(f, nu, s.solution)
        assert s.solution is not None  # everybody takes part
        local_error = float(np.sum(s.solution.evaluation.gradient**2)) / (2.0 * nu)
        yield Step(n, s, zeta, xi, dual_value(case, xi, conjugate) - best, local_error)
        zeta = s.clients.zeta


def _from_local_solutions(objective: Any, nu: float, solution: Any) -> tuple[Array, Array]:
    """Turn dual points of ``f_j - (mu_j/2)|.|^2`` into those of ``g_j``: their conjugate is an infimal convolution."""
    rest, theta, point = objective.mu - nu, solution.theta, dual_point(objective, solution)
    assert point is not None  # local solvers that sample have no place in these theorems
    if np.min(rest) < -1e-12 * nu:
        return point.dual, np.full(objective.n_clients, np.inf)
    column = rest.reshape(-1, *(1,) * len(objective.shape))
    return point.dual + column * theta, point.conjugate + 0.5 * rest * client_dot(theta, theta)
