"""The dual certificate: an upper bound from what the clients computed anyway."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.certificates import dual_point
from dualopt.claims import Case, Inequality, claim
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._claims import ExpectedVerdict
from theory._problems import a9a, absolute_deviation, breast_cancer, digits, hinge, logistic, quadratic
from theory.dualfl._methods import exact, inexact


def dual_certificate_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Along good and poor runs of smooth losses, and nonsmooth ones."""
    for instance in [quadratic(), logistic()] + ([] if quick else [breast_cancer(), digits(), *a9a()]):
        poor = inexact(instance, Steps(steps=2), rho=0.0, solver=Gradient())
        yield ExpectedVerdict(instance.case(poor, 30, "two gradient steps"))
        yield ExpectedVerdict(instance.case(exact(instance), 30, "exact"))
    for instance in [hinge()] if quick else [hinge(), absolute_deviation()]:
        yield ExpectedVerdict(instance.case(exact(instance, rho=0.0), 20, "exact"))


@claim(
    source="Weak duality of (6.4) with nu = mu",
    statement=r"$E(\theta) - E^* \le E(\theta)"
    r" + \frac1N\Bigl(\sum_j g_j^*(\xi_j) + \frac{|\sum_j\xi_j|^2}{2\sum_j\mu_j}\Bigr)$ for every $\theta$"
    r" and the dual points $\xi_j$ of any local solutions, $g_j = f_j - \frac{\mu_j}{2}|\cdot|^2$.",
    trivial=lambda case: float(np.mean(case.objective.value(0.0 * case.theta) - case.objective.value(case.theta))),
    cases=dual_certificate_cases,
)
def dual_certificate(case: Case) -> Iterator[Inequality]:
    """Compare the true error of the model in every round with the weak duality of its local solutions."""
    f, mu = case.objective, float(np.sum(case.objective.mu))
    optimum = float(np.mean(f.value(case.theta)))
    for n, s in enumerate(case.snapshots(), start=1):
        assert s.solution is not None  # everybody takes part
        point = dual_point(f, s.solution)
        assert point is not None  # local solvers evaluate
        energy = float(np.mean(f.value(s.server.theta)))
        dual = float(np.sum(point.conjugate) + np.sum(np.sum(point.dual, axis=0) ** 2) / (2.0 * mu))
        yield Inequality(n, energy - optimum, energy + dual / f.n_clients, "E - E*")
