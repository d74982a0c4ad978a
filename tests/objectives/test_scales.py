"""Clients with weights and with scales: the same E, constants and derivatives, and local problems of the user's own."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from itertools import islice, product
from typing import Any

import numpy as np
import pytest
from model_instances import LOSSES, model, on, points, rows

from dualopt.arrays.xp import to_numpy
from dualopt.engine.rounds import iterate
from dualopt.losses import Logistic, Multinomial
from dualopt.methods import FedProx
from dualopt.methods.preparation import SketchedMetric
from dualopt.objectives import Composite, LocalProblem, NonconvexPenalty, Quadratic, linear_model, reweighted
from dualopt.objectives.scales import common_scales, in_own_units, own_clients, scales_of
from dualopt.regularisers import L2
from dualopt.runs.certificates import certificate
from dualopt.runs.reference import newton
from dualopt.solvers import AOGM, SGD, Gradient, Nesterov, NewtonCG, Sarah, default_solver
from dualopt.solvers.stopping import Gap, GradientNorm, GradientReduction, Steps
from tests.problems import hinge, lopsided, one_flat_client

WEIGHTS = (5.0, 0.3, 1.0, 2.0, 0.7, 8.0, 1.0)  # of the seven clients of the models
SCALES = (1.0, 20.0, 0.3, 4.0, 4.0, 0.01, 2.0)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_e_and_all_that_is_known_of_the_clients(loss, backend) -> None:
    data = rows(loss)
    plain = model(loss, on(backend, data), client_weights=WEIGHTS)
    f, s = reweighted(plain, SCALES), np.array(SCALES) * sum(WEIGHTS) / np.dot(WEIGHTS, SCALES)
    like = backend(points(model(loss, data)))
    np.testing.assert_allclose(f.scales, s, rtol=1e-14)
    np.testing.assert_allclose(f.weights, WEIGHTS * s, rtol=1e-14)
    assert math.fsum(f.weights) == pytest.approx(sum(WEIGHTS), rel=1e-14)
    column = s.reshape(-1, *(1,) * (like.ndim - 1))
    for name in ("mu", "L"):
        np.testing.assert_allclose(to_numpy(getattr(f, name)), to_numpy(getattr(plain, name)) / s, rtol=1e-14)
    np.testing.assert_allclose(to_numpy(f.value(like)), to_numpy(plain.value(like)) / s, rtol=1e-14)
    np.testing.assert_allclose(to_numpy(f.gradient(like)), to_numpy(plain.gradient(like)) / column, rtol=1e-14)
    for mine, other in ((f.mean(f.value(like)), plain.mean(plain.value(like))), (f.mean_mu, plain.mean_mu)):
        assert float(mine) == pytest.approx(float(other), rel=1e-13)
    gradients = (to_numpy(g.mean(g.gradient(like))) for g in (f, plain))
    np.testing.assert_allclose(*gradients, rtol=1e-12, atol=1e-13)
    some = f.select([5, 1])
    assert some.scales == (f.scales[5], f.scales[1])
    both = to_numpy(some.value(like[0, ...])), to_numpy(f.value(like[0, ...]))[[5, 1]]
    np.testing.assert_allclose(*both, rtol=1e-14)
    assert (some.offers, some.sizes) == (plain.offers, (plain.sizes[5], plain.sizes[1]))


def test_a_direction_may_be_shared_by_all_clients() -> None:
    f = reweighted(model(Logistic(), rows(Logistic())), SCALES)
    for times in (f.preconditioner(0.1), f.hessian_operator(f.zeros())):
        v = points(f)[0]
        np.testing.assert_array_equal(times(v), times(np.stack([v] * 7)))


def test_the_weighted_mean_is_the_sum_over_weights() -> None:
    f = model(Logistic(), rows(Logistic()), client_weights=WEIGHTS)
    x = points(f)[0]
    values = f.value(np.stack([x] * 7))
    expected = math.fsum(w * v for w, v in zip(WEIGHTS, values, strict=True)) / sum(WEIGHTS)
    assert float(f.mean(values)) == pytest.approx(expected)
    assert f.unequal_weights == WEIGHTS
    equal = model(Logistic(), rows(Logistic()), client_weights=(3.0,) * 7)
    assert (equal.shares, equal.unequal_weights) == (None, None)
    np.testing.assert_array_equal(equal.mean(values), model(Logistic(), rows(Logistic())).mean(values))
    with pytest.raises(AssertionError):  # the weights matter
        np.testing.assert_allclose(f.mean(values), equal.mean(values), rtol=1e-3)


def test_rounding_is_bounded_in_the_units_of_the_method() -> None:
    """Values and gradients in single precision, from which the bounds must tell those in double."""
    data = rows(Logistic(), seed=3)
    single = model(Logistic(), data._replace(X=data.X.astype(np.float32), y=data.y.astype(np.float32)))
    double = model(Logistic(), data._replace(X=data.X.astype(np.float32).astype(float)))
    x = points(single).astype(np.float32)
    f, exact = reweighted(single, SCALES), reweighted(double, SCALES)
    values, gradients = f.value_and_gradient(x)
    bound = f.rounding(x, values, gradients)
    off = np.linalg.norm(gradients - exact.gradient(x.astype(float)), axis=1)
    assert np.all(np.abs(values - exact.value(x.astype(float))) <= bound.value)
    assert np.all(off <= bound.gradient)
    assert np.all(bound.gradient < 1e-3 * (1.0 + np.linalg.norm(gradients, axis=1)))
    assert np.all(exact.mu - exact.mu_rounding <= double.mu / np.array(exact.scales))


EPS, LEAST = 2.0**-52, 2.0**-1022


def test_what_scales_add_to_the_bounds_of_rounding_term_by_term() -> None:
    """Scales 1/2 and 2: what they divide stays exact. At zero what may underflow counts alone."""
    diagonal = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([3.0, 8.0])]), b=np.ones((2, 2)), weights=(2.0, 1.0))
    f = reweighted(diagonal, (1.0, 4.0))
    assert f.scales == (0.5, 2.0)
    assert f.mu_rounding.tolist() == [8.0 * EPS * (1.0 + 4.0 * EPS), 6.0 * EPS * (1.0 + 4.0 * EPS)]
    X, y = np.array([[1.0, -2.0], [0.5, 3.0], [4.0, 0.25]]), np.array([1.0, -1.0, 1.0])
    options: dict[str, Any] = {"loss": Logistic(), "mu": 0.7, "clients": [[0, 1], [2]], "intercept": False}
    linear, s = linear_model(X, y, client_weights=diagonal.weights, **options), np.array([0.5, 2.0])
    flat = replace(diagonal, b=np.zeros((2, 2)))
    for size, plain in product((0.0, 1.0), (linear, flat, NonconvexPenalty(objective=flat))):
        value, gradient = size * np.array([0.4, -3.0]), size * np.array([[3.0, -4.0], [0.6, 0.8]])
        theta = size * np.array([[0.1, 2.0], [-0.3, 0.2]])
        for excess in (None, np.array([0.3, 0.9])):
            given = None if excess is None else s * excess
            own = plain.rounding(theta, s * value, s[:, None] * gradient, given)
            found = reweighted(plain, (1.0, 4.0)).rounding(theta, value, gradient, excess)
            np.testing.assert_allclose(found.value, own.value / s + 8.0 * EPS * np.abs(value) + LEAST, rtol=1e-14)
            norms = size * np.array([5.0, 1.0])
            np.testing.assert_allclose(found.gradient, own.gradient / s + 8.0 * EPS * norms + 2 * LEAST, rtol=1e-14)


def test_derivatives_and_solutions_are_those_of_clients_that_are_written_out() -> None:
    f = reweighted(lopsided(), (3.0, 0.2, 5.0, 1.0))
    s, rng = np.array(f.scales), np.random.default_rng(2)
    out = Quadratic(A=lopsided().A / s[:, None, None], b=lopsided().b / s[:, None], weights=f.weights)
    v, linear, center = rng.standard_normal((3, 4, 4))
    for weight in (0.7, np.array([0.1, 2.0, 0.5, 9.0])):
        np.testing.assert_allclose(f.preconditioner(weight)(v), out.preconditioner(weight)(v), rtol=1e-11)
        problems = [LocalProblem(objective=g, linear=linear, weight=weight, center=center) for g in (f, out)]
        np.testing.assert_allclose(f.exact_minimiser(problems[0]), out.exact_minimiser(problems[1]), rtol=1e-11)
    np.testing.assert_allclose(f.preconditioner()(v), out.preconditioner()(v), rtol=1e-11)
    np.testing.assert_allclose(f.hessian_operator(v)(v), out.hessian_operator(v)(v), rtol=1e-12)


def test_terms_of_local_problems_are_multiplied_by_the_scales() -> None:
    f = Quadratic(A=np.stack([np.eye(1), 9.0 * np.eye(1)]), b=np.ones((2, 1)), weights=(2.0, 1.0))
    g, s = reweighted(f, (1.0, 4.0)), [0.5, 2.0]
    bare = in_own_units(LocalProblem(objective=g))
    assert (bare.linear, bare.weight, bare.center) == (None, 0.0, None)
    assert bare.unit is not None
    assert bare.unit.tolist() == s
    full = LocalProblem(
        objective=g, linear=np.array([[3.0], [5.0]]), weight=7.0, center=np.ones(1), unit=np.full(2, 3.0)
    )
    own: Any = in_own_units(full)
    assert own.linear.tolist() == [[1.5], [10.0]]
    assert own.weight.tolist() == [3.5, 14.0]
    assert own.unit.tolist() == [1.5, 6.0]
    assert own.center is full.center


SOLVERS: dict[str, Any] = {"its own": None, "gradient": Gradient(), "newton": NewtonCG()}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", [Logistic(), Multinomial(classes=3)], ids=["logistic", "multinomial"])
def test_local_problems_are_solved_on_the_clients_of_the_user(solver: str, loss) -> None:
    """The minimisers are those of the problems of the method, and what is told is of the user's own functions."""
    f = model(loss, rows(loss), client_weights=WEIGHTS)
    g, rng = reweighted(f, SCALES), np.random.default_rng(1)
    linear, center = (0.3 * rng.standard_normal((7, *f.shape)) for _ in range(2))
    problem = LocalProblem(objective=g, linear=linear, weight=0.8, center=center)
    chosen = SOLVERS[solver] or default_solver(f)
    found = chosen(in_own_units(problem), center, GradientNorm(tol=1e-9))
    np.testing.assert_allclose(problem.gradient(found.theta), 0.0, atol=1e-7)
    assert found.evaluation is not None
    np.testing.assert_allclose(found.evaluation.f, f.value(found.theta), rtol=1e-12)
    assert in_own_units(problem).objective is f
    plain = LocalProblem(objective=f, linear=linear, weight=0.8, center=center)
    assert in_own_units(plain) is plain


