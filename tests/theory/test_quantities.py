"""The quantities that proofs follow: conjugates, dual errors, bounds, moments over all outcomes, ranges."""

from __future__ import annotations

import math
from itertools import accumulate, islice, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from dualopt.engine.rounds import iterate
from dualopt.lab.chance import Branch
from dualopt.methods import FedPD
from dualopt.methods.dualfl import momentum
from dualopt.methods.participation import CommunicateWithProbability, Full
from dualopt.objectives import LocalProblem
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case
from theory._claims import discover
from theory._problems import breast_cancer, hinge, logistic, lopsided, quadratic
from theory._rounds import branches, histories, mean_square_radius
from theory.afedpd._runs import (
    afedpd_case,
    duals,
    fixed_point,
    matrices,
    one_concave,
    pulled_apart,
    squared_gradients,
    start_vector,
    two_signs,
)
from theory.afedpd._runs import path as afedpd_path
from theory.afedpd.partial import all_gradients
from theory.dualfl._fista import Fista
from theory.dualfl._runs import conjugates, dual_optimum, dual_value, exact, initial_bound, path, weighted_distance
from theory.dualfl.inexact_solutions import Power, contractions, envelope
from theory.fedpd import descent, first_version, skipping
from theory.fedpd._draws import Samples, rows, sampled, squares
from theory.fedpd._runs import LIMIT, residuals


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


# FedPD and A-FedPD.


@pytest.mark.parametrize("skip", [0.1, 0.5, 0.8])
def test_skipping_within_remark_5_and_not_beyond(skip: float) -> None:
    """The printed penalty increases, and the largest admitted p is where it meets the accuracy."""
    L, eta = 3.0, skipping.TABLE_A / 3.0
    ratio = 3.0 * skipping.penalty(skip, L=L, eta=eta)
    assert skipping.largest_skip(ratio, L=L, eta=eta) == pytest.approx(skip, rel=1e-9)
    assert skipping.largest_skip(1.01 * ratio, L=L, eta=eta) > skip
    values = [skipping.penalty(p, L=L, eta=eta) for p in np.linspace(0.0, 0.98, 500)]
    assert np.all(np.diff(values) > 0)


def test_ratios_that_are_not_positive_are_refused() -> None:
    with pytest.raises(ValueError, match=r"ratio must be positive, not 0\.0"):
        skipping.largest_skip(0.0, L=1.0, eta=0.1)


@pytest.mark.parametrize("a", np.linspace(0.01, 0.3, 8))
@pytest.mark.parametrize("L", [1e-3, 1.0, 1e3])
def test_the_repaired_constants_of_the_paper_are_the_larger_ones(L: float, a: float) -> None:
    known = {"L": L, "eta": a / L}
    C2, C4 = descent.appendix_constants(**known, repaired=True)
    assert descent.decrease_factor(**known) < C2 / 2.9
    # the first rounds' term and the 4 of the gradient have a dimension that C4 lacks: they are within C/L
    assert descent.accuracy_factor(**known, rounds=1) < C4


def test_the_expected_range_is_that_of_all_outcomes() -> None:
    values = np.random.default_rng(0).integers(0, 4, (3, 5)).astype(float)
    ranges = [max(outcome) - min(outcome) for outcome in product(*values)]
    assert first_version.expected_range(values) == pytest.approx(np.mean(ranges))


def test_expected_squares_are_those_of_all_histories() -> None:
    """Second moments against every draw and coin of three rounds, one after the other."""
    case = sampled("rows", rows(noise=0.3), a=0.2, rounds=3, skip=0.5)
    found = list(squares(case))
    level = [(1.0, case.first())]
    for n, expected in enumerate(found):
        slope = sum(p * case.squared_gradient(np.mean(s.clients.x0, axis=0)) for p, s in level)
        assert expected.squared_gradient == pytest.approx(slope)
        after = [(p, b) for p, s in level for b in branches(case.algorithm, case.objective, s, case.events(n))]
        assert expected.errors == pytest.approx(sum(p * b.probability * residuals(b) for p, b in after))
        level = [(p * b.probability, b.state) for p, b in after]


def test_drawn_rows_are_those_of_the_method_on_samples() -> None:
    """The mean of a step over all rows is a gradient step, and each is the step of the package on that row."""
    data = rows(noise=0.3)
    problem = LocalProblem(objective=data.objective, weight=5.0, center=np.ones(2))
    start, solvers = np.ones((2, 2)), [Samples(data=data, length=0.1, rows=((k,), (k,))) for k in (0, 1)]
    ends = [solver(problem, start, Steps(steps=1)).theta for solver in solvers]
    whole = Gradient(step=0.1)(problem, start, Steps(steps=1)).theta
    assert np.mean(ends, axis=0) == pytest.approx(whole)
    assert float(np.abs(ends[0] - ends[1]).max()) > 1e-2


