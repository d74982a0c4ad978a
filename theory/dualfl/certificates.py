"""Certificates: upper bounds of the error of a model that are computed without the solution.

Weak duality of (6.4) makes them: from the dual points of local solutions, or from the gradient of the model alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.certificates import certificate, dual_point
from dualopt.claims import Inequality, claim
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._cases import Case
from theory._claims import ExpectedVerdict
from theory._problems import a9a, absolute_deviation, breast_cancer, digits, hinge, logistic, quadratic
from theory.dualfl._runs import exact, inexact, initial_error


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
    trivial=initial_error,
    cases=dual_certificate_cases,
)
def dual_certificate(case: Case) -> Iterator[Inequality]:
    """Weak duality of (6.4): a bound from what the clients have computed already.

    Compare the true error of the model in every round with the weak duality of its local solutions.
    """
    f, mu, lowest = case.objective, float(np.sum(case.objective.mu)), case.value(case.theta)
    for n, s in enumerate(case.snapshots(), start=1):
        assert s.solution is not None  # everybody takes part
        point = dual_point(f, s.solution)
        assert point is not None  # local solvers evaluate
        energy = case.value(s.server.theta)
        dual = float(np.sum(point.conjugate) + np.sum(np.sum(point.dual, axis=0) ** 2) / (2.0 * mu))
        yield Inequality(n, energy - lowest, energy + dual / f.n_clients, "E - E*")


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
    trivial=initial_error,
    cases=gradient_certificate_cases,
)
def gradient_certificate(case: Case) -> Iterator[Inequality]:
    """Strong convexity: a bound from the gradient of any model.

    Compare the true error of the model in every round with its certificate.
    """
    lowest = case.value(case.theta)
    for n, s in enumerate(case.snapshots(), start=1):
        bound = certificate(case.objective, s.server.theta)
        yield Inequality(n, bound.energy - lowest, bound.gap, "E - E*")
