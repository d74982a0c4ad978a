"""Sharpness-aware gradients: two evaluations at the right points, and nothing certified."""

from __future__ import annotations

import numpy as np
import pytest
from model_instances import assert_close, model, on, points, rows

from dualopt.arrays.xp import to_numpy
from dualopt.losses import Logistic, Multinomial
from dualopt.objectives import LocalProblem, SharpnessAware, mlp
from dualopt.runs.certificates import certificate, dual_point
from dualopt.solvers import SGD, Gradient, Nesterov
from dualopt.solvers.stopping import Steps

RADIUS, EPSILON = 0.3, 0.05
LOSSES = {"logistic": Logistic(), "multinomial": Multinomial(classes=3)}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def aware(f):
    return SharpnessAware(objective=f, radius=RADIUS, epsilon=EPSILON)


def uphill(theta, gradient):
    """Return the perturbed points, client by client."""
    return np.stack([t + RADIUS * g / (np.sqrt((g**2).sum()) + EPSILON) for t, g in zip(theta, gradient, strict=True)])


@every_loss
def test_gradients_are_taken_uphill(loss, backend):
    data = rows(loss)
    f, plain = aware(model(loss, on(backend, data))), model(loss, data)
    theta = points(plain)
    like = backend(theta)
    sample = tuple(np.array([0, m - 1, 0]) for m in plain.sizes)
    estimate = plain.sample_gradient(theta, sample)
    results = {
        "value": (f.value(like), plain.value(theta)),
        "gradient": (f.gradient(like), plain.gradient(uphill(theta, plain.gradient(theta)))),
        "value too": (f.value_and_gradient(like)[0], plain.value(theta)),
        "gradient too": (f.value_and_gradient(like)[1], plain.gradient(uphill(theta, plain.gradient(theta)))),
        "sample": (f.sample_gradient(like, sample), plain.sample_gradient(uphill(theta, estimate), sample)),
        "L": (f.L, plain.L * (1 + RADIUS * plain.L / EPSILON)),
    }
    for result, expected in results.values():
        assert_close(to_numpy(result), expected)
    assert np.all(np.isneginf(to_numpy(f.mu)))
    assert (f.n_clients, f.shape, f.sizes) == (plain.n_clients, plain.shape, plain.sizes)


def test_the_declared_lipschitz_constant_holds_and_that_of_the_loss_alone_does_not():
    plain = model(Logistic(), mu=0.3)
    f = SharpnessAware(objective=plain, radius=1.0, epsilon=0.01)
    rng = np.random.default_rng(0)
    minimiser = plain.zeros() + np.zeros((7, 1))
    for _ in range(2000):
        minimiser = minimiser - plain.gradient(minimiser) / plain.L[:, None]
    exceeded = np.zeros(7, dtype=bool)
    for scale in (1e-4, 1e-3, 1e-2, 1.0):
        a, b = (minimiser + scale * rng.normal(size=minimiser.shape) for _ in range(2))
        ratio = np.linalg.norm(f.gradient(a) - f.gradient(b), axis=-1) / np.linalg.norm(a - b, axis=-1)
        assert np.all(ratio <= f.L * (1 + 1e-9))
        exceeded |= ratio > plain.L
    assert np.all(exceeded)


def test_nothing_is_certified_from_perturbed_gradients():
    """The dual points of the plain objective would give a bound that is not one."""
    plain = model(Logistic())
    problem = LocalProblem(objective=aware(plain))
    start = points(plain)
    solution = Gradient(step=0.1)(problem, start, Steps(steps=3))
    assert np.all(np.isinf(solution.gap))
    point = dual_point(problem.objective, solution)
    assert point is not None
    assert np.all(np.isposinf(point.conjugate))
    theta = solution.theta[0]
    assert certificate(plain, theta, point) == certificate(plain, theta)


def test_solvers_use_it_with_a_step():
    plain = model(Logistic())
    problem = LocalProblem(objective=aware(plain), weight=0.5, center=plain.zeros())
    start = points(plain)
    result = SGD(step=0.1, batch=12, epochs=1)(problem, start, Steps(steps=1))
    perturbed = uphill(start, plain.gradient(start))
    assert_close(result.theta, start - 0.1 * (plain.gradient(perturbed) + 0.5 * start))
    assert result.gradients == (2.0,) * 7  # uphill and there
    assert Gradient(step=0.1)(problem, start, Steps(steps=3)).gradients == (6.0,) * 7
    assert Nesterov()(LocalProblem(objective=aware(plain)), start, Steps(steps=1)).theta.shape == start.shape


def test_bad_arguments_are_refused():
    f = model(Logistic())
    for name in ("radius", "epsilon"):
        with pytest.raises(ValueError, match=f"^{name} must be a positive finite number, not 0.0\\.$"):
            SharpnessAware(objective=f, **{name: 0.0})


def test_what_is_not_wrapped_is_that_of_the_objective():
    f = mlp(np.random.default_rng(0).normal(size=(6, 3)), np.arange(6) % 2, layers=(2,), clients=2)
    wrapped = SharpnessAware(objective=f)
    np.testing.assert_array_equal(wrapped.initial(), f.initial(0))
    np.testing.assert_array_equal(wrapped.initial(3), f.initial(3))
    theta = f.initial()
    value, gradient = f.value_and_gradient(theta)
    for mine, theirs in zip(wrapped.rounding(theta, value, gradient), f.rounding(theta, value, gradient), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_each_layer_costs_a_gradient_more():
    plain = model(Logistic())
    assert (plain.gradient_cost, aware(plain).gradient_cost, aware(aware(plain)).gradient_cost) == (1.0, 2.0, 4.0)
