"""The figures of convolutional networks: the papers' numbers and parameters, and runs that are interrupted."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from dualopt.methods import (
    AFedPD,
    AFedPDSAM,
    FedADMM,
    FedAvg,
    FedCM,
    FedDyn,
    FedDynSAM,
    FedProx,
    FedSAM,
    FedSpeed,
    Scaffold,
)
from dualopt.objectives.augmentation import crop_flip
from dualopt.problem.data import partition
from dualopt.problem.data.brightness import brightness_shift
from dualopt.runs.trace import Trace
from figures import _feddyn_images, _program, _settings, afedpd_table2, feddyn_table5
from figures._feddyn_images import active, images
from figures._image_networks import network, pictures
from figures._settings import Settings
from tests.programs import ended


def test_the_numbers_of_the_paper_fit_the_savings_that_it_prints_beside_them() -> None:
    printed = {"iid": (2.1, 1.1, 1.3), "Dirichlet 0.6": (2.5, 1.5, 1.4), "Dirichlet 0.3": (2.8, 1.4, 1.1)}
    for split, savings in printed.items():
        row = feddyn_table5.PAPER[split]
        ratios = [count / row.feddyn for count in (row.scaffold, row.fedavg, row.fedprox)]
        assert ratios == pytest.approx(savings, abs=0.0501)
        assert row.scaffold % 2 == 0  # two models a round


def test_the_parameters_are_those_of_the_papers() -> None:
    kinds = {"feddyn": FedDyn, "scaffold": Scaffold, "fedavg": FedAvg, "fedprox": FedProx}
    for name, kind in kinds.items():
        algorithm: Any = feddyn_table5.method(name)
        assert type(algorithm) is kind
        assert (algorithm.solver.step, algorithm.solver.epochs, algorithm.solver.decay) == (0.1, 5, 0.998)
    theirs = [FedAvg, FedCM, Scaffold, FedSAM, FedADMM, FedDyn, FedSpeed, FedDynSAM, AFedPD, AFedPDSAM]
    for name, kind in zip(afedpd_table2.LEGEND, theirs, strict=True):
        algorithm = afedpd_table2.method(name)
        assert type(algorithm) is kind
        assert (algorithm.solver.step, algorithm.solver.batch, algorithm.solver.decay) == (0.1, 50, 0.998)
        assert algorithm.stop.steps == 50
    assert feddyn_table5.WEIGHT_DECAY == afedpd_table2.WEIGHT_DECAY == 1e-3


def test_rows_that_clients_share_are_theirs() -> None:
    data = pictures("digits", None, 300)
    clients = partition("dirichlet-replacement", data.y, 4, alpha=0.1, seed=0)
    f = network(data, clients, ridge=1e-3)
    for (X, y, _), rows in zip(f.client_rows(), clients, strict=True):
        np.testing.assert_array_equal(X.numpy(), data.X[rows])
        np.testing.assert_array_equal(y.numpy(), data.y[rows])
    assert f.input_shape == (1, 8, 8)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(data.X[clients[0]], data.X[clients[1]])


def test_bright_clients_have_their_pixels_changed_and_the_rest_as_it_is() -> None:
    data = pictures("digits", None, 300)
    raw = images("digits", None, 300)
    np.testing.assert_allclose(data.X * data.unit + data.center, raw.X * raw.unit + raw.center, rtol=1e-5, atol=1e-5)
    clients = partition("dirichlet-replacement", data.y, 4, alpha=0.1, seed=0)
    plain, bright = (network(data, clients, ridge=1e-3, brightness=spread) for spread in (0.0, 0.3))
    pixels = raw.X * raw.unit + raw.center
    assert 0.2 < pixels.mean() < 0.4  # of 0 to 1
    for j, ((X, y, _), (X0, y0, _), own) in enumerate(
        zip(bright.client_rows(), plain.client_rows(), clients, strict=True)
    ):
        shift = brightness_shift(float(pixels[own].mean()), 1, spread=0.3, seed=0, client=j)[0]
        np.testing.assert_allclose(X.numpy(), X0.numpy() + shift / data.unit.item(), rtol=0.0, atol=2e-5)
        np.testing.assert_array_equal(y.numpy(), y0.numpy())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two methods, few clients, one or two steps."""
    monkeypatch.setattr(_feddyn_images, "CLIENTS", 6)
    for module in (afedpd_table2, feddyn_table5):
        monkeypatch.setattr(module, "CLIENTS", 6)
        monkeypatch.setattr(module, "EVERY", 2)
    monkeypatch.setattr(afedpd_table2, "LEGEND", {"fedavg": "FedAvg", "a-fedpd": "A-FedPD"})
    monkeypatch.setattr(afedpd_table2, "PAPER", {"IID": (81.87, 85.31), "Dir-0.1": (75.57, 80.28)})
    monkeypatch.setattr(afedpd_table2, "ACTIVE", 2)
    monkeypatch.setattr(afedpd_table2, "STEPS", 2)
    monkeypatch.setattr(feddyn_table5, "EPOCHS", 1)
    monkeypatch.setattr(feddyn_table5, "LEGEND", {"feddyn": "FedDyn", "scaffold": "SCAFFOLD"})