STEPPING: dict[str, Any] = {
    "gradient": Gradient(step=0.05),
    "nesterov": Nesterov(),
    "aogm": AOGM(),
    "sgd": SGD(step=0.05, batch=3, epochs=2),
    "sarah": Sarah(gamma=0.05, batch=3),
}


@pytest.mark.parametrize("solver", STEPPING)
def test_solvers_do_what_they_do_on_clients_that_are_written_out(solver: str) -> None:
    """Rows of weight w/s_j make clients f_j/s_j, where there is no ridge; steps and tolerances are those of them."""
    data = rows(Logistic())
    f = model(Logistic(), data, mu=0.0, client_weights=WEIGHTS)
    g, weights = reweighted(f, SCALES), np.zeros(len(data.y))
    for own, (_, _, w), s in zip(data.clients, f.client_rows(), g.scales, strict=True):
        weights[own] = w / s
    out = model(Logistic(), data, mu=0.0, weights=weights, client_weights=g.weights)
    method = FedProx(mu_prox=0.3, solver=STEPPING[solver], stop=Steps(steps=6))
    states = zip(iterate(method, g, seed=4), iterate(method, out, seed=4), strict=False)
    for one, other in islice(states, 4):
        np.testing.assert_allclose(one.server.theta, other.server.theta, rtol=1e-9, atol=1e-10)
    unscaled = next(islice(iterate(method, f, seed=4), 3, None)).server.theta
    assert np.max(np.abs(one.server.theta - unscaled)) > 1e-3


