"""What happens before the first round: what it computes and costs, and in which coordinates runs report."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt import L1, L2, Composite, Quadratic, linear_model, mlp, run
from dualopt.app.cli import main
from dualopt.app.cli.options import PreparationOptions
from dualopt.arrays.xp import to_numpy
from dualopt.engine.rounds import advance, iterate
from dualopt.losses import Hinge, Logistic, Multinomial
from dualopt.methods import AndersonFedSplit, DistributedLBFGS, DualFL, FedAvg, FedSplit, GradientDescent
from dualopt.methods.preparation import OneShotAverage, Prepared, SketchedMetric, prepared_by
from dualopt.methods.preparation.one_shot import half
from dualopt.objectives import LocalProblem
from dualopt.objectives.coordinates import InCoordinates
from dualopt.runs.certificates import LatestSolutions, certificate
from dualopt.runs.reference import newton
from dualopt.runs.tuning import Candidate, tune
from dualopt.solvers import LBFGS, Exact
from dualopt.solvers.stopping import GradientNorm
from dualopt.spec.discover import discover
from tests.problems import logistic, quadratic

ACCURATE = {"solver": LBFGS(), "stop": GradientNorm(tol=1e-12)}
PREPARATIONS = {
    "one-shot": OneShotAverage(),
    "jackknife": OneShotAverage(jackknife=True),
    "sketch": SketchedMetric(rank=2),
    "own sketches": SketchedMetric(rank=2, common=False),
    "both": (SketchedMetric(rank=2), OneShotAverage()),
}
every_preparation = pytest.mark.parametrize("prepare", PREPARATIONS.values(), ids=PREPARATIONS)


def metric_of(prepared: Any) -> Any:
    """The M of an objective in other coordinates."""
    return prepared.objective.metric


def classes(*, backend=np.array, mu: float = 0.05, clients=(7, 12, 5, 12), d: int = 5, scale: float = 3.0):
    """Three classes of rows whose features have very different sizes, at clients of unequal sizes."""
    rng = np.random.default_rng(0)
    m = sum(clients)
    X = rng.standard_normal((m, d)) * np.geomspace(scale, 0.1, d)
    y = np.argmax(X[:, :3] + 0.3 * rng.standard_normal((m, 3)), axis=1)
    cuts = np.cumsum((0, *clients))
    parts = [list(range(a, b)) for a, b in pairwise(cuts)]
    return linear_model(
        backend(X), backend(y), loss=Multinomial(classes=3), mu=mu, clients=parts, client_weights="rows"
    )


def moments(f) -> np.ndarray:
    return np.stack([(X * w[:, None]).T @ X for X, _, w in f.client_rows()])


def matrix(M) -> np.ndarray:
    U, values, rest = M
    return rest * np.eye(U.shape[1]) + U.T @ np.diag(values - rest) @ U


# One-shot averages.


def test_the_start_is_the_mean_of_the_own_minimisers():
    f = quadratic()
    start = OneShotAverage(solver=Exact()).prepare(f, np.ones(4))
    own = np.linalg.solve(f.A, f.b[..., None])[..., 0]
    np.testing.assert_allclose(start.theta0, f.mean(own), rtol=1e-12)
    assert start.objective is f
    assert (start.floats_up, start.floats_down, start.gradients, start.exchanges) == (20, 20, (1.0,) * 5, 1)


def test_the_jackknife_is_two_of_the_whole_less_the_mean_of_the_halves():
    f = classes()
    start = OneShotAverage(jackknife=True, **ACCURATE, seed=3).prepare(f, f.zeros())
    halves = [[], []]
    zero = np.zeros((1, *f.shape))
    for X, y, w in f.client_rows():
        for side in (0, 1):
            chosen = {
                tuple(x)
                for j in range(4)
                for x in np.array(list(half(f, side, 3).client_rows())[j][0])[
                    np.array(list(half(f, side, 3).client_rows())[j][2]) > 0
                ]
            }
            mask = np.array([tuple(x) in chosen for x in X])
            assert mask.sum() in (len(y) // 2, len(y) - len(y) // 2)
            part = linear_model(
                X[mask],
                y[mask],
                loss=f.loss,
                mu=f.ridge,
                intercept=False,
                weights=w[mask] * np.sum(w) / np.sum(w[mask]),
            )
            halves[side].append(LBFGS()(LocalProblem(objective=part), zero, ACCURATE["stop"]).theta[0])
    own = LBFGS()(LocalProblem(objective=f), np.zeros((4, *f.shape)), ACCURATE["stop"]).theta
    expected = np.average(2.0 * own - 0.5 * (np.stack(halves[0]) + np.stack(halves[1])), axis=0, weights=f.sizes)
    np.testing.assert_allclose(start.theta0, expected, atol=1e-9)
    assert start.floats_up == 4 * math.prod(f.shape)
    whole = OneShotAverage(**ACCURATE).prepare(f, f.zeros())
    assert all(a > b for a, b in zip(start.gradients, whole.gradients, strict=True))


def test_the_halves_of_a_client_share_no_row_and_are_the_same_with_others(backend):
    f = classes(backend=backend)
    sides = [[to_numpy(w) for *_, w in half(f, side).client_rows()] for side in (0, 1)]
    for (_, _, w), first, second in zip(f.client_rows(), *sides, strict=True):
        assert not np.any((first > 0) & (second > 0))
        assert np.all((first > 0) | (second > 0))
        np.testing.assert_allclose([np.sum(first), np.sum(second)], np.sum(to_numpy(w)), rtol=1e-12)


def test_alike_clients_start_near_the_minimiser_and_the_jackknife_nearer():
    """The bias of the clients' own minimisers is the same for all; half of it is not."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((8000, 4))
    y = np.where(rng.random(8000) < 1.0 / (1.0 + np.exp(-X @ np.array([2.0, -1.0, 1.0, 0.5]))), 1.0, -1.0)
    f = linear_model(X, y, loss=Logistic(), mu=1e-3, clients=40)
    theta = newton(f, tol=1e-12).theta
    away = [np.linalg.norm(OneShotAverage(jackknife=j).prepare(f, f.zeros()).theta0 - theta) for j in (False, True)]
    assert away[1] < 0.5 * away[0] < 0.1 * np.linalg.norm(theta)


