"""The dual certificate: an upper bound from what the clients computed anyway."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Claim, Comparison
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._claims import Expectation
from theory._instances import a9a, absolute_deviation, breast_cancer, digits, hinge, logistic, quadratic
from theory.dualfl._methods import exact, inexact


def compare(case: Case) -> Iterator[Comparison]:
    """Compare the true error of the model in every round with the weak duality of its local solutions."""
    f, mu = case.objective, float(np.sum(case.objective.mu))
    optimum = float(np.mean(f.value(case.theta)))
    for n, s in enumerate(case.snapshots(), start=1):
        assert s.work is not None  # everybody takes part
        energy = float(np.mean(f.value(s.server.theta)))
        dual = float(np.sum(s.work.conjugate) + np.sum(np.sum(s.work.dual, axis=0) ** 2) / (2.0 * mu))
        yield Comparison(n, energy - optimum, energy + dual / f.n_clients, "E - E*")


CLAIM = Claim(
    name="dual_certificate",
    source="Weak duality of (6.4) with nu = mu",
    statement=r"$E(\theta) - E^* \le E(\theta)"
    r" + \frac1N\Bigl(\sum_j g_j^*(\xi_j) + \frac{|\sum_j\xi_j|^2}{2\sum_j\mu_j}\Bigr)$ for every $\theta$"
    r" and the dual points $\xi_j$ of any local solutions, $g_j = f_j - \frac{\mu_j}{2}|\cdot|^2$.",
    compare=compare,
    trivial=lambda case: float(np.mean(case.objective.value(0.0 * case.theta) - case.objective.value(case.theta))),
)


def cases(quick: bool) -> Iterator[Expectation]:
    """Along good and poor runs of smooth losses, and nonsmooth ones."""
    for instance in [quadratic(), logistic()] + ([] if quick else [breast_cancer(), digits(), *a9a()]):
        poor = inexact(instance, Steps(steps=2), rho=0.0, solver=Gradient())
        yield Expectation(instance.case(poor, 30, "two gradient steps"))
        yield Expectation(instance.case(exact(instance), 30, "exact"))
    for instance in [hinge()] if quick else [hinge(), absolute_deviation()]:
        yield Expectation(instance.case(exact(instance, rho=0.0), 20, "exact"))