STOPS = {
    "gradient": GradientNorm(tol=1e-3),
    "reduction": GradientReduction(factor=1e-3),
    "gap": Gap(schedule=lambda round: 1e-6),
}


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_stopping_rules_ask_what_they_ask_of_clients_that_are_written_out(stop) -> None:
    A = np.stack([np.diag([1.0, 9.0]), np.diag([2.0, 60.0]), np.diag([0.5, 1.0])])
    f, s = Quadratic(A=A, b=np.ones((3, 2))), (1.0, 30.0, 0.2)
    g = reweighted(f, s)
    column = np.array(g.scales)
    out = Quadratic(A=A / column[:, None, None], b=f.b / column[:, None], weights=g.weights)
    found = []
    for each in (g, out):
        problem = in_own_units(LocalProblem(objective=each, weight=0.4, center=np.ones((3, 2))))
        found.append(Gradient()(problem, np.zeros((3, 2)), stop))
    np.testing.assert_allclose(found[0].theta, found[1].theta, rtol=1e-9)
    np.testing.assert_array_equal(found[0].gradients, found[1].gradients)


def test_scales_are_numbers_up_to_a_factor_and_multiply() -> None:
    f = lopsided()
    one, twice = reweighted(f, (1, 2, 3, 4)), reweighted(reweighted(f, (1, 1, 3, 1)), (1, 2, 1, 4))
    np.testing.assert_allclose(one.scales, twice.scales, rtol=1e-15)
    assert twice.objective is f is own_clients(one)
    np.testing.assert_array_equal(reweighted(f, (3, 6, 9, 12)).scales, one.scales)
    assert reweighted(f, (2.0,) * 4) is f is reweighted(f, None)
    both = reweighted(Composite(objective=f, regulariser=L2(weight=0.5)), (1, 2, 3, 4))
    assert isinstance(both, Composite)
    assert both.objective.scales == one.scales == tuple(scales_of(both))
    assert scales_of(f) == []
    assert own_clients(both).objective is f
    assert pickle.loads(pickle.dumps(one)).scales == one.scales
    uneven = reweighted(f, (0.1, 0.7, 1.3, 2.9))
    assert reweighted(f, uneven.scales).scales == uneven.scales  # to the last bit
    prepared = SketchedMetric(rank=2).prepare(plain := model(Logistic(), rows(Logistic())), plain.zeros()).objective
    assert prepared.usual_weight is not None
    assert reweighted(prepared, SCALES).usual_weight == prepared.usual_weight


