"""What every algorithm promises.

A method is built without arguments and completed by ``suggested``. A promise that it does not make, such as partial
participation, is not tested; but what it says it supports, it must keep.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.tree import leaves, take_clients, tree_map
from dualopt.arrays.xp import array_namespace, to_numpy
from dualopt.engine._steps import averaged, stacked
from dualopt.engine.rounds import State, advance, initial_state, iterate, resolve
from dualopt.lab.contracts.backends import each_backend
from dualopt.lab.contracts.options import classes
from dualopt.lab.contracts.problems import converted, hinge, logistic, quadratic
from dualopt.methods import UNKNOWN
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import (
    Bernoulli,
    CommunicateWithProbability,
    Full,
    Participation,
    UniformSubset,
    first_round,
)
from dualopt.objectives import Quadratic
from dualopt.runs.recording import run
from dualopt.runs.reference import cvxpy, newton
from dualopt.solvers import LBFGS, Exact
from dualopt.solvers.stopping import GradientNorm

# What chance may do, for the methods that admit it.
CHANCE: list[Participation] = [
    Full(),
    UniformSubset(size=2),
    Bernoulli(probability=0.4),
    CommunicateWithProbability(probability=0.6),
]
SUPPORTS = frozenset({"partial", "unequal", "skip", "regulariser"})
RECEIVERS = frozenset({"active", "inactive"})
PROBLEMS = {"smooth": logistic(rows=62), "nonsmooth": hinge(rows=62, mu=0.5)}  # clients of unequal sizes


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the classes that make its promise, and for ``place`` who takes part and in what."""
    wanted = {"kind", "unbiased", "biased", "said", "partial", "place"} & set(metafunc.fixturenames)
    if not wanted:
        return
    (argument,) = wanted
    found = classes(metafunc.config, "algorithm")
    if argument == "place":
        cases = [
            pytest.param((kind, chance, problem), id=f"{name}-{type(chance).__name__}-{problem}")
            for name, kind in found.items()
            for problem, objective in PROBLEMS.items()
            if admits(kind, objective)
            for chance in CHANCE
            if chance.needs() <= kind.supports
        ]
    else:
        cases = [pytest.param(kind, id=name) for name, kind in found.items() if MAKES[argument](kind)]
    if cases:
        metafunc.parametrize(argument, cases, scope="function")
    else:
        nobody = pytest.param(None, marks=pytest.mark.skip("no method promises it"), id="none")
        metafunc.parametrize(argument, [nobody])


def resting(kind: Any) -> Any:
    """Return the fixed point as the method says it; None where it is biased, ``UNKNOWN`` where nothing is said."""
    f = quadratic()
    try:
        return kind().suggested(f).fixed_point(f, f.zeros())
    except Exception:  # whatever is wrong with it, another test says so
        return UNKNOWN


def admits(kind: Any, objective: Any) -> bool:
    """Whether the suggested solver takes the objective, rather than say that it needs a smooth loss."""
    try:
        last(kind(), objective, 1)
    except ValueError as error:
        return "smooth" not in str(error)
    except Exception:
        return True
    return True


MAKES = {
    "kind": lambda kind: True,
    "unbiased": lambda kind: resting(kind) is not None,
    "biased": lambda kind: resting(kind) is None,
    "said": lambda kind: resting(kind) is not None and resting(kind) != UNKNOWN,
    "partial": lambda kind: resting(kind) is not None and "partial" in kind.supports,
}


def last(algorithm: Any, objective: Any, rounds: int, **options: Any) -> Any:
    """Return the federation after so many rounds."""
    return next(islice(iterate(algorithm, objective, **options), rounds - 1, None))


def exact(kind: Any) -> Any:
    """Return the algorithm with exact local solutions, if it admits them."""
    return built(kind, solver=Exact())


def accurate(kind: Any) -> Any:
    """Return the algorithm with local solutions that are accurate to rounding, if it admits them."""
    return built(kind, solver=LBFGS(), stop=GradientNorm(tol=1e-13))


def built(kind: Any, **options: Any) -> Any:
    """Return the algorithm with those of the options that it has, or without any if it takes no such solver."""
    options = {
        key: value for key, value in options.items() if key in {field.name for field in fields(kind) if field.init}
    }
    try:
        return kind(**options)
    except ValueError as error:
        if "solver must be" not in str(error):
            raise
        return kind()


def oracle_of(algorithm: Any, objective: Any, solver_state: Any, round: Any) -> Oracle:
    """Return what the engine hands to ``local``."""
    return Oracle(algorithm.local_objective(objective), algorithm.solver, algorithm.stop, solver_state, round)


def host(tree: Any) -> list[np.ndarray]:
    """Return the leaves of a tree as arrays of NumPy."""
    return [to_numpy(leaf) if hasattr(leaf, "shape") else np.asarray(leaf) for leaf in leaves(tree)]


