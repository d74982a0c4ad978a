"""Methods of which the server does everything: L-BFGS, Newton-CG and gradient descent."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice, pairwise

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.losses import SmoothedHinge
from dualopt.methods import DistributedLBFGS, DistributedNewtonCG, FedAvg, GradientDescent
from dualopt.methods._line_search import Upload, accepts, falls, shortened
from dualopt.methods.distributed_lbfgs import inverse_hessian_product
from dualopt.objectives import LocalProblem, NonconvexPenalty, Quadratic, linear_model
from dualopt.runs.certificates import certificate
from dualopt.runs.recording import run
from dualopt.solvers import Gradient, NewtonCG
from dualopt.solvers.stopping import Steps
from tests.problems import WithoutPreconditioner, digits, hinge, logistic, lopsided, quadratic

METHODS = [DistributedLBFGS(), DistributedNewtonCG(), GradientDescent()]


def test_gradient_descent_is_fedavg_with_one_step() -> None:
    f = lopsided()
    step = GradientDescent().suggested(f).step
    assert step == pytest.approx(1.0 / f.L.mean(), rel=1e-15)
    other = FedAvg(solver=Gradient(step=step), stop=Steps(steps=1))
    for a, b in islice(zip(iterate(GradientDescent(), f), iterate(other, f), strict=False), 10):
        np.testing.assert_allclose(a.server.theta, b.server.theta, rtol=1e-13)


def test_two_loops_are_the_matrix_of_bfgs() -> None:
    """H+ = (I - s y'/ys) H (I - y s'/ys) + s s'/ys, from <s, y>/<y, y> times the identity."""
    rng = np.random.default_rng(0)
    A = np.diag([1.0, 3.0, 10.0, 40.0])
    s = tuple(rng.standard_normal((3, 4)))
    y = tuple(A @ step for step in s)
    H = np.eye(4) * (s[-1] @ y[-1]) / (y[-1] @ y[-1])
    for step, change in zip(s, y, strict=True):
        V = np.eye(4) - np.outer(change, step) / (change @ step)
        H = V.T @ H @ V + np.outer(step, step) / (change @ step)
    v = rng.standard_normal(4)
    np.testing.assert_allclose(inverse_hessian_product(s, y, v), H @ v, rtol=1e-12)
    np.testing.assert_allclose(inverse_hessian_product((np.zeros(4), *s), (np.ones(4), *y), v), H @ v, rtol=1e-12)


def test_pairs_of_negative_curvature_are_left_out() -> None:
    e = np.eye(2)
    assert inverse_hessian_product((e[0], e[1]), (-e[0], 2 * e[1]), np.ones(2)).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("cosine", "counts"), [(1.25 * 2.0**-47, False), (2.0**-53, False), (1.5 * 2.0**-47, True)])
def test_pairs_whose_product_is_rounding_are_left_out(cosine: float, counts: bool) -> None:
    """Beyond 1e-14 |s| |y| the pair counts, by the formula of BFGS in rationals; below, only the other one does."""
    e = np.eye(2)
    other, pair = (e[0], 4.0 * e[0]), (4.0 * e[0], np.array([4.0 * cosine, 4.0]))
    found = inverse_hessian_product((other[0], pair[0]), (other[1], pair[1]), np.array([1.0, 3.0]))
    only = inverse_hessian_product((other[0], np.zeros(2)), (other[1], np.zeros(2)), np.array([1.0, 3.0]))
    if not counts:
        assert found.tolist() == only.tolist() == [0.25, 3.0]
        return
    (c, one), zero = (Fraction(4.0 * cosine), Fraction(1)), Fraction(0)
    s, y, v = (4 * one, zero), (c, 4 * one), (one, 3 * one)

    def dot(a: tuple[Fraction, ...], b: tuple[Fraction, ...]) -> Fraction:
        return sum((p * q for p, q in zip(a, b, strict=True)), start=zero)

    a = dot(s, v) / dot(s, y)
    q = tuple(p - a * r for p, r in zip(v, y, strict=True))
    b = q[0] / 4  # <s, q>/<s, y> of the other pair
    scaled = tuple(dot(s, y) / dot(y, y) * p for p in (q[0] - 4 * b, q[1]))
    scaled = (scaled[0] + b, scaled[1])
    expected = tuple(p + (a - dot(y, scaled) / dot(s, y)) * r for p, r in zip(scaled, s, strict=True))
    np.testing.assert_allclose(found, [float(p) for p in expected], rtol=1e-12)


