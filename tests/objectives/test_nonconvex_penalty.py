"""The nonconvex penalty: derivatives, the two constants, and what is passed on."""

from __future__ import annotations

import numpy as np
import pytest
from model_instances import assert_close, model, on, points, rows

from dualopt.arrays.xp import to_numpy
from dualopt.losses import Hinge, Logistic, Multinomial
from dualopt.objectives import LocalProblem, NonconvexPenalty, Quadratic, mlp
from dualopt.objectives._rounding import gamma, tiny
from dualopt.solvers import LBFGS, SGD, Gradient, Nesterov, NewtonCG, default_solver
from dualopt.solvers.stopping import GradientNorm, Steps

LAM, ALPHA = 0.7, 2.5
OBJECTIVES = {"logistic": Logistic(), "multinomial": Multinomial(classes=3)}
every_loss = pytest.mark.parametrize("loss", OBJECTIVES.values(), ids=OBJECTIVES)


def penalised(loss, data=None, **options):
    return NonconvexPenalty(objective=model(loss, data, **options), lam=LAM, alpha=ALPHA)


def literal(theta):
    """Return value, slope and curvature of the penalty, entry by entry in another form."""
    value = [sum(LAM * (1 - 1 / (1 + ALPHA * t * t)) for t in point.ravel()) for point in theta]
    slope = LAM * ALPHA * 2 * theta / (1 + ALPHA * theta**2) ** 2
    curvature = LAM * (2 * ALPHA - 6 * ALPHA**2 * theta**2) / (1 + ALPHA * theta**2) ** 3
    return np.array(value), slope, curvature


@every_loss
def test_values_and_derivatives(loss, backend):
    data = rows(loss)
    f, plain = penalised(loss, on(backend, data)), model(loss, data)
    theta, v = points(plain), points(plain, seed=2)
    value, slope, curvature = literal(theta)
    like = backend(theta)
    results = {
        "value": (f.value(like), plain.value(theta) + value),
        "gradient": (f.gradient(like), plain.gradient(theta) + slope),
        "value too": (f.value_and_gradient(like)[0], plain.value(theta) + value),
        "gradient too": (f.value_and_gradient(like)[1], plain.gradient(theta) + slope),
        "hessian": (f.hessian_operator(like)(backend(v)), plain.hessian_operator(theta)(v) + curvature * v),
        "mu": (f.mu, plain.mu - LAM * ALPHA / 2),
        "L": (f.L, plain.L + 2 * LAM * ALPHA),
        "one point": (f.value(backend(theta[0])), plain.value(theta[0]) + value[0]),
    }
    for result, expected in results.values():
        assert_close(to_numpy(result), expected)
    sample = tuple(np.array([0, m - 1]) for m in plain.sizes)
    assert_close(to_numpy(f.sample_gradient(like, sample)), plain.sample_gradient(theta, sample) + slope)
    assert (f.n_clients, f.shape, f.sizes) == (plain.n_clients, plain.shape, plain.sizes)


def test_the_constants_of_the_penalty_are_attained():
    plain = model(Logistic(), mu=0.0)
    f = NonconvexPenalty(objective=plain, lam=LAM, alpha=ALPHA)
    flat = 1.0 / np.sqrt(ALPHA)  # the most negative curvature is at u = 1, the largest at u = 0
    for t, bound in [(flat, -LAM * ALPHA / 2), (0.0, 2 * LAM * ALPHA)]:
        theta = np.full((7, *f.shape), t)
        v = points(f, seed=2)
        extra = f.hessian_operator(theta)(v) - plain.hessian_operator(theta)(v)
        np.testing.assert_allclose(extra, bound * v, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("solver", "stop"),
    [
        (LBFGS(), GradientNorm(tol=1e-8)),
        (Gradient(), GradientNorm(tol=1e-8)),
        (Nesterov(), GradientNorm(tol=1e-8)),
        (NewtonCG(), GradientNorm(tol=1e-8)),
        (SGD(step=0.05, batch=12, epochs=3), Steps(steps=1)),
    ],
    ids=repr,
)
def test_solvers_lower_a_nonconvex_local_problem(solver, stop):
    f = penalised(Logistic(), mu=0.0)
    assert float(f.mu.max()) < 0
    problem = LocalProblem(objective=f, weight=1.0, center=points(f, seed=4))
    start = points(f)
    solution = solver(problem, start, stop)
    assert np.all(problem.value(solution.theta) < problem.value(start))
    if isinstance(stop, GradientNorm):
        assert solution.status == ("converged",) * 7


