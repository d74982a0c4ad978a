"""What every objective promises.

An objective is built with its own ``example``; one with a field ``objective`` around logistic regression on clients of
unequal sizes. Points are of the size of a model near the start of a run.
"""

from __future__ import annotations

import pickle
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.xp import to_numpy
from dualopt.lab.contracts.backends import each_backend
from dualopt.lab.contracts.options import classes, made, open_argument
from dualopt.lab.contracts.problems import logistic, moved
from dualopt.objectives import LocalProblem

EPS = float(np.finfo(np.float64).eps)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the objectives."""
    if open_argument(metafunc, "objective"):
        found = {name: example(kind) for name, kind in classes(metafunc.config, "objective").items()}
        metafunc.parametrize("objective", found.values(), ids=list(found))


def example(kind: Any) -> Any:
    """Return an instance of a class."""
    around = {"objective": logistic(rows=62)} if "objective" in {f.name for f in fields(kind)} else {}
    return made(kind, **around)


def points(objective: Any, seed: int = 0) -> np.ndarray:
    """Draw a point for every client."""
    return np.random.default_rng(seed).standard_normal((objective.n_clients, *objective.shape))


def inner(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the inner products of the clients."""
    return np.sum(x * y, axis=tuple(range(1, x.ndim)))


def test_gradient_is_the_derivative(objective: Any) -> None:
    """The gradient agrees with central differences of the value."""
    for seed in range(5):
        theta, direction = points(objective, seed), points(objective, seed + 100)
        h = 1e-5
        difference = (objective.value(theta + h * direction) - objective.value(theta - h * direction)) / (2 * h)
        slope, size = inner(objective.gradient(theta), direction), 1.0 + np.abs(objective.value(theta))
        np.testing.assert_allclose(slope / size, difference / size, rtol=1e-6, atol=1e-7)


def test_value_and_gradient_are_the_two(objective: Any) -> None:
    """One pass gives what two give."""
    theta = points(objective)
    value, gradient = objective.value_and_gradient(theta)
    np.testing.assert_allclose(value, objective.value(theta), rtol=64 * EPS, atol=64 * EPS)
    np.testing.assert_allclose(gradient, objective.gradient(theta), rtol=1e-12, atol=64 * EPS)


def test_one_point_for_all_is_that_point_for_each(objective: Any) -> None:
    """A point without a client axis stands for the same point at every client."""
    theta = points(objective)[0]
    each = np.stack([theta] * objective.n_clients)
    for call in (objective.value, objective.gradient):
        np.testing.assert_allclose(call(theta), call(each), rtol=1e-12, atol=64 * EPS)
    assert objective.value(theta).shape == (objective.n_clients,)
    assert objective.gradient(theta).shape == (objective.n_clients, *objective.shape)


def test_mu_and_L_are_constants_of_convexity_and_smoothness(objective: Any) -> None:
    """Gradients are as monotone as ``mu`` says, and as Lipschitz as ``L`` says."""
    mu, L = to_numpy(objective.mu), to_numpy(objective.L)
    assert mu.shape == L.shape == (objective.n_clients,)
    assert np.all(mu <= L)
    for seed in range(10):
        for scale in (1e-3, 1.0, 10.0):
            x, move = points(objective, seed), scale * points(objective, seed + 100)
            change, squared = objective.gradient(x + move) - objective.gradient(x), inner(move, move)
            slack = 1e-9 * (1.0 + np.abs(L, where=np.isfinite(L), out=np.zeros_like(L))) * squared
            assert np.all(inner(change, move) >= mu * squared - slack), "mu is too large."
            assert np.all(inner(change, change) <= L**2 * squared * (1.0 + 1e-9) + 1e-12), "L is too small."


def test_clients_are_selected(objective: Any) -> None:
    """``select`` gives the rows of these clients, their constants and their weights included."""
    ids = [2, 0] if objective.n_clients > 2 else [0]
    part, theta = objective.select(ids), points(objective)
    assert part.n_clients == len(ids)
    for name in ("value", "gradient"):
        whole = getattr(objective, name)(theta)
        np.testing.assert_allclose(getattr(part, name)(theta[ids]), whole[ids], rtol=1e-12, atol=64 * EPS)
    for name in ("mu", "L"):
        np.testing.assert_allclose(getattr(part, name), getattr(objective, name)[ids], rtol=1e-12)
    if objective.weights is not None:
        assert part.weights == tuple(objective.weights[j] for j in ids)


def test_what_is_offered_is_there(objective: Any) -> None:
    """What ``offers`` names agrees with the gradient: Hessian products, exact minimisers, samples, preconditioners."""
    theta, v, h = points(objective), points(objective, 1), 1e-5
    if "hessian" in objective.offers:
        product = objective.hessian_operator(theta)(v)
        difference = (objective.gradient(theta + h * v) - objective.gradient(theta - h * v)) / (2 * h)
        np.testing.assert_allclose(product, difference, rtol=1e-5, atol=1e-6 * (1.0 + np.max(np.abs(product))))
    if "preconditioner" in objective.offers:
        assert np.all(inner(objective.preconditioner(1.0)(v), v) > 0)
    if "exact" in objective.offers:
        problem = LocalProblem(objective=objective, linear=theta, weight=1.0 + np.abs(objective.mu), center=v)
        found = objective.exact_minimiser(problem)
        lowest, change = problem.value(found), points(objective, 2)
        if np.all(np.isfinite(objective.L)):
            np.testing.assert_allclose(problem.gradient(found), 0.0, atol=1e-8)
        for size in (1e-4, 1e-2, 1.0):  # strong convexity holds about the minimiser of a nonsmooth function, too
            least = lowest + 0.5 * problem.mu * size**2 * inner(change, change)
            assert np.all(problem.value(found + size * change) >= least - 1e-12 * (1.0 + np.abs(lowest)))
    if "samples" in objective.offers:
        rngs = [np.random.default_rng(j) for j in range(objective.n_clients)]
        every = objective.sample_gradient(theta, objective.draw(rngs, None))
        np.testing.assert_allclose(every, objective.gradient(theta), rtol=1e-9, atol=1e-12)


@each_backend
def test_array_libraries_agree(objective: Any, backend: Any) -> None:
    """Every array library of the standard gives the same numbers in its own arrays, its data being such arrays."""
    theta = points(objective)
    other = moved(objective, backend)
    for name in ("value", "gradient"):
        found, expected = getattr(other, name)(backend(theta)), getattr(objective, name)(theta)
        assert type(found) is type(backend(expected))
        np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-12, atol=64 * EPS)
    for name in ("mu", "L"):
        np.testing.assert_allclose(to_numpy(getattr(other, name)), getattr(objective, name), rtol=1e-12)
    assert type(other.zeros()) is type(backend(theta))


def test_what_it_is_handed_stays_as_it_was(objective: Any) -> None:
    """It writes to nothing that it is handed, a call can be repeated, and it pickles."""
    theta = points(objective)
    theta.flags.writeable = False
    for one in (objective, pickle.loads(pickle.dumps(objective))):
        for name in ("value", "gradient"):
            assert getattr(one, name)(theta).tobytes() == getattr(objective, name)(theta).tobytes()
    assert objective.zeros().shape == objective.shape == objective.initial().shape
