"""The local problem: linear and proximal term, gap."""

from __future__ import annotations

import math
import pickle
import tracemalloc

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_instances import EPS, LOSSES, assert_close, model, points, rows

from dualopt.arrays.xp import device, to_numpy
from dualopt.losses import Hinge, Squared
from dualopt.objectives import LocalProblem, Quadratic
from dualopt.objectives.local_problem import client_dot, gap_bound
from tests.conftest import rounds_as_numpy

LONG = 2**17
"""Numbers of a model, a megabyte."""

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def terms(f, seed=3):
    """Draw a linear term, weights and centers."""
    rng = np.random.default_rng(seed)
    shape = (f.n_clients, *f.shape)
    return rng.normal(size=shape), rng.uniform(0.1, 2.0, size=f.n_clients), rng.normal(size=shape)


def spread(numbers, f):
    return numbers.reshape(-1, *(1,) * len(f.shape))


def added(f, linear, weight, center, theta):
    """Compute the added value and gradient client by client."""
    values = [
        np.sum(linear[j] * theta[j]) + 0.5 * weight[j] * np.sum((theta[j] - center[j]) ** 2) for j in range(f.n_clients)
    ]
    return np.stack(values), linear + spread(weight, f) * (theta - center)


@every_loss
def test_value_gradient_and_hessian_are_the_formula(loss, backend):
    data = rows(loss)
    reference = model(loss, data)
    f = model(loss, data._replace(X=backend(data.X), y=backend(data.y)))
    linear, weight, center = terms(f)
    theta, v = points(f), points(f, seed=2)
    problem = LocalProblem(objective=f, linear=backend(linear), weight=backend(weight), center=backend(center))
    value, gradient = added(f, linear, weight, center, theta)
    like = backend(theta)
    results = {
        "value": (problem.value(like), reference.value(theta) + value),
        "gradient": (problem.gradient(like), reference.gradient(theta) + gradient),
        "value too": (problem.evaluate(like).value, reference.value(theta) + value),
        "gradient too": (problem.evaluate(like).gradient, reference.gradient(theta) + gradient),
        "f": (problem.evaluate(like).f, reference.value(theta)),
        "grad f": (problem.evaluate(like).grad_f, reference.gradient(theta)),
        "hessian": (
            problem.hessian_operator(like)(backend(v)),
            reference.hessian_operator(theta)(v) + spread(weight, f) * v,
        ),
        "linear term": (problem.linear_term(), linear - spread(weight, f) * center),
        "mu": (problem.mu, 0.3 + weight),
    }
    for result, expected in results.values():
        assert_close(to_numpy(result), expected)
        assert type(result) is type(like)
        assert result.dtype == like.dtype
        assert device(result) == device(like)
    np.testing.assert_allclose(to_numpy(f.L), reference.L, rtol=64 * EPS)
    L = reference.L if rounds_as_numpy(like) else to_numpy(f.L)  # an eigenvalue
    assert np.array_equal(to_numpy(problem.L), L + weight)


def test_flat_clients_have_no_bound_wherever_they_are():
    found = gap_bound(np.array([0.0, 4.0, 8.0]), np.array([0.0, 0.0, 2.0]))
    assert found.tolist() == [math.inf, math.inf, 2.0]


def test_each_term_alone():
    f = model(Squared())
    linear, _, center = terms(f)
    theta = points(f)
    zero, none = np.zeros(f.n_clients), np.zeros_like(linear)
    cases = [
        (LocalProblem(objective=f), added(f, none, zero, none, theta)),
        (LocalProblem(objective=f, linear=linear), added(f, linear, zero, none, theta)),
        (LocalProblem(objective=f, weight=0.7, center=center), added(f, none, zero + 0.7, center, theta)),
        (LocalProblem(objective=f, weight=0.7, center=center[0]), added(f, none, zero + 0.7, none + center[0], theta)),
    ]
    for problem, (value, gradient) in cases:
        assert_close(problem.value(theta), f.value(theta) + value)
        assert_close(problem.gradient(theta), f.gradient(theta) + gradient)


