"""The oracle: what is counted, broadcast and kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import first_round
from dualopt.objectives import LocalProblem, SharpnessAware
from dualopt.solvers import LBFGS, SGD, Exact, Gradient, Nesterov
from dualopt.solvers.stopping import GradientNorm, Steps
from tests.problems import logistic, quadratic

F = quadratic(n=3)
POINT = np.linspace(-1.0, 1.0, 4)
POINTS = np.stack([POINT, 2.0 * POINT, POINT - 1.0])


def made(objective: Any = F, solver=None, stop=None, solver_state=()) -> Oracle:
    return Oracle(
        objective,
        Gradient(step=0.01) if solver is None else solver,
        Steps(steps=3) if stop is None else stop,
        solver_state,
        first_round(objective.n_clients),
    )


# What is counted


def test_everything_has_its_price() -> None:
    oracle = made()
    oracle.solve(start=POINT)
    assert oracle.gradients == [3.0] * 3
    oracle.evaluate(POINTS)
    assert oracle.gradients == [4.0] * 3
    oracle.value(POINTS)
    assert oracle.gradients == [4.5] * 3
    oracle.hessian_product(POINT, POINTS)
    assert oracle.gradients == [5.5] * 3
    assert oracle.solution is not None
    assert oracle.solution.gradients == (5.5,) * 3


@pytest.mark.parametrize(
    ("solver", "stop", "more"),
    [
        (Gradient(step=0.01), Steps(steps=3), 1.0),  # K steps, K gradients: the one where it ends is not among them
        (Gradient(step=0.01), GradientNorm(tol=1e-3), 0.0),  # the rule has looked at it
        (Nesterov(), Steps(steps=3), 0.0),
        (LBFGS(), GradientNorm(tol=1e-3), 0.0),
        (Exact(), Steps(steps=1), 0.0),
    ],
    ids=["steps", "a rule on gradients", "nesterov", "lbfgs", "exact"],
)
def test_the_gradient_where_the_solver_ended_is_charged_once(solver, stop, more: float) -> None:
    oracle = made(solver=solver, stop=stop)
    last = oracle.solve(start=POINT, linear=POINTS)
    before = list(oracle.gradients)
    for _ in range(2):
        assert oracle.evaluate(last.theta) is last.evaluation
        assert oracle.gradients == [count + more for count in before]
    oracle.evaluate(last.theta + 0.0)  # elsewhere, for all that it knows
    assert oracle.gradients == [count + more + 1.0 for count in before]


@pytest.mark.parametrize("weight", [0.0, 1.0, 2.5])
def test_proximal_terms_are_about_zero_by_default(weight: float) -> None:
    """``(A_j + w I) theta = b_j``; and a solver of one call takes the place of the method's."""
    expected = np.stack([np.linalg.solve(A + weight * np.eye(4), b) for A, b in zip(F.A, F.b, strict=True)])
    for oracle, solver in ((made(solver=Exact()), None), (made(), Exact())):
        found = oracle.solve(start=POINT, weight=weight, solver=solver)
        np.testing.assert_allclose(found.theta, expected, rtol=1e-10)


def test_an_evaluation_has_a_status_for_each_client() -> None:
    oracle = made()
    oracle.evaluate(POINTS)
    assert oracle.solution is not None
    assert oracle.solution.status == ("converged",) * 3


def test_samplers_leave_no_gradient_behind() -> None:
    f = logistic()
    oracle = made(f, solver=SGD(step=0.1, batch=3))
    last = oracle.solve(start=f.zeros())
    sampled = list(oracle.gradients)
    np.testing.assert_array_equal(oracle.evaluate(last.theta).grad_f, f.gradient(last.theta))
    assert oracle.gradients == [count + 1.0 for count in sampled]


def test_sharpness_aware_gradients_cost_two() -> None:
    oracle = made(SharpnessAware(objective=F))
    oracle.evaluate(POINT)
    assert oracle.gradients == [2.0] * 3
    last = oracle.solve(start=POINT)
    assert oracle.gradients == [8.0] * 3
    oracle.evaluate(last.theta)
    assert oracle.gradients == [10.0] * 3


def test_nothing_asked_nothing_charged() -> None:
    oracle = made()
    assert oracle.solution is None
    assert oracle.gradients == [0.0] * 3


def test_the_latest_answer_is_the_solution() -> None:
    oracle = made()
    oracle.solve(start=POINT)
    found = oracle.evaluate(POINTS)
    assert oracle.solution is not None
    np.testing.assert_array_equal(oracle.solution.theta, POINTS)
    assert oracle.solution.evaluation is found
    last = oracle.solve(start=POINT)
    assert oracle.solution.theta is last.theta
    assert oracle.solution.gradients == (7.0,) * 3


# What is broadcast


