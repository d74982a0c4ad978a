"""FedDyn's Table 2 with a network: the paper's numbers and parameters, what is measured, drawn and tabulated."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import FedAvg, FedDyn, FedProx, Scaffold
from dualopt.methods.participation import Full, Schedule, UniformSubset
from dualopt.problem.data import load
from dualopt.runs.trace import Trace
from figures import _feddyn_images, feddyn_table2
from figures._accuracy import accuracy_trace, first_reached
from figures._feddyn_images import SPLITS, Images, active, epochs_of, images, method
from figures._settings import Settings
from figures.feddyn_table2 import EVERY, LEGEND, PAPER

DATA_HOME = os.environ.get("DUALOPT_DATA_HOME", "")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Images:
    """Return the digits, with which networks of 10 and 8 units are trained."""
    monkeypatch.setattr(_feddyn_images, "LAYERS", (10, 8))
    return images("digits", None, None)


def settings(tmp_path, rounds: int = 5, **options) -> Settings:
    return Settings(out=tmp_path, rounds=rounds, quick=True, **options)


def outputs(theta: np.ndarray, x: np.ndarray) -> list[float]:
    """Return the scores of the classes for one row, in the plainest way."""
    values, start = [float(entry) for entry in x], 0
    for depth, outputs in enumerate((10, 8, 10)):
        inputs = len(values)
        W = theta[start : start + inputs * outputs].reshape(outputs, inputs).astype(float)
        b = theta[start + inputs * outputs : start + (inputs + 1) * outputs]
        start += (inputs + 1) * outputs
        sums = [float(W[i] @ np.array(values) + b[i]) for i in range(outputs)]
        values = sums if depth == 2 else [max(0.0, entry) for entry in sums]
    return values


def share_right(theta: np.ndarray, data: Images) -> float:
    found = [int(np.argmax(outputs(theta, x))) for x in data.X_test]
    return sum(f == y for f, y in zip(found, data.y_test, strict=True)) / len(found)


def test_the_numbers_of_the_paper_fit_the_savings_that_it_prints_beside_them():
    printed = {
        (100, "iid"): ((2.0, 3.4, 3.1), (1.9, 5.1, 11.7)),
        (100, "Dirichlet 0.6"): ((2.2, 3.5, 3.1), (2.8, 4.0, 10.7)),
        (100, "Dirichlet 0.3"): ((2.4, 4.9, 4.4), (2.2, 8.9, 13.1)),
        (10, "iid"): ((1.7, 1.6, 1.4), (1.4, 5.9, 3.6)),
        (10, "Dirichlet 0.6"): ((1.6, 1.5, 1.5), (1.5, 4.5, 2.8)),
        (10, "Dirichlet 0.3"): ((1.8, 2.1, 1.6), (2.3, 4.8, 9.5)),
        (1, "iid"): ((2.0, 1.0, 1.0), (1.8, 1.2, 0.9)),
        (1, "Dirichlet 0.6"): ((1.8, 1.1, 0.9), (3.1, 1.8, 1.6)),
        (1, "Dirichlet 0.3"): ((2.0, 1.1, 1.1), (1.8, 1.8, 1.9)),
    }
    assert list(PAPER) == list(printed) == [(percent, split) for percent in (100, 10, 1) for split in SPLITS]
    for cell, levels in PAPER.items():
        for row, savings in zip(levels, printed[cell], strict=True):
            ratios = [count / row.feddyn for count in (row.scaffold, row.fedavg, row.fedprox)]
            assert ratios == pytest.approx(savings, abs=0.0501), (cell, row)
        assert levels[1].accuracy == pytest.approx(levels[0].accuracy + 1.0)
        assert all(row.scaffold % 2 == 0 for row in levels)  # two models a round


def test_the_parameters_are_those_of_the_appendix():
    kinds = {"feddyn": FedDyn, "scaffold": Scaffold, "fedavg": FedAvg, "fedprox": FedProx}
    for percent, split in PAPER:
        everybody = percent == 100
        passes = {"feddyn": 50, "scaffold": 50, "fedavg": 20 if everybody else 10, "fedprox": 20 if everybody else 10}
        for name, epochs in passes.items():
            algorithm: Any = method(name, percent, split)
            assert type(algorithm) is kinds[name]
            solver = algorithm.solver
            assert (solver.step, solver.batch, solver.max_norm) == (0.1, 50, 10.0)
            assert (solver.epochs, solver.decay) == (epochs, 1.0 if everybody else 0.998)
            assert epochs_of(name, percent) == epochs
        alphas = {True: 0.03, False: 0.01}
        assert method("feddyn", percent, split).alpha == alphas[(percent, split) == (10, "iid")]  # pyright: ignore[reportAttributeAccessIssue]
    assert (_feddyn_images.WEIGHT_DECAY, _feddyn_images.CLIENTS) == (1e-4, 100)


def test_network_and_cohorts_are_those_of_the_authors_code(monkeypatch):
    monkeypatch.undo()  # the network is that of the figure
    assert images("digits", None, 300).network("iid").layers == (64, 200, 200, 10)
    assert active(100) == Full()
    ten, one = ([len(r.clients) for r in islice(active(percent).rounds(100, 0), 400)] for percent in (10, 1))
    assert min(ten) < 6
    assert max(ten) > 14
    assert {*one} >= {1, 2, 3}
    assert min(one) == 1


def test_the_rows_are_scaled_split_and_kept_apart_from_the_test_rows(small):
    assert small.X.dtype == small.X_test.dtype == np.float32
    assert abs(small.X.mean()) < 1e-4
    assert small.X.std() == pytest.approx(1.0, abs=1e-4)
    assert len(small.y) + len(small.y_test) == 1797
    training = {row.tobytes() for row in small.X}
    assert sum(row.tobytes() in training for row in small.X_test) == 0
    part = images("digits", None, 300)
    assert part.X.shape == (300, 64)
    assert {row.tobytes() for row in part.X} < training  # scaled as all rows are
    np.testing.assert_array_equal(part.X_test, small.X_test)
    shares = []
    for split in SPLITS:
        f = small.network(split)
        assert (f.n_clients, f.ridge, sum(f.sizes)) == (100, 1e-4, len(small.y))
        assert max(f.sizes) - min(f.sizes) <= 1
        largest = [np.bincount(y, minlength=10).max() / len(y) for _, y, _ in f.client_rows()]
        shares.append(np.mean(largest))  # of the most frequent class of a client
    assert shares[0] < shares[1] < shares[2]


def test_the_accuracy_is_that_of_the_mean_of_all_latest_models(small):
    f, test = small.network("Dirichlet 0.3"), (small.X_test, small.y_test)
    algorithm, five = method("fedavg", 10, "Dirichlet 0.3"), UniformSubset(size=5)
    trace = accuracy_trace(algorithm, f, test, participation=five, rounds=6, every=2)
    assert trace["round"].tolist() == [0.0, 2.0, 4.0, 6.0]
    start = f.initial(0)
    models, sent, active = np.stack([start] * 100), 0, []
    assert trace["accuracy"][0] == share_right(start, small)
    for n, shot in enumerate(islice(iterate(algorithm, f, participation=five), 6), start=1):
        for j, own in zip(shot.round.clients, shot.solution.theta, strict=True):  # pyright: ignore[reportOptionalMemberAccess]
            models[j] = own
        sent += shot.floats_up
        if n % 2 == 0:
            assert trace["floats_up"][n // 2] == sent
            assert trace["accuracy"][n // 2] == share_right(models.mean(axis=0), small)
            assert trace["server"][n // 2] == share_right(shot.server.theta, small)
            active.append(share_right(models[list(shot.round.clients)].mean(axis=0), small))
    assert active != trace["accuracy"][1:].tolist()  # the mean of the active models is another one


def test_a_run_ends_at_its_accuracy_or_after_its_rounds(small):
    f, test = small.network("iid"), (small.X_test, small.y_test)
    algorithm, ten = method("fedavg", 10, "iid"), UniformSubset(size=10)
    long = accuracy_trace(algorithm, f, test, participation=ten, rounds=13, every=4)
    assert (long["round"].tolist(), long.status) == ([0.0, 4.0, 8.0, 12.0, 13.0], "max_rounds")
    target = float(long["accuracy"][2])
    assert target > long["accuracy"][:2].max()
    short = accuracy_trace(algorithm, f, test, participation=ten, rounds=13, every=4, target=target)
    assert (short["round"].tolist(), short.status) == ([0.0, 4.0, 8.0], "converged")
    assert long["round"][first_reached(long, target)] == 8
    assert first_reached(long, 2.0) is None
    once = accuracy_trace(algorithm, f, test, participation=Schedule(clients=((3,),)), rounds=1)
    assert once["floats_up"][-1] == f.shape[0]


def test_pooled_training_has_all_rows_at_a_rate_that_is_halved(small):
    algorithm: Any = _feddyn_images.pooled()
    assert (algorithm.solver.epochs, algorithm.solver.decay, algorithm.solver.step) == (10, 0.5, 0.1)
    f = small.together()
    assert (f.n_clients, f.sizes) == (1, (len(small.y),))


def made_up(
    *accuracies: float, target: float = 0.972, pooled: float = 0.98, data: str = "mnist", sent: float = 60.0
) -> Trace:
    """A trace with one look in two rounds, between which 10 clients send two models of 3 numbers each, or ``sent``."""
    n = len(accuracies)
    columns = {
        "round": 2.0 * np.arange(n),
        "floats_up": sent * np.arange(n),
        "accuracy": accuracies,
        "server": [0.97 * entry for entry in accuracies],
    }
    parameters = {"pooled": pooled, "key": {"target": target, "data": data}}
    return Trace(columns=columns, status="max_rounds", theta=np.zeros(3), parameters=parameters)


def test_the_table_counts_models_beside_the_papers():
    reached, never = made_up(0.1, 0.9, 0.972), made_up(0.1, 0.95, 0.94, 0.93)
    twice = made_up(0.1, 0.9, 0.972, sent=120.0)
    traces = {f"10%, iid: {name}": reached for name in LEGEND}
    traces |= {"10%, iid: fedavg": never, "10%, iid: scaffold": twice}
    row, server = feddyn_table2.tabulate(traces)
    assert row == {
        "active": "10%",
        "split": "iid",
        "accuracy": "97.2%",
        "model": "mean of all",
        "FedDyn": "4",
        "SCAFFOLD": "8",
        "FedAvg": "> 6 (95.0%)",
        "FedProx": "4",
        "FedDyn, paper": "31",
        "SCAFFOLD, paper": "52",
        "FedAvg, paper": "49",
        "FedProx, paper": "43",
    }
    assert (server["model"], server["FedDyn"], server["SCAFFOLD"]) == ("server's", "> 4 (94.3%)", "> 8 (94.3%)")
    assert {value for key, value in server.items() if "paper" in key} == {"-"}
    elsewhere, _ = feddyn_table2.tabulate(dict.fromkeys(traces, made_up(0.1, 0.9, 0.972, data="digits")))
    assert list(elsewhere) == [name for name in row if "paper" not in name]
    both = {label: made_up(0.1, 0.975, target=0.982, sent=60.0 + 60.0 * ("scaffold" in label)) for label in traces}
    lower, _, higher, _ = feddyn_table2.tabulate(both)
    assert (lower["SCAFFOLD"], higher["accuracy"], higher["SCAFFOLD"]) == ("4", "98.2%", "> 4 (97.5%)")
    assert (higher["FedDyn, paper"], higher["SCAFFOLD, paper"]) == ("100", "142")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten epochs in every round, two of pooled training."""
    for passes in (_feddyn_images.EPOCHS, _feddyn_images.EPOCHS_OF_ALL):
        for name in passes:
            monkeypatch.setitem(passes, name, 10)
    monkeypatch.setattr(_feddyn_images, "POOLED_EPOCHS", 2)


