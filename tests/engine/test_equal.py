"""Clients in blocks give what one process gives, in every bit of the model and of the trace but for its seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dualopt.methods
from dualopt.arrays.xp import to_numpy
from dualopt.engine import Blocks, Host, RemoteClients, _host
from dualopt.engine._server import Server
from dualopt.losses import Logistic
from dualopt.methods import (
    AdaptiveDualFL,
    CorrectedDualFL,
    DualFL,
    FedAvg,
    FedDyn,
    GapRestartedDualFL,
    GradientDescent,
    Scaffnew,
)
from dualopt.methods.participation import WeightedSubset
from dualopt.objectives import LinearModel, linear_model
from dualopt.objectives._sparse import LARGEST_GRAM
from dualopt.regularisers import Zero
from dualopt.runs.recording import run
from dualopt.runs.trace import Trace
from dualopt.solvers import LBFGS, SGD, Exact, RowLBFGS, default_solver
from dualopt.solvers.stopping import Steps
from dualopt.spec.discover import discover
from tests.engine.problems import CHANCE, lopsided_rows, problems
from tests.engine.wired import Wired, elsewhere
from tests.problems import converted, digits, quadratic
from theory.identities._virtual_updates import VirtualUpdates

CASES = [
    pytest.param(kind, problem, chance, id=f"{name}-{problem}-{chance}")
    for name, kind in discover(dualopt.methods).items()
    for problem, f in problems().items()
    if f.regulariser == Zero() or "regulariser" in kind.supports
    for chance, who in CHANCE.items()
    if who.needs() <= kind.supports
]


def recorded(method: Any, objective: Any, **options: Any) -> Trace | str:
    """The trace of a run, or what its refusal says."""
    try:
        return run(method, objective, seed=1, check_assumptions=False, measure_every=1, **options)
    except ValueError as error:
        return str(error)


def differences(one: Trace, other: Trace) -> list[str]:
    """Names of what differs between two runs, in any bit."""
    assert list(one.columns) == list(other.columns)
    found = [
        name for name in one.columns if name != "seconds" and not np.array_equal(one[name], other[name], equal_nan=True)
    ]
    found += [] if one.status == other.status else ["status"]
    return found + ([] if np.array_equal(one.theta, other.theta) else ["theta"])


def assert_equal_runs(
    method: Any, objective: Any, ways: dict[str, Callable[[], tuple[Any, Any]]], **options: Any
) -> None:
    whole = recorded(method, objective, **options)
    for way, make in ways.items():
        placed, engine = make()
        parts = recorded(method, placed, engine=engine, **options)
        if isinstance(whole, str) or isinstance(parts, str):
            assert isinstance(whole, str), (way, parts)
            assert isinstance(parts, str)
            assert whole.rstrip(".") in parts, way
        else:
            assert differences(whole, parts) == [], way


def ways(f: Any) -> dict[str, Callable[[], tuple[Any, Any]]]:
    """Three blocks in this process, and hosts that talk by messages and have clients that are not neighbours."""
    N = f.n_clients
    return {
        "blocks": lambda: (f, Blocks(number=3)),
        "wired": lambda: (elsewhere(f, [(1, 3), tuple(j for j in range(N) if j not in (1, 3))]), None),
    }


@pytest.mark.parametrize(("kind", "problem", "chance"), CASES)
def test_blocks_are_one_process(kind: Any, problem: str, chance: str) -> None:
    """Blocks are hosts in this process: where everybody takes part in smooth problems they stand beside the others."""
    f = problems()[problem]
    both = ways(f)
    chosen = both if (problem, chance) == ("smooth", "full") else {"wired": both["wired"]}
    assert_equal_runs(kind(), f, chosen, participation=CHANCE[chance], rounds=4, tol=1e-9)


@pytest.mark.parametrize("certify", [0, 2])
@pytest.mark.parametrize("method", [CorrectedDualFL(), FedDyn(), FedAvg()], ids=lambda m: type(m).__name__)
def test_rows_of_many_classes_and_runs_without_certificates(method: Any, certify: int) -> None:
    f = digits(rows=200)
    cuts = {str(n): lambda n=n: (f, Blocks(number=n)) for n in (1, 3, 8)}
    assert_equal_runs(method, f, cuts, rounds=5, certify_every=certify)


@pytest.mark.parametrize(
    "method",
    [
        FedAvg(solver=SGD(step=0.1, batch=2), stop=Steps(steps=4)),
        DualFL(solver=LBFGS()),
        AdaptiveDualFL(),
        GapRestartedDualFL(),
        FedDyn(solver=Exact()),
        Scaffnew(solver=SGD(step=0.05, batch=3)),
    ],
    ids=str,
)
def test_what_is_chosen_by_data_or_chance(method: Any) -> None:
    """Samples, options that a solver takes from the largest client, infinite uploads."""
    for problem in ("smooth", "quadratic"):
        f = problems()[problem]
        assert_equal_runs(method, f, ways(f), rounds=6, tol=1e-12)


@pytest.mark.parametrize("name", discover(dualopt.methods))
def test_scales_of_clients_elsewhere(name: str) -> None:
    """Every method on reweighted clients, by numbers and as suggested."""
    f, method = problems()["quadratic"], discover(dualopt.methods)[name]()
    for scales in ("suggested", (1.0, 2.0, 0.5, 4.0, 1.5, 3.0)):
        assert_equal_runs(method, f, ways(f), rounds=4, tol=1e-12, scales=scales)


def test_columns_of_the_users_own_and_how_runs_end() -> None:
    f, method = problems()["smooth"], DualFL()
    options: dict[str, Any] = {
        "rounds": 200,
        "reference": 0.3,
        "measure": {
            "dual": lambda s: float(s.clients.zeta.sum()),
            "solver": lambda s: float(s.solver.theta[2, 0]),
            "drift": lambda s: float(abs(s.local_models - s.server.theta).sum()),
        },
        "certify_every": 7,
    }
    for ending in (
        {"stop": lambda s, row: row["error"] < 1.2},
        {"callback": lambda s, row: row["round"] == 5},
        {"tol": 1e-8},
        {"atol": 1e-6},
    ):
        assert_equal_runs(method, f, ways(f), **(options | ending))


def test_a_stall_and_a_divergence_are_those_of_one_process() -> None:
    for method, rounds, status in (
        (DualFL(solver=Exact()), 300, "stalled"),
        (GradientDescent(step=10.0), 100, "diverged"),
    ):
        f = quadratic(L=2.0)
        whole = recorded(method, f, rounds=rounds)
        assert isinstance(whole, Trace)
        assert whole.status == status
        assert_equal_runs(method, f, ways(f), rounds=rounds)


def test_sums_over_blocks_are_the_same_up_to_rounding() -> None:
    """The fast mean rounds differently, and is no other mean: 60 rounds apart by what ENGINES of MPI showed, 1e-9."""
    f = problems()["smooth"]
    whole = recorded(DualFL(), f, rounds=60, certify_every=20)
    fast = recorded(DualFL(), f, rounds=60, certify_every=20, engine=Blocks(number=2, partial_sums=True))
    assert isinstance(whole, Trace)
    assert isinstance(fast, Trace)
    assert fast.parameters["reduce"] == "fast"
    np.testing.assert_allclose(fast.theta, whole.theta, rtol=1e-9, atol=1e-9)
    assert whole["floats_up"].tolist() == fast["floats_up"].tolist()


@pytest.mark.parametrize("method", [DualFL(), FedDyn(), VirtualUpdates(), Scaffnew()], ids=lambda m: type(m).__name__)
def test_blocks_of_every_array_library(method: Any, backend: Any) -> None:
    """States, messages and models stay in the library and on the device of the data; checkpoints take them up again."""
    f = converted(problems()["quadratic"], backend)
    who = {"Scaffnew": CHANCE["skip"], "VirtualUpdates": CHANCE["subset"]}.get(type(method).__name__)
    options: dict[str, Any] = {"rounds": 5, "participation": who, "tol": 1e-9, "seed": 1}
    whole = run(method, f, **options)
    for engine in (Blocks(number=4), Blocks(number=1)):
        parts = run(method, f, engine=engine, **options)
        assert type(parts.theta) is type(whole.theta)
        assert parts.theta.device == whole.theta.device
        assert parts.theta.dtype == whole.theta.dtype
        np.testing.assert_array_equal(to_numpy(parts.theta), to_numpy(whole.theta))
        assert [name for name in whole.columns if differ(whole, parts, name)] == []


def differ(one: Trace, other: Trace, name: str) -> bool:
    return name != "seconds" and not np.array_equal(one[name], other[name], equal_nan=True)


@pytest.mark.parametrize("problem", ["smooth", "nonsmooth", "quadratic"])
def test_single_precision(problem: str) -> None:
    f = problems()[problem]
    if problem == "quadratic":
        f = converted(f, lambda x: np.asarray(x, dtype=np.float32))
    else:
        f = lopsided_rows(f.loss, f.ridge, np.float32)
    for method, who in ((DualFL(), None), (FedDyn(), CHANCE["subset"]), (VirtualUpdates(), CHANCE["bernoulli"])):
        assert_equal_runs(method, f, ways(f), rounds=6, participation=who, tol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", discover(dualopt.methods))
def test_means_suffice_for_every_method(name: str, weighted: bool) -> None:
    """Sums over hosts in place of rows, as secure aggregation has them: equal up to rounding in three rounds."""
    f, method = quadratic(), discover(dualopt.methods)[name]()
    if weighted:
        f = replace(f, weights=(1.0, 5.0, 0.3, 2.0, 1.2))
    options: dict[str, Any] = {"rounds": 3, "tol": 1e-13}
    if weighted and "unequal" in method.supports:  # both means
        options["participation"] = WeightedSubset(size=2)
    whole = recorded(method, f, **options)
    sums = recorded(method, f, engine=Blocks(number=2, partial_sums=True), **options)
    assert isinstance(whole, Trace), whole
    assert isinstance(sums, Trace), sums
    np.testing.assert_allclose(sums.theta, whole.theta, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sums["certificate"], whole["certificate"], rtol=1e-6, atol=1e-9)
    travel = 2 if "participation" in options and method.draws else 1  # weighted sums, of which each client is in all
    assert sums["floats_up"].tolist() == [travel * n for n in whole["floats_up"].tolist()]
    assert sums["bits_up"].tolist() == [travel * n for n in whole["bits_up"].tolist()]


def own_rows(sizes: list[int], features: int, storage: str = "auto") -> tuple[LinearModel, list[Callable[[], Host]]]:
    """A linear model, and its clients on hosts of one client that know their own rows and their weight alone."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((sum(sizes), features))
    y = np.sign(X[:, 0] + 0.3 * rng.standard_normal(len(X)))
    if storage == "sparse":
        X = csr_matrix(np.where(rng.random(X.shape) < 0.01, X, 0.0))
    edges = np.cumsum([0, *sizes])
    parts = [list(range(a, b)) for a, b in pairwise(edges.tolist())]
    common: dict[str, Any] = {"loss": Logistic(), "mu": 0.05, "storage": storage}
    whole = linear_model(X, y, clients=parts, client_weights="rows", **common)
    hosts = [lambda part=part: Host(linear_model(X[part], y[part], client_weights="rows", **common)) for part in parts]
    return whole, hosts


