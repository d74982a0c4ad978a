"""The engine: counting, who is touched, the solver's state, refusals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

import dualopt.methods
from dualopt.arrays.tree import leaves, tree_map
from dualopt.engine import Blocks
from dualopt.engine._steps import averaged
from dualopt.engine.rounds import advance, initial_state, iterate, on_engine, resolve, rounds_of
from dualopt.methods import AUTO, Algorithm, DualFL, FedADMM, FedAvg, FedDualAvg
from dualopt.methods.participation import Round, UniformSubset, WeightedSubset, first_round
from dualopt.objectives import Composite, LocalProblem, Quadratic, reweighted
from dualopt.regularisers import L1, Zero
from dualopt.runs.recording import run
from dualopt.solvers import AOGM, LBFGS, SGD, DualCoordinate, Exact, NewtonCG, Sarah
from dualopt.solvers.stopping import GradientReduction, Steps
from dualopt.spec.discover import discover
from tests.problems import hinge, logistic, quadratic

ALGORITHMS = discover(dualopt.methods)
EXACT = DualFL(solver=Exact())


def test_counts_floats() -> None:
    f = quadratic(n=5, d=4)
    first, second = islice(iterate(EXACT, f), 2)
    assert (first.floats_up, second.floats_up) == (5 * 4, 5 * 4)
    # message 0 to every client, then the new message; afterwards everybody holds the latest one
    assert (first.floats_down, second.floats_down) == (2 * 5 * (4 + 1), 5 * (4 + 1))


class Half(NamedTuple):
    """A participation that DualFL does not support."""

    def needs(self, n_clients: int | None = None) -> frozenset[str]:
        return frozenset({"partial"})

    def rounds(self, n_clients, seed):
        n = 0
        while True:
            yield Round(n=n, n_clients=n_clients, clients=(0,), communicate=True, seed=seed)
            n += 1


def test_refuses_participation_that_the_method_does_not_support() -> None:
    with pytest.raises(ValueError, match="DualFL does not support partial participation"):
        next(iterate(EXACT, quadratic(), participation=cast(Any, Half())))


class Idle(DualFL):
    """DualFL under a schedule that leaves some clients, or all of them, idle: for the engine's bookkeeping only."""

    supports = frozenset({"partial", "skip"})


class Schedule(NamedTuple):
    plan: tuple[tuple[tuple[int, ...], bool], ...]

    def needs(self, n_clients: int | None = None) -> frozenset[str]:
        return frozenset({"partial", "skip"})

    def rounds(self, n_clients, seed):
        for n, (clients, communicate) in enumerate(self.plan):
            yield Round(n=n, n_clients=n_clients, clients=clients, communicate=communicate, seed=seed)


def test_idle_clients_are_untouched_and_messages_are_counted_once() -> None:
    f = Quadratic(A=quadratic(n=3).A, b=quadratic(n=3).b)
    plan = Schedule((((0, 1), True), ((), True), ((2,), False), ((2,), True)))
    shots = list(iterate(cast(Any, Idle(solver=Exact())), f, participation=cast(Any, plan)))
    np.testing.assert_array_equal(shots[0].clients.theta[2], np.zeros(4))
    np.testing.assert_array_equal(shots[2].clients.theta[:2], shots[1].clients.theta[:2])
    assert (shots[1].solution, shots[1].floats_up, shots[1].floats_down) == (None, 0, 0)
    assert [s.floats_up for s in shots] == [8, 0, 0, 4]
    trace = run(cast(Any, Idle(solver=Exact())), f, rounds=4, participation=cast(Any, plan))
    assert trace["communications"].tolist() == [0, 1, 1, 1, 2]
    # 2 messages of 5 to two clients; none; client 2 fetches what it lacks; holds it already, receives the next
    assert [s.floats_down for s in shots] == [20, 0, 5, 5]


# The local models and their gradients


def is_sharpness_aware(algorithm) -> bool:
    f = quadratic()
    return algorithm.suggested(f).local_objective(f) is not f


# Rounds in which clients compute products with Hessians only, or values only.
PRODUCTS = {"distributed-newton-cg": (1, 3), "giant": (1,), "adaptive-acc-s-dane": (2,)}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_local_gradients_are_those_at_the_local_models(name: str) -> None:
    f = logistic()
    participation = UniformSubset(size=2) if "partial" in ALGORITHMS[name].supports else None
    for s in islice(iterate(ALGORITHMS[name](), f, participation=participation), 4):
        assert s.local_models is not None
        assert s.local_models.shape == (s.round.n_active, *f.shape)
        if is_sharpness_aware(ALGORITHMS[name]()) or s.round.n in PRODUCTS.get(name, ()):
            assert s.local_gradients is None
        else:
            assert s.local_gradients is not None
            expected = f.select(s.round.clients).gradient(s.local_models)
            np.testing.assert_allclose(s.local_gradients, expected, rtol=1e-12, atol=1e-14)