def test_runs_are_stored_and_drawn_again(short, tmp_path):
    traces = feddyn_table2.compute(settings(tmp_path))
    cells = [(10, "iid"), (10, "Dirichlet 0.3")]
    assert list(traces) == [f"10%, {split}: {name}" for _, split in cells for name in LEGEND]
    rounds = feddyn_table2.ROUNDS[10][1] * 5 // 100
    assert all(trace.last["round"] == rounds for trace in traces.values())
    assert all(trace["accuracy"][-1] > trace["accuracy"][0] for trace in traces.values())
    keys = [trace.parameters["key"] for trace in traces.values()]
    assert {key["target"] for key in keys} == {0.972}
    assert {key["every"] for key in keys} == {EVERY[10]}
    (best,) = {trace.parameters["pooled"] for trace in traces.values()}
    assert 0.5 < best < 1.0
    with pytest.raises(ValueError, match=r"redraw: the run '10%, iid: feddyn' is not stored"):
        feddyn_table2.compute(settings(tmp_path, rounds=6, stored_only=True))
    (gone,) = (
        path for path in (tmp_path / "cache").glob("trace-*.npz") if _stored(path) == ("Dirichlet 0.3", "fedavg")
    )
    gone.unlink()
    part = feddyn_table2.compute(settings(tmp_path, stored_only=True))
    assert list(part) == [f"10%, iid: {name}" for name in LEGEND]
    assert [axes.get_title() for axes in feddyn_table2.draw(part, settings(tmp_path)).axes] == ["iid, 10% active"]
    figure = feddyn_table2.draw(traces, settings(tmp_path))
    assert [axes.get_title() for axes in figure.axes] == ["iid, 10% active", "Dirichlet 0.3, 10% active"]
    for (_, split), axes in zip(cells, figure.axes, strict=True):
        *curves, level, pooled = axes.lines
        for name, line in zip(LEGEND, curves, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), 1.0 - traces[f"10%, {split}: {name}"]["accuracy"])
        assert level.get_ydata()[0] == pytest.approx(0.028)  # pyright: ignore[reportIndexIssue]
        assert pooled.get_ydata()[0] == 1.0 - best  # pyright: ignore[reportIndexIssue]


def _stored(path: Path) -> tuple[str, str]:
    key = Trace.from_npz(path).parameters["key"]
    return key["partition"], next(iter(key["algorithm"]))


def test_with_more_rounds_all_cells_are_run_to_the_higher_accuracy(tmp_path):
    usual, patient = (Settings(out=tmp_path, rounds=rounds) for rounds in (100, 101))
    assert feddyn_table2._levels(usual, 1, "iid") == [0.973]
    assert feddyn_table2._levels(patient, 1, "iid") == [0.973, 0.983]
    assert feddyn_table2._cells(usual) == [cell for cell in PAPER if cell[0] < 100]
    assert feddyn_table2._cells(patient) == list(PAPER)


@pytest.mark.skipif(not DATA_HOME, reason="DUALOPT_DATA_HOME names no folder with MNIST")
def test_mnist_is_scaled_as_in_the_authors_code():
    data = images("mnist", Path(DATA_HOME), 1000)
    assert (data.X.shape, data.X_test.shape, data.classes) == ((1000, 784), (10000, 784), 10)
    raw = load("mnist", split="test", data_home=Path(DATA_HOME)).X
    np.testing.assert_allclose(data.X_test, (raw - 0.1307) / 0.3081, atol=1e-3)
