"""The figures of the FedDyn paper: the grids, the race that tunes, and what is counted."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.losses import Multinomial
from dualopt.methods import FedAvg, FedDyn
from dualopt.methods.participation import UniformSubset
from dualopt.objectives import LinearModel, linear_model
from dualopt.runs.trace import Trace
from dualopt.solvers import SGD
from figures import _race, feddyn_alpha, feddyn_table2, feddyn_table6
from figures._feddyn import SETTINGS, grid, problem
from figures._output import write_table
from figures._race import Contestant, race, training_loss
from figures._settings import Settings
from figures.feddyn_table6 import LEGEND


@pytest.fixture
def small(monkeypatch) -> LinearModel:
    """Return 60 rows at 6 clients of unequal sizes, in place of the synthetic data."""
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((60, 4)), rng.standard_normal((4, 3))
    rows = np.split(np.arange(60), [5, 15, 30, 40, 55])
    clients = [part.tolist() for part in rows]
    f = linear_model(
        X, (X @ W).argmax(1), loss=Multinomial(classes=3), mu=1e-2, clients=clients, weights=np.full(60, 0.1)
    )
    monkeypatch.setattr(feddyn_table6, "problem", lambda setting: f)
    monkeypatch.setattr(feddyn_alpha, "problem", lambda setting: f)
    return f


def candidates(method: str) -> list[Any]:
    return list(grid(method, False).values())


def settings(tmp_path, rounds: int = 10, **options) -> Settings:
    return Settings(out=tmp_path, rounds=rounds, quick=True, **options)


def cross_entropy(f: LinearModel, theta: np.ndarray) -> float:
    """Return the mean loss of all rows, in the plainest way."""
    total, rows = 0.0, 0
    for X, y, _ in f.client_rows():
        for x, label in zip(X, y, strict=True):
            scores = [sum(weight * feature for weight, feature in zip(w, x, strict=True)) for w in theta]
            total += math.log(sum(math.exp(score) for score in scores)) - scores[int(label)]
            rows += 1
    return total / rows


def test_the_training_loss_is_the_mean_over_all_rows_without_weight_decay(small):
    theta = np.random.default_rng(1).standard_normal(small.shape)
    assert training_loss(small, theta) == pytest.approx(cross_entropy(small, theta), rel=1e-12)
    assert training_loss(small, np.full(small.shape, math.nan)) == math.inf


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_problem_is_that_of_the_appendix(setting):
    f = problem(setting)
    assert (f.n_clients, f.shape, f.ridge) == (20, (5, 31), 1e-5)
    assert (min(f.sizes) < max(f.sizes)) == (setting == "sizes")
    weights = [float(w[0]) for _, _, w in f.client_rows()]
    np.testing.assert_allclose(weights, 20.0 / sum(f.sizes), rtol=1e-12)
    assert training_loss(f, f.zeros()) == pytest.approx(math.log(5), rel=1e-12)


def test_the_grids_are_those_of_the_appendix():
    sizes = {method: len(grid(method, False)) for method in ("feddyn", "fedavg", "fedprox", "scaffold")}
    assert sizes == {"feddyn": 3 * 6, "fedavg": 6, "fedprox": 2 * 6, "scaffold": 6}
    for method in sizes:
        solvers = [algorithm.solver for algorithm in candidates(method)]
        assert {solver.step for solver in solvers} == {1.0, 0.1}
        assert {solver.batch for solver in solvers} == {10}
        if method != "scaffold":
            assert {solver.epochs for solver in solvers} == {1, 10, 50}
    assert {a.alpha for a in candidates("feddyn")} == {0.1, 0.01, 0.001}
    assert {a.mu_prox for a in candidates("fedprox")} == {0.01, 0.0001}
    assert {a.stop.steps for a in candidates("scaffold")} == {20, 200, 1000}
    assert all(set(grid(method, True)) < set(grid(method, False)) for method in sizes)


def test_the_table_of_the_paper_is_in_rounds():
    printed = {  # numbers of transmitted models, and the savings that the paper prints beside them
        "homogeneous": (32, (70, 2.2), (136, 4.2), (49, 1.5)),
        "models": (17, (88, 5.2), (20, 1.2), (18, 1.1)),
        "features": (150, (164, 1.1), (274, 1.8), (275, 1.8)),
        "sizes": (34, (260, 7.6), (79, 2.3), (106, 3.1)),
    }
    for setting, (feddyn, *others) in printed.items():
        row = feddyn_table6.PAPER[setting]
        models = (2 * row.scaffold, row.fedavg, row.fedprox)
        assert (row.feddyn, *models) == (feddyn, *(count for count, _ in others))
        assert [round(count / feddyn, 1) for count in models] == [saving for _, saving in others]


def test_contestants_record_the_mean_of_all_latest_models(small):
    method, two = FedDyn(alpha=0.1, solver=SGD(step=0.5, batch=5, epochs=1)), UniformSubset(size=2)
    contestant = Contestant(method, small, two)
    latest, sent = np.zeros((6, *small.shape)), 0
    for n, shot in enumerate(islice(iterate(method, small, participation=two), 5)):
        contestant.advance()
        for j, own in zip(shot.round.clients, shot.solution.theta, strict=True):  # pyright: ignore[reportOptionalMemberAccess]
            latest[j] = own
        sent += shot.floats_up
        row = contestant.rows[-1]
        assert (row["round"], row["floats_up"]) == (n + 1, sent)
        assert row["loss"] == pytest.approx(cross_entropy(small, latest.mean(axis=0)), rel=1e-12)
        assert row["server"] == pytest.approx(cross_entropy(small, shot.server.theta), rel=1e-12)
        assert abs(row["loss"] - row["server"]) > 1e-3
    trace = contestant.trace(reached=True, chosen="it")
    assert (len(trace), trace.status, trace.parameters["chosen"]) == (6, "converged", "it")


class Scripted:
    """A contestant whose losses are known beforehand."""

    def __init__(self, losses) -> None:
        self.losses = iter(losses)
        self.rows = [{"loss": 9.0}]

    def advance(self) -> None:
        self.rows.append({"loss": next(self.losses)})

    best = _race.Contestant.best


def falling(factor: float, rounds: int = 200) -> list[float]:
    return [9.0 * factor**n for n in range(1, rounds + 1)]


def run_race(curves: dict[str, list[float]], **options) -> tuple[str, dict[str, int]]:
    contestants = {label: Scripted(losses) for label, losses in curves.items()}
    winner = race(contestants, **options)  # pyright: ignore[reportArgumentType]
    return winner, {label: len(contestant.rows) - 1 for label, contestant in contestants.items()}


def test_the_race_ends_when_the_first_arrives():
    curves = {"slow": falling(0.99), "fast": falling(0.9), "fair": falling(0.95)}
    winner, rounds = run_race(curves, rounds=160, target=1.0)
    arrival = next(n for n, loss in enumerate(curves["fast"], start=1) if loss <= 1.0)
    assert (winner, rounds["fast"]) == ("fast", arrival)


def test_the_race_drops_the_worst():
    curves = {f"{k}": falling(1.0 - 0.01 * k) for k in range(1, 10)}
    winner, rounds = run_race(curves, rounds=160)
    assert winner == "9"
    assert [rounds[f"{k}"] for k in range(1, 10)] == [10] * 6 + [40] + [160] * 2


def test_a_finalist_that_comes_from_behind_wins():
    early, late = [8.0] * 50 + [7.0] * 150, [8.5] * 50 + [1.0] * 150
    winner, rounds = run_race({"early": early, "late": late, "last": [9.0] * 200}, rounds=100, target=2.0)
    assert (winner, rounds["late"]) == ("late", 51)
    assert rounds["last"] < rounds["early"]


def test_noise_counts_at_its_best_and_nothing_is_dropped_in_the_first_rounds():
    winner, rounds = run_race({"a": [5.0, 1.0, 8.0, 8.0, 8.0, 8.0], "b": [2.0] * 6, "c": [3.0] * 6}, rounds=6)
    assert winner == "a"
    assert rounds == {"a": 6, "b": 6, "c": 5}


def test_every_method_runs_to_the_loss_of_fedavg(small, tmp_path):
    traces = feddyn_table6.compute(settings(tmp_path))
    assert list(traces) == [f"{s}: {m}" for s in SETTINGS[:2] for m in LEGEND]
    fedavg = traces["homogeneous: fedavg"]
    assert len(fedavg) == 1 + 136 * 10 // 100
    target = fedavg["loss"].min()
    assert target < 0.5 * fedavg["loss"][0]
    for method in ("feddyn", "scaffold", "fedprox"):
        trace = traces[f"homogeneous: {method}"]
        assert len(trace) <= 1 + round(1.5 * 13)
        assert (trace["loss"][:-1] > target).all()
        assert (trace.status == "converged") == (trace.last["loss"] <= target)
        assert trace.parameters["chosen"] in grid(method, True)
    assert traces["homogeneous: feddyn"].status == "converged"


def test_the_table_shows_ours_beside_the_papers(small, tmp_path):
    def made_up(*losses: float) -> Trace:
        n = len(losses)
        columns = {"round": range(n), "floats_up": 10.0 * np.arange(n), "loss": losses, "server": [9.0, *losses[:-1]]}
        return Trace(columns=columns, status="converged", theta=None, parameters={"chosen": "these"})

    feddyn, fedavg, fedprox = made_up(4.0, 3.0, 0.9), made_up(4.0, 3.0, 2.0, 1.0, 1.0), made_up(4.0, 3.0, 2.0)
    scaffold = replace(feddyn, columns={**feddyn.columns, "floats_up": 2.0 * feddyn["floats_up"]})
    made = {"feddyn": feddyn, "scaffold": scaffold, "fedavg": fedavg, "fedprox": fedprox}
    traces = {f"homogeneous: {method}": trace for method, trace in made.items()}
    rows = {row["method"]: row for row in feddyn_table6.tabulate(traces)}
    assert [rows[m]["rounds"] for m in ("FedDyn", "FedAvg", "FedProx")] == ["2", "3", "> 2"]
    assert [rows[m]["paper's rounds"] for m in ("FedDyn", "FedAvg", "FedProx")] == ["32", "136", "49"]
    assert [rows[m]["at server"] for m in ("FedDyn", "FedAvg", "FedProx")] == ["-", "4", "-"]
    assert [rows[m]["sent"] for m in ("FedDyn", "SCAFFOLD", "FedAvg", "FedProx")] == ["1.0", "2.0", "1.5", "-"]
    assert [rows[m]["paper's sent"] for m in ("FedDyn", "SCAFFOLD", "FedAvg", "FedProx")] == [
        "1.0",
        "2.2",
        "4.2",
        "1.5",
    ]
    assert {row["loss"] for row in rows.values()} == {"1.0000"}
    assert rows["FedAvg"]["paper's loss"] == "0.0603"
    assert write_table(tmp_path, "mine", list(rows.values())) == "mine_table.csv"
    with (tmp_path / "mine_table.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == list(rows.values())


def test_races_are_drawn_and_those_of_other_lengths_are_others(small, tmp_path):
    traces = feddyn_table6.compute(settings(tmp_path, rounds=5))
    with pytest.raises(ValueError, match="redraw: the race of 'fedavg' on 'homogeneous' data is not stored"):
        feddyn_table6.compute(settings(tmp_path, rounds=6, stored_only=True))
    figure = feddyn_table6.draw(traces, settings(tmp_path))
    assert [axes.get_title() for axes in figure.axes] == ["homogeneous", "type 1: models differ"]
    lines = figure.axes[0].lines
    np.testing.assert_array_equal(lines[0].get_ydata(), traces["homogeneous: feddyn"]["loss"])
    assert lines[-1].get_ydata()[0] == traces["homogeneous: fedavg"]["loss"].min()  # pyright: ignore[reportIndexIssue]


def test_the_alphas_are_compared_at_their_lowest_losses(small, tmp_path):
    chosen = settings(tmp_path, rounds=4)
    traces = feddyn_alpha.compute(chosen)
    assert list(traces) == [f"{s}, alpha = {a}" for s in SETTINGS[:2] for a in ("0.001", "0.1")]
    assert all(len(trace) == 5 for trace in traces.values())
    keys = [trace.parameters["key"]["algorithm"]["feddyn"] for trace in traces.values()]
    assert [key["alpha"] for key in keys] == [1e-3, 0.1] * 2
    assert {(key["solver"]["sgd"]["step"], key["solver"]["sgd"]["epochs"]) for key in keys} == {(0.1, 10)}
    left, right = feddyn_alpha.draw(traces, chosen).axes
    np.testing.assert_array_equal(left.lines[1].get_ydata(), traces["homogeneous, alpha = 0.1"]["loss"])
    lowest = [traces[f"models, alpha = {a}"]["loss"].min() for a in ("0.001", "0.1")]
    np.testing.assert_array_equal(right.lines[2].get_ydata(), lowest)
    server = [traces[f"models, alpha = {a}"]["server"][-1] for a in ("0.001", "0.1")]
    np.testing.assert_array_equal(right.lines[3].get_ydata(), server)
    rows = feddyn_alpha.tabulate(traces)
    assert rows[2] == {
        "run": "models, alpha = 0.001",
        "rounds": "4",
        "lowest loss": f"{lowest[0]:.4f}",
        "last": f"{traces['models, alpha = 0.001'].last['loss']:.4f}",
        "last, server's model": f"{traces['models, alpha = 0.001'].last['server']:.4f}",
    }
    with pytest.raises(ValueError, match=r"redraw: the run of 'homogeneous, alpha = 0\.001' is not stored"):
        feddyn_alpha.compute(replace(chosen, rounds=5, stored_only=True))


def test_the_yardstick_is_fedavg():
    assert all(type(algorithm) is FedAvg for algorithm in candidates("fedavg"))


def test_the_papers_numbers_are_beside_its_own_data_alone():
    columns = {"round": [0, 1], "floats_up": [0, 30], "accuracy": [0.1, 0.98], "server": [0.1, 0.98]}
    for data, shown in (("mnist", True), ("digits", False)):
        key = {"target": 0.972, "data": data}
        trace = Trace(columns=columns, status="converged", theta=np.zeros(3), parameters={"key": key})
        rows = feddyn_table2.tabulate({f"10%, iid: {name}": trace for name in feddyn_table2.LEGEND})
        assert [row["FedDyn"] for row in rows] == ["1", "1"]
        assert all(("FedDyn, paper" in row) is shown for row in rows)
