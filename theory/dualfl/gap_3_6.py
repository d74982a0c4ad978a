"""The local gap (3.6): a certificate when nu is below mu."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from dualopt.objectives.local_problem import client_dot
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import breast_cancer, logistic, quadratic
from theory.dualfl._assumptions import strongly_convex
from theory.dualfl._dual import conjugates, local_dual, steps
from theory.dualfl._methods import inexact


def gap_3_6_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield a few gradient steps, on quadratics and data; nu = mu, where the upper bound is infinite."""
    instances = [quadratic(), logistic()] if quick else [quadratic(), logistic(), breast_cancer()]
    for instance in instances:
        for multiple in (0.5, 0.9):
            few = inexact(instance, Steps(steps=5), rho=0.0, nu=multiple * instance.mu, solver=Gradient())
            yield ExpectedVerdict(instance.case(few, 10, f"nu = {multiple} mu"))
    f = logistic()
    yield ExpectedVerdict(f.case(inexact(f, Steps(steps=5), rho=0.0), 5, "nu = mu"), "outside assumptions")


@claim(
    source="Park and Xu, equation (3.6)",
    statement=r"For nu in (0, mu), at any $\theta_j$ with residual $r_j = \nabla E^{n,j}(\theta_j)$,"
    r" $\frac{|r_j|^2}{2(L-\nu)} \le \Gamma^{n,j}(\theta_j) \le \frac{|r_j|^2}{2(\mu-\nu)}$ (checked to 1e-10 of the"
    r" energies).",
    assumptions=lambda case: strongly_convex(case) or _strictly_below(case),
    rounding=0.0,
    cases=gap_3_6_cases,
)
def gap_3_6(case: Case) -> Iterator[Inequality]:
    """Compare every client's gap at its inexact point with both bounds."""
    nu, f = case.algorithm.nu, case.objective
    for s in steps(case):
        theta = s.snapshot.clients.theta
        residual = f.gradient(theta) - nu * s.zeta
        xi = nu * (s.zeta - theta)
        primal = f.value(theta) - nu * client_dot(s.zeta, theta)
        dual = local_dual(conjugates(f, nu, xi), xi, nu * s.zeta, nu)
        unknown = ROUNDING * (np.abs(primal) + np.abs(dual))  # the gap is a difference of energies
        squared = client_dot(residual, residual)
        lower, upper = squared / (2.0 * (f.L - nu)), squared / (2.0 * (f.mu - nu))
        for gap, least, most, allowance in zip(primal + dual, lower, upper, unknown, strict=True):
            yield Inequality(s.n, float(gap), float(most + allowance), "Gamma")
            yield Inequality(s.n, float(least), float(gap + allowance), "|r|^2/(2(L - nu))")


def _strictly_below(case: Case) -> list[str]:
    return [] if case.algorithm.nu < np.min(case.objective.mu) else ["nu < mu"]