def test_the_solver_that_suits_it_and_bad_arguments():
    assert isinstance(default_solver(penalised(Logistic())), LBFGS)
    assert np.all(np.isinf(NonconvexPenalty(objective=model(Hinge())).L))
    f = model(Logistic())
    for arguments, message in [
        ({"lam": 1e308}, r"lam = 1e\+308 times alpha = 1 is too large for a number"),
        ({"lam": -1.0}, "lam must be a finite number, at least 0, not -1.0"),
        ({"alpha": 0.0}, "alpha must be a positive finite number, not 0.0"),
    ]:
        with pytest.raises(ValueError, match=f"^{message}\\.$"):
            NonconvexPenalty(objective=f, **arguments)
    assert np.all(np.isfinite(NonconvexPenalty(objective=f, lam=8e307).L))  # twice that is a number


def test_momentum_is_bounded_where_the_problem_is_not_convex():
    """With q = mu/L < 0 the recursion of t grows without bound, and the momentum is not a number in the end."""
    f = NonconvexPenalty(objective=model(Logistic(), mu=1e-3), lam=4.0)
    problem = LocalProblem(objective=f)
    solution = Nesterov(max_iter=3000)(problem, points(f), GradientNorm(tol=1e-8))
    assert solution.status == ("converged",) * 7
    assert np.all(np.linalg.norm(f.gradient(solution.theta), axis=-1) <= 1e-8)


def test_what_the_objective_lacks_is_not_there():
    """A network keeps its random start; quadratics have no rows to draw, and solvers that sample refuse them."""
    network = mlp(np.eye(2), np.array([0, 1]), layers=(3,))
    np.testing.assert_array_equal(NonconvexPenalty(objective=network).initial(seed=1), network.initial(seed=1))
    quadratics = NonconvexPenalty(objective=Quadratic(A=np.ones((1, 1, 1)), b=np.ones((1, 1))))
    assert not any(hasattr(quadratics, name) for name in ("draw", "sizes"))
    assert quadratics.offers == {"hessian"}
    np.testing.assert_array_equal(quadratics.initial(seed=1), quadratics.zeros())
    with pytest.raises(ValueError, match="needs an objective with draw"):
        SGD(step=0.1).initial_state(quadratics)


def test_the_penalty_adds_to_the_bounds_of_rounding():
    """What its own value and slope are wrong by comes on top of that of the losses."""
    data = rows(Logistic())
    f, plain = penalised(Logistic(), data), model(Logistic(), data)
    theta = 3.0 * points(plain)
    penalty, slope, _ = literal(theta)
    value, gradient = plain.value_and_gradient(theta)
    found, own = f.rounding(theta, value + penalty, gradient + slope), plain.rounding(theta, value, gradient)
    eps = np.finfo(float).eps
    assert (found.value - own.value >= eps * penalty).all()
    assert (found.gradient - own.gradient >= eps * np.linalg.norm(slope.reshape(len(slope), -1), axis=1)).all()


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_the_bound_of_rounding_term_by_term(size):
    """At zero what may underflow counts alone."""
    plain = Quadratic(A=np.stack([np.diag([1.0, 3.0, 9.0]), np.diag([2.0, 5.0, 0.5])]), b=size * np.ones((2, 3)))
    f = NonconvexPenalty(objective=plain, lam=LAM, alpha=ALPHA)
    theta = size * np.array([[0.3, -1.0, 2.0], [0.1, 0.7, -0.2]])
    penalty, slope, _ = literal(theta)
    value, gradient = plain.value_and_gradient(theta)
    own, found = plain.rounding(theta, value, gradient), f.rounding(theta, value + penalty, gradient + slope)
    lost = 3 * tiny(value) * (1.0 + LAM) * (1.0 + ALPHA)
    sizes = np.linalg.norm(slope, axis=1) + np.linalg.norm(gradient + slope, axis=1)
    expected = own.value + gamma(19, value) * penalty + gamma(2, value) * np.abs(value + penalty) + lost
    np.testing.assert_allclose(found.value, expected, rtol=1e-13)
    np.testing.assert_allclose(found.gradient, own.gradient + gamma(16, value) * sizes + lost, rtol=1e-13)
