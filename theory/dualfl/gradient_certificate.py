"""The gradient certificate: an upper bound of the error of any model, without a reference solution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.certificate import certificate
from dualopt.claims import Case, Claim, Comparison
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._claims import Expectation
from theory._instances import a9a, breast_cancer, digits, hinge, logistic, quadratic
from theory.dualfl._methods import exact, inexact


def compare(case: Case) -> Iterator[Comparison]:
    """Compare the true error of the model in every round with its certificate."""
    optimum = float(np.mean(case.objective.value(case.theta)))
    for n, s in enumerate(case.snapshots(), start=1):
        bound = certificate(case.objective, s.server.theta)
        yield Comparison(n, bound.energy - optimum, bound.gap, "E - E*")


CLAIM = Claim(
    name="gradient_certificate",
    source="Strong convexity of E (the dual problem at equal points)",
    statement=r"$E(\theta) - E^* \le \frac{N}{2\sum_j\mu_j}|\nabla E(\theta)|^2$ for every $\theta$,"
    r" any subgradient when $E$ is nonsmooth.",
    compare=compare,
    trivial=lambda case: float(np.mean(case.objective.value(0.0 * case.theta) - case.objective.value(case.theta))),
)


def cases(quick: bool) -> Iterator[Expectation]:
    """Along good and poor runs; for the hinge loss subgradients stay large, and the bound says little."""
    for instance in [quadratic(), logistic()] + ([] if quick else [breast_cancer(), digits(), *a9a()]):
        yield Expectation(instance.case(exact(instance), 30, "exact"))
    for instance in (quadratic(), breast_cancer()):
        poor = inexact(instance, Steps(steps=2), rho=0.0, solver=Gradient())
        yield Expectation(instance.case(poor, 30, "two gradient steps"))
    yield Expectation(hinge().case(exact(hinge(), rho=0.0), 15, "exact"))
