"""What every local solver promises that can evaluate its objective, not samples of it alone.

A solver is built without arguments, and tried on every objective that it does not refuse by a ``ValueError``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.tree import leaves, take_clients
from dualopt.lab.contracts.options import classes
from dualopt.lab.contracts.solver_problems import (
    OBJECTIVES,
    arrays,
    by_client,
    dot,
    first,
    in_turn,
    is_quadratic,
    local_problem,
    minimisers,
    move_problem,
    starts,
    to_backend,
)
from dualopt.objectives import LinearModel, Quadratic
from dualopt.solvers import LBFGS
from dualopt.solvers.stopping import Gap, GradientNorm, GradientReduction, RelativeEnergy, Steps

SAMPLED = ("sgd", "sarah")  # of this package, those that see samples only: no tolerance, gap or dual point


def solvers(config: Any) -> dict[str, Any]:
    """Return the solvers to be tested by name: those that were named, or those of this package."""
    found = classes(config, "solver")
    if config.getoption("solver", default=None):
        return {name: kind() for name, kind in found.items()}
    own = {name.replace("-", "_"): kind() for name, kind in found.items() if name not in SAMPLED}
    return own | {"lbfgs_plain": LBFGS(precondition=False, history=5)}


def applies(name: str, objective: Any) -> bool:
    """Say which solver of this package is made for which objective; what is not listed needs smoothness only."""
    if name == "exact":
        return is_quadratic(objective)
    if name == "row_lbfgs":  # sparse rows alone
        return isinstance(objective, LinearModel) and objective.rows.is_sparse
    if name == "dual_coordinate":
        if not isinstance(objective, LinearModel):
            return False
        return objective.loss.outputs == 1 and math.isfinite(min(objective.loss.curvature, objective.loss.lipschitz))
    if name == "interior_point":
        return isinstance(objective, LinearModel) and getattr(objective.loss, "kink_at_label", False)
    if isinstance(objective, Quadratic) or math.isfinite(objective.loss.curvature):
        return True
    return name in ("newton", "lbfgs", "lbfgs_plain") and "hessian" in objective.offers  # they need no constant


def accepts(solver: Any, objective: Any) -> bool:
    """Tell whether a solver does not refuse an objective, at the start or in its first step."""
    problem = local_problem(objective, "all")
    try:
        state = solver.initial_state(objective)
        solver(problem, starts(problem), Steps(steps=1), state, first(problem.n_clients))
    except ValueError:
        return False
    except Exception:  # a bug, which the tests show
        return True
    return True


def pairs_of(config: Any) -> list[tuple[str, str]]:
    """Return the names of solvers and objectives that go together."""
    ours, pairs = not config.getoption("solver", default=None), []
    for name, solver in solvers(config).items():
        own = [o for o, make in OBJECTIVES.items() if (applies(name, make()) if ours else accepts(solver, make()))]
        # one that refuses everything is tried on the simplest objective, where the test says what it raises
        pairs += [(name, objective) for objective in (own if own or ours else ["quadratic"])]
    return pairs


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the solvers, each with its objectives and in turn with terms or rules."""
    if "solver" not in metafunc.fixturenames:
        return
    table, pairs = solvers(metafunc.config), pairs_of(metafunc.config)
    options = {"case": list(CASES), "terms": ["linear", "all"]}
    further = [name for name in options if name in metafunc.fixturenames]
    cases = in_turn(pairs, options[further[0]]) if further else pairs
    metafunc.parametrize(
        ("solver", "objective", *further),
        [pytest.param(table[case[0]], *case[1:], id="-".join(case)) for case in cases],
    )


# Terms of the local problem and a rule; every rule and every kind of term occurs.
CASES = {
    "steps": ("linear", Steps(steps=3)),
    "gradient": ("all", GradientNorm(tol=1e-4)),
    "gap": ("linear", Gap(schedule=lambda round: 1e-4)),
    "reduction": ("weight", GradientReduction(first=1e-2)),
    "energy": ("all", RelativeEnergy(tol=1e-6)),
}


