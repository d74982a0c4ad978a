"""An excerpt of ``python -m tests.fuzz_runs``, and what it finds."""

from __future__ import annotations

from typing import Any

import pytest

import dualopt.engine.checkpoint
import dualopt.runs._recorder
import dualopt.solvers.newton
from dualopt.arrays.tree import tree_map
from tests.fuzz_runs import THRESHOLDS, Case, check, data, draw, failures, main


@pytest.mark.parametrize("first", range(0, 48, 12))
def test_combinations_of_options_run_or_are_refused_in_a_sentence(first: int) -> None:
    assert not [f"{case}: {complaint}" for case, complaint in failures(range(first, first + 12))]


def test_every_option_is_drawn() -> None:
    cases = [draw(seed) for seed in range(400)]
    assert {name for case in cases for name in case.problem | case.options} == {
        *("data", "loss", "clients", "mu", "partition", "intercept", "storage", "client_weights", "regulariser"),
        *("dtype", "precision", "scale", "class_weight", "penalty", "seed", "participation", "compressor", "downlink"),
        *("engine", "scales", "prepare"),
    }
    assert {name for case in cases for name in case.large} == {*THRESHOLDS}
    assert len({case.algorithm.partition(":")[0] for case in cases}) >= 40


def test_references_that_fail_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dualopt.solvers.newton, "epsilon", lambda x: 0.0)  # conjugate gradients grow without bound
    problem = {"data": data("binary"), "loss": "smoothed-hinge", "intercept": "free", "clients": 5, "mu": 0.001}
    problem |= {"partition": "lognormal", "client_weights": "3,1,2,1,5"}
    assert "RuntimeWarning" in check(Case(0, problem, "fedavg", {})).complaint


def test_certificates_below_the_error_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dualopt.runs._recorder.certificate_from

    def half(*given: Any) -> Any:
        bound = right(*given)
        return bound._replace(gap=0.1 * bound.gap)

    monkeypatch.setattr(dualopt.runs._recorder, "certificate_from", half)
    assert "below the error" in next(failures(range(20)))[1]


def test_interruptions_that_change_numbers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dualopt.engine.checkpoint.Checkpoint.begin

    def twice(*given: Any) -> Any:
        kept = right(*given)
        if kept is None:
            return None
        server = tree_map(lambda x: x + x, kept.resume_point.state.server)
        state = kept.resume_point.state._replace(server=server)
        return kept._replace(resume_point=kept.resume_point._replace(state=state))

    monkeypatch.setattr(dualopt.engine.checkpoint.Checkpoint, "begin", twice)
    assert any("after an interruption" in complaint for _, complaint in failures(range(20)))


def test_the_program_ends_with_what_it_has_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cases", "2"]) == 0
    assert "0 failed" in capsys.readouterr().out