def settings(tmp_path: Any, **options: Any) -> Settings:
    given: dict[str, Any] = {"rounds": 2} | options
    return Settings(out=tmp_path, rows=200, quick=True, **given)


@pytest.mark.parametrize("name", ["afedpd_table2", "feddyn_table5"])
def test_the_figures_leave_their_files(name: str, small: None, tmp_path: Any, undrawn: None) -> None:
    options = ("--quick", "--rounds", "1", "--rows", "200", "--out", str(tmp_path))
    assert ended(_program.main, name, *options) == 0
    assert {f"{name}.png", f"{name}.csv", f"{name}_table.csv"} <= {path.name for path in tmp_path.iterdir()}


FAILING = {"afedpd_table2": "dualopt.objectives.TorchModule.predict", "feddyn_table5": "figures._accuracy._accuracy"}
LOOKED = {"afedpd_table2": "test_accuracy", "feddyn_table5": "accuracy"}
CELLS = {"afedpd_table2": ["Dir-0.1: fedavg", "Dir-0.1: a-fedpd"], "feddyn_table5": ["iid: feddyn", "iid: scaffold"]}


@pytest.mark.parametrize("figure", [afedpd_table2, feddyn_table5])
def test_an_interrupted_run_goes_on(figure: Any, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = figure.__name__.removeprefix("figures.")
    short = {"rounds": 2 if figure is afedpd_table2 else 1, "only": f"{CELLS[name][0].split(':')[0]}: *"}
    whole = figure.compute(settings(tmp_path / "whole", **short))
    assert list(whole) == CELLS[name]
    again, looks, fourth = settings(tmp_path / "again", **short), [], 4
    place, function = FAILING[name].rsplit(".", 1)
    owner: Any = pkgutil.resolve_name(place.replace(".TorchModule", ":TorchModule"))
    look = getattr(owner, function)

    def failing(*arguments: Any) -> Any:
        looks.append(1)
        if len(looks) == fourth:
            raise InterruptedError
        return look(*arguments)

    monkeypatch.setattr(owner, function, failing)
    often = partial(_settings.Checkpoint, seconds=1e-9)
    monkeypatch.setattr("dualopt.engine.checkpoint.SHARE", 0.0)  # in every round
    monkeypatch.setattr(_settings, "Checkpoint", often)
    with pytest.raises(InterruptedError):
        figure.compute(again)
    assert len(list(again.cache.glob("run-*.journal"))) == 1
    looks.clear()
    fourth = -1
    resumed = figure.compute(again)
    seen = sum(np.isfinite(trace[LOOKED[name]]).sum() for trace in whole.values())
    assert len(looks) == seen - 3  # those before the interruption are not taken again
    assert not list(again.cache.glob("run-*.journal"))
    for label, trace in whole.items():
        assert resumed[label].columns.keys() == trace.columns.keys()
        assert resumed[label].status == trace.status
        assert np.array_equal(resumed[label].theta, trace.theta)
        for column in trace.columns.keys() - {"seconds"}:
            np.testing.assert_array_equal(resumed[label][column], trace[column])


def test_table_5_counts_models_beside_the_papers(small: None, tmp_path: Any) -> None:
    found = settings(tmp_path, rounds=1)
    traces = feddyn_table5.compute(found)
    assert {trace.last["round"] for trace in traces.values()} == {10.0}
    assert [axes.get_title() for axes in feddyn_table5.draw(traces, found).axes] == ["iid", "Dirichlet 0.3"]
    assert list(feddyn_table5.tabulate(traces)[0]) == ["split", "accuracy", "FedDyn", "SCAFFOLD"]
    columns = {"round": [0.0, 10.0, 20.0], "floats_up": [0.0, 48.0, 93.0], "accuracy": [0.1, 0.7, 0.82]}
    parameters = {"key": {"data": "cifar10"}}
    made_up = Trace(columns=columns, status="converged", theta=np.zeros(3), parameters=parameters)
    twice = replace(made_up, columns=columns | {"floats_up": [0.0, 96.0, 186.0]})
    row, *others = feddyn_table5.tabulate({"iid: feddyn": made_up, "iid: scaffold": twice})
    assert (row["FedDyn"], row["SCAFFOLD"], row["SCAFFOLD, paper"]) == ("31", "62", "1150")
    assert {one["SCAFFOLD"] for one in others} == {"not run"}


def test_table_5_draws_cohorts_and_changes_images_as_the_authors_code_does(
    small: None, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch, given = pytest.importorskip("torch"), list[Any]()

    def noted(*arguments: Any, **options: Any) -> Any:
        given.append(options["augment"])
        return network(*arguments, **options)

    monkeypatch.setattr(feddyn_table5, "network", noted)
    (trace,) = feddyn_table5.compute(settings(tmp_path, rounds=1, only="iid: feddyn")).values()
    assert trace.parameters["key"]["participation"] == {"bernoulli": {"probability": 0.01, "nonempty": True}}
    (augment,) = given
    image = torch.arange(30.0).reshape(1, 1, 5, 6).expand(200, -1, -1, -1)
    found, expected = (change(image, np.random.default_rng(0)) for change in (augment, partial(crop_flip, moved=0.5)))
    assert torch.equal(found, expected)
    # it sends a model of every active client, of which there may be more than one in a round
    sent = trace["floats_up"][-1] / np.prod(trace.theta.shape)
    assert sent == sum(len(r.clients) for r in islice(active(1).rounds(6, 0), 10))


def test_cells_are_run_one_by_one_and_what_is_not_run_is_said(small: None, tmp_path: Path) -> None:
    for figure, empty in ((feddyn_table5, 5), (afedpd_table2, 5)):
        name, cells = figure.__name__, CELLS[figure.__name__.removeprefix("figures.")]
        place = tmp_path / name
        assert list(figure.compute(settings(place, rounds=1, only=cells[1]))) == [cells[1]]
        with pytest.raises(ValueError, match=r"^only must match a cell 'problem: method', not 'Dir-7: \*'\.$"):
            figure.compute(settings(place, rounds=1, only="Dir-7: *"))
        stored = settings(place, rounds=1, stored_only=True)
        part = figure.compute(stored)
        assert list(part) == [cells[1]]
        table = figure.tabulate(part)
        assert sum(value == "not run" for row in table for value in row.values()) == empty
        assert cells[0] in figure.caption(part, stored).split("Not run: ")[1]
        assert sum(len(axes.get_lines()) for axes in figure.draw(part, stored).axes) >= 1
        both = figure.compute(settings(place, rounds=1, only=cells[0]))  # the other one is taken from the store
        assert list(both) == cells
        with pytest.raises(ValueError, match=r"^redraw: any cell is not stored"):
            figure.compute(settings(place, rounds=2, stored_only=True))