def test_starts_that_are_refused():
    f = Quadratic(A=np.diag([1.0, 0.0])[None], b=np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"^start must not be one-shot where a client is not strongly convex: .*\.$"):
        run(FedAvg(), f, prepare=OneShotAverage())
    with pytest.raises(ValueError, match=r"^start must not be jackknife: it halves rows of linear models\.$"):
        OneShotAverage(jackknife=True).prepare(quadratic(), np.zeros(4))
    f = classes(clients=(5, 1, 6))
    with pytest.raises(ValueError, match=r"^start must not be jackknife where a client has one row: .*\.$"):
        OneShotAverage(jackknife=True).prepare(f, f.zeros())


# Sketched metrics.


@pytest.mark.parametrize("common", [True, False])
def test_a_sketch_of_full_rank_is_the_metric_itself(common, backend):
    plain, f = classes(), classes(backend=backend)
    prepared = SketchedMetric(rank=plain.n_features, common=common).prepare(f, f.zeros())
    M = metric_of(prepared)
    expected = 0.2 * plain.loss.curvature * np.average(
        moments(plain), axis=0, weights=plain.sizes
    ) + plain.ridge * np.eye(plain.n_features)
    found = matrix((to_numpy(M.vectors), to_numpy(M.values), M.rest))
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.max(expected))


def test_the_server_uses_sums_alone():
    """The common sketch does not change when rows go from a client to another, those of the clients do."""
    f = classes()
    other = classes(clients=(10, 3, 20, 3))
    found = [
        [matrix(metric_of(SketchedMetric(rank=2, common=c).prepare(g, g.zeros()))) for g in (f, other)]
        for c in (True, False)
    ]
    np.testing.assert_allclose(found[0][0], found[0][1], atol=1e-10 * np.max(found[0][0]))
    assert np.max(np.abs(found[1][0] - found[1][1])) > 1e-3


