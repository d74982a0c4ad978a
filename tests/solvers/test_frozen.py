"""A client's result never depends on which other clients are in the call."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from solver_instances import OBJECTIVES, PAIRS, SOLVERS, first, linear, local_problem, quadratic, starts

from dualopt.lab.contracts.test_solvers import CASES, assert_same, call
from dualopt.losses import Hinge, Logistic, Multinomial
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import GradientNorm, Steps


@pytest.mark.parametrize(("name", "objective"), [pair for pair in PAIRS if pair[0] != "exact"])
def test_the_instances_make_clients_stop_at_different_steps(name, objective):
    problem = local_problem(OBJECTIVES[objective](), "all")
    solver = SOLVERS[name]
    solver_state = solver.initial_state(problem.objective)
    solution = solver(problem, starts(problem), CASES["gradient"][1], solver_state, first(problem.n_clients))
    if (name, objective) not in {("newton", "quadratic"), ("lbfgs", "quadratic")}:  # one exact step for all
        assert len(set(solution.gradients)) > 1


LARGE = {
    "quadratic": lambda: quadratic(n=4, d=37),
    "logistic": lambda: linear(Logistic(), sizes=(120, 45, 120, 70), d=66),
    "multinomial": lambda: linear(Multinomial(classes=5), sizes=(120, 45, 120, 70), d=34),
}


IN_LARGE = [
    *product(set(SOLVERS) - {"exact", "dual_coordinate", "interior_point", "row_lbfgs"}, LARGE),
    ("interior_point", "hinge"),
]
LARGE["hinge"] = lambda: linear(Hinge(), sizes=(120, 45, 120, 70), d=66)


@pytest.mark.parametrize(("name", "objective"), sorted(IN_LARGE))
def test_the_same_in_dimensions_where_linear_algebra_is_blocked(name, objective):
    problem = local_problem(LARGE[objective](), "all")
    solver, stop, start = SOLVERS[name], Steps(steps=4), starts(problem)
    solver_state = solver.initial_state(problem.objective)
    everyone = tuple(range(problem.n_clients))
    whole = call(solver, problem, start, stop, solver_state, everyone)
    for ids in [*((j,) for j in everyone), (2, 0)]:
        assert_same(call(solver, problem, start, stop, solver_state, ids), whole, ids)


@pytest.mark.parametrize("objective", ["quadratic", "logistic"])
def test_a_diverging_client_leaves_the_others_alone(objective):
    problem = local_problem(OBJECTIVES[objective](), "linear")
    start = starts(problem)
    start[2] = np.inf
    everyone = tuple(range(problem.n_clients))
    solver, stop = Gradient(step=0.05), Steps(steps=5)
    with np.errstate(all="ignore"):
        whole = call(solver, problem, start, stop, (), everyone)
    assert whole.status[2] == "stalled"
    for j in (0, 1, 3, 4):
        assert_same(call(solver, problem, start, stop, (), (j,)), whole, (j,))


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - {"exact", "dual_coordinate", "interior_point", "row_lbfgs"}))
def test_a_client_that_starts_at_its_minimiser_stays_there(name):
    f = quadratic()
    problem = local_problem(f, "all")
    start = starts(problem)
    start[1] = f.exact_minimiser(problem)[1]
    solver = SOLVERS[name]
    solver_state = solver.initial_state(problem.objective)
    whole = call(solver, problem, start, GradientNorm(tol=1e-9), solver_state, tuple(range(5)))
    assert whole.theta[1].tobytes() == start[1].tobytes()
    assert whole.gradients[1] == 1.0
    assert set(whole.status) == {"converged"}