def assert_same(part: Any, whole: Any, ids: tuple[int, ...]) -> None:
    """Assert that ``part`` has the bits of the rows ``ids`` of ``whole``."""
    assert part.status == tuple(whole.status[j] for j in ids)
    assert part.gradients == tuple(whole.gradients[j] for j in ids)
    assert part.charged == whole.charged
    if not hasattr(whole.length, "shape"):
        assert part.length == whole.length
    for a, b in zip(leaves(by_client(part)), leaves(take_clients(by_client(whole), ids)), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()


def call(solver: Any, problem: Any, start: Any, stop: Any, solver_state: Any, ids: tuple[int, ...], n: int = 0) -> Any:
    """Solve for the clients ``ids`` alone."""
    return solver(problem.select(ids), take_clients(start, ids), stop, take_clients(solver_state, ids), first(ids, n))


def test_a_client_alone_gets_the_bits_of_its_row(solver: Any, objective: str, case: str) -> None:
    """What a client gets does not depend on who else is in the call: alone it gets the same bits, the next time too."""
    terms, stop = CASES[case]
    problem = local_problem(OBJECTIVES[objective](), terms)
    start, solver_state = starts(problem), solver.initial_state(problem.objective)
    everyone = tuple(range(problem.n_clients))
    whole = call(solver, problem, start, stop, solver_state, everyone)
    alone = list(CASES).index(case)  # another client for every rule
    parts = [(alone,), (3, 1), (0, 2, 4)]
    for ids in parts:
        assert_same(call(solver, problem, start, stop, solver_state, ids), whole, ids)

    # the next round starts from the state that the first one left
    later = local_problem(problem.objective, terms, seed=5)
    again = call(solver, later, whole.theta, stop, whole.solver_state, everyone, n=1)
    for ids in parts:
        assert_same(call(solver, later, whole.theta, stop, whole.solver_state, ids, n=1), again, ids)


def test_reaches_the_minimiser_with_an_honest_gap(solver: Any, objective: str, terms: str) -> None:
    """It reaches the minimiser that other routes find, its gap is an upper bound, and its values are those there."""
    problem = local_problem(OBJECTIVES[objective](), terms)
    stop = Gap(schedule=lambda round: 1e-12)
    everyone = first(problem.n_clients)
    solution = solver(problem, starts(problem), stop, solver.initial_state(problem.objective), everyone)
    assert solution.status == ("converged",) * problem.n_clients
    assert np.all(solution.gap <= 1e-12)
    best = minimisers(objective, terms)
    distance = np.sqrt(dot(solution.theta - best, solution.theta - best))
    # strong convexity turns the gap into a distance; the reference has its own error
    assert np.all(distance <= np.sqrt(2 * solution.gap / problem.mu) + 2e-6)
    assert np.all(problem.value(solution.theta) <= problem.value(best) + 2e-12)
    there = problem.evaluate(solution.theta)
    for said, expected in ((solution.evaluation.f, there.f), (solution.evaluation.value, there.value)):
        np.testing.assert_allclose(said, expected, rtol=1e-12, atol=1e-12)


def test_nothing_is_changed_and_a_call_can_be_repeated(solver: Any, objective: str) -> None:
    """It writes to nothing that it is handed, and the same call gives the same bits."""

    def read_only(x: Any) -> np.ndarray:
        x = np.array(x)
        x.flags.writeable = False
        return x

    problem = move_problem(local_problem(OBJECTIVES[objective](), "all"), read_only)
    solver_state = to_backend(solver.initial_state(problem.objective), read_only)
    start = read_only(starts(problem))
    once = solver(problem, start, Steps(steps=4), solver_state, first(5))
    twice = solver(problem, start, Steps(steps=4), solver_state, first(5))
    for a, b in zip(arrays(once), arrays(twice), strict=True):
        assert a.tobytes() == b.tobytes()
    solver_state = to_backend(once.solver_state, read_only)
    solver(problem, read_only(once.theta), Steps(steps=4), solver_state, first(5, 1))
