"""Stochastic gradient descent: the loop over clients, steps and rows."""

from __future__ import annotations

import numpy as np
import pytest
from solver_instances import OBJECTIVES, SIZES, first, linear, local_problem, starts

from dualopt.losses import Squared
from dualopt.objectives import LocalProblem
from dualopt.solvers import SGD
from dualopt.solvers.stopping import Steps


def literal(solver, problem, start, round, steps):
    """Do what the formula says, one client, one step and one row at a time (squared loss); sum the step sizes."""
    f = problem.objective
    found, lengths = [], []
    weights = np.broadcast_to(problem.weight, (problem.n_clients,))
    for j, (rng, (X, y, w)) in enumerate(zip(round.rngs(), f.client_rows(), strict=True)):
        m, theta = len(y), start[j].copy()
        if solver.epochs is None:
            batches = [rng.integers(0, m, size=solver.batch) for _ in range(steps)]
        else:
            batches = []
            for _ in range(solver.epochs):
                order = list(rng.permutation(m))
                while order:
                    batches.append(order[: solver.batch])
                    del order[: solver.batch]
        lengths.append(0.0)
        for rows in batches:
            gradient = f.ridge * theta + problem.linear[j] + weights[j] * (theta - problem.center[j])
            for i in rows:
                gradient = gradient + m * w[i] * (theta @ X[i] - y[i]) * X[i] / len(rows)
            if solver.max_norm is not None:
                gradient = gradient * min(1.0, solver.max_norm / np.linalg.norm(gradient))
            step = solver.step * solver.decay**round.n
            theta = theta - step * gradient
            lengths[j] += step
        found.append(theta)
    return np.stack(found), lengths


@pytest.mark.parametrize(
    "solver",
    [
        SGD(step=0.05, batch=3),
        SGD(step=0.05, batch=20),  # more rows than any client has
        SGD(step=0.05, batch=4, epochs=2),
        SGD(step=0.05, batch=3, decay=0.5),
        SGD(step=0.05, batch=4, epochs=3, decay=0.5),
        SGD(step=0.05, batch=4, epochs=1, max_norm=1.5),
        SGD(step=0.05, batch=1, max_norm=0.1),
        SGD(step=0.05, batch=3, max_norm=4.0),  # some are longer, some are not
    ],
    ids=repr,
)
@pytest.mark.parametrize("n", [0, 2])
def test_it_is_the_literal_loop(solver, n):
    problem = local_problem(OBJECTIVES["squared"](), "all")
    start, round = starts(problem), first(5, n)
    expected, lengths = literal(solver, problem, start, round, steps=3)
    result = solver(problem, start, Steps(steps=3), (), round)
    np.testing.assert_allclose(result.theta, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.length * np.ones(5), lengths, rtol=1e-14)  # of up to nine steps


def test_work_is_the_share_of_the_rows():
    problem = local_problem(OBJECTIVES["logistic"](), "linear")
    start = starts(problem)
    fixed = SGD(step=0.1, batch=3)(problem, start, Steps(steps=6), (), first(5))
    assert fixed.gradients == tuple(18 / m for m in SIZES)
    passes = SGD(step=0.1, batch=4, epochs=3)(problem, start, Steps(steps=1), (), first(5))
    assert passes.gradients == (3.0,) * 5


def test_an_epoch_uses_every_row_once():
    """With a slope that does not depend on the point, shuffled batches of one size add up to the full gradient."""
    f = linear(Squared(), sizes=(8, 4))
    problem = LocalProblem(objective=f)
    start = starts(problem)
    tiny = 1e-9  # theta does not move as far as rounding of the slopes
    result = SGD(step=tiny, batch=2, epochs=1)(problem, start, Steps(steps=1), (), first(2))
    steps = np.asarray([[4.0], [2.0]])
    moved = (start - result.theta) / tiny / steps
    np.testing.assert_allclose(moved, f.gradient(start), rtol=1e-4, atol=1e-4)
    drawn = SGD(step=tiny, batch=2)(problem, start, Steps(steps=4), (), first(2))
    assert not np.allclose((start - drawn.theta)[0] / tiny / 4, f.gradient(start)[0], rtol=1e-2, atol=1e-2)


def test_all_rows_reach_the_minimiser():
    """Batches as large as the client, without replacement, are gradient descent."""
    f = OBJECTIVES["squared"]()
    problem = local_problem(f, "all")
    result = SGD(step=0.05, batch=9, epochs=2000)(problem, starts(problem), Steps(steps=1), (), first(5))
    np.testing.assert_allclose(result.theta, f.exact_minimiser(problem), atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": 0.0}, "step must be positive, not 0.0"),
        ({"step": 1.0, "batch": 0}, "batch must be at least 1, not 0"),
        ({"step": 1.0, "epochs": 0}, "epochs must be at least 1, not 0"),
        ({"step": 1.0, "decay": 0.0}, r"decay must lie in \(0, 1\], not 0.0"),
        ({"step": 1.0, "decay": 1.1}, r"decay must lie in \(0, 1\], not 1.1"),
        ({"step": 1.0, "max_norm": 0.0}, "max_norm must be positive, not 0.0"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}\\.$"):
        SGD(**arguments)