def test_the_guarantee_says_what_skipped_rounds_lack() -> None:
    """The gradient vanishes if every round communicates; with skipped rounds it does not, and Theorem 3 says so."""
    f = lopsided().objective
    method = FedPD(eta=0.9 * LIMIT / float(f.L.max()), solver=Exact())
    assert method.guarantee(f).startswith("Theorem 1: the mean of |grad E|^2 = O(1/T); ")
    said = method.guarantee(f, CommunicateWithProbability(probability=0.5))
    assert said.startswith("Theorem 3: a bound that does not vanish")
    ends = []
    for rule in (Full(), CommunicateWithProbability(probability=0.5)):
        *_, last = islice(iterate(method, f, participation=rule), 1000)
        ends.append(float(np.linalg.norm(np.mean(f.gradient(last.server.theta), axis=0))))
    assert ends[0] < 1e-9
    assert ends[1] > 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_all_gradients_are_the_sum_over_the_rounds(seed: int) -> None:
    """The equation for Y, beside the moments of 3000 rounds."""
    start = np.random.default_rng(seed).standard_normal(1)
    case = afedpd_case(pulled_apart(4), rho=3.0, active=2, rounds=3000, theta0=start)
    w = (start_vector(case) - fixed_point(case))[:-1]
    assert w @ all_gradients(case) @ w == pytest.approx(sum(squared_gradients(case)), rel=1e-9)


def test_the_error_term_cannot_vanish_with_rho() -> None:
    """A9: a constant residual leaves |grad E|^2 = epsilon, whatever rho is."""
    for case, _ in discover()["a9_error_term"].cases(True):
        last = afedpd_path(case.case)[-1].taken.bar
        assert case.case.squared_gradient(last) == pytest.approx(0.09, rel=1e-6)


def radius(case: Case) -> float:
    return mean_square_radius(matrices(case))


@pytest.mark.parametrize("n", [3, 5, 10, 50])
def test_the_end_of_the_range_is_where_the_derivation_says(n: int) -> None:
    """A factor -1 per round for one concave client of n, at the root of the equation in afedpd_range_of_rho."""
    excess = 0.1

    def equation(u: float) -> float:
        v = (1.0 + excess) * u / (n - 1)
        return (1.0 + u) / (2.0 * u - 1.0) - n - (n - 1) * (1.0 - v) / (1.0 + 2.0 * v)

    rho = 1.0 / float(brentq(equation, 0.5 + 1e-9, 1.2))  # pyright: ignore[reportArgumentType]
    f = one_concave(n, excess=excess)
    factors = [radius(afedpd_case(f, rho=c * rho, active=n, rounds=1)) for c in (0.999, 1.0, 1.001)]
    assert factors[0] > 1.0
    assert factors[1] == pytest.approx(1.0, abs=1e-9)
    assert factors[2] < 1.0


def test_two_clients_of_opposite_curvature() -> None:
    """Where A-FedPD begins to converge on 3x^2/2 and -x^2/2, far below the range that can be proved."""
    rhos = (1.2, 1.3, 1.4)
    radii = [radius(afedpd_case(two_signs(), rho=rho, active=2, rounds=1)) ** 0.5 for rho in rhos]
    assert radii == pytest.approx([1.195, 1.004, 0.892], abs=1e-3)


def test_exact_moments_are_those_of_all_paths() -> None:
    """Three rounds with two of three clients, enumerated."""
    case = afedpd_case(pulled_apart(3), rho=2.0, active=2, rounds=3)
    expected = list(histories(case))

    def square(b: Branch) -> float:
        return case.squared_gradient(b.state.server.theta - duals(b.state).mean(axis=0) / case.rho)

    means = [E[square] for E in expected]
    assert [len(E.found) for E in expected] == [3, 9, 27]
    assert list(squared_gradients(case)) == pytest.approx(means, rel=1e-12)


def test_duals_stay_equal_with_one_active_client() -> None:
    found = afedpd_path(afedpd_case(pulled_apart(3), rho=4.0, active=1, rounds=20))[-1].taken.duals
    np.testing.assert_allclose(found, np.broadcast_to(found[0], found.shape), rtol=0, atol=1e-14)
