"""What every objective promises.

An objective is built with its own ``example``; one with a field ``objective`` around logistic regression on clients of
unequal sizes; and a function without arguments makes one. Points are of the size of a model near the start of a run.
It may compute in single precision, with the arrays of one library alone, and need not be convex.
"""

from __future__ import annotations

import inspect
import pickle
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.xp import asarray_like, epsilon, to_numpy
from dualopt.lab.contracts.backends import each_backend
from dualopt.lab.contracts.options import classes, made, open_argument
from dualopt.lab.contracts.problems import logistic, moved
from dualopt.methods import FedAvg
from dualopt.objectives import LocalProblem, ObjectiveWrapper
from dualopt.objectives.composite import without_regulariser
from dualopt.runs.recording import run
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps

PRODUCTS = 4500.0  # units in the last place: 1e-12 in float64
UNITS = 64.0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the objectives."""
    if open_argument(metafunc, "objective"):
        found = {name: example(kind) for name, kind in classes(metafunc.config, "objective").items()}
        metafunc.parametrize("objective", found.values(), ids=list(found))


def example(kind: Any) -> Any:
    """Return an instance of a class, or what a function makes."""
    if inspect.isfunction(kind):
        return kind()
    around = {"objective": logistic(rows=62)} if "objective" in {f.name for f in fields(kind)} else {}
    return made(kind, **around)


def points(objective: Any, seed: int = 0) -> np.ndarray:
    """Draw a point for every client."""
    return np.random.default_rng(seed).standard_normal((objective.n_clients, *objective.shape))


def asked(objective: Any, name: str, *arrays: np.ndarray) -> np.ndarray:
    """Return what a method says of points in the objective's own arrays, as NumPy has it, in float64."""
    return to_numpy(getattr(objective, name)(*(own(objective, x) for x in arrays))).astype(np.float64)


def own(objective: Any, x: np.ndarray) -> Any:
    """Return numbers as an array of the library, the type and the device of the objective's models."""
    return asarray_like(x, objective.zeros())


def unit(objective: Any) -> float:
    """Return a unit in the last place of its numbers."""
    return epsilon(objective.zeros())


