"""Problems with known solutions: the solutions are right, by another route."""

from __future__ import annotations

import numpy as np
import pytest

from dualopt.objectives import Quadratic
from dualopt.runs.reference import cvxpy
from theory._cases import Case
from theory._problems import (
    absolute_deviation,
    breast_cancer,
    digits,
    flat_quadratic,
    hard_quadratic,
    hinge,
    hinge_without_ridge,
    logistic,
    quadratic,
    regularised,
)

INSTANCES = [
    quadratic(),
    hard_quadratic(),
    flat_quadratic(),
    logistic(),
    logistic(mu=0.0),
    hinge(),
    hinge_without_ridge(),
    absolute_deviation(),
    breast_cancer(),
    digits(),
]


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda i: f"{i.name} {i.mu:g}")
def test_subgradients_prove_that_the_solution_is_one(instance: Case) -> None:
    """They sum to zero, and each lies below its function: then theta minimises E, whatever solver found it."""
    f, theta, s = instance.objective, instance.theta, instance.subgradients
    assert np.abs(s.sum(axis=0)).max() <= 1e-8 * np.abs(s).max()
    rng = np.random.default_rng(0)
    for scale in (1e-3, -1e-3, 1.0, -1.0, 10.0):
        step = scale * rng.standard_normal(f.zeros().shape)
        rise = f.value(theta + step) - f.value(theta)
        least = (s * step).reshape(f.n_clients, -1).sum(axis=1) + 0.5 * f.mu * (step**2).sum()
        assert np.all(rise >= least - 1e-9 * (1.0 + np.abs(rise)))


@pytest.mark.parametrize("instance", [hinge(), absolute_deviation(), logistic()], ids=lambda i: i.name)
def test_cvxpy_finds_the_same_energy(instance: Case) -> None:
    energy = instance.objective.value(instance.theta).mean()
    assert abs(cvxpy(instance.objective).energy - energy) <= 1e-7 * energy


def test_a_wrong_solution_would_be_noticed() -> None:
    f = hinge()
    wrong = Case(name="", objective=f.objective, theta=f.theta + 1e-3, subgradients=f.subgradients)
    with pytest.raises(AssertionError):
        test_subgradients_prove_that_the_solution_is_one(wrong)


@pytest.mark.parametrize("instance", [quadratic(), logistic()], ids=lambda i: i.name)
def test_a_ridge_adds_its_energy(instance: Case) -> None:
    theta = instance.theta + 1.0
    added = regularised(instance.objective, 0.3).value(theta) - instance.objective.value(theta)
    np.testing.assert_allclose(added, 0.15 * (theta**2).sum(), rtol=1e-12)


def test_constants_are_those_of_the_name() -> None:
    assert (quadratic(L=200.0).mu, quadratic(L=200.0).L) == pytest.approx((1.0, 200.0))
    assert flat_quadratic().mu == pytest.approx(0.0, abs=1e-12)
    assert isinstance(hard_quadratic().objective, Quadratic)
    case = quadratic().case(None, 3, "note")
    assert isinstance(case, Case)
    assert case.name == "quadratics (N=3, kappa=50), note"