@pytest.mark.parametrize("common", [True, False])
def test_the_trace_is_kept(common):
    f = classes()
    M = metric_of(SketchedMetric(rank=2, common=common).prepare(f, f.zeros()))
    expected = (
        0.2 * f.loss.curvature * np.trace(np.average(moments(f), axis=0, weights=f.sizes)) + f.ridge * f.n_features
    )
    assert np.trace(matrix(M)) == pytest.approx(expected, rel=1e-10)
    assert np.linalg.eigvalsh(matrix(M))[0] >= f.ridge


@pytest.mark.parametrize("clients", [(7, 12, 5, 12), (9, 9, 9, 9)], ids=["unequal", "equal"])
def test_own_sketches_hold_the_largest_pairs(clients):
    f = classes(clients=clients)
    assert (f.shares is None) == (len(set(clients)) == 1)
    M = metric_of(SketchedMetric(rank=1, common=False).prepare(f, f.zeros()))
    mean = np.zeros((f.n_features, f.n_features))
    for G, share in zip(moments(f), f.shares or (0.25,) * 4, strict=True):
        values, vectors = np.linalg.eigh(G)
        t = np.sum(values[:-1]) / (len(values) - 1)
        mean += (t * np.eye(len(G)) + (values[-1] - t) * np.outer(vectors[:, -1], vectors[:, -1])) * share
    expected = 0.2 * f.loss.curvature * mean + f.ridge * np.eye(len(mean))
    np.testing.assert_allclose(matrix(M), expected, atol=1e-10 * np.max(expected))


@pytest.mark.parametrize(("rank", "up"), [(None, 5), (3, 3)])
def test_numbers_of_the_sketch_are_counted(rank, up):
    f = classes()
    p, N = f.n_features, f.n_clients
    found = SketchedMetric(rank=rank).prepare(f, f.zeros())
    assert (found.floats_up, found.floats_down) == (N * (up * p + 1), N * (up * (p + 1) + 1))
    assert found.gradients == (up / 3,) * N
    own = SketchedMetric(rank=rank, common=False).prepare(f, f.zeros())
    assert (own.floats_up, own.floats_down) == (N * (up * p + 1), N * (min(N * up, p) * (p + 1) + 1))


def test_the_seed_and_sparse_rows():
    sparse = pytest.importorskip("scipy.sparse")
    f = classes()
    X, y = (np.concatenate(c) for c in zip(*((X, y) for X, y, _ in f.client_rows()), strict=True))
    w = np.concatenate([w for *_, w in f.client_rows()])
    parts = np.split(np.arange(len(y)), np.cumsum(f.sizes)[:-1])
    common = {"loss": f.loss, "mu": f.ridge, "clients": parts, "client_weights": "rows", "intercept": False}
    thin = linear_model(sparse.csr_array(X), y, weights=w, storage="sparse", **common)
    for prepare in (SketchedMetric(rank=2), SketchedMetric(rank=2, common=False), OneShotAverage(jackknife=True)):
        a, b = (prepare.prepare(g, g.zeros()) for g in (f, thin))
        assert (a.floats_up, a.floats_down) == (b.floats_up, b.floats_down)
        if isinstance(prepare, SketchedMetric):
            np.testing.assert_allclose(matrix(metric_of(b)), matrix(metric_of(a)), rtol=1e-9, atol=1e-12)
            other = replace(prepare, seed=1).prepare(f, f.zeros())
            assert prepare.common is not np.allclose(matrix(metric_of(other)), matrix(metric_of(a)))
        else:
            np.testing.assert_allclose(a.theta0, b.theta0, atol=1e-2 * np.max(np.abs(a.theta0)))
    trace = run(AndersonFedSplit(), thin, prepare=SketchedMetric(rank=2), rounds=40, tol=1e-8)
    assert trace.status == "converged"


def test_single_precision_stays_single():
    f = classes(backend=lambda x: x.astype(np.float32) if x.dtype == np.float64 else x)
    for prepare in PREPARATIONS.values():
        trace = run(AndersonFedSplit(), f, prepare=prepare, rounds=3)
        assert trace.theta.dtype == np.float32


@pytest.mark.parametrize("rank", [0, 7])
def test_ranks_that_are_refused(rank):
    with pytest.raises(ValueError, match=r"^rank must be at (least 1|most the number 6 of features), not \d\.$"):
        run(FedAvg(), classes(), prepare=SketchedMetric(rank=rank))


