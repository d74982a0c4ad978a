"""The gradient certificate: an upper bound of the error of any model, without a reference solution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.certificates import certificate
from dualopt.claims import Case, Inequality, claim
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._claims import ExpectedVerdict
from theory._problems import a9a, breast_cancer, digits, hinge, logistic, quadratic
from theory.dualfl._methods import exact, inexact


def gradient_certificate_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Along good and poor runs; for the hinge loss subgradients stay large, and the bound says little."""
    for instance in [quadratic(), logistic()] + ([] if quick else [breast_cancer(), digits(), *a9a()]):
        yield ExpectedVerdict(instance.case(exact(instance), 30, "exact"))
    for instance in (quadratic(), breast_cancer()):
        poor = inexact(instance, Steps(steps=2), rho=0.0, solver=Gradient())
        yield ExpectedVerdict(instance.case(poor, 30, "two gradient steps"))
    yield ExpectedVerdict(hinge().case(exact(hinge(), rho=0.0), 15, "exact"))


@claim(
    source="Strong convexity of E (the dual problem at equal points)",
    statement=r"$E(\theta) - E^* \le \frac{N}{2\sum_j\mu_j}|\nabla E(\theta)|^2$ for every $\theta$,"
    r" any subgradient when $E$ is nonsmooth.",
    trivial=lambda case: float(np.mean(case.objective.value(0.0 * case.theta) - case.objective.value(case.theta))),
    cases=gradient_certificate_cases,
)
def gradient_certificate(case: Case) -> Iterator[Inequality]:
    """Compare the true error of the model in every round with its certificate."""
    optimum = float(np.mean(case.objective.value(case.theta)))
    for n, s in enumerate(case.snapshots(), start=1):
        bound = certificate(case.objective, s.server.theta)
        yield Inequality(n, bound.energy - optimum, bound.gap, "E - E*")