def test_arrays_without_client_axis_are_broadcast() -> None:
    stacked = np.stack([POINT] * 3)
    told: dict[str, Any] = {"linear": 2.0 * POINT, "weight": 0.7, "center": POINT - 1.0}
    one = made().solve(start=POINT, **told)
    all_three: dict[str, Any] = {
        name: np.stack([x] * 3) if isinstance(x, np.ndarray) else x for name, x in told.items()
    }
    other = made().solve(start=stacked, **all_three)
    assert one.theta.shape == (3, 4)
    assert one.theta.tobytes() == other.theta.tobytes()
    rule = GradientNorm(tol=1e-3)  # clients that are finished at different steps are put aside with their own terms
    one, other = (made(stop=rule).solve(start=x, **t) for x, t in ((POINT, told), (stacked, all_three)))
    assert len(set(one.gradients)) > 1
    assert one.theta.tobytes() == other.theta.tobytes()
    for ask in (lambda o, x: o.evaluate(x).grad_f, lambda o, x: o.value(x), lambda o, x: o.hessian_product(x, x)):
        assert ask(made(), POINT).shape[0] == 3
        np.testing.assert_array_equal(ask(made(), POINT), ask(made(), stacked))


def test_no_terms_by_default() -> None:
    expected = Gradient(step=0.01)(LocalProblem(objective=F), POINTS, Steps(steps=3)).theta
    terms: list[dict[str, Any]] = [{}, {"weight": 0.0}, {"weight": np.zeros(3)}, {"weight": 0.0, "center": POINTS}]
    for told in terms:
        np.testing.assert_array_equal(made().solve(start=POINTS, **told).theta, expected)


def test_the_center_is_zero_by_default() -> None:
    found = made(solver=Exact()).solve(start=POINT, weight=2.0).theta
    np.testing.assert_allclose(found, np.linalg.solve(F.A + 2.0 * np.eye(4), F.b[..., None])[..., 0], rtol=1e-12)


def test_every_client_has_its_own_weight() -> None:
    weight = np.array([0.0, 1.0, 50.0])
    found = made(solver=Exact()).solve(start=POINT, linear=POINTS, weight=weight, center=POINT).theta
    for j, w in enumerate(weight):
        right = F.b[j] - POINTS[j] + w * POINT
        np.testing.assert_allclose(found[j], np.linalg.solve(F.A[j] + w * np.eye(4), right), rtol=1e-12)


# What is kept


def test_the_solver_goes_on_from_its_state() -> None:
    f = logistic()
    oracle = made(f, solver=LBFGS(), stop=GradientNorm(tol=1e-8), solver_state=LBFGS().initial_state(f))
    first = oracle.solve(start=f.zeros())
    assert oracle.solver_state is first.solver_state
    before = list(oracle.gradients)
    again = oracle.solve(start=first.theta)
    assert again.gradients == (0.0,) * 4
    assert oracle.gradients == before


def test_another_solver_and_rule_for_one_call() -> None:
    oracle = made(solver=LBFGS(), solver_state=LBFGS().initial_state(F))
    kept = oracle.solve(start=POINT).solver_state
    exact = oracle.solve(start=POINT, solver=Exact(), stop=Steps(steps=1)).theta
    np.testing.assert_allclose(exact, np.linalg.solve(F.A, F.b[..., None])[..., 0], rtol=1e-12)
    assert oracle.solver_state is kept  # that of the method's solver
    assert oracle.solve(start=POINT, stop=Steps(steps=1)).status == ("converged",) * 3


def test_it_tells_what_it_knows_of_the_clients() -> None:
    oracle = made()
    assert oracle.shape == (4,)
    np.testing.assert_array_equal(oracle.mu, F.mu)
    np.testing.assert_array_equal(oracle.L, F.L)


def test_hessian_products_are_refused_in_a_sentence_where_there_are_none() -> None:
    aware = SharpnessAware(objective=F, radius=0.1)
    with pytest.raises(ValueError, match="hessian_product needs an objective that offers Hessian products"):
        made(aware).hessian_product(POINT, POINT)


def test_newton_directions_are_solved_and_charged_client_by_client() -> None:
    """(H_j + w)^-1 b_j with the exact preconditioner of quadratics: one product."""
    oracle = made()
    f, b = oracle.objective, np.arange(1.0, 1.0 + POINTS.size).reshape(POINTS.shape)
    direction = oracle.newton_direction(POINT, b, reduction=1e-12, most=9, weight=0.5)
    for H, right, found in zip(f.A, b, direction, strict=True):  # pyright: ignore[reportAttributeAccessIssue]
        np.testing.assert_allclose((H + 0.5 * np.eye(len(right))) @ found, right, rtol=1e-10)
    assert oracle.gradients == [1.0] * f.n_clients
    assert oracle.solution is not None
    assert oracle.solution.gradients == (1.0,) * f.n_clients
    assert oracle.solution.evaluation is None
