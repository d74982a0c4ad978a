"""What every algorithm must satisfy; a new file in ``dualopt/algorithms`` is tested without editing a list."""

from __future__ import annotations

import pickle
import sys
from dataclasses import fields, replace
from itertools import islice

import numpy as np
import pytest

import dualopt.algorithms
from dualopt.discover import discover
from dualopt.engine import State, _stacked, advance, complete, initial_state, iterate
from dualopt.objectives import Quadratic
from dualopt.oracle import Oracle
from dualopt.participation import Bernoulli, CommunicateWithProbability, Full, Participation, UniformSubset, first_round
from dualopt.recording import run
from dualopt.reference import cvxpy, newton
from dualopt.solvers import LBFGS, Exact
from dualopt.stopping import GradientNorm
from dualopt.tree import leaves, take_clients, tree_map
from dualopt.xp import array_namespace, to_numpy
from tests.problems import converted, hinge, logistic, quadratic

ALGORITHMS = discover(dualopt.algorithms)
# What chance may do, for the methods that admit it.
CHANCE: list[Participation] = [
    Full(),
    UniformSubset(size=2),
    Bernoulli(probability=0.4),
    CommunicateWithProbability(probability=0.6),
]


def last(algorithm, objective, rounds, **options):
    return next(islice(iterate(algorithm, objective, **options), rounds - 1, None))


def is_unbiased(name: str) -> bool:
    """Whether the method has the minimiser as a fixed point, as it says itself."""
    f = quadratic()
    return ALGORITHMS[name]().suggested(f).fixed_point(f, f.zeros()) is not None


def admits(name: str, objective) -> bool:
    """Whether the suggested solver takes the objective, rather than say that it needs a smooth loss."""
    try:
        last(ALGORITHMS[name](), objective, 1)
    except ValueError as error:
        return "smooth" not in str(error)
    return True


PROBLEMS = {"smooth": logistic(rows=62), "nonsmooth": hinge(rows=62, mu=0.5)}  # clients of unequal sizes
PLACES = [
    pytest.param(name, chance, problem, id=f"{name}-{type(chance).__name__}-{problem}")
    for name, kind in ALGORITHMS.items()
    for problem, objective in PROBLEMS.items()
    if admits(name, objective)
    for chance in CHANCE
    if chance.needs() <= kind.supports
]
UNBIASED = [name for name in ALGORITHMS if is_unbiased(name)]
PARTIAL = [name for name in UNBIASED if "partial" in ALGORITHMS[name].supports]


@pytest.fixture(params=ALGORITHMS)
def exact(request: pytest.FixtureRequest):
    """The algorithm with exact local solutions, if it admits them."""
    return built(request.param, solver=Exact())


@pytest.fixture(params=ALGORITHMS)
def accurate(request: pytest.FixtureRequest):
    """The algorithm with local solutions that are accurate to rounding, if it admits them."""
    return built(request.param, solver=LBFGS(), stop=GradientNorm(tol=1e-13))


def built(name: str, **options):
    """The algorithm with those of the options that it has, or without any if it takes no such solver."""
    kind = ALGORITHMS[name]
    options = {
        key: value for key, value in options.items() if key in {field.name for field in fields(kind) if field.init}
    }
    try:
        return kind(**options)
    except ValueError as error:
        if "solver must be" not in str(error):
            raise
        return kind()


def oracle_of(algorithm, objective, solver_state, round) -> Oracle:
    """What the engine hands to ``local``."""
    return Oracle(algorithm.local_objective(objective), algorithm.solver, algorithm.stop, solver_state, round)


def host(tree):
    return [to_numpy(leaf) if hasattr(leaf, "shape") else np.asarray(leaf) for leaf in leaves(tree)]


@pytest.mark.parametrize("name", UNBIASED)
def test_stays_at_the_optimum(name: str) -> None:
    f = quadratic()
    algorithm = built(name, solver=Exact()).suggested(f)
    theta = f.minimiser()
    for participation in (p for p in CHANCE if p.needs() <= algorithm.supports - {"skip"}):
        state = State(*algorithm.fixed_point(f, theta))
        for round in islice(participation.rounds(f.n_clients, seed=0), 8):
            state, _, _ = advance(algorithm, f, state, round)
            np.testing.assert_allclose(state.server.theta, theta, atol=1e-13)


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - set(UNBIASED)))
def test_methods_that_say_they_are_biased_are(name: str) -> None:
    f = quadratic()
    moved = last(built(name, solver=Exact()), f, 20, theta0=f.minimiser()).server.theta
    assert np.linalg.norm(moved - f.minimiser()) > 1e-3


@pytest.fixture(scope="module")
def references():
    """Two independent solutions of the logistic problem."""
    return cvxpy(logistic()), newton(logistic())


@pytest.mark.parametrize("name", UNBIASED)
def test_reaches_the_independent_solutions(name: str, references) -> None:
    f = logistic()
    trace = run(built(name, solver=LBFGS(), stop=GradientNorm(tol=1e-13)), f, rounds=400, tol=1e-12)
    assert trace.status == "converged"
    for reference in references:
        np.testing.assert_allclose(trace.theta, reference.theta, atol=2e-6)
        assert abs(trace["energy"][-1] - reference.energy) <= 1e-11


@pytest.mark.parametrize("name", PARTIAL)
def test_partial_participation_reaches_the_minimiser(name: str) -> None:
    f = quadratic(L=4.0)
    for participation in (UniformSubset(size=2), Bernoulli(probability=0.4)):
        theta = last(built(name, solver=Exact()), f, 250, participation=participation).server.theta
        np.testing.assert_allclose(theta, f.minimiser(), atol=1e-13)