@pytest.mark.parametrize("scales", [(1.0, 2.0), (1.0, 2.0, 3.0, 0.0), (1.0, 2.0, 3.0, math.nan), "suggested", 3.0])
def test_what_is_no_number_for_each_client_is_refused(scales) -> None:
    with pytest.raises(ValueError, match=r"^scales must be (4|positive finite) numbers, one for each client"):
        reweighted(lopsided(), scales)


def test_the_common_rule() -> None:
    f = lopsided()
    np.testing.assert_allclose(common_scales(f), np.sqrt(f.L * f.mu), rtol=1e-15)
    np.testing.assert_allclose(common_scales(hinge()), hinge().mu, rtol=1e-15)
    np.testing.assert_allclose(common_scales(one_flat_client()), one_flat_client().L, rtol=1e-15)
    with pytest.raises(ValueError, match=r"^scales must be none or numbers for clients that are neither"):
        common_scales(Quadratic(A=np.zeros((2, 1, 1)), b=np.zeros((2, 1))))


def test_references_and_certificates_are_of_the_same_energy() -> None:
    f = model(Logistic(), rows(Logistic()), client_weights=WEIGHTS)
    g = reweighted(f, SCALES)
    optimum = newton(f, tol=1e-13)
    for x in (f.zeros(), optimum.theta + 1e-3):
        mine, other = certificate(g, x), certificate(f, x)
        assert mine == other
        truth = float(f.mean(f.value(x))) - optimum.energy
        assert truth <= mine.gap <= 1e3 * truth
    equal = model(Logistic(), rows(Logistic()))
    assert np.linalg.norm(newton(equal, tol=1e-13).theta - optimum.theta) > 1e-2
    assert newton(g, tol=1e-13).energy == pytest.approx(optimum.energy, rel=1e-13)