def test_objectives_that_are_refused():
    f = logistic()
    X, y, _ = next(f.client_rows())
    network = mlp(X, (y > 0).astype(int), layers=(3,), ridge=0.1)
    hinge = linear_model(X, y, loss=Hinge(), mu=0.1)
    flat = linear_model(np.diag([1.0, 0.0]), np.ones(2), loss=Logistic(), mu=0.0, intercept=False)
    for g, words in (
        (network, "only linear models and quadratics have a sketch"),
        (hinge, "it has no curvature to sketch"),
        (Composite(objective=f, regulariser=L1(weight=0.1)), "others have no simple proximal map there, not L1"),
        (Composite(objective=quadratic(), regulariser=L2(weight=0.1)), "unless the objective is a linear model"),
        (flat, "where mu is 0 and a feature is always 0"),
    ):
        with pytest.raises(ValueError, match=rf"^(coordinates|regulariser) must [^.]*{words}\.$"):
            SketchedMetric(rank=2).prepare(g, g.zeros())


def test_l2_is_a_part_of_the_ridge():
    f = logistic()
    composite = Composite(objective=f, regulariser=L2(weight=0.2))
    trace = run(DistributedLBFGS(), composite, prepare=SketchedMetric(rank=2), tol=1e-9)
    ridge = replace(f, ridge=f.ridge + 0.2)
    assert trace.status == "converged"
    assert trace["energy"][-1] == pytest.approx(newton(ridge).energy, rel=1e-8)
    np.testing.assert_allclose(trace.theta, newton(ridge).theta, atol=1e-4)


# Runs.


@every_preparation
def test_the_trace_begins_with_what_that_took(prepare):
    f = classes()
    prepared = prepared_by(prepare, f, f.zeros())
    trace = run(FedSplit(), f, prepare=prepare, rounds=2)
    size = f.n_clients * math.prod(f.shape)
    assert trace["floats_up"].tolist() == [prepared.floats_up + n * size for n in range(3)]
    assert trace["floats_down"].tolist() == [prepared.floats_down + n * size for n in range(3)]
    assert trace["gradients"][0] == pytest.approx(np.mean(prepared.gradients))
    assert trace["communications"].tolist() == [prepared.exchanges + n for n in range(3)]
    start = f.value(prepared.in_user_coordinates(prepared.theta0))
    assert trace["energy"][0] == pytest.approx(np.average(start, weights=f.sizes))
    assert trace["seconds"][0] > 0
    assert len(trace.parameters["prepare"]) == prepared.exchanges
    assert "prepare" not in run(FedSplit(), f, rounds=0).parameters


def test_preparations_in_turn_cost_what_each_costs():
    f = classes()
    sketch = SketchedMetric(rank=2).prepare(f, f.zeros())
    shot = OneShotAverage().prepare(sketch.objective, sketch.theta0)
    both = prepared_by(PREPARATIONS["both"], f, f.zeros())
    assert both.floats_up == sketch.floats_up + shot.floats_up
    assert both.floats_down == sketch.floats_down + shot.floats_down
    assert both.exchanges == 2
    np.testing.assert_allclose(both.gradients, np.add(sketch.gradients, shot.gradients))
    nothing = prepared_by(None, f, f.zeros())
    assert (nothing.floats_up, nothing.floats_down, nothing.gradients, nothing.exchanges) == (0, 0, (), 0)


def test_a_preparation_without_costs_leaves_those_of_the_ones_before_it():
    class Doubled:
        def check(self, objective):
            pass

        def prepare(self, objective, theta0):
            return Prepared(objective=objective, theta0=2.0 * theta0)

    f = classes()
    first = SketchedMetric(rank=2).prepare(f, f.zeros() + 1.0)
    both = prepared_by((SketchedMetric(rank=2), Doubled()), f, f.zeros() + 1.0)
    for name in ("floats_up", "floats_down", "gradients", "exchanges"):
        assert getattr(both, name) == getattr(first, name) != 0
    np.testing.assert_allclose(both.in_user_coordinates(both.theta0), 2.0, rtol=1e-12)