def test_sharpness_aware_methods_are_four() -> None:
    """Otherwise the test above would say nothing, or nothing of the others."""
    aware = {name for name, kind in ALGORITHMS.items() if is_sharpness_aware(kind())}
    assert aware == {"a-fedpdsam", "feddynsam", "fedsam", "fedspeed"}


def test_samplers_have_local_models_and_no_local_gradients() -> None:
    f = logistic()
    s = next(iterate(FedAvg(solver=SGD(step=0.1, batch=5), stop=Steps(steps=2)), f))
    assert s.local_models is not None
    assert s.local_models.shape == (4, *f.shape)
    assert s.local_gradients is None


# The state of the local solvers


SOLVERS = {
    "lbfgs": (LBFGS(), GradientReduction()),
    "aogm": (AOGM(), GradientReduction()),
    "newton": (NewtonCG(), GradientReduction()),
    "sarah": (Sarah(gamma=0.1, batch=3, refresh=1), Steps(steps=2)),
    "dual coordinate": (DualCoordinate(), GradientReduction()),
}
every_solver = pytest.mark.parametrize(("solver", "stop"), SOLVERS.values(), ids=SOLVERS)


@every_solver
def test_without_a_solver_state_it_is_the_first_call(solver, stop) -> None:
    f = hinge(mu=0.3) if isinstance(solver, DualCoordinate) else logistic()
    method = FedADMM(rho=1.0, solver=solver, stop=stop).suggested(f)
    state = initial_state(method, f)
    for clients in ((0, 1, 2, 3), (2, 0)):
        round = Round(n=0, n_clients=4, clients=clients, communicate=True, seed=0)
        told, untold = (advance(method, f, s, round) for s in (state, state._replace(solver=())))
        assert_same(told, untold)
        solution = told[2]
        assert solution is not None
        problem = LocalProblem(objective=f, weight=1.0, center=f.zeros()).select(clients)
        alone = solver(problem, np.zeros((len(clients), *f.shape)), stop, round=round)
        np.testing.assert_array_equal(alone.theta, solution.theta)


@every_solver
def test_nothing_is_written_in_place(solver, stop) -> None:
    f = hinge(mu=0.3) if isinstance(solver, DualCoordinate) else logistic()
    method = FedADMM(rho=1.0, solver=solver, stop=stop)
    snapshots = list(islice(iterate(method, f, participation=UniformSubset(size=3)), 4))
    method = method.suggested(f)
    for before, after in pairwise(snapshots):
        state = tree_map(frozen, before.state)
        copies = [np.array(leaf) for leaf in leaves(state)]
        again, _, _ = advance(method, f, state, after.round)
        assert_same(again, after.state)  # whoever goes on from an earlier state gets the same
        for leaf, copy in zip(leaves(state), copies, strict=True):
            np.testing.assert_array_equal(leaf, copy)
    if leaves(snapshots[0].solver):
        assert any(np.any(a != b) for a, b in zip(*(leaves(s.solver) for s in snapshots[-2:]), strict=True))


def frozen(x: np.ndarray) -> np.ndarray:
    """A copy that refuses to be written to."""
    x = np.array(x)
    x.flags.writeable = False
    return x


def assert_same(a, b) -> None:
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def test_solver_states_of_idle_clients_are_untouched() -> None:
    f = logistic()
    method = FedADMM(rho=1.0, solver=LBFGS(history=2)).suggested(f)
    state = initial_state(method, f)
    after, _, _ = advance(method, f, state, Round(n=0, n_clients=4, clients=(1, 3), communicate=True, seed=0))
    for old, new in zip(leaves(state.solver), leaves(after.solver), strict=True):
        np.testing.assert_array_equal(old[[0, 2]], new[[0, 2]])
    assert np.all(np.isnan(state.solver.theta))
    assert np.all(np.isfinite(after.solver.theta[[1, 3]]))


# States without a client axis


class Seen(NamedTuple):
    theta: Any
    seen: Any
    count: Any


class SeenServer(NamedTuple):
    theta: Any


class Listener(Algorithm):
    """Clients keep the message, which has no client axis, and a number that they have in common."""

    supports = frozenset({"partial"})
    receivers = frozenset({"active", "inactive"})

    def init(self, theta0, copies):
        return SeenServer(theta0), theta0, Seen(copies, copies, copies[:, 0])

    def local(self, clients, message, oracle, round):
        theta = oracle.solve(start=message, weight=1.0, center=message).theta
        return Seen(theta, message, message[0]), theta

    def server(self, server, mean, round):
        return SeenServer(mean), mean

    def receive(self, clients, message):
        return clients._replace(seen=message)

    def receive_inactive(self, clients, message):
        return clients._replace(theta=2.0 * message)


