"""What every algorithm must satisfy; a new file in ``dualopt/algorithms`` is tested without editing a list."""

from __future__ import annotations

import pickle
from itertools import islice

import numpy as np
import pytest

import dualopt.algorithms
from dualopt.discover import discover
from dualopt.federation import iterate, run
from dualopt.objectives import Quadratic
from dualopt.participation import Full
from dualopt.reference import cvxpy, newton
from dualopt.solvers import LBFGS, Exact
from dualopt.stopping import GradientNorm
from dualopt.tree import leaves, take_clients, tree_map
from dualopt.xp import array_namespace, to_numpy
from tests.problems import converted, hinge, logistic, quadratic

ALGORITHMS = discover(dualopt.algorithms)


@pytest.fixture(params=ALGORITHMS)
def exact(request: pytest.FixtureRequest):
    """The algorithm with exact local solutions."""
    return ALGORITHMS[request.param](solver=Exact())


@pytest.fixture(params=ALGORITHMS)
def accurate(request: pytest.FixtureRequest):
    """The algorithm with local solutions that are accurate to rounding."""
    return ALGORITHMS[request.param](solver=LBFGS(), stop=GradientNorm(tol=1e-13))


def last(algorithm, objective, rounds, **options):
    return next(islice(iterate(algorithm, objective, **options), rounds - 1, None))


def host(tree):
    return [to_numpy(leaf) if hasattr(leaf, "shape") else np.asarray(leaf) for leaf in leaves(tree)]


def test_stays_at_the_optimum(exact) -> None:
    f = quadratic()
    algorithm = exact.suggested(f)
    theta = f.minimiser()
    server, message, clients = algorithm.fixed_point(f, theta)
    for round in islice(Full().rounds(f.n_clients, seed=0), 5):
        clients, upload, _ = algorithm.local(f, clients, message, round)
        server, message = algorithm.server(server, tree_map(lambda x: x.mean(axis=0), upload), round)
        clients = algorithm.receive(clients, message)
        np.testing.assert_allclose(server.theta, theta, atol=1e-13)


def test_reaches_the_independent_solutions(accurate) -> None:
    f = logistic()
    trace = run(accurate, f, rounds=400, tol=1e-12)
    assert trace.status == "converged"
    for reference in (cvxpy(f), newton(f)):
        np.testing.assert_allclose(trace.theta, reference.theta, atol=2e-6)
        assert abs(trace["energy"][-1] - reference.energy) <= 1e-11


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


PROBLEMS = {"smooth": lambda: logistic(rows=62), "nonsmooth": lambda: hinge(rows=62, mu=0.5)}  # unequal clients


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_stacked_is_one_process_per_client(name: str, problem: str) -> None:
    """Each client alone with its own rows, talking by pickled messages: the difference is exactly zero."""
    f = PROBLEMS[problem]()
    algorithm = ALGORITHMS[name]().suggested(f)
    stacked = iterate(algorithm, f)
    server, message, _ = algorithm.init(f, f.zeros())
    alone = [pickle.loads(pickle.dumps(f.select((j,)))) for j in range(f.n_clients)]
    states = [algorithm.init(one, f.zeros())[2] for one in alone]
    for n, snapshot in zip(range(6), stacked, strict=False):
        sent = pickle.dumps(message)
        uploads = []
        for j, one in enumerate(alone):
            mine = type(snapshot.round)(n=n, n_clients=f.n_clients, clients=(j,), communicate=True, seed=0)
            states[j], upload, _ = algorithm.local(one, states[j], pickle.loads(sent), mine)
            uploads.append(pickle.loads(pickle.dumps(upload)))
        mean = tree_map(lambda *rows: np.mean(np.concatenate(rows), axis=0), *uploads)
        server, message = algorithm.server(server, mean, snapshot.round)
        states = [algorithm.receive(state, message) for state in states]
        together = tree_map(lambda *rows: np.concatenate(rows), *states)
        for a, b in zip(host((snapshot.server, snapshot.clients)), host((server, together)), strict=True):
            np.testing.assert_array_equal(a, b)


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
    first = algorithm.local(f, snapshots[1].clients, snapshots[1].message, round)
    second = algorithm.local(f, snapshots[1].clients, snapshots[1].message, round)
    for a, b in zip(host(first), host(second), strict=True):
        np.testing.assert_array_equal(a, b)
    assert pickle.dumps(snapshots[1]) == before


def test_parameters_left_open_must_be_filled_in(exact) -> None:
    f = quadratic()
    _, message, clients = exact.init(f, f.zeros())
    with pytest.raises(ValueError, match="suggested"):
        exact.local(f, clients, message, next(Full().rounds(f.n_clients, 0)))


def test_survives_pickling(exact) -> None:
    assert pickle.loads(pickle.dumps(exact)) == exact
