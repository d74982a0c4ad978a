"""Newton's method with conjugate gradients: when steps end, and the same program where it is traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualopt.objectives import LocalProblem, Quadratic
from dualopt.solvers import NewtonCG, newton
from dualopt.solvers.newton import conjugate_gradients, is_curved
from dualopt.solvers.stopping import RelativeEnergy
from tests.problems import logistic

TALL = np.array([[1.0, 10.0, 100.0, 1000.0], [1.0, 1.0, 2.0, 2.0], [5.0, 5.0, 5.0, 5.0]])
"""Eigenvalues of three clients, which need four steps, two and one."""

SIDE = np.ones((3, 4)) * [[1.0], [2.0], [3.0]]
"""Their right-hand sides, of norms 2, 4 and 6."""


def solved(max_iter: int, tol: Any = (1e-9, 1e-9, 1e-9)) -> tuple[np.ndarray, np.ndarray]:
    return conjugate_gradients(lambda v: TALL * v, SIDE, tol=np.asarray(tol), max_iter=max_iter)


@pytest.mark.parametrize(("most", "products"), [(0, [0, 0, 0]), (1, [1, 1, 1]), (3, [3, 2, 1]), (9, [4, 2, 1])])
def test_each_client_makes_its_own_steps_where_they_are_traced_too(monkeypatch, most: int, products: list[int]) -> None:
    x, counts = solved(most)
    assert counts.tolist() == products

    def repeat(condition: Any, body: Any, state: Any) -> Any:
        while bool(condition(state)):
            state = body(state)
        return state

    monkeypatch.setattr(newton, "is_traced", lambda x: True)
    monkeypatch.setattr(newton, "repeat", repeat)
    traced, traced_counts = solved(most)
    np.testing.assert_array_equal(traced, x)
    np.testing.assert_array_equal(traced_counts, counts)
    done = np.asarray(products) == [4, 2, 1]
    np.testing.assert_allclose((TALL * x)[done], SIDE[done], rtol=1e-9)


def test_a_residual_within_the_tolerance_takes_no_step() -> None:
    _, products = solved(9, tol=[2.0, 4.0 * (1.0 - 2.0**-50), 6.0 / 1.2])
    assert products.tolist() == [0, 1, 1]


def test_where_no_step_is_taken_the_solution_is_zero() -> None:
    x, _ = solved(9, tol=[2.5, 2.5, 2.5])
    assert (x[0] == 0.0).all()
    assert (x[1:] != 0.0).all()


@pytest.mark.parametrize("size", [1.0, 3.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_how_little_a_direction_may_be_curved(size: float, dtype: Any) -> None:
    """By a step at most the inverse root of epsilon times what was lowered so far."""
    root = float(np.finfo(dtype).eps) ** 0.5
    least = root * size * size / 4.0
    curvature = np.asarray([least * 1.01, least * 0.99], dtype=dtype)
    assert is_curved(curvature, np.full(2, size, dtype), np.full(2, 4.0, dtype)).tolist() == [True, False]


def test_a_rule_on_values_sees_those_of_this_step() -> None:
    f = logistic()
    found = NewtonCG()(LocalProblem(objective=f), f.zeros() + np.zeros((f.n_clients, 1)), RelativeEnergy(tol=1e-13))
    assert found.status == ("converged",) * f.n_clients
    assert np.abs(f.gradient(found.theta)).max() <= 1e-6


def test_quadratics_are_solved() -> None:
    f = Quadratic(A=np.stack([np.diag(row) for row in TALL]), b=np.ones((3, 4)))
    found = NewtonCG()(LocalProblem(objective=f), np.zeros((3, 4)), RelativeEnergy(tol=1e-9))
    np.testing.assert_allclose(found.theta, 1.0 / TALL, rtol=1e-9)
