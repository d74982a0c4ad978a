"""What every regulariser promises.

A regulariser is built with its own ``example``.
"""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.xp import device, to_numpy
from dualopt.lab.contracts.backends import each_backend
from dualopt.lab.contracts.options import classes, made, open_argument

SHAPES = [(5,), (2, 3)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the regularisers, and for ``seed`` where it looks at them."""
    if open_argument(metafunc, "g"):
        found = {name: made(kind) for name, kind in classes(metafunc.config, "regulariser").items()}
        metafunc.parametrize("g", found.values(), ids=list(found))
    if open_argument(metafunc, "seed"):
        metafunc.parametrize("seed", range(20))


def drawn(seed: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Draw a point with zeros, small and large entries, and a gradient."""
    rng = np.random.default_rng(seed)
    theta = rng.choice([0.0, 0.1, 3.0], size=shape) * rng.uniform(0.5, 1.0, shape) * rng.choice([-1.0, 1.0], size=shape)
    return theta, rng.choice([0.2, 2.0]) * rng.standard_normal(shape)


@pytest.mark.parametrize("step", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_point_is_better_than_the_prox(g: Any, seed: int, shape: tuple[int, ...], step: float) -> None:
    """The proximal point satisfies its condition of optimality, and no point near it is better."""
    theta, direction = drawn(seed, shape)
    found = g.prox(theta, step)
    # zero is in (found - theta)/step + dg(found)
    np.testing.assert_allclose(g.minimal_subgradient(found, (found - theta) / step), 0.0, atol=1e-12 / min(step, 1.0))

    def cost(x: np.ndarray) -> float:
        return g.value(x) + float(np.sum((x - theta) ** 2)) / (2.0 * step)

    for length in (1e-3, 0.1, 1.0):
        moved = length * direction
        growth = float(np.sum(moved**2)) / (2.0 * step) * (1.0 - 1e-9)
        assert cost(found + moved) >= cost(found) + growth - 1e-13 * (1.0 + cost(found))


@pytest.mark.parametrize("shape", SHAPES)
def test_prox_and_value_are_those_of_cvxpy(g: Any, shape: tuple[int, ...]) -> None:
    """The expression of CVXPY has the same values, and its solver finds the same proximal point."""
    cp = pytest.importorskip("cvxpy")
    theta, _ = drawn(3, shape)
    x = cp.Variable(shape, value=theta)
    expression = g.cvxpy(x)
    assert getattr(expression, "value", expression) == pytest.approx(g.value(theta), rel=1e-14)
    cp.Problem(cp.Minimize(expression + cp.sum_squares(x - theta) / 1.6)).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(g.prox(theta, 0.8), np.asarray(x.value), atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_minimal_subgradient_is_the_least_element(g: Any, seed: int, shape: tuple[int, ...]) -> None:
    """The minimal subgradient is in the set, and the slope along its negative is minus its squared norm."""
    theta, gradient = drawn(seed, shape)
    s = g.minimal_subgradient(theta, gradient)
    squared, t = float(np.sum(s**2)), 1e-7
    slope = (g.value(theta - t * s) - g.value(theta)) / t - float(np.sum(gradient * s))
    assert slope == pytest.approx(-squared, abs=1e-5 * (1.0 + squared))
    rng = np.random.default_rng(seed)
    for scale in (1e-2, 1.0, 10.0):
        z = theta + scale * rng.standard_normal(shape)
        assert g.value(z) >= g.value(theta) + float(np.sum((s - gradient) * (z - theta))) - 1e-12 * (1.0 + g.value(z))


def test_declared_strong_convexity(g: Any, seed: int) -> None:
    """It is as strongly convex as ``mu`` says: subgradients are that monotone."""
    x, y = drawn(seed, (6,))[0], drawn(seed + 1, (6,))[0]
    slopes = g.minimal_subgradient(x, np.zeros(6)) - g.minimal_subgradient(y, np.zeros(6))
    assert g.mu >= 0.0
    assert float(np.sum(slopes * (x - y))) >= g.mu * float(np.sum((x - y) ** 2)) - 1e-12


@each_backend
def test_array_libraries_agree(g: Any, backend: Any) -> None:
    """Only the standard is used, nothing is written to, and library, type and device are kept."""
    theta, gradient = drawn(4, (2, 3))
    like = backend(theta)
    value = g.value(like)
    assert isinstance(value, float)
    assert value == pytest.approx(g.value(theta), rel=1e-15)
    pairs = [
        (g.prox(like, 0.3), g.prox(theta, 0.3)),
        (g.minimal_subgradient(like, backend(gradient)), g.minimal_subgradient(theta, gradient)),
    ]
    for found, expected in pairs:
        assert (type(found), found.dtype, device(found)) == (type(like), like.dtype, device(like))
        np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-15, atol=1e-16)


def test_single_precision_stays_single(g: Any) -> None:
    """Single precision stays single."""
    theta, gradient = (x.astype(np.float32) for x in drawn(4, (6,)))
    assert g.prox(theta, 0.3).dtype == g.minimal_subgradient(theta, gradient).dtype == np.float32


def test_is_a_regulariser(g: Any) -> None:
    """It pickles, and is frozen and keyword-only."""
    assert pickle.loads(pickle.dumps(g)) == g
    with pytest.raises(dataclasses.FrozenInstanceError):
        g.weight = 2.0
    if dataclasses.fields(g):
        with pytest.raises(TypeError):
            type(g)(1.0)