@pytest.mark.parametrize("method", [DistributedLBFGS(), DistributedNewtonCG()], ids=["L-BFGS", "Newton-CG"])
def test_energies_never_rise_where_clients_are_not_convex(method) -> None:
    f = NonconvexPenalty(objective=logistic(), lam=0.5)
    start = 3.0 * np.random.default_rng(1).standard_normal(f.shape)
    models = [s.server.theta for s in islice(iterate(method, f, theta0=start), 150)]
    energies = [float(np.mean(f.value(theta))) for theta in models]
    assert all(after <= before * (1.0 + 1e-14) for before, after in pairwise(energies))
    assert np.linalg.norm(np.mean(f.gradient(models[-1]), axis=0)) < 1e-6


def test_a_refused_point_costs_a_round_and_leaves_the_model() -> None:
    """From far away the first step, of length one, is too long."""
    f = quadratic(L=1000.0)
    models = [s.server.theta for s in islice(iterate(DistributedLBFGS(), f, theta0=np.full(4, 5.0)), 8)]
    assert np.array_equal(models[0], models[1])
    assert not np.array_equal(models[0], models[-1])  # at least a tenth each time


def test_newton_solves_a_quadratic_at_once() -> None:
    """A gradient, products to a tenth and again to full accuracy."""
    f = quadratic(L=100.0)
    seen = list(islice(iterate(DistributedNewtonCG(), f), 40))
    assert np.linalg.norm(seen[-1].server.theta - f.minimiser()) < 1e-12
    products = [s.message.product for s in seen]
    assert products[0]
    assert not all(products)
    assert all(s.solution is not None and set(s.solution.gradients) == {1.0} for s in seen)


def test_nothing_is_multiplied_where_the_gradient_is_zero() -> None:
    f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([3.0, 2.0])]), b=np.array([[1.0, 0.0], [-1.0, 0.0]]))
    shots = list(islice(iterate(DistributedNewtonCG(), f), 3))
    assert [s.message.product for s in shots] == 3 * [False]
    assert all(s.server.theta.tolist() == [0.0, 0.0] for s in shots)


def test_curvature_that_is_not_positive_ends_the_conjugate_gradients() -> None:
    f = quadratic()
    concave = type(f)(A=-f.A, b=f.b)
    method = DistributedNewtonCG().suggested(concave)
    first, second = islice(iterate(method, concave), 2)
    assert first.message.product
    assert not second.message.product  # steepest descent
    np.testing.assert_allclose(second.message.vector, -first.server.gradient)


def test_a_direction_that_is_next_to_flat_ends_the_conjugate_gradients() -> None:
    """As it does in one place: the points are those of the local solver on all rows."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.where(rng.standard_normal(40) > -0.7, 1.0, -1.0)
    own = {"loss": SmoothedHinge(gamma=0.1), "mu": 0.02, "intercept": "free"}
    f = linear_model(X, y, clients=[range(9), range(9, 20), range(20, 40)], client_weights="rows", **own)
    problem = LocalProblem(objective=WithoutPreconditioner(linear_model(X, y, clients=1, **own)))
    accepted = [s.server.theta for s in islice(iterate(DistributedNewtonCG(), f), 150)]
    theta = np.zeros((1, 4))
    for _ in range(5):
        theta = NewtonCG()(problem, theta, Steps(steps=1)).theta
        assert min(np.linalg.norm(point - theta[0]) for point in accepted) <= 1e-10


def test_work_and_certificates_are_recorded() -> None:
    f = digits(rows=320)
    for method in METHODS:
        trace = run(method, f, rounds=12, certify_every=1)
        assert trace["gradients"].tolist() == list(range(13))
        assert np.isfinite(trace["certificate"][1:]).all()


def test_rounds_of_products_are_no_stall() -> None:
    f = digits()
    trace = run(DistributedNewtonCG(), f, rounds=100, tol=1e-6)
    assert trace.status == "converged"
    rests = np.diff(np.flatnonzero(np.diff(trace["energy"]) != 0))
    assert np.max(rests) > 10


def test_certificates_hold() -> None:
    f = lopsided()
    least = float(np.mean(f.value(f.minimiser())))
    for method in METHODS:
        for s in islice(iterate(method, f), 15):
            error = float(np.mean(f.value(s.server.theta))) - least
            assert certificate(f, s.server.theta, s.solution).gap >= error - 1e-14


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_kinks_are_refused(method) -> None:
    with pytest.raises(ValueError, match=r"^objective must be smooth for .*; use dualfl"):
        method.suggested(hinge())


def test_rules_of_the_line_search() -> None:
    """On x^2/2 from 1: downhill to -1 at the farthest, by Armijo's rule a little less."""

    def at(step: float) -> bool:
        x = 1.0 + step
        new = Upload(np.asarray(0.5 * x * x), np.array([x]))
        return accepts(np.asarray(0.5), np.array([1.0]), np.array([step]), new)

    assert [at(step) for step in (-0.1, -1.0, -1.9, -1.9999, -2.1, 0.1)] == [True, True, True, False, False, False]
    half = shortened(np.asarray(0.5), np.array([1.0]), np.array([-4.0]), np.asarray(4.5))
    assert half.tolist() == [-1.0]  # the minimum of the parabola
    assert shortened(np.asarray(0.5), np.array([1.0]), np.array([-4.0]), np.asarray(np.inf)).tolist() == [-0.4]