@pytest.mark.parametrize("shared", [True, False], ids=["shared center", "own centers"])
@every_loss
def test_one_point_for_all_clients_is_broadcast(loss, shared):
    f = model(loss)
    linear, weight, center = terms(f)
    problem = LocalProblem(objective=f, linear=linear, weight=weight, center=center[0] if shared else center)
    bare = LocalProblem(objective=f, weight=weight, center=center[0] if shared else center)
    theta = points(f)[0]
    stacked = np.repeat(theta[None], f.n_clients, axis=0)
    for case in (problem, bare):
        assert case.value(theta).tobytes() == case.value(stacked).tobytes()
        assert case.gradient(theta).tobytes() == case.gradient(stacked).tobytes()
        assert case.gap(theta).tobytes() == case.gap(stacked).tobytes()


@every_loss
def test_select_gives_the_bits_of_the_rows(loss):
    f = model(loss)
    linear, weight, center = terms(f)
    theta = points(f)
    for problem in (
        LocalProblem(objective=f, linear=linear, weight=weight, center=center),
        LocalProblem(objective=f, weight=0.7, center=center[0]),
        LocalProblem(objective=f),
    ):
        for ids in [(4,), (5, 1), (6, 5, 4, 3, 2, 1, 0)]:
            part, index = problem.select(ids), list(ids)
            assert part.n_clients == len(ids)
            for name in ("value", "gradient", "gap"):
                whole = getattr(problem, name)(theta)
                assert getattr(part, name)(theta[index]).tobytes() == whole[index].tobytes(), name
            assert part.linear_term().tobytes() == problem.linear_term()[index].tobytes()
            assert part.mu.tobytes() == problem.mu[index].tobytes()
            assert part.L.tobytes() == problem.L[index].tobytes()
        assert problem.select(range(f.n_clients)) is problem


def test_select_with_as_many_features_as_clients():
    f = Quadratic(A=np.stack([np.eye(3)] * 3), b=np.zeros((3, 3)))
    center = np.arange(3.0)  # one point for all clients, not a number for each
    problem = LocalProblem(objective=f, weight=2.0, center=center)
    assert problem.select((2,)).gradient(np.zeros((1, 3))).tolist() == [[0.0, -2.0, -4.0]]
    assert problem.select((1,)).value(np.zeros((1, 3))).tolist() == [5.0]


@given(seed=st.integers(0, 10**6), weight=st.sampled_from([0.0, 0.5, 20.0]))
def test_gap_bounds_the_suboptimality(seed, weight):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(3, 4, 4))
    A = factor @ factor.swapaxes(1, 2) + 0.05 * np.eye(4)
    f = Quadratic(A=0.5 * (A + A.swapaxes(1, 2)), b=rng.normal(size=(3, 4)))
    problem = LocalProblem(objective=f, linear=rng.normal(size=(3, 4)), weight=weight, center=rng.normal(size=(3, 4)))
    best, theta = f.exact_minimiser(problem), rng.normal(size=(3, 4))
    # 0.5 <d, H d> loses no digits, unlike a difference of values
    d = theta - best
    true = 0.5 * np.sum(d * problem.hessian_operator(theta)(d), axis=-1)
    assert np.all(problem.gap(theta) >= true * (1 - 1e-9))
    # a shift along the flattest direction attains it
    _, vectors = np.linalg.eigh(f.A)
    flat = best + vectors[:, :, 0]
    assert np.allclose(problem.gap(flat), 0.5 * problem.mu, rtol=1e-8, atol=0)