def test_a_round_without_local_solutions_has_none_in_other_coordinates():
    f = classes()
    assert SketchedMetric(rank=2).prepare(f, f.zeros()).solution_in_user_coordinates(None, f) is None
    shot = OneShotAverage(**ACCURATE)
    twice = prepared_by((SketchedMetric(rank=2), shot), f, f.zeros())  # means do not depend on coordinates
    np.testing.assert_allclose(twice.in_user_coordinates(twice.theta0), shot.prepare(f, f.zeros()).theta0, atol=1e-9)


@every_preparation
@pytest.mark.parametrize("algorithm", [AndersonFedSplit(), DistributedLBFGS(), DualFL(), GradientDescent()], ids=str)
def test_runs_report_in_the_coordinates_of_the_user(algorithm, prepare):
    """Energies are those of the model, certificates hold, and local solutions are certified by their own points."""
    f = classes()
    best = newton(f, tol=1e-13)
    seen = []

    def look(snapshot, row):
        theta = snapshot.server.theta
        assert row["energy"] == pytest.approx(float(np.average(f.value(theta), weights=f.sizes)), rel=1e-14)
        assert row["energy"] - best.energy <= row["certificate"]
        values, gradients = f.value_and_gradient(snapshot.solution.theta)
        np.testing.assert_allclose(snapshot.solution.evaluation.f, values, rtol=1e-12)
        np.testing.assert_allclose(snapshot.local_gradients, gradients, atol=1e-12)
        seen.append(row["certificate"])

    trace = run(algorithm, f, prepare=prepare, rounds=60, certify_every=1, callback=look)
    assert trace.theta.shape == f.shape
    assert seen[-1] < 0.1 * seen[0]
    if not isinstance(algorithm, GradientDescent | DualFL):
        np.testing.assert_allclose(trace.theta, best.theta, atol=1e-5)


def test_dual_certificates_of_a_metric_rest_on_the_strong_convexity_of_the_user():
    f = classes()
    latest, best = LatestSolutions(f), newton(f, tol=1e-13).energy
    prepared, kinds = SketchedMetric(rank=2).prepare(f, f.zeros()), set()
    for s in islice(iterate(AndersonFedSplit(**ACCURATE), f, prepare=SketchedMetric(rank=2)), 12):
        latest.update(s.round.clients, s.solution)
        bound = certificate(f, s.server.theta, latest.solution)
        own = certificate(f, s.server.theta, s.solution)
        assert bound == own
        assert bound.energy - best <= bound.gap
        kinds.add(bound.kind)
        in_metric = certificate(prepared.objective, s.state.server.theta)
        assert in_metric.energy - best <= in_metric.gap
        assert certificate(f, s.server.theta).gap < 0.9 * in_metric.gap  # mu there says less
    assert kinds == {"gradient", "dual"}


@every_preparation
def test_states_go_on_where_they_were(prepare):
    """``Snapshot.state`` is in the coordinates of the method: a round from it is the next one of the run."""
    f = classes()
    prepared = prepared_by(prepare, f, f.zeros())
    shots = list(islice(iterate(FedSplit(), f, prepare=prepare), 3))
    method = FedSplit().suggested(prepared.objective)
    state, _, _ = advance(method, prepared.objective, shots[1].state, shots[2].round)
    assert prepared.in_user_coordinates(state.server.theta).tolist() == shots[2].server.theta.tolist()
    assert state.clients.z.tolist() == shots[2].clients.z.tolist()


def test_a_method_in_coordinates_is_the_method_on_the_objective_in_coordinates():
    f = classes()
    prepared = SketchedMetric(rank=2).prepare(f, f.zeros())
    assert isinstance(prepared.objective, InCoordinates)
    plain = iterate(AndersonFedSplit(), prepared.objective, theta0=prepared.theta0)
    for a, b in islice(zip(plain, iterate(AndersonFedSplit(), f, prepare=SketchedMetric(rank=2)), strict=False), 8):
        assert prepared.in_user_coordinates(a.server.theta).tolist() == b.server.theta.tolist()
        assert (a.floats_up, a.floats_down) == (b.floats_up, b.floats_down)


@pytest.mark.parametrize("name", discover(dualopt.methods))
def test_every_method_runs_in_a_metric_and_from_one_shot(name):
    f = classes()
    method = discover(dualopt.methods)[name]()
    trace = run(method, f, prepare=(SketchedMetric(rank=2), OneShotAverage()), rounds=4, check_assumptions=False)
    assert trace.theta.shape == f.shape
    assert trace["energy"][-1] < np.log(3.0)  # that of the zero model