def test_it_needs_no_arguments_and_supports_what_there_is(kind: Any) -> None:
    """It is built without arguments, completed by ``suggested``; ``supports`` and ``receivers`` name what there is."""
    assert kind().suggested(quadratic()) is not None
    assert kind.supports <= SUPPORTS, f"supports must be among {sorted(SUPPORTS)}, not {sorted(kind.supports)}."
    assert kind.receivers <= RECEIVERS, f"receivers must be among {sorted(RECEIVERS)}, not {sorted(kind.receivers)}."


def test_uploads_have_one_row_per_client(kind: Any) -> None:
    """The upload and the states of clients have the client axis first: one row for each client of the call."""
    f = quadratic()
    algorithm = resolve(exact(kind), f)
    state, N = initial_state(algorithm, f), f.n_clients
    for leaf in leaves(state.clients):
        assert leaf.shape[:1] == (N,), f"a state of clients has shape {leaf.shape}, not ({N}, ...)."
    oracle = oracle_of(algorithm, f, state.solver, first_round(N))
    _, upload = algorithm.local(state.clients, state.message, oracle, first_round(N))
    for leaf in leaves(upload):
        shape = getattr(leaf, "shape", ())
        assert shape[:1] == (N,), f"an upload has shape {shape}, not ({N}, ...)."


def test_stays_at_the_optimum(said: Any) -> None:
    """Started in its ``fixed_point`` at the minimiser it stays there, whoever takes part."""
    f = quadratic()
    algorithm = exact(said).suggested(f)
    theta = f.minimiser()
    for participation in (p for p in CHANCE if p.needs() <= algorithm.supports - {"skip"}):
        state = State(*algorithm.fixed_point(f, theta))
        for round in islice(participation.rounds(f.n_clients, seed=0), 8):
            state, _, _ = advance(algorithm, f, state, round)
            np.testing.assert_allclose(state.server.theta, theta, atol=1e-13)


def test_methods_that_say_they_are_biased_are(biased: Any) -> None:
    """If it says that the minimiser is no fixed point, by ``fixed_point = None``, it leaves the minimiser."""
    f = quadratic()
    moved = last(exact(biased), f, 20, theta0=f.minimiser()).server.theta
    assert np.linalg.norm(moved - f.minimiser()) > 1e-3


@cache
def references() -> list[Any]:
    """Return independent solutions of the logistic problem: two where CVXPY is installed."""
    found = [newton(logistic())]
    return [cvxpy(logistic()), *found] if find_spec("cvxpy") is not None else found


def test_reaches_the_independent_solutions(unbiased: Any) -> None:
    """It converges to the minimiser that Newton and CVXPY find, with a certificate, in 400 rounds."""
    f = logistic()
    trace = run(accurate(unbiased), f, rounds=400, tol=1e-12)
    assert trace.status == "converged"
    for reference in references():
        np.testing.assert_allclose(trace.theta, reference.theta, atol=2e-6)
        assert abs(trace["energy"][-1] - reference.energy) <= 1e-11


def test_partial_participation_reaches_the_minimiser(partial: Any) -> None:
    """If it supports "partial" participation, it converges to the minimiser of all clients under it.

    Within 250 rounds, or with errors that fall at least like 1/n.
    """
    f = quadratic(L=4.0)
    for participation in (UniformSubset(size=2), Bernoulli(probability=0.4)):

        def error(rounds: int, participation: Any = participation) -> float:
            found = last(exact(partial), f, rounds, participation=participation).server.theta
            return float(np.max(np.abs(found - f.minimiser())))

        early = error(250)
        assert early <= 1e-13 or error(1000) <= 0.25 * early


