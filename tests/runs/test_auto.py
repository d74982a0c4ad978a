"""Runs that choose their method: when one is left, what the next one begins with, and that nothing else changes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt import run
from dualopt.engine.checkpoint import Checkpoint
from dualopt.engine.rounds import resolve
from dualopt.methods import DistributedLBFGS, FedDyn
from dualopt.methods.compressors import RandK
from dualopt.methods.participation import UniformSubset
from dualopt.runs import auto
from dualopt.runs.auto import Auto, last_method, leaves, path_in_words
from dualopt.runs.recording import is_auto
from dualopt.runs.trace import Trace
from tests.problems import hinge, logistic, magnitudes, quadratic


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method is left after four rounds, whatever it does."""
    monkeypatch.setattr(auto, "WINDOW", 4)
    monkeypatch.setattr(auto, "FALL", math.inf)


def rows(energies: Any, gaps: Any = None) -> list[dict[str, float]]:
    gaps = [math.nan] * len(energies) if gaps is None else gaps
    return [{"energy": float(e), "certificate": float(g)} for e, g in zip(energies, gaps, strict=True)]


@pytest.mark.parametrize(
    ("energies", "gaps", "expected"),
    [
        ([2.0, 3.0, 4.0, 5.0], None, None),  # too few rounds
        ([2.0, 3.0, 4.0, 5.0, 6.0], None, "E was never below 2 in 4 rounds"),
        ([2.0, 2.0, 2.0, 2.0, 2.0], None, "E was never below 2 in 4 rounds"),
        ([2.0, 3.0, 4.0, 5.0, math.nan], None, "E was never below 2 in 4 rounds"),
        ([2.0, 3.0, 1.9, 5.0, 6.0], None, None),
        ([2.0, math.nan, math.nan, math.nan, math.nan], None, None),  # nothing was measured
        ([2.0, 1.0, 1.0, 1.0, 1.0], [8.0, 7.0, 6.0, 5.0, 2.0], None),
        (
            [2.0, 1.0, 1.0, 1.0, 1.0],
            [8.0, 7.0, 6.0, 5.0, 4.1],
            "the certified gap fell by a factor of 1.95 in 4 rounds",
        ),
        ([2.0, 1.0, 1.0, 1.0, 1.0], [8.0, 1.5, 6.0, 5.0, 7.0], None),  # the least one counts
        ([2.0, 1.0, 1.0, 1.0, 1.0], [math.inf, 7.0, 6.0, 5.0, 5.0], None),  # none was known
        ([2.0, 1.0, 1.0, 1.0, 1.0], [8.0, math.nan, 6.0, math.nan, math.nan], None),  # the latest is not known
        (
            [2.0, *[1.0] * 6],
            [8.0, 4.0, 2.0, 1.9, 1.8, 1.7, 1.1],
            "the certified gap fell by a factor of 1.82 in 4 rounds",
        ),
    ],
)
def test_when_a_method_is_left(energies: list[float], gaps: list[float] | None, expected: str | None) -> None:
    assert leaves(rows(energies, gaps), rounds=4) == expected


def test_a_method_that_has_patience_may_stay_where_it_began() -> None:
    still = rows([2.0] * 6, [9.0, 9.0, 8.0, 8.0, 2.0, 2.0])
    assert leaves(still[:5], rounds=2, patience=5) is None
    assert leaves(still, rounds=2, patience=5) == "E was never below 2 in 5 rounds"
    assert leaves(still[:4], rounds=2, patience=5) == "the certified gap fell by a factor of 1.12 in 2 rounds"


def test_what_is_a_choice() -> None:
    assert [is_auto(x) for x in ("auto", "auto: minimise=gradients", Auto(), "dualfl", DistributedLBFGS())] == [
        *(True, True, True),
        *(False, False),
    ]
    assert Auto.of("auto:minimise=gradients") == Auto(minimise="gradients")


def test_a_method_that_fits_runs_as_if_it_had_been_named() -> None:
    f = quadratic()
    found, alone = run("auto: minimise=gradients", f, rounds=9), run("distributed-lbfgs", f, rounds=9)
    assert found.parameters["path"] == [{"algorithm": "distributed-lbfgs", "from_round": 0}]
    assert np.array_equal(found.theta, alone.theta)
    assert all(np.array_equal(found[name], alone[name], equal_nan=True) for name in alone.columns if name != "seconds")


