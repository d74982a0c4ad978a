"""Certificates: upper bounds of the error of a model that are computed without the solution.

Weak duality of (6.4) makes them: from the dual points of local solutions, or from the gradient of the model alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedAvg, FedPD
from dualopt.objectives import Quadratic
from dualopt.runs.certificates import certificate, dual_point
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case, accurately
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import (
    a9a,
    absolute_deviation,
    breast_cancer,
    digits,
    hard_quadratic,
    hinge,
    logistic,
    lopsided,
    one_concave_client,
    one_flat_client,
    quadratic,
)
from theory.dualfl._runs import exact, inexact, initial_error


def proximal(instance: Case, rounds: int) -> Case:
    """Return FedPD, which needs no mu_j > 0, with exact local solutions that meet at the minimiser."""
    method = FedPD(eta=0.2 / instance.L, **accurately(instance.objective))
    return instance.case(method, rounds, "FedPD")


def descent(instance: Case, rounds: int) -> Case:
    """Return gradient descent on E, which ends up along its direction of least curvature."""
    method = FedAvg(solver=Gradient(step=1.0 / instance.L), stop=Steps(steps=1))
    return instance.case(method, rounds, "gradient descent")


def unequal() -> tuple[Case, ...]:
    """Return clients whose least, mean and greatest mu_j differ."""
    return lopsided(), one_flat_client(), one_concave_client()


def conjugates_of_dual_points_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Equal and unequal clients, far from and near the solution."""
    yield ExpectedVerdict(quadratic().case(exact(quadratic()), 10))
    yield ExpectedVerdict(hard_quadratic().case(exact(hard_quadratic()), 10))
    for instance in unequal():
        yield ExpectedVerdict(proximal(instance, 10))


@claim(
    source="The dual problem (6.4) with each client's own mu_j",
    statement=r"The dual points $\xi_j = \nabla f_j(\theta_j) - \mu_j\theta_j$ of quadratic clients"
    r" $\frac12\theta^\top A_j\theta - b_j^\top\theta + c_j$ lie in the domain of $g_j^*$,"
    r" $g_j = f_j - \frac{\mu_j}{2}|\cdot|^2$, with $\mu_j$ the least eigenvalue of $A_j$, and"
    r" $g_j^*(\xi_j) = \frac12(\xi_j+b_j)^\top(A_j-\mu_jI)^+(\xi_j+b_j) - c_j$ (both checked to 1e-10).",
    cases=conjugates_of_dual_points_cases,
)
def conjugates_of_dual_points(case: Case) -> Iterator[Inequality]:
    """Conjugates: the dual points are those of the clients' own mu_j.

    Compare with the pseudo-inverse, whose range is the domain of the conjugate.
    """
    f = case.objective
    assert isinstance(f, Quadratic)
    curvatures, vectors = np.linalg.eigh(f.A)
    above = curvatures - curvatures[:, :1]
    flat = above <= ROUNDING * curvatures[:, -1:]
    for n, s in enumerate(case.snapshots(), start=1):
        assert s.solution is not None  # everybody takes part
        point = dual_point(f, s.solution)
        assert point is not None  # local solvers evaluate
        dual, pull = (np.einsum("jkl,jk->jl", vectors, of) for of in (point.dual, f.b))  # in the eigenvectors
        right = dual + pull
        ends = (np.where(flat, dual, 0.0), np.where(flat, -pull, 0.0))
        yield Inequality(n, deviation(*ends, scale=_size(right)), ROUNDING, "domain of g_j*")
        squares = np.where(flat, 0.0, right**2 / np.where(flat, 1.0, above))
        found = 0.5 * np.sum(squares, axis=1) - (0.0 if f.c is None else f.c)
        yield Inequality(n, deviation(point.conjugate, found), ROUNDING, "g_j*")


def _size(x: np.ndarray) -> float:
    return float(np.max(np.abs(x)))


def dual_certificate_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Along good and poor runs of smooth losses, nonsmooth ones, and unequal clients."""
    for instance in [quadratic(), logistic()] + ([] if quick else [breast_cancer(), digits(), *a9a()]):
        poor = inexact(instance, Steps(steps=2), rho=0.0, solver=Gradient())
        yield ExpectedVerdict(instance.case(poor, 30, "two gradient steps"))
        yield ExpectedVerdict(instance.case(exact(instance), 30, "exact"))
    for instance in [hinge()] if quick else [hinge(), absolute_deviation()]:
        yield ExpectedVerdict(instance.case(exact(instance, rho=0.0), 20, "exact"))
    for instance in unequal():
        yield ExpectedVerdict(proximal(instance, 60))


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

    Compare the true error of the model in every round with the weak duality of its local solutions, and with the
    certificate that is made of it; that of the first model as well, for which late dual points are the best ones.
    """
    f, mu, lowest = case.objective, float(np.sum(case.objective.mu)), case.value(case.theta)
    first = case.first().server.theta
    for n, s in enumerate(case.snapshots(), start=1):
        assert s.solution is not None  # everybody takes part
        point = dual_point(f, s.solution)
        assert point is not None  # local solvers evaluate
        dual = float(np.sum(point.conjugate) + np.sum(np.sum(point.dual, axis=0) ** 2) / (2.0 * mu))
        for theta, of in ((first, "E - E* of the first model"), (s.server.theta, "E - E*")):
            energy, found = case.value(theta), certificate(f, theta, s.solution)
            yield Inequality(n, found.energy - lowest, found.gap, f"{of}, certified")
            yield Inequality(n, energy - lowest, energy + dual / f.n_clients, of)


def gradient_certificate_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Along good and poor runs; for the hinge loss subgradients stay large, and the bound says little."""
    for instance in [quadratic(), logistic()] + ([] if quick else [breast_cancer(), digits(), *a9a()]):
        yield ExpectedVerdict(instance.case(exact(instance), 30, "exact"))
    for instance in (quadratic(), breast_cancer()):
        poor = inexact(instance, Steps(steps=2), rho=0.0, solver=Gradient())
        yield ExpectedVerdict(instance.case(poor, 30, "two gradient steps"))
    yield ExpectedVerdict(hinge().case(exact(hinge(), rho=0.0), 15, "exact"))
    for instance in unequal():
        yield ExpectedVerdict(descent(instance, 60))


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