@pytest.mark.parametrize("active", [(0, 1, 2, 3, 4), (3, 1)])
def test_what_lacks_the_client_axis_is_broadcast(active: tuple[int, ...]) -> None:
    f, start = quadratic(), np.linspace(1.0, 2.0, 4)
    method = Listener(solver=Exact())
    idle = [j for j in range(5) if j not in active]
    state = initial_state(method, f, start)
    round = Round(n=0, n_clients=5, clients=active, communicate=True, seed=0)
    after, upload, _ = advance(method, f, state, round)
    assert [leaf.shape for leaf in after.clients] == [(5, 4), (5, 4), (5,)]
    for j in active:
        np.testing.assert_array_equal(after.clients.seen[j], after.message)
        np.testing.assert_array_equal(after.clients.count[j], start[0])
    np.testing.assert_array_equal(after.clients.theta[list(active)], upload)
    for j in idle:
        np.testing.assert_array_equal(after.clients.theta[j], 2.0 * after.message)
        np.testing.assert_array_equal(after.clients.seen[j], start)


# Where runs start, and what the engine refuses.


def test_a_run_starts_where_the_objective_says_for_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Quadratic, "initial", lambda self, seed=0: np.full(4, 1.0 + seed))
    f = quadratic()
    cases: list[tuple[dict[str, Any], float]] = [({}, 1.0), ({"seed": 2}, 3.0), ({"theta0": np.zeros(4)}, 0.0)]
    for options, start in cases:
        expected = next(rounds_of(resolve(FedAvg(), f), on_engine(f)[1], np.full(4, start), None, 0)).server.theta
        found = next(iterate(FedAvg(), f, **options)).server.theta
        np.testing.assert_array_equal(found, expected)


def test_methods_without_regularisers_refuse_an_objective_that_has_one() -> None:
    f = Composite(objective=quadratic(), regulariser=L1(weight=0.1))
    with pytest.raises(ValueError, match=r"^algorithm FedAvg does not support an objective with a regulariser\.$"):
        resolve(FedAvg(), f)
    assert isinstance(resolve(FedDualAvg(), f), FedDualAvg)
    assert isinstance(resolve(FedAvg(), quadratic()), FedAvg)


def test_a_parameter_that_stays_open_is_refused_before_the_first_round() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Forgetful(FedAvg):
        rate: float = AUTO

    with pytest.raises(ValueError, match=r"^rate must be given, or filled in by suggested\(objective\): it is open\.$"):
        resolve(Forgetful(), quadratic())
    assert resolve(Forgetful(rate=1.0), quadratic()).solver is not None


def test_clients_work_on_the_losses_without_the_regulariser() -> None:
    seen = []

    class Watched(FedDualAvg):
        def local(self, c: Any, message: Any, oracle: Any, round: Any) -> Any:
            seen.append(oracle.objective.regulariser)
            return super().local(c, message, oracle, round)

    next(iterate(Watched(), Composite(objective=quadratic(), regulariser=L1(weight=0.1))))
    assert seen == [Zero()]


def test_without_active_clients_there_are_no_gradients() -> None:
    assert replace(next(iterate(FedAvg(), quadratic())), solution=None).local_gradients is None


@pytest.mark.parametrize("shape", [(), (3,), (1, 2)])
def test_uploads_have_a_row_for_each_active_client(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^upload must have shape \(2, \.\.\.\), one row per active client, not "):
        averaged(FedAvg(), np.zeros(shape), first_round(2), None)


def test_an_engine_is_asked_for_the_clients() -> None:
    asked: list[Any] = []

    class Watched(Blocks):
        def clients(self, objective, prepared=None):
            asked.append((objective, prepared))
            return super().clients(objective, prepared)

    f = quadratic(n=5, d=4)
    (shot,) = islice(iterate(EXACT, f, engine=Watched(number=2)), 1)
    assert asked == [(f, None)]
    np.testing.assert_array_equal(shot.server.theta, next(iterate(EXACT, f)).server.theta)


def test_cohorts_are_drawn_by_the_weights_of_the_clients() -> None:
    f = replace(quadratic(n=5, d=4), weights=(1.0, 9.0, 2.0, 30.0, 4.0))

    def cohorts(who: WeightedSubset) -> list[tuple[int, ...]]:
        method = FedADMM(rho=1.0, solver=Exact())
        return [s.round.clients for s in islice(iterate(method, f, participation=who), 12)]

    drawn = cohorts(WeightedSubset(size=2))
    assert drawn == cohorts(WeightedSubset(size=2, weights=f.weights))
    assert drawn != cohorts(WeightedSubset(size=2, weights=(1.0,) * 5))


def test_reweighted_clients_may_be_asked_for_no_other_scales() -> None:
    f = quadratic(n=3, d=2)
    g = reweighted(f, [1.0, 4.0, 2.0])
    for scales in (None, "none"):
        shots = [next(iterate(EXACT, *given, scales=s)) for *given, s in ((g, scales), (f, [1.0, 4.0, 2.0]))]
        np.testing.assert_array_equal(shots[0].server.theta, shots[1].server.theta)
    with pytest.raises(ValueError, match=r"^scales must not be given for clients that are reweighted already\.$"):
        iterate(EXACT, g, scales=[1.0, 2.0, 3.0])