def test_permuting_clients_permutes_states(kind: Any) -> None:
    """Clients in another order give the same model and the same states in that order."""
    f, algorithm = quadratic(), exact(kind)
    order = [3, 0, 4, 1, 2]
    direct, permuted = last(algorithm, f, 6), last(algorithm, f.select(order), 6)
    np.testing.assert_allclose(permuted.server.theta, direct.server.theta, rtol=1e-12)
    for a, b in zip(host(take_clients(direct.clients, order)), host(permuted.clients), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_equal_clients_are_one_client(kind: Any) -> None:
    """Equal clients give what one of them gives."""
    one, algorithm = quadratic(n=1), exact(kind)
    assert one.c is not None
    many = Quadratic(A=np.repeat(one.A, 4, 0), b=np.repeat(one.b, 4, 0), c=np.repeat(one.c, 4))
    np.testing.assert_allclose(last(algorithm, many, 5).server.theta, last(algorithm, one, 5).server.theta, rtol=1e-12)


def test_stacked_is_one_process_per_client(place: tuple[Any, Participation, str]) -> None:
    """Each client alone with its own rows, talking by pickled messages, gives the same: the difference is 0.0."""
    kind, participation, problem = place
    f = PROBLEMS[problem]
    assert_one_process_per_client(resolve(kind(), f, participation), f, participation)


def assert_one_process_per_client(algorithm: Any, f: Any, participation: Participation) -> None:
    """Require that a run equals one in which every client has a process of its own, in every bit."""
    server, message, *_ = initial_state(algorithm, f)
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
            states[j], solvers[j] = stacked(states[j], state), oracle.solver_state
            uploads.append(pickle.loads(pickle.dumps(upload)))
        if active and snapshot.round.communicate:
            rows = tree_map(lambda *parts: np.concatenate(parts), *uploads)
            mean = averaged(algorithm, rows, snapshot.round, f.unequal_weights)
            server, message = algorithm.server(server, mean, snapshot.round)
            for j in range(f.n_clients):
                if ("active" if j in active else "inactive") in algorithm.receivers:
                    listen = algorithm.receive if j in active else algorithm.receive_inactive
                    states[j] = stacked(states[j], listen(states[j], message))
        together = (tree_map(lambda *rows: np.concatenate(rows), *parts) for parts in (states, solvers))
        found = (snapshot.server, snapshot.clients, snapshot.solver)
        for a, b in zip(host(found), host((server, *together)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_a_method_does_not_support_is_refused(kind: Any) -> None:
    """A participation that it does not support is refused."""
    for participation in CHANCE:
        if not participation.needs() <= kind.supports:
            with pytest.raises(ValueError, match="does not support"):
                next(iterate(exact(kind), quadratic(), participation=participation))


@each_backend
def test_array_libraries_agree(kind: Any, backend: Any) -> None:
    """Every array library of the standard gives the same numbers, in its own arrays, read-only ones included."""
    f, algorithm = quadratic(), exact(kind)
    expected = last(algorithm, f, 5)
    other = converted(f, backend)
    found = last(algorithm, other, 5)
    assert type(found.server.theta) is type(other.zeros())
    assert array_namespace(found.server.theta) is array_namespace(other.b)
    assert found.server.theta.device == other.b.device
    for a, b in zip(host(expected.clients), host(found.clients), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_single_precision_stays_single(kind: Any) -> None:
    """Single precision stays single, and agrees with double precision to its rounding."""
    algorithm = exact(kind)
    found = last(algorithm, converted(quadratic(), lambda x: x.astype(np.float32)), 5)
    assert all(leaf.dtype == np.float32 for leaf in leaves(found.clients))
    np.testing.assert_allclose(found.server.theta, last(algorithm, quadratic(), 5).server.theta, rtol=1e-4)


def steps(kind: Any) -> Iterator[tuple[str, Callable[[], Any], Any]]:
    """Yield the steps of the third round by name: how to take each again, and what it is handed."""
    f = logistic()
    algorithm = accurate(kind).suggested(f)
    snapshots = list(islice(iterate(algorithm, f), 3))
    state, round = snapshots[1].state, snapshots[2].round

    def local() -> Any:
        oracle = oracle_of(algorithm, f, state.solver, round)
        return algorithm.local(state.clients, state.message, oracle, round), oracle.solution

    yield "local", local, state
    mean = averaged(algorithm, local()[0][1], round, f.unequal_weights)
    yield "server", lambda: algorithm.server(state.server, mean, round), (state.server, mean)
    clients, message = snapshots[2].clients, snapshots[2].message
    for who, receive in (("active", algorithm.receive), ("inactive", algorithm.receive_inactive)):
        if who in algorithm.receivers:
            yield receive.__name__, lambda receive=receive: receive(clients, message), (clients, message)


def test_is_deterministic(kind: Any) -> None:
    """The same state in gives the same state out: chance comes from the round's own generators alone."""
    for name, step, _ in steps(kind):
        for a, b in zip(host(step()), host(step()), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{name} is not deterministic.")


def test_writes_to_nothing_that_it_is_handed(kind: Any) -> None:
    """States, messages and means that are handed to it are not written to."""
    for name, step, handed in steps(kind):
        before = [leaf.copy() for leaf in host(handed)]
        step()
        for a, b in zip(before, host(handed), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{name} writes to what it is handed.")


def test_parameters_left_open_must_be_filled_in(kind: Any) -> None:
    """A parameter that is still open is refused, rather than taken for a number."""
    f, algorithm = quadratic(), exact(kind)
    if algorithm.suggested(f) == algorithm:
        return  # nothing was open
    open_state = initial_state(algorithm.suggested(f), f)
    with pytest.raises(ValueError, match="suggested"):
        advance(algorithm, f, open_state, first_round(f.n_clients))


def test_survives_pickling(kind: Any) -> None:
    """It pickles, and comes back equal: worker processes get it so."""
    assert pickle.loads(pickle.dumps(exact(kind))) == exact(kind)


def rows_are_contiguous(kind: Any) -> bool:
    """Tell whether the state of every client lies in one piece, at the start and after three rounds."""
    f = logistic(rows=62)
    method = kind().suggested(f)
    states = (initial_state(method, f).clients, last(method, f, 3).clients)
    return all(x[0, ...].flags.c_contiguous for x in leaves(states) if x.ndim > 1)


def test_states_lie_client_after_client(kind: Any) -> None:
    """The state of a client lies in one piece in memory: ``dualopt.arrays.xp.zeros_like`` makes it so, NumPy's not.

    Arrays made of a broadcast model follow its strides in NumPy, clients side by side, and so do their sums.
    """
    assert rows_are_contiguous(kind)