def test_permuting_clients_permutes_states(exact) -> None:
    f = quadratic()
    order = [3, 0, 4, 1, 2]
    direct, permuted = last(exact, f, 6), last(exact, f.select(order), 6)
    np.testing.assert_allclose(permuted.server.theta, direct.server.theta, rtol=1e-12)
    for a, b in zip(host(take_clients(direct.clients, order)), host(permuted.clients), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_equal_clients_are_one_client(exact) -> None:
    one = quadratic(n=1)
    assert one.c is not None
    many = Quadratic(A=np.repeat(one.A, 4, 0), b=np.repeat(one.b, 4, 0), c=np.repeat(one.c, 4))
    np.testing.assert_allclose(last(exact, many, 5).server.theta, last(exact, one, 5).server.theta, rtol=1e-12)


@pytest.mark.parametrize(("name", "participation", "problem"), PLACES)
def test_stacked_is_one_process_per_client(name: str, participation: Participation, problem: str) -> None:
    """Each client alone with its own rows, talking by pickled messages: the difference is exactly zero."""
    f = PROBLEMS[problem]
    require_one_process_per_client(complete(ALGORITHMS[name](), f, participation), f, participation)


def require_one_process_per_client(algorithm, f, participation: Participation) -> None:
    server, message, _, _ = initial_state(algorithm, f)
    alone = [pickle.loads(pickle.dumps(f.select((j,)))) for j in range(f.n_clients)]
    states = [initial_state(algorithm, one).clients for one in alone]
    solvers = [initial_state(algorithm, one).solver for one in alone]
    for _, snapshot in zip(range(6), iterate(algorithm, f, participation=participation), strict=False):
        active = snapshot.round.clients
        sent = pickle.dumps(message)
        uploads = []
        for j in active:
            round = replace(snapshot.round, clients=(j,))
            oracle = oracle_of(algorithm, alone[j], solvers[j], round)
            state, upload = algorithm.local(states[j], pickle.loads(sent), oracle, round)
            states[j], solvers[j] = _stacked(states[j], state, 1), oracle.solver_state
            uploads.append(pickle.loads(pickle.dumps(upload)))
        if active and snapshot.round.communicate:
            mean = tree_map(lambda *rows: np.mean(np.concatenate(rows), axis=0), *uploads)
            server, message = algorithm.server(server, mean, snapshot.round)
            for j in range(f.n_clients):
                if ("active" if j in active else "inactive") in algorithm.listens:
                    listen = algorithm.receive if j in active else algorithm.receive_inactive
                    states[j] = _stacked(states[j], listen(states[j], message), 1)
        together = (tree_map(lambda *rows: np.concatenate(rows), *parts) for parts in (states, solvers))
        stacked = (snapshot.server, snapshot.clients, snapshot.solver)
        for a, b in zip(host(stacked), host((server, *together)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_a_method_does_not_support_is_refused(exact) -> None:
    for participation in CHANCE:
        if not participation.needs() <= exact.supports:
            with pytest.raises(ValueError, match="does not support"):
                next(iterate(exact, quadratic(), participation=participation))


def test_array_libraries_agree(exact, backend) -> None:
    f = quadratic()
    expected = last(exact, f, 5)
    other = converted(f, backend)
    found = last(exact, other, 5)
    assert type(found.server.theta) is type(other.zeros())
    assert array_namespace(found.server.theta) is array_namespace(other.b)
    assert found.server.theta.device == other.b.device
    for a, b in zip(host(expected.clients), host(found.clients), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_single_precision_stays_single(exact) -> None:
    found = last(exact, converted(quadratic(), lambda x: x.astype(np.float32)), 5)
    assert all(leaf.dtype == np.float32 for leaf in leaves(found.clients))
    np.testing.assert_allclose(found.server.theta, last(exact, quadratic(), 5).server.theta, rtol=1e-4)


def test_is_pure(accurate) -> None:
    """The same state in gives the same state out, and what was handed over is not written to."""
    f = logistic()
    algorithm = accurate.suggested(f)
    snapshots = list(islice(iterate(algorithm, f), 3))
    before = pickle.dumps(snapshots[1])
    round = snapshots[2].round
    state = snapshots[1].state
    results = []
    for _ in range(2):
        oracle = oracle_of(algorithm, f, state.solver, round)
        results.append((algorithm.local(state.clients, state.message, oracle, round), oracle.solution))
    first, second = results
    for a, b in zip(host(first), host(second), strict=True):
        np.testing.assert_array_equal(a, b)
    assert pickle.dumps(snapshots[1]) == before


def test_parameters_left_open_must_be_filled_in(exact) -> None:
    f = quadratic()
    if exact.suggested(f) == exact:
        return  # nothing was open
    open_state = initial_state(exact.suggested(f), f)
    with pytest.raises(ValueError, match="suggested"):
        advance(exact, f, open_state, first_round(f.n_clients))


def test_survives_pickling(exact) -> None:
    assert pickle.loads(pickle.dumps(exact)) == exact


def rows_are_contiguous(kind) -> bool:
    """Tell whether the state of every client lies in one piece, at the start and after three rounds."""
    f = logistic(rows=62)
    method = kind().suggested(f)
    states = (initial_state(method, f).clients, last(method, f, 3).clients)
    return all(x[0, ...].flags.c_contiguous for x in leaves(states) if x.ndim > 1)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_states_lie_client_after_client(name):
    """Arrays made of a broadcast model follow its strides in NumPy, clients side by side, and so do their sums."""
    assert rows_are_contiguous(ALGORITHMS[name])


def test_clients_side_by_side_are_seen(monkeypatch):
    monkeypatch.setattr(sys.modules["dualopt.algorithms.dualfl"], "zeros_like", np.zeros_like)
    assert not rows_are_contiguous(ALGORITHMS["dualfl"])
