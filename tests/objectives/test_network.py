"""Networks: backpropagation against a plain loop and differences, clients, samples, solvers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from model_instances import EPS, Rows, assert_close, on, points, rows

from dualopt.arrays.xp import device, to_numpy
from dualopt.losses import Multinomial
from dualopt.objectives import MLP, LocalProblem, SharpnessAware, mlp
from dualopt.runs.certificates import certificate, dual_point
from dualopt.solvers import AOGM, LBFGS, SGD, Gradient, Nesterov, NewtonCG, Sarah, default_solver
from dualopt.solvers.stopping import Steps

CLASSES, WIDTHS, RIDGE = 3, (6, 5), 0.2
DEPTHS = {"two hidden": (6, 5), "one hidden": (7,), "none": ()}
DATA = rows(Multinomial(classes=CLASSES))


def network(data: Rows = DATA, layers=WIDTHS, **options) -> MLP:
    options = {"clients": data.clients, "classes": CLASSES, "ridge": RIDGE} | options
    return mlp(data.X, data.y, layers=layers, **options)


def unpack(f, theta):
    """Cut one parameter vector into weights and biases, by the documented layout."""
    parts, start = [], 0
    for inputs, outputs in zip(f.layers[:-1], f.layers[1:], strict=True):
        W = theta[start : start + inputs * outputs].reshape(outputs, inputs)
        b = theta[start + inputs * outputs : start + inputs * outputs + outputs]
        parts.append((W, b))
        start += (inputs + 1) * outputs
    assert start == len(theta)
    return parts


def one_row(f, theta, x, label):
    """Return loss and gradient of one row: the chain rule with one vector at a time."""
    parts = unpack(f, theta)
    inputs, before = [x], []
    for k, (W, b) in enumerate(parts):
        before.append(W @ inputs[-1] + b)
        inputs.append(before[-1] if k == len(parts) - 1 else np.maximum(before[-1], 0))
    p = np.exp(before[-1] - before[-1].max())
    p /= p.sum()
    loss, delta, gradient = -math.log(p[label]), p.copy(), []
    delta[label] -= 1
    for k in reversed(range(len(parts))):
        gradient = [np.outer(delta, inputs[k]).ravel(), delta, *gradient]
        if k:
            delta = (parts[k][0].T @ delta) * (before[k - 1] > 0)
    return loss, np.concatenate(gradient)


def literal(f, theta, data=DATA, sample=None, weights=None):
    """Return values and gradients by a loop over clients and rows."""
    values, gradients = [], []
    for j, part in enumerate(data.clients):
        value, gradient = 0.5 * RIDGE * theta[j] @ theta[j], RIDGE * theta[j]
        chosen = range(len(part)) if sample is None else sample[j]
        for i in chosen:
            weight = 1.0 / len(part) if weights is None else weights[part[i]]
            loss, slope = one_row(f, theta[j], data.X[part[i]], int(data.y[part[i]]))
            share = weight * len(part) / len(chosen)
            value, gradient = value + share * loss, gradient + share * slope
        values.append(value)
        gradients.append(gradient)
    return np.array(values), np.stack(gradients)


@pytest.mark.parametrize("layers", DEPTHS.values(), ids=DEPTHS)
def test_values_and_gradients_are_the_plain_loop(layers, backend):
    f = network(on(backend, DATA), layers)
    theta = points(f)
    like = backend(theta)
    value, gradient = literal(network(layers=layers), theta)
    sample = tuple(np.random.default_rng(1).integers(0, m, size=b) for m, b in zip(f.sizes, range(1, 8), strict=True))
    results = {
        "value": (f.value(like), value),
        "gradient": (f.gradient(like), gradient),
        "value too": (f.value_and_gradient(like)[0], value),
        "gradient too": (f.value_and_gradient(like)[1], gradient),
        "sample": (f.sample_gradient(like, sample), literal(network(layers=layers), theta, sample=sample)[1]),
    }
    for result, expected in results.values():
        assert_close(to_numpy(result), expected)


def test_without_hidden_layers_it_is_multinomial_regression():
    """The linear model with an intercept, its parameters in another order."""
    f = network(layers=())
    theta = points(f)
    W, b = theta[:, : 3 * 4].reshape(7, 3, 4), theta[:, 3 * 4 :]
    logits = [X @ W[j].T + b[j] for j, (X, _, _) in enumerate(f.client_rows())]
    values = [
        np.mean([np.log(np.exp(z).sum()) - z[k] for z, k in zip(logits[j], y, strict=True)])
        for j, (_, y, _) in enumerate(f.client_rows())
    ]
    assert_close(f.value(theta), np.array(values) + 0.5 * RIDGE * np.sum(theta**2, axis=-1))


def test_row_weights_count():
    weights = np.random.default_rng(3).uniform(0.1, 2.0, size=len(DATA.y))
    f = network(weights=weights)
    theta = points(f)
    value, gradient = literal(f, theta, weights=weights)
    assert_close(f.value(theta), value)
    assert_close(f.gradient(theta), gradient)
    assert_close(f.sample_gradient(theta, f.draw([np.random.default_rng(0)] * 7, None)), gradient)


def test_the_number_of_parameters_and_the_initial_model(backend):
    X, y = np.random.default_rng(0).random((4, 784)), np.array([0, 1, 2, 9])
    f = mlp(backend(X), backend(y))
    assert (f.layers, f.shape) == ((784, 200, 100, 10), (178110,))
    theta = f.initial(seed=3)
    assert (type(theta), device(theta), theta.shape) == (type(backend(X)), device(backend(X)), f.shape)
    host = to_numpy(theta)
    for (W, b), inputs in zip(unpack(f, host), f.layers[:-1], strict=True):
        bound = inputs**-0.5
        for part in (W, b):
            assert np.all(np.abs(part) <= bound)
        assert np.max(np.abs(W)) >= 0.99 * bound  # the chance of less is below 1e-4 for 1000 weights
        # the mean square of a uniform variable is bound^2 / 3, with relative deviation 0.9 / sqrt(number)
        assert abs(3 * np.mean(W**2) / bound**2 - 1) <= 5 * 0.9 / np.sqrt(W.size)
    assert np.array_equal(host, to_numpy(f.initial(seed=3)))
    assert not np.array_equal(host, to_numpy(f.initial(seed=4)))
    assert mlp(X.astype(np.float32), y).initial().dtype == np.float32


def test_predictions(backend):
    f = network(on(backend, DATA))
    theta = points(f)[0]
    labels = f.predict(backend(theta), backend(DATA.X))
    expected = [int(np.argmin([one_row(network(), theta, x, label)[0] for label in range(CLASSES)])) for x in DATA.X]
    assert to_numpy(labels).tolist() == expected
    share = f.accuracy(backend(theta), backend(DATA.X), backend(DATA.y))
    assert share == pytest.approx(np.mean(np.array(expected) == DATA.y), abs=4 * EPS)
    assert f.accuracy(backend(theta), backend(DATA.X), labels) == 1.0


def test_a_network_learns_what_a_line_cannot_separate():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = np.array([0, 1, 1, 0])
    for layers, right in [((8,), True), ((), False)]:
        f = mlp(X, y, layers=layers)
        start = f.initial(seed=0)[None]
        found = SGD(step=0.5, batch=4, epochs=1000)(LocalProblem(objective=f), start, Steps(steps=1))
        assert (f.accuracy(found.theta[0], X, y) == 1.0) == right


@pytest.mark.parametrize(
    ("solver", "stop"),
    [
        (Gradient(step=0.05), Steps(steps=30)),
        (LBFGS(), Steps(steps=10)),
        (SGD(step=0.05, batch=12, epochs=30), Steps(steps=1)),
        (Sarah(gamma=0.05, batch=None), Steps(steps=30)),
    ],
    ids=repr,
)
def test_solvers_work_without_constants(solver, stop):
    f = network()
    start = np.repeat(f.initial(seed=1)[None], 7, axis=0)
    problem = LocalProblem(objective=f, weight=0.5, center=f.initial(seed=2))
    solution = solver(problem, start, stop)
    assert solution.status == ("converged",) * 7
    assert np.all(problem.value(solution.theta) < problem.value(start))
    assert np.all(np.isposinf(solution.gap))
    point = dual_point(f, solution)
    bound = certificate(f, solution.theta[0], solution)
    assert bound.gap == math.inf
    if isinstance(solver, (Gradient, LBFGS)):  # the one dual point that needs no constant
        assert point is not None
        assert np.all(np.isposinf(point.conjugate))
        assert_close(point.dual, f.gradient(solution.theta), units=1e4)
    else:
        assert point is None


def test_solvers_that_need_a_constant_say_so():
    f = network()
    problem = LocalProblem(objective=f)
    start = np.repeat(f.initial()[None], 7, axis=0)
    for name, solver in {"gradient": Gradient(), "nesterov": Nesterov(), "aogm": AOGM()}.items():
        with pytest.raises(ValueError, match=rf"^solver '{name}' needs a smoothness constant.* with a step\.$"):
            solver(problem, start, Steps(steps=1))
    with pytest.raises(ValueError, match=r"^solver 'newton' needs an objective with hessian_operator\.$"):
        NewtonCG()(problem, start, Steps(steps=1))
    assert isinstance(default_solver(f), LBFGS)
    aware = SharpnessAware(objective=f)
    assert aware.gradient(start).shape == start.shape
    assert np.all(np.isneginf(aware.mu))
    assert np.all(np.isposinf(aware.L))


def test_bad_arguments_are_refused():
    for arguments, message in [
        ({"layers": (4, 0)}, r"layers must be widths of at least 1, not \(4, 0\)"),
        ({"ridge": -1.0}, "ridge must be a finite number, at least 0, not -1.0"),
        ({"classes": 2}, "y must hold integers 0 to 1"),
        ({"clients": 99}, "clients must be between 1 and"),
    ]:
        with pytest.raises(ValueError, match=f"^{message}") as info:
            network(**arguments)
        assert str(info.value).endswith(".")
    with pytest.raises(ValueError, match=r"^y must hold integers"):
        mlp(DATA.X, DATA.y + 0.5)
    assert mlp(DATA.X, DATA.y).layers == (4, 200, 100, 3)


def test_layers_that_are_not_given_are_those_of_the_docstring() -> None:
    assert mlp(DATA.X, DATA.y).layers[1:-1] == (200, 100)