def inner(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the inner products of the clients."""
    return np.sum(x * y, axis=tuple(range(1, x.ndim)))


def length(x: np.ndarray) -> np.ndarray:
    """Return the norms of the clients, to be multiplied with them."""
    return np.sqrt(inner(x, x)).reshape(-1, *(1,) * (x.ndim - 1))


def test_gradient_is_the_derivative(objective: Any) -> None:
    """The gradient agrees with central differences of the value.

    In single precision along itself and along directions of length 1, for differences of its values are coarse.
    """
    single = unit(objective) > 1e-10
    h, rtol, atol = (5e-3, 2e-2, 2e-3) if single else (1e-5, 1e-6, 1e-7)
    for seed in range(5):
        theta = to_numpy(own(objective, points(objective, seed))).astype(np.float64)
        gradient, direction = asked(objective, "gradient", theta), points(objective, seed + 100)
        along = [direction]
        if single:
            along = [direction / length(direction), gradient / np.maximum(length(gradient), 1e-30)]
        for d in along:
            ahead, behind = (asked(objective, "value", theta + step * d) for step in (h, -h))
            slope, size = inner(gradient, d), 1.0 + np.abs(asked(objective, "value", theta))
            np.testing.assert_allclose(slope / size, (ahead - behind) / (2 * h) / size, rtol=rtol, atol=atol)


def test_value_and_gradient_are_the_two(objective: Any) -> None:
    """One pass gives what two give."""
    theta, eps = points(objective), unit(objective)
    value, gradient = (to_numpy(x) for x in objective.value_and_gradient(own(objective, theta)))
    expected = asked(objective, "gradient", theta)
    np.testing.assert_allclose(value, asked(objective, "value", theta), rtol=UNITS * eps, atol=UNITS * eps)
    room = UNITS * eps * (1.0 if eps < 1e-10 else np.max(np.abs(expected)))  # as large as what its sums consist of
    np.testing.assert_allclose(gradient, expected, rtol=PRODUCTS * eps, atol=room)


def test_one_point_for_all_is_that_point_for_each(objective: Any) -> None:
    """A point without a client axis stands for the same point at every client."""
    theta, eps = points(objective)[0], unit(objective)
    each = np.stack([theta] * objective.n_clients)
    for name in ("value", "gradient"):
        expected = asked(objective, name, each)
        room = UNITS * eps * (1.0 if eps < 1e-10 else np.max(np.abs(expected)))
        np.testing.assert_allclose(asked(objective, name, theta), expected, rtol=PRODUCTS * eps, atol=room)
    assert asked(objective, "value", theta).shape == (objective.n_clients,)
    assert asked(objective, "gradient", theta).shape == (objective.n_clients, *objective.shape)


def test_mu_and_L_are_constants_of_convexity_and_smoothness(objective: Any) -> None:
    """Gradients are as monotone as ``mu`` says, and as Lipschitz as ``L`` says."""
    mu, L, eps = to_numpy(objective.mu), to_numpy(objective.L), unit(objective)
    assert mu.shape == L.shape == (objective.n_clients,)
    assert np.all(mu <= L)
    for seed in range(10):
        for scale in (1e-3, 1.0, 10.0):
            x = to_numpy(own(objective, points(objective, seed))).astype(np.float64)
            there = to_numpy(own(objective, x + scale * points(objective, seed + 100))).astype(np.float64)
            here, gone, move = asked(objective, "gradient", x), asked(objective, "gradient", there), there - x
            change, squared = gone - here, inner(move, move)
            room = UNITS * eps * (length(here) + length(gone)).reshape(-1) if eps > 1e-10 else np.zeros_like(squared)
            slack = 1e-9 * (1.0 + np.abs(L, where=np.isfinite(L), out=np.zeros(L.shape))) * squared
            slack += room * np.sqrt(squared)
            assert np.all(inner(change, move) >= mu * squared - slack), "mu is too large."
            least = np.maximum(np.sqrt(inner(change, change)) - room, 0.0)  # what rounding leaves of the change
            assert np.all(least**2 <= L**2 * squared * (1.0 + 1e-9) + 1e-12), "L is too small."


def test_clients_are_selected(objective: Any) -> None:
    """``select`` gives the rows of these clients, their constants and their weights included."""
    ids = [2, 0] if objective.n_clients > 2 else [0]
    part, theta, eps = objective.select(ids), points(objective), unit(objective)
    assert part.n_clients == len(ids)
    for name in ("value", "gradient"):
        whole = asked(objective, name, theta)[ids]
        room = UNITS * eps * (1.0 if eps < 1e-10 else np.max(np.abs(whole)))
        np.testing.assert_allclose(asked(part, name, theta[ids]), whole, rtol=PRODUCTS * eps, atol=room)
    for name in ("mu", "L"):
        np.testing.assert_allclose(to_numpy(getattr(part, name)), to_numpy(getattr(objective, name))[ids], rtol=1e-12)
    if objective.weights is not None:
        assert part.weights == tuple(objective.weights[j] for j in ids)


def test_what_is_offered_is_there(objective: Any) -> None:
    """What ``offers`` names agrees with the gradient: Hessian products, exact minimisers, samples, preconditioners."""
    theta, v, eps = points(objective), points(objective, 1), unit(objective)
    h, rtol = (1e-5, 1e-5) if eps < 1e-10 else (5e-3, 2e-2)
    if "hessian" in objective.offers:
        product = to_numpy(objective.hessian_operator(own(objective, theta))(own(objective, v)))
        ahead, behind = (asked(objective, "gradient", theta + step * v) for step in (h, -h))
        size = 1.0 + np.max(np.abs(product))
        np.testing.assert_allclose(product, (ahead - behind) / (2 * h), rtol=rtol, atol=0.1 * rtol * size)
    if "preconditioner" in objective.offers:
        assert np.all(inner(to_numpy(objective.preconditioner(1.0)(own(objective, v))), v) > 0)
    if "exact" in objective.offers:
        weight, at = 1.0 + np.abs(to_numpy(objective.mu)), own(objective, theta)
        problem = LocalProblem(objective=objective, linear=at, weight=own(objective, weight), center=own(objective, v))
        found = to_numpy(objective.exact_minimiser(problem))
        lowest, change = to_numpy(problem.value(own(objective, found))), points(objective, 2)
        if np.all(np.isfinite(to_numpy(objective.L))):
            np.testing.assert_allclose(
                to_numpy(problem.gradient(own(objective, found))), 0.0, atol=1e-8 * (eps / 2.0**-52)
            )
        room = PRODUCTS * eps * (1.0 + np.abs(lowest))
        for size in (1e-4, 1e-2, 1.0):  # strong convexity holds about the minimiser of a nonsmooth function, too
            least = lowest + 0.5 * to_numpy(problem.mu) * size**2 * inner(change, change)
            assert np.all(to_numpy(problem.value(own(objective, found + size * change))) >= least - room)
    if "samples" in objective.offers:
        rngs = [np.random.default_rng(j) for j in range(objective.n_clients)]
        sample, expected = objective.draw(rngs, None), asked(objective, "gradient", theta)
        every = to_numpy(objective.sample_gradient(own(objective, theta), sample))
        room = 1e-12 if eps < 1e-10 else UNITS * eps * np.max(np.abs(expected))
        np.testing.assert_allclose(every, expected, rtol=max(1e-9, PRODUCTS * eps), atol=room)


@each_backend
def test_array_libraries_agree(objective: Any, backend: Any) -> None:
    """Every array library of the standard gives the same numbers in its own arrays, its data being such arrays."""
    if not isinstance(objective.zeros(), np.ndarray):
        pytest.skip("it computes with one library alone, which is not NumPy")
    theta, eps = points(objective).astype(objective.zeros().dtype), unit(objective)
    other = moved(objective, backend)
    for name in ("value", "gradient"):
        found, expected = getattr(other, name)(backend(theta)), getattr(objective, name)(theta)
        assert type(found) is type(backend(expected))
        np.testing.assert_allclose(to_numpy(found), expected, rtol=PRODUCTS * eps, atol=UNITS * eps)
    for name in ("mu", "L"):
        np.testing.assert_allclose(to_numpy(getattr(other, name)), getattr(objective, name), rtol=PRODUCTS * eps)
    assert type(other.zeros()) is type(backend(theta))


def test_what_it_is_handed_stays_as_it_was(objective: Any) -> None:
    """It writes to nothing that it is handed, a call can be repeated, and it pickles."""
    theta = own(objective, points(objective))
    if isinstance(theta, np.ndarray):
        theta.flags.writeable = False
    kept = to_numpy(theta).tobytes()
    for one in (objective, pickle.loads(pickle.dumps(objective))):
        for name in ("value", "gradient"):
            found, again = (to_numpy(getattr(of, name)(theta)).tobytes() for of in (one, objective))
            assert found == again
    assert to_numpy(theta).tobytes() == kept
    assert objective.zeros().shape == objective.shape == objective.initial().shape


def test_its_numbers_have_one_type(objective: Any) -> None:
    """Values, gradients, samples and models are of one library and one type, and a model is drawn by its seed alone."""
    theta = own(objective, points(objective))
    like = objective.zeros()
    found = [objective.value(theta), objective.gradient(theta), *objective.value_and_gradient(theta), objective.mu]
    found += [objective.L, objective.initial(0)]
    if "samples" in objective.offers:
        rngs = [np.random.default_rng(j) for j in range(objective.n_clients)]
        sample = objective.draw(rngs, 3)
        found.append(objective.sample_gradient(theta, sample))
        again = objective.sample_gradient(theta, sample)
        assert to_numpy(again).tobytes() == to_numpy(found[-1]).tobytes(), "one sample must have one gradient."
    for x in found:
        assert (type(x), x.dtype) == (type(like), like.dtype)
    np.random.seed(1)  # noqa: NPY002
    first = to_numpy(objective.initial(3)).tobytes()
    np.random.seed(2)  # noqa: NPY002
    assert to_numpy(objective.initial(3)).tobytes() == first


@dataclass(frozen=True, kw_only=True, eq=False)
class OfOneType(ObjectiveWrapper):
    """An objective that refuses models of another type than its own."""

    objective: Any

    def value(self, theta: Any) -> Any:
        """Return the values."""
        return self.objective.value(self._own(theta))

    def gradient(self, theta: Any) -> Any:
        """Return the gradients."""
        return self.objective.gradient(self._own(theta))

    def value_and_gradient(self, theta: Any) -> Any:
        """Return both."""
        return self.objective.value_and_gradient(self._own(theta))

    def _own(self, theta: Any) -> Any:
        like = self.objective.zeros()
        assert (type(theta), theta.dtype) == (type(like), like.dtype), f"it was handed a model of {theta.dtype}."
        return theta


def test_a_run_is_recorded(objective: Any) -> None:
    """A few rounds have all their rows, of models of the objective's own type.

    Where nothing is known of its curvature nothing is certified, and it meets no models of another type.
    """
    objective = without_regulariser(objective)
    unknown = bool(np.all(to_numpy(objective.mu) == -np.inf))
    L = to_numpy(objective.L)
    step = 1e-3 if unknown else 0.1 / max(1.0, float(np.max(L, where=np.isfinite(L), initial=1.0)))
    f = OfOneType(objective=objective) if unknown else objective
    trace = run(FedAvg(solver=Gradient(step=step), stop=Steps(steps=2)), f, rounds=3)
    assert trace["round"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert np.all(np.isfinite(trace["energy"]))
    assert (type(trace.theta), trace.theta.dtype) == (type(objective.zeros()), objective.zeros().dtype)
    if unknown:
        assert trace.last["certificate"] == np.inf
