"""Proposition 3.1: a local solution and its dual point have opposite energies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from dualopt.objectives.local_problem import client_dot
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import breast_cancer, hard_quadratic, logistic, quadratic
from theory.dualfl._assumptions import strongly_convex
from theory.dualfl._dual import conjugates, local_dual, steps
from theory.dualfl._methods import exact


def proposition_3_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics in closed form, logistic losses with conjugates by Newton's method; nu beyond mu."""
    for instance in [quadratic(), hard_quadratic(), logistic()] + ([] if quick else [breast_cancer()]):
        yield ExpectedVerdict(instance.case(exact(instance, nu=0.5 * instance.mu), 15, "nu = mu/2"))
    f = quadratic()
    yield ExpectedVerdict(f.case(exact(f, nu=2.0 * f.mu, rho=0.0), 5, "nu = 2 mu"), "outside assumptions")


@claim(
    source="Park and Xu, Proposition 3.1",
    statement=r"If $\theta_j$ solves (3.1) and nu in (0, mu], then $\xi_j = \nu(\zeta_j - \theta_j)$ solves (3.5), and"
    r" $E^{n,j}(\theta_j) + E_d^{n,j}(\xi_j) = 0$ (checked to 1e-10 of its terms).",
    assumptions=strongly_convex,
    rounding=0.0,
    cases=proposition_3_1_cases,
)
def proposition_3_1(case: Case) -> Iterator[Inequality]:
    """Compare the two energies at the uploaded points, the conjugate computed from its definition."""
    nu, f = case.algorithm.nu, case.objective
    for s in steps(case):
        sent = s.snapshot.clients.sent
        xi = nu * (s.zeta - sent)
        primal = f.value(sent) - nu * client_dot(s.zeta, sent)
        dual = local_dual(conjugates(f, nu, xi), xi, nu * s.zeta, nu)
        scale = float(np.max(np.abs(f.value(sent)) + nu * np.abs(client_dot(s.zeta, s.zeta))))
        yield Inequality(s.n, deviation(primal, -dual, scale=scale), ROUNDING, "E^{n,j} + E_d^{n,j}")
