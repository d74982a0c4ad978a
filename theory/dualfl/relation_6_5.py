"""Relation (6.5): the primal solution is the averaged dual one, and so in every round."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from dualopt.objectives import Quadratic
from dualopt.xp import Array
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import breast_cancer, hinge, logistic, quadratic
from theory.dualfl._assumptions import strongly_convex
from theory.dualfl._dual import conjugates, dual_optimum, dual_value
from theory.dualfl._methods import exact
from theory.dualfl.lemma_6_5 import dual_sequences


def relation_6_5_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Independent dual solutions of quadratics; gradients or, for the hinge loss, multipliers at the reference."""
    for instance in [quadratic(), logistic(), hinge()] + ([] if quick else [breast_cancer()]):
        yield ExpectedVerdict(instance.case(exact(instance, nu=0.5 * instance.mu, rho=0.0), 15, "nu = mu/2"))


@claim(
    source="Park and Xu, equation (6.5)",
    statement=r"$\theta^* = -\frac{1}{N\nu}\sum_j\xi_j^*$, $\xi_j^* = \nabla g_j(\theta^*)$, $N E^* + E_d^* = 0$; and"
    r" $\theta^n = -\frac{1}{N\nu}\sum_j\xi_j^n$ in every round (checked to 1e-10).",
    assumptions=strongly_convex,
    rounding=0.0,
    cases=relation_6_5_cases,
)
def relation_6_5(case: Case) -> Iterator[Inequality]:
    r"""Check the relation in every round, and at the end with a dual solution.

    The round: :math:`\theta^n = -\frac{1}{N\nu}\sum_j\xi_j^n`. The solution: of the linear dual problem for quadratics,
    else the reference's. Where conjugates can be computed, also strong duality :math:`N E^* + E_d^* = 0`.
    """
    nu, f, N = case.algorithm.nu, case.objective, case.objective.n_clients
    scale = float(np.max(np.abs(case.theta)))
    for n, ((xi, _), s) in enumerate(zip(dual_sequences(case), case.snapshots(), strict=True), start=1):
        averaged = -np.sum(xi, axis=0) / (N * nu)
        yield Inequality(n, deviation(s.server.theta, averaged, scale=scale), ROUNDING, "theta^n + mean xi^n/nu")
    xi = _dual_solution(f, nu) if isinstance(f, Quadratic) else dual_optimum(case)
    n = case.rounds
    yield Inequality(n, deviation(case.theta, -np.sum(xi, axis=0) / (N * nu), scale=scale), ROUNDING, "theta*")
    if np.isfinite(f.L).all():
        yield Inequality(n, deviation(xi, f.gradient(case.theta) - nu * case.theta), ROUNDING, "xi* - grad g(theta*)")
        best = float(np.sum(f.value(case.theta)))
        yield Inequality(n, deviation(best, -dual_value(case, xi, conjugates(f, nu, xi))), ROUNDING, "N E* + E_d*")


def _dual_solution(f: Quadratic, nu: float) -> Array:
    r"""Solve :math:`(A_j - \nu I)^{-1}(\xi_j + b_j) + \frac{1}{N\nu}\sum_i \xi_i = 0` as one linear system."""
    N, d = f.b.shape
    inverse = np.linalg.inv(f.A - nu * np.eye(d))
    system = np.tile(np.eye(d) / (N * nu), (N, N))
    for j in range(N):
        system[j * d : (j + 1) * d, j * d : (j + 1) * d] += inverse[j]
    right = -np.einsum("jkl,jl->jk", inverse, f.b).reshape(-1)
    return np.linalg.solve(system, right).reshape(N, d)
