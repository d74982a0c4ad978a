"""The helpers of the claims on DualFL: conjugates, the dual problem, FISTA's errors, and the bound."""

from __future__ import annotations

import math
from itertools import accumulate, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualopt.methods.dualfl import momentum
from theory._problems import breast_cancer, hinge, logistic, quadratic
from theory.dualfl._fista import Fista
from theory.dualfl._runs import conjugates, dual_optimum, dual_value, exact, initial_bound, path, weighted_distance
from theory.dualfl.inexact_solutions import Power, contractions, envelope


@pytest.mark.parametrize("instance", [quadratic(), logistic()], ids=lambda i: i.name)
def test_conjugates_satisfy_fenchel_and_young(instance) -> None:
    f, nu = instance.objective, 0.5 * instance.mu
    rng = np.random.default_rng(0)

    def g(theta):
        return f.value(theta) - 0.5 * nu * (theta**2).sum(axis=-1)

    theta, other = rng.standard_normal((2, f.n_clients, *f.shape))
    xi = f.gradient(theta) - nu * theta
    found = conjugates(f, nu, xi)
    np.testing.assert_allclose(found, (xi * theta).sum(axis=-1) - g(theta), rtol=1e-9)
    assert np.all(found > (xi * other).sum(axis=-1) - g(other))


def test_conjugates_are_infinite_beyond_mu() -> None:
    f = quadratic().objective
    assert np.isinf(conjugates(f, 1.5, f.b)).all()


@pytest.mark.parametrize("nu", [0.4, 0.9])
def test_both_ways_to_follow_the_dual_sequence_agree(nu: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed forms, and what local solutions carry."""
    f = quadratic()
    case = f.case(exact(f, nu=nu), 20)
    closed = list(path(case))
    monkeypatch.setattr("theory.dualfl._runs.Quadratic", str)  # nothing is a quadratic now
    for a, b in zip(closed, path(case), strict=True):
        np.testing.assert_allclose(a.xi, b.xi, atol=1e-11)
        assert a.dual_error == pytest.approx(b.dual_error, abs=1e-11)


@pytest.mark.parametrize("instance", [quadratic(), logistic(), hinge(), breast_cancer()], ids=lambda i: i.name)
@pytest.mark.parametrize("multiple", [0.5, 1.0])
def test_dual_errors_are_errors(instance, multiple: float) -> None:
    """Never negative, bounded below by the primal distance (6.13), and small at the end."""
    nu = multiple * instance.mu
    case = instance.case(exact(instance, rho=0.0, nu=nu), 25)
    steps = list(path(case))
    for step in steps:
        distance = 0.5 * instance.objective.n_clients * nu * ((step.theta - case.theta) ** 2).sum()
        assert weighted_distance(case, step.theta) == pytest.approx(distance)
        assert step.dual_error >= distance - 1e-10 * initial_bound(case)
    assert steps[-1].dual_error < 0.02 * initial_bound(case)


def test_the_dual_optimum_is_the_lowest_point() -> None:
    f = quadratic()
    case = f.case(exact(f, nu=0.5), 1)
    best, rng = dual_optimum(case), np.random.default_rng(0)

    def energy(xi):
        return dual_value(case, xi, conjugates(f.objective, 0.5, xi))

    assert energy(best) == pytest.approx(-f.objective.value(f.theta).sum(), rel=1e-12)
    assert all(energy(best + 1e-3 * rng.standard_normal(best.shape)) > energy(best) for _ in range(20))


def test_fista_makes_exactly_the_admitted_errors() -> None:
    """The first proximal problem, from eta = 0, evaluated by hand."""
    f, nu = quadratic().objective, 0.9

    def proximal(xi):
        return (conjugates(f, nu, xi) + (xi**2).sum(axis=1) / (2 * nu)).sum()

    exactly, perturbed = (
        next(Fista(rho=0.0, nu=nu, errors=Power(scale=scale, exponent=4.1)).sequence(f)).xi for scale in (0.0, 0.01)
    )
    assert proximal(perturbed) - proximal(exactly) == pytest.approx(0.01, rel=1e-9)


@given(rho=st.floats(0.0, 0.99))
def test_the_product_is_the_one_of_the_proof(rho: float) -> None:
    """The factors 1 - rho t_k of the telescoped inequality, over t_{n-1}^2."""
    ts = list(accumulate(range(30), lambda t, _: momentum(t, rho)[0], initial=1.0))
    for n, R in enumerate(islice(contractions(rho), 1, 30), start=1):
        telescoped = math.prod(1.0 - rho * t for t in ts[1 : n + 1]) / ts[n] ** 2
        assert pytest.approx(telescoped, rel=1e-9) == R


@given(
    errors=st.lists(st.floats(0.0, 10.0), min_size=1, max_size=20),
    nu=st.floats(0.01, 10.0),
    squared=st.floats(0.01, 100.0),
)
def test_the_bound_for_rho_0_is_at_most_that_of_schmidt_le_roux_and_bach(errors, nu, squared) -> None:
    for n, bound in enumerate(envelope(errors, rho=0.0, nu=nu, squared=squared), start=1):
        linear = sum(i * math.sqrt(2 * nu * e) for i, e in enumerate(errors[:n], start=1))
        square = sum(2 * nu * i**2 * e for i, e in enumerate(errors[:n], start=1))
        known = 2 / (nu * (n + 1) ** 2) * (math.sqrt(squared) + 2 * linear + math.sqrt(square)) ** 2
        assert bound <= known * (1 + 1e-12)


def test_the_bound_without_errors() -> None:
    found = list(envelope([0.0] * 10, rho=0.1, nu=0.5, squared=3.0))
    assert found == pytest.approx([3.0 * R for R in islice(contractions(0.1), 10)])