def test_gap_is_the_suboptimality_of_isotropic_quadratics():
    scales = np.asarray([0.5, 1.0, 8.0])
    f = Quadratic(A=scales[:, None, None] * np.eye(2), b=np.ones((3, 2)))
    problem = LocalProblem(objective=f, linear=np.full((3, 2), 0.25), weight=0.5, center=np.asarray([1.0, -1.0]))
    theta = np.asarray([[3.0, 1.0], [0.0, -2.0], [5.0, 5.0]])
    difference = problem.value(theta) - problem.value(f.exact_minimiser(problem))
    assert_close(problem.gap(theta), difference)


def test_gap_without_strong_convexity_is_infinite():
    f = model(Squared(), mu=0.0)
    theta = points(f)
    assert np.all(np.isinf(LocalProblem(objective=f).gap(theta)))
    concave = Quadratic(A=np.asarray([[[-1.0]], [[2.0]]]), b=np.zeros((2, 1)))
    assert LocalProblem(objective=concave).gap(np.ones((2, 1))).tolist() == [np.inf, 1.0]
    weight = np.asarray([1.0, 0.0])
    partly = LocalProblem(objective=concave, weight=3.0 * weight, center=np.zeros((2, 1)))
    assert partly.gap(np.ones((2, 1))).tolist() == [1.0, 1.0]


def test_exact_minimiser_refuses_other_losses_and_singular_problems():
    hinge = model(Hinge())
    with pytest.raises(ValueError, match=r"solver 'exact' .* Hinge\(\) is not squared\.$"):
        hinge.exact_minimiser(LocalProblem(objective=hinge))
    flat = model(Squared(), mu=0.0)
    with pytest.raises(ValueError, match=r"solver 'exact' needs mu \+ weight > 0 .* not 0\.0\.$"):
        flat.exact_minimiser(LocalProblem(objective=flat))
    proximal = LocalProblem(objective=flat, weight=1.0, center=flat.zeros())
    assert np.max(np.abs(proximal.gradient(flat.exact_minimiser(proximal)))) <= 1e-13


def test_weight_needs_a_center():
    f = model(Squared())
    for weight in (0.5, np.full(f.n_clients, 0.5)):
        with pytest.raises(ValueError, match=r"^center is needed when weight is not zero\.$"):
            LocalProblem(objective=f, weight=weight)


@every_loss
def test_pickling_and_purity(loss):
    f = model(loss)
    linear, weight, center = terms(f)
    theta = points(f)
    for array in (linear, weight, center, theta):
        array.flags.writeable = False
    problem = LocalProblem(objective=f, linear=linear, weight=weight, center=center)
    copy = pickle.loads(pickle.dumps(problem))
    for name in ("value", "gradient", "gap"):
        assert getattr(copy, name)(theta).tobytes() == getattr(problem, name)(theta).tobytes()


@pytest.mark.parametrize("xp", [np, strict])
def test_inner_products_of_long_models(xp):
    """Without a product in memory: the same to rounding, and the same whoever else is there."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 2, LONG // 2))
    long = to_numpy(client_dot(xp.asarray(x), xp.asarray(y)))
    # n additions are right to n eps times the sum of sizes
    np.testing.assert_allclose(long, np.sum(x * y, axis=(1, 2)), rtol=0, atol=LONG * 2.3e-16 * LONG)
    assert float(client_dot(xp.asarray(x[1:2]), xp.asarray(y[1:2]))[0]) == long[1]


def test_inner_products_of_long_arrays_make_no_copy():
    """An array of products would be one more of the size of the model."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 3, 2, LONG // 2))
    tracemalloc.start()
    client_dot(x, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < x.nbytes / 100


def test_inner_products_of_long_arrays_with_one_point_for_all():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(3, 2, LONG // 2)), rng.normal(size=(1, 2, LONG // 2))
    exact = [math.fsum((a * y[0]).flat) for a in x]
    size = np.sum(np.abs(x * y), axis=(1, 2))
    for one, other in ((x, y), (y, x)):
        assert np.all(np.abs(client_dot(one, other) - exact) <= 2.3e-16 * LONG * size)