ARMIJO, EPS = 1.0 - 1e-4, 2.0**-52


@pytest.mark.parametrize("value", [1.0, -1.0])
@pytest.mark.parametrize(
    ("change", "slope", "accepted"),
    [
        (-1e-4 - 1e-8, 5.0, True),  # Armijo's rule does not ask for the slope
        (-1e-4 + 1e-8, 5.0, False),
        (8 * EPS, 0.9997, True),  # values differ by rounding only, and the slope is smaller
        (8 * EPS, 0.99979, True),
        (8 * EPS, 0.99981, False),
        (12 * EPS, 0.9997, False),
        (1.4e-8, -1.1e-4, True),  # values are close, and convexity proves what they do not show
        (1.4e-8, -0.9e-4, False),
        (1.6e-8, -1.1e-4, False),
        (np.nan, -1.0, False),
    ],
)
def test_what_the_server_accepts(value: float, change: float, slope: float, accepted: bool) -> None:
    """A step along which the first slope is -1; what is accepted downhill, uphill is not."""
    new = Upload(np.asarray(value + change), np.array([slope]))
    assert accepts(np.asarray(value), np.array([-1.0]), np.array([1.0]), new) is accepted
    assert not accepts(np.asarray(value), np.array([1.0]), np.array([1.0]), new)


@pytest.mark.parametrize(
    ("value", "rise", "new_slope", "fall"),
    [
        (0.5, -0.375, 5.0, 0.375),  # by the values
        (1.0, 2.0**-26, -0.25, 0.25),  # by the slope at the new end
        (4.0, 2.0**-24, -0.25, 0.25),
        (1.0, 10 * EPS, 0.5, 0.25),  # by the mean of both slopes
        (4.0, 40 * EPS, 0.5, 0.25),
        (0.25, 2.5 * EPS, 0.5, 0.25),
    ],
)
def test_bounds_of_a_fall_are_attained(value: float, rise: float, new_slope: float, fall: float) -> None:
    """With a first slope of -1: a little more of one number, and another rule would be needed."""

    def at(more: float, steeper: float = 0.0, deeper: float = 0.0) -> bool:
        numbers = (value, -1.0, value + rise + more, new_slope + steeper, fall + deeper)
        return falls(*map(np.asarray, numbers))

    assert at(0.0)
    assert not at(value * 2.0**-24 if rise > 10 * EPS * value else 4 * EPS * value)
    assert not at(0.0, 5.0, 2.0**-20)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        *((3.0, 0.25), (2.0, 1.0 / 3.0), (1.5, 0.4), (1.0, 0.5), (0.25, 0.5), (0.0, 0.5), (4.0, 0.2), (9.0, 0.1)),
        *((value, 0.1) for value in (99.0, -1.0, -3.0, np.nan, np.inf)),
    ],
)
def test_how_far_a_refused_step_is_shortened(value: float, part: float) -> None:
    """From 1 with slope -2 to the value: the parabola is least at 1/(1 + value)."""
    step = shortened(np.asarray(1.0), np.array([-1.0, 0.0]), np.array([2.0, 4.0]), np.asarray(value))
    np.testing.assert_allclose(step, [2.0 * part, 4.0 * part], rtol=1e-14)
