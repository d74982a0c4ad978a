r"""Runs of DualFL, and the dual problem (6.4) in which they are analysed.

With :math:`g_j = f_j - \frac{\nu}{2}|\cdot|^2`, the dual problem is

.. math:: \min_\xi E_d(\xi), \qquad
          E_d(\xi) = \sum_j g_j^*(\xi_j) + \tfrac{1}{2N\nu}\Bigl|\sum_j \xi_j\Bigr|^2, \qquad \min E_d = -N \min E,

and a run of DualFL is followed there at :math:`\xi_j^{(n)} = \nu(\zeta_j^{(n-1)} - \theta_j^{(n)})`, (6.9a).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import Snapshot
from dualopt.methods import CorrectedDualFL
from dualopt.objectives import LocalProblem, Quadratic
from dualopt.objectives.local_problem import client_dot
from dualopt.objectives.scales import own_clients
from dualopt.runs.certificates import dual_point
from dualopt.solvers import LBFGS, DualCoordinate, Exact, LocalSolver, NewtonCG
from dualopt.solvers.stopping import Gap, GradientNorm, Stop
from theory._cases import EPSILON, Case
from theory._claims import UP_TO_ROUNDING

__all__ = [
    "DualFLRound",
    "conjugates",
    "dual_optimum",
    "dual_value",
    "errors_of",
    "exact",
    "inexact",
    "initial_bound",
    "initial_error",
    "linear_regime",
    "local_dual",
    "local_energies",
    "path",
    "strongly_convex",
    "sublinear_regime",
    "suggested",
    "uploaded",
    "weighted_distance",
]

# Methods.


def exact(instance: Case, *, rho: float | None = None, nu: float | None = None) -> CorrectedDualFL:
    """Return DualFL with local solutions that are exact up to rounding; ``nu = mu``, ``rho = nu/L`` when not given.

    Quadratics are solved in closed form; smooth losses by Newton's method to a gradient of 1e-12; others by dual
    coordinate ascent to a gap of 1e-13, which answers with dual-corrected points.
    """
    nu = instance.mu if nu is None else nu
    rho = nu / instance.L if rho is None else rho
    solver, stop = _exact_solver(instance)
    return CorrectedDualFL(rho=rho, nu=nu, solver=solver, stop=stop)


def suggested(instance: Case) -> CorrectedDualFL:
    """Return DualFL with the parameters that it suggests, and local solutions that are exact up to rounding."""
    solver, stop = _exact_solver(instance)
    return CorrectedDualFL(solver=solver, stop=stop).suggested(instance.objective)


def inexact(
    instance: Case, stop: Stop, *, rho: float, nu: float | None = None, solver: LocalSolver | None = None
) -> CorrectedDualFL:
    """Return the dual-corrected DualFL whose local solver, L-BFGS when not given, is stopped by a rule."""
    nu = instance.mu if nu is None else nu
    return CorrectedDualFL(rho=rho, nu=nu, solver=solver or LBFGS(precondition=False), stop=stop)


def _exact_solver(instance: Case) -> tuple[LocalSolver, Stop]:
    if isinstance(own_clients(instance.objective), Quadratic):
        return Exact(), GradientNorm(tol=1e-12)
    if math.isfinite(instance.L):
        return NewtonCG(), GradientNorm(tol=1e-12)
    return DualCoordinate(max_iter=20_000), Gap(schedule=lambda _: 1e-13)


# Assumptions.


def strongly_convex(case: Case) -> list[str]:
    """Return what fails: ``nu`` lies in (0, mu]."""
    return [] if 0 < case.algorithm.nu <= case.mu * UP_TO_ROUNDING else ["0 < nu <= mu"]


def sublinear_regime(case: Case) -> list[str]:
    """Return what fails of the parameters of Theorem 3.2."""
    return strongly_convex(case) + ([] if case.algorithm.rho == 0 else ["rho = 0"])


def linear_regime(case: Case) -> list[str]:
    """Return what fails of the parameters of Theorem 3.3, with the printed range of rho: zero is admitted."""
    smooth = [] if math.isfinite(case.L) else ["L < inf"]
    admitted = 0 <= case.algorithm.rho <= case.algorithm.nu / case.L * UP_TO_ROUNDING
    return strongly_convex(case) + smooth + ([] if admitted else ["0 <= rho <= nu/L"])


# Bounds that need no theorem.


def initial_error(case: Case) -> float:
    r"""Return :math:`E(0) - E^*`."""
    return case.value(case.objective.zeros()) - case.value(case.theta)


def initial_bound(case: Case) -> float:
    r"""Return :math:`|\xi^*|^2/(2\nu)`, the dual error that one proximal gradient step from zero guarantees."""
    return float(np.sum(dual_optimum(case) ** 2)) / (2.0 * case.algorithm.nu)


# The dual problem.


def dual_optimum(case: Case) -> Array:
    r"""Return :math:`\xi_j^* = s_j - \nu\theta^*`, (6.5), for subgradients :math:`s_j` that sum to zero.

    Shape (N, *shape).
    """
    return case.subgradients - case.algorithm.nu * case.theta


def dual_value(case: Case, xi: Array, conjugate: Array) -> float:
    r"""Return :math:`E_d(\xi)` from the point and the values :math:`g_j^*(\xi_j)` of the conjugates."""
    return float(np.sum(conjugate) + np.sum(np.sum(xi, axis=0) ** 2) / (2.0 * len(xi) * case.algorithm.nu))


def local_dual(conjugate: Array, xi: Array, center: Array, nu: float) -> Array:
    r"""Return :math:`g_j^*(\xi_j) + \frac{1}{2\nu}|\xi_j - c_j|^2` for centers :math:`c_j`, shape (N,).

    This is (3.5) for :math:`c_j = \nu\zeta_j`, and the local problem of Lemma 6.4.
    """
    return conjugate + client_dot(xi - center, xi - center) / (2.0 * nu)


def local_energies(case: Case, zeta: Array, theta: Array) -> tuple[Array, Array]:
    r"""Return :math:`E^{n,j}(\theta_j)` of (3.1) and :math:`E_d^{n,j}(\nu(\zeta_j - \theta_j))` of (3.5), each (N,).

    Their sum is the gap (3.6).
    """
    nu, f = case.algorithm.nu, case.objective
    xi = nu * (zeta - theta)
    return f.value(theta) - nu * client_dot(zeta, theta), local_dual(conjugates(f, nu, xi), xi, nu * zeta, nu)


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


# Runs of DualFL in the dual.


def uploaded(s: Snapshot) -> Array:
    """Return the points that the clients sent: dual-corrected ones, or the local solutions."""
    return getattr(s.clients, "sent", s.clients.theta)


class DualFLRound(NamedTuple):
    """A round of DualFL and what it is in the dual; ``n`` counts from 1."""

    n: int
    snapshot: Snapshot
    zeta: Array  # zeta_j^(n-1), which the round started from
    xi: Array  # xi_j^(n) of (6.9a)
    dual_error: float  # E_d(xi^(n)) - min E_d
    rounding: float  # the dual error as computed exceeds the true one by no more than this
    local_error: float  # an upper bound of delta_n at dual-corrected points: see `errors_of`

    @property
    def theta(self) -> Array:
        """The model after the round."""
        return self.snapshot.server.theta


def path(case: Case) -> Iterator[DualFLRound]:
    r"""Run DualFL and follow it in the dual.

    Quadratics with ``nu < mu`` are followed at the uploaded points, :math:`\xi_j = \nu(\zeta_j - \theta_j)`, with
    conjugates in closed form. All others at the dual points of the local solutions, which are the same for the
    dual-corrected method, with the conjugates that come with them (exact for smooth losses, upper bounds for others).
    """
    nu, f = case.algorithm.nu, case.objective
    closed_form = isinstance(f, Quadratic) and nu < (1.0 - 1e-6) * np.min(f.mu)
    lowest = -case.n_clients * case.value(case.theta)
    zeta = np.zeros_like(case.subgradients)
    for n, s in enumerate(case.snapshots(), start=1):
        if closed_form:
            xi = nu * (zeta - uploaded(s))
            conjugate = conjugates(f, nu, xi)
        else:
            xi, conjugate = _from_local_solutions(f, nu, s.solution)
        assert s.solution is not None  # everybody takes part
        local_error = errors_of(case, s.solution)
        rounding = _dual_rounding(case, uploaded(s), xi, conjugate, closed_form=closed_form)
        yield DualFLRound(n, s, zeta, xi, dual_value(case, xi, conjugate) - lowest, rounding, local_error)
        zeta = s.clients.zeta


def errors_of(case: Case, solution: Any) -> float:
    r"""Return :math:`\sum_j|r_j|^2/(2\nu)` for the residuals :math:`r_j` of local solutions, or their gaps.

    A dual solver, for losses without gradients, ends at a point whose residual is zero for some subgradient; there the
    gap of the local problem and its dual (3.5) bounds the dual error. Only for nu = mu is (3.5) the solver's dual;
    otherwise nothing is known.
    """
    nu = case.algorithm.nu
    if math.isfinite(case.L):
        return float(np.sum(solution.evaluation.gradient**2)) / (2.0 * nu)
    same = np.max(np.abs(case.objective.mu - nu)) <= 1e-12 * nu
    return float(np.sum(solution.gap)) if same else math.inf


def _dual_rounding(case: Case, theta: Array, xi: Array, conjugate: Array, *, closed_form: bool) -> float:
    r"""Return the rounding of a dual error: 64 units in the last place of what is added.

    The conjugates that come with local solutions hold an allowance of 32 of them, to be upper bounds. Those in closed
    form are solutions of systems of condition :math:`(L - \nu)/(\mu - \nu)`.
    """
    nu, f = case.algorithm.nu, case.objective
    values, gradients = f.value_and_gradient(theta)
    size, slope = (np.sqrt(client_dot(x, x)) for x in (theta, gradients))
    condition = (f.L - nu) / (f.mu - nu) if closed_form else 1.0
    offset = f.c if closed_form and f.c is not None else 0.0
    terms = np.abs(values) + slope * size + condition * np.abs(conjugate + offset) + np.abs(offset)
    terms = terms + slope**2 / (8.0 * f.mu)  # of the allowance, for points xi_j that are rounded themselves
    average = float(np.sum(np.sum(xi, axis=0) ** 2)) / (2.0 * case.n_clients * nu)
    lowest = case.n_clients * abs(case.value(case.theta))
    return 64.0 * EPSILON * (float(np.sum(terms)) + average + lowest)


def _from_local_solutions(objective: Any, nu: float, solution: Any) -> tuple[Array, Array]:
    """Turn dual points of ``f_j - (mu_j/2)|.|^2`` into those of ``g_j``: their conjugate is an infimal convolution."""
    rest, theta, point = objective.mu - nu, solution.theta, dual_point(objective, solution)
    assert point is not None  # local solvers that sample have no place in these theorems
    if np.min(rest) < -1e-12 * nu:
        return point.dual, np.full(objective.n_clients, np.inf)
    column = rest.reshape(-1, *(1,) * len(objective.shape))
    return point.dual + column * theta, point.conjugate + 0.5 * rest * client_dot(theta, theta)


def weighted_distance(case: Case, theta: Array) -> float:
    r"""Return :math:`\frac{N\nu}{2}|\theta - \theta^*|^2`, at most the dual error of the same round by (6.13)."""
    return 0.5 * case.n_clients * case.algorithm.nu * case.distance(theta)
