"""The interior-point method and its faces against their equations as they stand, a row of the system for each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

from dualopt.losses import AbsoluteDeviation, Hinge, Quantile
from dualopt.methods import OptimizedDualFL
from dualopt.objectives import LocalProblem, Quadratic, linear_model
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.runs.recording import run
from dualopt.solvers import InteriorPoint
from dualopt.solvers._kinks import Kinked
from dualopt.solvers.interior_point import suits
from dualopt.solvers.stopping import Steps

SIZES = (5, 9, 5)


def instance(loss: Any, seed: int = 0) -> Any:
    """Three clients of unequal weights and constants, whose minimisers are at kinks of some rows."""
    rng = np.random.default_rng(seed)
    m, p, N = sum(SIZES), 3, len(SIZES)
    X = rng.normal(size=(m, p))
    y = rng.choice([-1.0, 1.0], m) if loss.labels == "binary" else rng.normal(size=m)
    cuts = np.split(rng.permutation(m), np.cumsum(SIZES)[:-1])
    f = linear_model(
        X, y, loss=loss, mu=0.2, weights=rng.uniform(0.1, 0.6, m), clients=[c.tolist() for c in cuts], intercept=False
    )
    weight, (linear, center) = rng.uniform(0.1, 0.5, N), rng.normal(size=(2, N, p))
    return LocalProblem(objective=f, linear=linear, weight=weight, center=center)


class Found(NamedTuple):
    """What belongs to dual variables of one client."""

    u: np.ndarray
    theta: np.ndarray
    gap: float


def direction(system: np.ndarray, right: tuple, distances: tuple) -> tuple[tuple[np.ndarray, ...], float]:
    """Return the changes of u, s and t, and the longest step up to 1 that leaves all distances positive."""
    du, ds, dt = np.split(np.linalg.solve(system, np.concatenate([0 * right[0], *right])), 3)
    ways = zip(distances, (-du, du, ds, dt), strict=True)
    return (du, ds, dt), min([1.0, *(-x[k] / d[k] for x, d in ways for k in np.flatnonzero(d < 0))])


def by_newton(problem: Any, j: int, u: np.ndarray, steps: int) -> Found:
    """Return the point of the least gap that one client meets in some steps from ``u``."""
    f = problem.objective
    X, y, w = list(f.client_rows())[j]
    m, N = len(y), f.n_clients
    linear, center = (np.broadcast_to(x, (N, X.shape[1]))[j] for x in (problem.linear, problem.center))
    weight = np.broadcast_to(problem.weight, (N,))[j]
    mu = f.mu[j] + weight
    low, high = (f.loss.gradient(y + side, y) for side in (-1.0, 1.0))

    def point(u: np.ndarray) -> np.ndarray:
        return (weight * center - linear - X.T @ (w * u)) / mu

    def found(u: np.ndarray) -> Found:
        r = X @ point(u) - y
        return Found(u, point(u), float(sum(w * np.where(r > 0, (high - u) * r, (low - u) * r))))

    best = found(u)
    u = np.clip(u, low + 1e-4 * (high - low), high - 1e-4 * (high - low))
    r = X @ point(u) - y
    more = sum(w * np.where(r > 0, r * (high - u), -r * (u - low))) / sum(w * (high - low) / 2)
    s, t = np.maximum(r, 0) + more, np.maximum(-r, 0) + more
    K, unit, zero = -X @ X.T * w / mu, np.eye(m), np.zeros((m, m))
    for _ in range(steps):
        a, b = high - u, u - low
        system = np.block([[K, -unit, unit], [-np.diag(s), np.diag(a), zero], [np.diag(t), zero, np.diag(b)]])
        size = 2 * sum(w)
        mean = sum(w * (s * a + t * b)) / size

        (du, ds, dt), step = direction(system, (-s * a, -t * b), (a, b, s, t))
        left = sum(w * ((s + step * ds) * (a - step * du) + (t + step * dt) * (b + step * du))) / size
        goal = mean * (left / mean) ** 3
        (du, ds, dt), step = direction(system, (goal - s * a + du * ds, goal - t * b - du * dt), (a, b, s, t))
        step = min(1.0, 0.995 * step)
        u = u + step * du
        r = X @ point(u) - y
        both = np.maximum(np.minimum(s + step * ds, t + step * dt), 1e-3 * np.minimum(s, t))
        s, t = both + np.maximum(r, 0), both + np.maximum(-r, 0)
        if found(u).gap < best.gap:
            best = found(u)
    return best


def solve(problem: Any, steps: int, solver_state: Any = ()) -> Any:
    f = problem.objective
    return InteriorPoint()(problem, np.zeros((f.n_clients, *f.shape)), Steps(steps=steps), solver_state=solver_state)


LOSSES = [Hinge(), AbsoluteDeviation(), Quantile(level=0.8)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_in_the_interior_it_is_newtons_method_on_its_equations(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = Kinked.inside
    monkeypatch.setattr(Kinked, "inside", lambda c, v: (inside(c, v)[0], np.zeros(len(v), dtype=bool)))  # no faces
    problem = instance(loss)
    (zero,) = InteriorPoint().initial_state(problem.objective)
    other = replace(problem, linear=-problem.linear)  # its dual variables are where later calls begin
    begun = solve(other, 9).solver_state[0]
    gaps = []
    for u in (zero, begun):
        for steps in range(1, 8):
            solution = solve(problem, steps, (u,))
            for j, m in enumerate(SIZES):
                expected = by_newton(problem, j, u[j, :m], steps)
                np.testing.assert_allclose(solution.solver_state[0][j, :m], expected.u, rtol=0, atol=1e-7)
                np.testing.assert_allclose(solution.theta[j], expected.theta, rtol=0, atol=1e-7)
                np.testing.assert_allclose(solution.bound[j], expected.gap, rtol=1e-5, atol=1e-12)
                assert not solution.solver_state[0][j, m:].any()
            gaps.append(np.max(solution.bound))
    assert gaps[6] < 1e-3 * gaps[0]
    assert gaps[13] < 1e-3 * gaps[7]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_step_on_a_face_leaves_its_rows_at_the_kink(loss: Any) -> None:
    """Against the system of both, the multipliers and the model, with the conditions of the kink as they stand."""
    problem = instance(loss, seed=4)
    f, rng = problem.objective, np.random.default_rng(5)
    (zero,) = InteriorPoint().initial_state(f)
    u = zero.copy()
    systems = []
    for j, (X, y, w) in enumerate(f.client_rows()):
        m, p = X.shape
        low, high = (f.loss.gradient(y + side, y) for side in (-1.0, 1.0))
        kinks = rng.permutation(m)[:2]
        u[j, :m] = np.where(rng.integers(0, 2, m) == 0, low, high)
        u[j, kinks] = (low + (high - low) * rng.uniform(0.4, 0.6, m))[kinks]
        weight, mu = problem.weight[j], f.mu[j] + problem.weight[j]
        others = np.delete(np.arange(m), kinks)
        right = weight * problem.center[j] - problem.linear[j] - X[others].T @ (w * u[j, :m])[others]
        pull = (w[:, None] * X)[kinks].T
        both = np.linalg.solve(
            np.block([[mu * np.eye(p), pull], [X[kinks], np.zeros((2, 2))]]), np.concatenate([right, y[kinks]])
        )
        own = u[j, :m].copy()
        own[kinks] = np.clip(both[p:], low[kinks], high[kinks])
        theta = (weight * problem.center[j] - problem.linear[j] - X.T @ (w * own)) / mu
        r = X @ theta - y
        systems.append((own, theta, float(sum(w * np.where(r > 0, (high - own) * r, (low - own) * r)))))
    solution = solve(problem, 1, (u,))
    improved = 0
    for j, (own, theta, gap) in enumerate(systems):
        before = by_newton(problem, j, u[j, : len(own)], 0)
        if gap < before.gap:
            improved += 1
            np.testing.assert_allclose(solution.solver_state[0][j, : len(own)], own, rtol=0, atol=1e-6)
            np.testing.assert_allclose(solution.theta[j], theta, rtol=0, atol=1e-6)
            np.testing.assert_allclose(solution.bound[j], gap, rtol=1e-5)
        else:
            assert solution.bound[j] == pytest.approx(before.gap)
    assert improved >= 2


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_where_the_rows_at_the_kink_stay_a_later_call_needs_two_steps(loss: Any) -> None:
    problem = instance(loss, seed=3)
    u = solve(problem, 30).solver_state
    near = replace(problem, linear=problem.linear * (1.0 + 1e-3))
    exact = solve(near, 40)
    found = solve(near, 2, u)
    assert np.all(found.bound <= 1e-12)
    np.testing.assert_allclose(found.theta, exact.theta, rtol=0, atol=1e-9)
    at_kinks = 0
    for own, (X, y, _), theta in zip(found.solver_state[0], problem.objective.client_rows(), found.theta, strict=True):
        low, high = (problem.objective.loss.gradient(y + side, y) for side in (-1.0, 1.0))
        kinks = (low < own[: len(y)]) & (own[: len(y)] < high)
        at_kinks += int(kinks.sum())
        np.testing.assert_allclose((X @ theta - y)[kinks], 0.0, atol=1e-9)
    assert at_kinks >= 1


def test_rows_without_weight_and_columns_of_zeros_are_no_trouble() -> None:
    rng = np.random.default_rng(6)
    X, y, w = rng.normal(size=(12, 3)), rng.normal(size=12), rng.uniform(0.1, 0.5, 12)
    X[:, 2], w[[1, 7]] = 0.0, 0.0
    f = linear_model(X, y, loss=AbsoluteDeviation(), mu=0.1, weights=w, clients=1, intercept=False)
    some = np.flatnonzero(w)
    g = linear_model(
        X[some, :2], y[some], loss=AbsoluteDeviation(), mu=0.1, weights=w[some], clients=1, intercept=False
    )
    found, expected = (solve(LocalProblem(objective=x), 40) for x in (f, g))
    assert found.bound[0] <= 1e-13
    np.testing.assert_allclose(found.theta[0], [*expected.theta[0], 0.0], rtol=0, atol=1e-9)
    u = found.solver_state[0].copy()
    u[0, [1, 7]] = 0.0  # inside the domain, but nothing holds these rows at the kink
    near = LocalProblem(objective=f, linear=np.full((1, 3), 1e-5))
    assert solve(near, 2, (u,)).bound[0] <= 1e-12


def test_errors_of_local_solutions_do_not_add_up_with_momentum() -> None:
    """Points in the interior of the same gaps left certificates of 1e-3, with which no round from 50 to 600 ended."""
    options = ProblemOptions(data="breast_cancer", partition="by-label", clients=8, mu=1e-2, loss="hinge")
    f = build_problem(options).objective
    trace = run(OptimizedDualFL(solver=InteriorPoint()), f, rounds=200, tol=1e-4, threads=1)
    assert trace.status == "converged"
    assert trace["certified_error"][-1] <= 1e-4


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_after_any_number_of_steps_variables_are_in_the_domain_and_the_gap_is_rounding(loss: Any) -> None:
    problem = instance(loss, seed=3)
    f = problem.objective
    for steps in (20, 40, 60):
        solution = solve(problem, steps)
        assert np.all(solution.bound <= 1e-12)
        for u, (X, y, _), theta in zip(solution.solver_state[0], f.client_rows(), solution.theta, strict=True):
            low, high = (f.loss.gradient(y + side, y) for side in (-1.0, 1.0))
            assert np.all((low <= u[: len(y)]) & (u[: len(y)] <= high))
            r = X @ theta - y
            off = np.abs(r) > 1e-6
            np.testing.assert_allclose(u[: len(y)][off], np.where(r > 0, high, low)[off], rtol=0, atol=1e-6)


def test_where_it_begins_at_the_solution_it_stays() -> None:
    """All labels and slopes are zero: there is no distance from the kink to begin with."""
    f = linear_model(np.eye(3), np.zeros(3), loss=AbsoluteDeviation(), mu=0.5, clients=1, intercept=False)
    solution = solve(LocalProblem(objective=f), 5)
    assert np.array_equal(solution.theta, np.zeros((1, 3)))
    assert solution.bound.tolist() == [0.0]


def test_it_is_the_default_for_few_dense_columns_and_kinks() -> None:
    def asked(X: Any, loss: str) -> bool:
        y = [1.0, -1.0]
        return suits(linear_model(X, y, loss=loss, mu=0.1, clients=1, intercept=False))

    assert asked(np.ones((2, 256)), "hinge")
    assert not asked(np.ones((2, 257)), "hinge")
    assert not asked(np.ones((2, 2)), "squared-hinge")
    assert not asked(csr_array(np.eye(2, 1000)), "hinge")
    assert not suits(Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1))))


@pytest.mark.parametrize("loss", ["smoothed-hinge", "huber"])
def test_losses_without_one_kink_are_refused(loss: str) -> None:
    f = linear_model(np.eye(2), [1.0, -1.0], loss=loss, mu=0.1, clients=1, intercept=False)
    with pytest.raises(ValueError, match=r"^solver 'interior-point' needs a loss with one kink at the label"):
        InteriorPoint().initial_state(f)
