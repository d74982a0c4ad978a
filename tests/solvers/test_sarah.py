"""Oracle II of FedPD, line by line."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from solver_instances import OBJECTIVES, SIZES, first, local_problem, starts

from dualopt.objectives import LocalProblem
from dualopt.solvers import Sarah
from dualopt.solvers.stopping import Steps


def assert_close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def spread(numbers, like):
    return np.asarray(numbers).reshape(-1, *(1,) * (like.ndim - 1))


@pytest.mark.parametrize("unit", [None, np.array([0.5, 1.0, 3.0, 7.0, 0.2])], ids=["", "unit"])
@pytest.mark.parametrize("objective", ["squared", "logistic", "multinomial"])
def test_all_rows_are_exact_linearised_proximal_steps(objective, unit):
    problem = dataclasses.replace(local_problem(OBJECTIVES[objective](), "all"), unit=unit)
    f = problem.objective
    start = starts(problem)
    solver = Sarah(gamma=0.3, batch=None, refresh=100)
    # F_j is as many times the function that is asked for: its steps are as many times too long for F_j
    gamma = 0.3 if unit is None else spread(0.3 / unit, start)
    solver_state, theta = solver.initial_state(f), start
    for n in range(3):
        result = solver(problem, theta, Steps(steps=4), solver_state, first(5, n))
        for _ in range(4):
            # stationarity of <g + linear, x> + (w/2)|x - center|^2 + |x - theta|^2/(2 gamma), written for each client
            w = spread(problem.weight, theta)
            theta = (theta / gamma + w * problem.center - f.gradient(theta) - problem.linear) / (1.0 / gamma + w)
        assert_close(result.theta, theta)
        assert_close(result.solver_state.estimate, f.gradient(result.theta))
        theta, solver_state = result.theta, result.solver_state


def test_the_step_is_the_convex_combination_of_the_paper():
    f = OBJECTIVES["logistic"]()
    rng = np.random.default_rng(4)
    dual, x0, g, start = rng.normal(size=(4, 5, *f.shape))
    eta, gamma = 0.7, 0.2
    solver = Sarah(gamma=gamma, batch=2)
    problem = LocalProblem(objective=f, linear=dual, weight=1.0 / eta, center=x0)
    result = solver(
        problem, start, Steps(steps=1), solver.initial_state(f)._replace(theta=start, estimate=g), first(5, 1)
    )
    assert_close(
        result.theta,
        eta / (eta + gamma) * start + gamma / (eta + gamma) * x0 - eta * gamma / (eta + gamma) * (g + dual),
    )


def literal(f, dual, x0, eta, gamma, batch, refresh, steps, rounds, start):
    """Run Algorithm 4 for each client, one row at a time, round after round."""
    found = []
    for j, (X, y, w) in enumerate(f.client_rows()):
        x, g = start[j], None

        def h(point, i, X=X, y=y, w=w):
            return len(y) * w[i] * f.loss.gradient(X[i] @ point, y[i]) * X[i] + f.ridge * point

        for r in range(rounds):
            rng = first(5, r).rngs()[j]
            if r % refresh == 0:
                g = sum(h(x, i) for i in range(len(y))) / len(y)
            for _ in range(steps):
                new = (eta * x + gamma * x0[j] - eta * gamma * (g + dual[j])) / (eta + gamma)
                rows = rng.integers(0, len(y), size=batch)
                g = g + sum(h(new, i) - h(x, i) for i in rows) / batch
                x = new
        found.append((x, g))
    return np.stack([x for x, _ in found]), np.stack([g for _, g in found])


@pytest.mark.parametrize("refresh", [1, 2, 20])
def test_it_is_the_literal_oracle(refresh):
    f = OBJECTIVES["squared"]()
    rng = np.random.default_rng(6)
    dual, x0, start = rng.normal(size=(3, 5, *f.shape))
    expected, estimate = literal(f, dual, x0, 0.5, 0.1, 2, refresh, 3, 4, start)
    solver = Sarah(gamma=0.1, batch=2, refresh=refresh)
    problem = LocalProblem(objective=f, linear=dual, weight=2.0, center=x0)
    theta, solver_state, work = start, solver.initial_state(f), np.zeros(5)
    for n in range(4):
        result = solver(problem, theta, Steps(steps=3), solver_state, first(5, n))
        theta, solver_state = result.theta, result.solver_state
        work += result.gradients
    assert_close(theta, expected)
    assert_close(solver_state.estimate, estimate)
    full = len([n for n in range(4) if n % refresh == 0])
    assert_close(work, [full + 4 * 3 * 2 * 2 / m for m in SIZES])


def test_the_estimate_is_refreshed_where_it_is_not_known():
    problem = local_problem(OBJECTIVES["logistic"](), "all")
    f, start = problem.objective, starts(problem)
    solver = Sarah(gamma=0.1, batch=1, refresh=20)
    late = solver(problem, start, Steps(steps=1), solver.initial_state(f), first(5, 7))  # no earlier call
    assert late.gradients == tuple(1 + 2 / m for m in SIZES)
    elsewhere = late.theta.copy()
    elsewhere[3, 1] += 1.0  # one number is enough
    again = solver(problem, elsewhere, Steps(steps=1), late.solver_state, first(5, 8))
    assert again.gradients == tuple(float(j == 3) + 2 / m for j, m in enumerate(SIZES))
    weight = (problem.mu - f.mu)[3]
    slope = (f.gradient(elsewhere) + problem.linear_term())[3]
    assert_close(again.theta[3], (elsewhere[3] - 0.1 * slope) / (1.0 + 0.1 * weight))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gamma": 0.0}, "gamma must be positive, not 0.0"),
        ({"gamma": 1.0, "batch": 0}, "batch must be at least 1, or None for every row, not 0"),
        ({"gamma": 1.0, "refresh": 0}, "refresh must be at least 1, not 0"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}\\.$"):
        Sarah(**arguments)