def test_the_recommendation_is_counted() -> None:
    """Five vectors of every client, three to it, and its gradients, before the first round."""
    f = quadratic()
    start = {name: column[0] for name, column in run("auto", f, rounds=1).columns.items()}
    numbers = f.n_clients * math.prod(f.shape)
    assert (start["communications"], start["floats_up"], start["floats_down"]) == (4, 5 * numbers, 3 * numbers)
    assert (start["bits_up"], start["bits_down"]) == (64 * 5 * numbers, 64 * 3 * numbers)
    assert start["gradients"] == auto.recommend(f).measured.gradients  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.usefixtures("impatient")
def test_the_next_method_begins_with_the_model() -> None:
    f, seen = logistic(), []
    trace = run("auto", f, rounds=12, tol=1e-12, callback=lambda s, row: seen.append((row["round"], s.server.theta)))
    first, second, third = trace.parameters["path"]
    assert (first["algorithm"], first["from_round"], second["from_round"]) == ("anderson-dane", 0, 4)
    assert "left_because" not in third
    assert [n for n, _ in seen] == trace["round"][1:].tolist() == list(range(1, 13))
    assert np.array_equal(seen[4][1], seen[3][1])  # it asks for the gradient at the model that it starts from
    sent = [trace[name] for name in auto.SPENT if name != "seconds"]
    assert len(sent) == 8  # the bits that measure among them
    assert all((np.diff(column) > 0).all() for column in sent)
    words = path_in_words(trace)["methods"]
    assert words.startswith("anderson-dane from round 1 (left: the certified gap fell by a factor of ")
    assert words.endswith("in 4 rounds), then distributed-lbfgs from round 9")
    method, clients = last_method(trace, f, None, None)
    assert isinstance(method, DistributedLBFGS)
    assert clients is f


def test_the_last_method_has_the_participation_and_the_compressor_of_the_run() -> None:
    """Both of them change the weight of FedDyn; and it has the scales that the run has noted."""
    f = quadratic()
    for scales in ({}, {"scales": "suggested"}):
        trace = trace_of([1.0], 0.0, path=[{"algorithm": "feddyn", **scales}])
        found, clients = last_method(trace, f, "subset=2", RandK(size=1))
        assert found == resolve(FedDyn(), clients, UniformSubset(size=2), RandK(size=1))
        assert found not in (resolve(FedDyn(), clients), resolve(FedDyn(), clients, UniformSubset(size=2)))
        assert (clients is f) == (not scales)


def test_every_method_has_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    whole = Checkpoint(tmp_path / "run.journal", seconds=7.0)
    parts = [auto._part(whole, number) for number in range(3)]
    assert [Path(part.path).name for part in parts] == ["run.journal", "run-2.journal", "run-3.journal"]
    assert {(Path(part.path).parent, part.seconds) for part in parts} == {(tmp_path, 7.0)}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("stops", [[2, 6, 8], [4]])
def test_a_run_that_is_continued_takes_the_same_way(stops: list[int], tmp_path: Path) -> None:
    f = logistic()
    options: dict[str, Any] = {"rounds": 9, "tol": 1e-12}
    whole = run("auto", f, **options)
    for n in stops:
        checkpoint = Checkpoint(tmp_path / "run.journal", seconds=0, resume=n > stops[0])
        broken = run("auto", f, checkpoint=checkpoint, callback=lambda s, row, n=n: row["round"] == n, **options)
        assert (broken.status, len(broken)) == ("stopped", n + 1)
    found = run("auto", f, checkpoint=Checkpoint(tmp_path / "run.journal", resume=True), **options)
    assert found.parameters["path"] == whole.parameters["path"]
    assert np.array_equal(found.theta, whole.theta)
    assert all(np.array_equal(found[name], whole[name], equal_nan=True) for name in whole.columns if name != "seconds")


@pytest.mark.usefixtures("impatient")
def test_a_new_run_does_not_take_up_the_methods_of_an_old_one(tmp_path: Path) -> None:
    f = logistic()
    run("auto", quadratic(), rounds=6, checkpoint=Checkpoint(tmp_path / "run.journal"), tol=1e-12)
    again = run("auto", f, rounds=6, tol=1e-12, checkpoint=Checkpoint(tmp_path / "run.journal"))
    assert np.array_equal(again.theta, run("auto", f, rounds=6, tol=1e-12).theta)