@pytest.mark.parametrize("solver", [None, LBFGS()], ids=["suggested", "L-BFGS"])
def test_hosts_that_build_their_own_rows(solver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers choose by the largest client of the federation, of which the server tells; without that, they do not."""
    whole, hosts = own_rows([3, 60, 7], 40)
    method = DualFL(solver=solver)
    way: dict[str, Any] = {"wired": lambda: (RemoteClients(Wired([make() for make in hosts])), None)}
    options: dict[str, Any] = {"rounds": 12, "tol": 1e-12, "certify_every": 1}
    assert_equal_runs(method, whole, way, **options)
    monkeypatch.setattr(_host, "with_max_rows", lambda objective, max_rows: objective)
    alone = recorded(DualFL(solver=LBFGS()), RemoteClients(Wired([make() for make in hosts])), **options)
    together = recorded(DualFL(solver=LBFGS()), whole, **options)
    assert isinstance(alone, Trace)
    assert isinstance(together, Trace)
    assert differences(together, alone) != []


def test_wide_sparse_rows() -> None:
    """The solver in the space of the rows, whose states are as wide as the largest client."""
    whole, hosts = own_rows([20, LARGEST_GRAM + 3, 5], LARGEST_GRAM + 50, "sparse")
    assert isinstance(default_solver(whole), RowLBFGS)
    way: dict[str, Any] = {"wired": lambda: (RemoteClients(Wired([make() for make in hosts])), None)}
    assert_equal_runs(DualFL(), whole, way, rounds=3, certify_every=2)
    assert_equal_runs(DualFL(), whole, {"blocks": lambda: (whole, Blocks(number=2))}, rounds=3, certify_every=2)


def test_another_order_of_the_rows_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means of the same rows in the order of the hosts round differently."""
    f = problems()["smooth"]
    whole = recorded(DualFL(), f, rounds=6)
    monkeypatch.setattr(Server, "_order", lambda self, round, parts: None)
    found = recorded(DualFL(), elsewhere(f, [(1, 3), (0, 2, 4)]), rounds=6)
    assert isinstance(whole, Trace)
    assert isinstance(found, Trace)
    assert "theta" in differences(whole, found)


def test_a_second_run_does_not_certify_with_the_solutions_of_the_first() -> None:
    """Hosts stay; the certificate of the start of a run is that of a fresh one."""
    f = problems()["smooth"]
    clients = Blocks(number=2).clients(f)
    run("dualfl", clients, rounds=5, certify_every=1)
    second, fresh = (run("fedavg", x, rounds=3, certify_every=1) for x in (clients, f))
    assert second["certificate"].tolist() == fresh["certificate"].tolist()
