"""The contract of the solvers that see samples only."""

from __future__ import annotations

from itertools import islice, product

import numpy as np
import pytest
from solver_instances import (
    OBJECTIVES,
    SAMPLED,
    arrays,
    by_client,
    first,
    in_turn,
    linear,
    local_problem,
    move_problem,
    quadratic,
    starts,
    to_backend,
)
from test_frozen import assert_same, call

from dualopt.arrays.tree import leaves
from dualopt.arrays.xp import device, to_numpy
from dualopt.engine.rounds import iterate
from dualopt.losses import Logistic, Multinomial
from dualopt.methods import DualFL
from dualopt.runs.certificates import certificate, dual_point
from dualopt.runs.recording import run
from dualopt.solvers import SGD
from dualopt.solvers.stopping import GradientNorm, Steps
from tests.conftest import BACKENDS

every_solver = pytest.mark.parametrize("name", SAMPLED)
SAMPLED_PAIRS = list(product(SAMPLED, [name for name in OBJECTIVES if name != "quadratic"]))
STOP = Steps(steps=4)


@pytest.mark.parametrize(("name", "objective", "terms"), in_turn(SAMPLED_PAIRS, ["linear", "weight", "all"]))
def test_a_client_alone_gets_the_bits_of_its_row(name, objective, terms):
    solver = SAMPLED[name]
    problem = local_problem(OBJECTIVES[objective](), terms)
    start, solver_state = starts(problem), solver.initial_state(problem.objective)
    everyone = tuple(range(problem.n_clients))
    whole = call(solver, problem, start, STOP, solver_state, everyone)
    later = local_problem(problem.objective, terms, seed=5)
    again = call(solver, later, whole.theta, STOP, whole.solver_state, everyone, n=1)
    for ids in [*((j,) for j in everyone), (3, 1), (0, 2, 4)]:
        assert_same(call(solver, problem, start, STOP, solver_state, ids), whole, ids)
        assert_same(call(solver, later, whole.theta, STOP, whole.solver_state, ids, n=1), again, ids)


@every_solver
def test_the_same_in_dimensions_where_linear_algebra_is_blocked(name):
    solver = SAMPLED[name]
    f = linear(Multinomial(classes=5), sizes=(120, 45, 120, 70), d=34)
    problem = local_problem(f, "all")
    start, solver_state = starts(problem), solver.initial_state(f)
    whole = call(solver, problem, start, STOP, solver_state, (0, 1, 2, 3))
    for ids in [(0,), (1,), (2,), (3,), (2, 0)]:
        assert_same(call(solver, problem, start, STOP, solver_state, ids), whole, ids)


@pytest.mark.parametrize(("name", "objective", "library"), in_turn(SAMPLED_PAIRS, BACKENDS))
def test_every_library_gets_the_same_numbers_back(name, objective, library):
    solver, backend = SAMPLED[name], BACKENDS[library]
    problem = local_problem(OBJECTIVES[objective](), "all")
    start = starts(problem)
    expected = call(solver, problem, start, STOP, solver.initial_state(problem.objective), tuple(range(5)))
    moved = move_problem(problem, backend)
    result = solver(moved, backend(start), STOP, solver.initial_state(moved.objective), first(5))
    assert result.gradients == expected.gradients
    like = backend(start)
    for array in leaves(by_client(result)):
        assert type(array) is type(like)
        assert array.dtype == like.dtype
        assert device(array) == device(like)
    assert np.max(np.abs(to_numpy(result.theta) - expected.theta)) <= 1e-12 * np.max(np.abs(expected.theta))


@every_solver
def test_nothing_is_changed_and_a_call_can_be_repeated(name):
    def read_only(x):
        x = np.array(x)
        x.flags.writeable = False
        return x

    solver = SAMPLED[name]
    problem = move_problem(local_problem(OBJECTIVES["multinomial"](), "all"), read_only)
    start, solver_state = read_only(starts(problem)), to_backend(solver.initial_state(problem.objective), read_only)
    once, twice = (solver(problem, start, STOP, solver_state, first(5)) for _ in range(2))
    for a, b in zip(arrays(once), arrays(twice), strict=True):
        assert a.tobytes() == b.tobytes()
    solver(problem, read_only(once.theta), STOP, to_backend(once.solver_state, read_only), first(5, 1))