@pytest.mark.usefixtures("impatient")
def test_clients_elsewhere() -> None:
    f = logistic()
    here, there = (run("auto", f, rounds=6, tol=1e-12, engine=engine) for engine in (None, "blocks=2"))
    assert here.parameters["path"] == there.parameters["path"]
    np.testing.assert_allclose(there.theta, here.theta, rtol=1e-9)


def trace_of(energies: list[float], theta: float, **parameters: Any) -> Trace:
    """A trace as a run returns it."""
    columns = {name: np.zeros(len(energies)) for name in ("round", *auto.SPENT)}
    columns["round"] = np.arange(len(energies), dtype=float)
    status = parameters.pop("status", "stopped")
    columns |= {"energy": np.array(energies), "certificate": np.ones(len(energies))}
    return Trace(columns=columns, status=status, theta=np.array([theta]), parameters=parameters)


def test_which_model_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first method rises, so that the second has its start, too; that diverges, and its best model goes on."""
    f, starts = quadratic(), []
    way = auto.methods_of(auto.recommend(f), f, None, None)
    monkeypatch.setattr(auto, "methods_of", lambda *of: [way[0], way[0], way[-1]])
    answers = iter(
        [
            trace_of([5.0, 6.0], 1.0, left="E was never below 5"),
            trace_of([5.0, 1e9], 2.0, status="diverged"),
            trace_of([4.0, 1.0], 3.0, status="converged"),
        ]
    )

    def answer(algorithm: Any, objective: Any, *, theta0: Any, **options: Any) -> Trace:
        starts.append(theta0)
        return next(answers)

    options: dict[str, Any] = dict.fromkeys(
        ("participation", "compressor", "prepare", "checkpoint", "callback", "stop")
    )
    method, trace = auto.run_auto(answer, Auto(), f, rounds=9, theta0=None, scales=None, **options)
    assert [None if theta is None else theta.tolist() for theta in starts] == [None, None, [2.0]]
    assert method is way[-1].algorithm
    reasons = [part.get("left_because") for part in trace.parameters["path"]]
    assert reasons == ["E was never below 5", "it diverged", None]
    assert (trace.status, trace["energy"].tolist()) == ("converged", [5.0, 6.0, 1e9, 1.0])


def test_nothing_rises_on_columns_of_other_magnitudes() -> None:
    """On one of the problems where AndersonDANE exploded; L-BFGS converges, whichever method comes first."""
    trace = run("auto", magnitudes(seed=2), rounds=30)
    assert max(trace["energy"]) <= trace["energy"][0]


def test_what_is_refused() -> None:
    f = quadratic()
    refused: list[tuple[dict[str, Any], str]] = [
        ({"prepare": "one-shot"}, "prepare must not be given with algorithm auto"),
        ({"scales": "suggested"}, "scales must not be given with algorithm auto"),
        ({"watch": lambda rows: None}, "watch must not be given with algorithm auto"),
    ]
    for options, sentence in refused:
        with pytest.raises(ValueError, match=f"^{sentence}"):
            run("auto", f, rounds=1, **options)
    with pytest.raises(ValueError, match=r"^minimise"):
        run("auto: minimise=time", f)
    with pytest.raises(ValueError, match=r"^algorithm auto takes minimise alone"):
        run("auto: rho=1", f)


def test_where_rates_are_not_linear_any_fall_is_enough() -> None:
    falls = rows([2.0, 1.0, 1.0, 1.0, 1.0], [8.0, 7.9, 7.8, 7.7, 7.6])
    assert leaves(falls, rounds=4, fall=1.0) is None
    still = rows([2.0, 1.0, 1.0, 1.0, 1.0, 1.0], [8.0, 6.0, 6.5, 7.0, 7.0, 7.0])
    assert leaves(still, rounds=3, fall=1.01) == "the certified gap fell by a factor of 1 in 3 rounds"


def test_losses_with_kinks() -> None:
    assert run("auto", hinge(), rounds=3).parameters["path"][0]["algorithm"] == "optimized-dualfl"