def test_quadratics_have_their_hessians_for_a_sketch():
    alike = quadratic(n=1, d=6, L=1000.0)
    f = Quadratic(A=np.repeat(alike.A, 3, axis=0), b=np.random.default_rng(0).standard_normal((3, 6)))
    trace = run(FedSplit(solver=Exact()), f, prepare=SketchedMetric(rank=6), rounds=2)
    np.testing.assert_allclose(trace.theta, f.minimiser(), atol=1e-9)  # equal Hessians: the metric is theirs
    assert not np.allclose(run(FedSplit(solver=Exact()), f, rounds=2).theta, f.minimiser(), atol=1e-3)


def test_array_libraries_agree(backend):
    expected = run(AndersonFedSplit(**ACCURATE), classes(), prepare=PREPARATIONS["both"], rounds=4).theta
    theta = run(AndersonFedSplit(**ACCURATE), classes(backend=backend), prepare=PREPARATIONS["both"], rounds=4).theta
    np.testing.assert_allclose(to_numpy(theta), expected, atol=1e-7)


def test_searches_take_preparations():
    f = classes()
    candidates = [Candidate(algorithm=FedSplit(step=step)) for step in (1.0, 3.0)]
    plain, prepared = (tune(candidates, f, metric="floats", prepare=p, rounds=200) for p in (None, OneShotAverage()))
    assert {n: o.status for n, o in prepared.items()} != {}
    size = f.n_clients * math.prod(f.shape)
    assert prepared[0].costs[0] - plain[0].costs[0] == 2 * size


# The command line.


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, []),
        ({"start": "jackknife"}, [OneShotAverage(jackknife=True, seed=5)]),
        ({"coordinates": "sketch"}, [SketchedMetric(seed=5)]),
        (
            {"start": "one-shot", "coordinates": "own-sketches=7"},
            [SketchedMetric(rank=7, common=False, seed=5), OneShotAverage(seed=5)],
        ),
    ],
)
def test_names_of_the_command_line(options, steps):
    assert PreparationOptions(**options).steps(5) == steps


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "warm"}, "start must be one of one-shot, sketched-metric, jackknife, sketch, own-sketches; not 'w"),
        ({"coordinates": "plain=3"}, "coordinates must be one of one-shot, sketched-metric, "),
        ({"coordinates": "sketch=-1"}, "coordinates sketched-metric: rank must be at least 1, not -1."),
        ({"coordinates": "scetch"}, "coordinates must be one of one-shot, sketched-metric, "),
        ({"coordinates": "sketch=0"}, "coordinates sketched-metric: rank must be at least 1, not 0."),
    ],
)
def test_names_that_are_refused(options, words):
    with pytest.raises(ValueError, match=r".") as error:
        PreparationOptions(**options).steps()
    assert str(error.value).startswith(words)


def test_commands_count_and_repeat_preparations(tmp_path, monkeypatch, capsys, undrawn):
    monkeypatch.chdir(tmp_path)
    common = ["--rows", "200", "--clients", "3", "--start", "one-shot", "--coordinates", "sketch=4"]

    def call(*words: str) -> str:
        with pytest.raises(SystemExit) as end:
            main([*words, *common])
        assert not end.value.code
        return capsys.readouterr().out

    from dualopt.runs.trace import Trace

    assert "before round 1" in call("run", "--algorithm", "anderson-fedsplit", "--rounds", "2", "--tol", "0")
    trace = Trace.from_csv("out/trace.csv")
    assert trace["floats_up"][0] == 3 * (4 * 65 + 1) + 3 * 650
    assert trace["communications"].tolist() == [2.0, 3.0, 4.0]
    call("compare", "--algorithm", "fedsplit", "--algorithm", "distributed-lbfgs", "--rounds", "2", "--out", "both")
    assert Trace.from_csv("both/fedsplit.csv")["floats_up"][0] == trace["floats_up"][0]
    words = call("tune", "--algorithm", "fedsplit", "--grid", "step=1,2", "--target", "1e-2", "--out", "search")
    assert "--start one-shot --coordinates sketch=4" in words