@every_solver
def test_single_precision_stays_single(name):
    solver = SAMPLED[name]
    problem = move_problem(local_problem(OBJECTIVES["logistic"](), "all"), lambda x: x.astype(np.float32))
    start = starts(problem).astype(np.float32)
    solution = solver(problem, start, STOP, solver.initial_state(problem.objective), first(5))
    assert {a.dtype for a in arrays(solution)} == {np.dtype(np.float32)}


@every_solver
def test_rounds_and_seeds_draw_different_rows(name):
    solver = SAMPLED[name]
    problem = local_problem(OBJECTIVES["logistic"](), "all")
    start, solver_state = starts(problem), solver.initial_state(problem.objective)
    one, two = (solver(problem, start, STOP, solver_state, first(5, n)).theta for n in (0, 6))  # both refresh
    assert np.array_equal(one, two) == (name == "sarah, all rows")


@every_solver
def test_nothing_is_claimed_about_the_accuracy(name):
    solver = SAMPLED[name]
    problem = local_problem(OBJECTIVES["logistic"](), "all")
    solution = solver(problem, starts(problem), STOP, solver.initial_state(problem.objective), first(5))
    assert solution.status == ("converged",) * 5
    assert solution.evaluation is None
    assert solution.excess is None
    assert dual_point(problem.objective, solution) is None
    assert np.all(np.isposinf(solution.gap))
    assert solution.gap.shape == (5,)
    theta = problem.objective.zeros()
    assert certificate(problem.objective, theta, solution) == certificate(problem.objective, theta)


@every_solver
def test_divergence_is_a_stall(name):
    solver = SAMPLED[name]
    problem = local_problem(OBJECTIVES["squared"](), "linear")
    start = starts(problem)
    start[2] = np.inf
    with np.errstate(all="ignore"):
        solution = solver(problem, start, STOP, solver.initial_state(problem.objective), first(5))
    assert [status == "stalled" for status in solution.status] == [False, False, True, False, False]


@every_solver
def test_a_run_certifies_by_gradients(name):
    f = linear(Logistic())
    trace = run(DualFL(solver=SAMPLED[name], stop=STOP), f, rounds=3, certify_every=1, seed=3)
    snapshots = list(islice(iterate(DualFL(solver=SAMPLED[name], stop=STOP), f, seed=3), 3))
    expected = [certificate(f, snapshot.server.theta).gap for snapshot in snapshots]
    assert trace["certificate"][1:].tolist() == expected
    assert np.all(np.isfinite(trace["certificate"]))


@every_solver
def test_misfits_are_refused(name):
    solver = SAMPLED[name]
    kind = name.partition(",")[0]
    with pytest.raises(ValueError, match=rf"^solver '{kind}' needs an objective with draw and sample_gradient.*\.$"):
        solver.initial_state(quadratic())
    problem = local_problem(quadratic(), "linear")
    with pytest.raises(ValueError, match=rf"^solver '{kind}' needs an objective with draw and sample_gradient.*\.$"):
        solver(problem, starts(problem), STOP)
    problem = local_problem(OBJECTIVES["logistic"](), "linear")
    solver_state = solver.initial_state(problem.objective)
    if isinstance(solver, SGD) and solver.epochs is not None:
        solver(problem, starts(problem), GradientNorm(tol=1e-3), solver_state, first(5))  # the rule is not looked at
        return
    with pytest.raises(ValueError, match=rf"^solver '{kind}' computes nothing that GradientNorm.*Steps.*\.$"):
        solver(problem, starts(problem), GradientNorm(tol=1e-3), solver_state, first(5))
