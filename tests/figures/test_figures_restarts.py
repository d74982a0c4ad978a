"""The figure of restarts: its problems, what is counted, and what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dualopt import run
from dualopt.methods import DualFL
from dualopt.problem.options import build_problem
from dualopt.runs.trace import Trace
from figures import restarts
from figures._settings import Settings


def test_a9a_is_shown_to_those_who_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "a9a" not in restarts.problems(Settings())
    assert "a9a" in restarts.problems(Settings(data_home=tmp_path))
    assert list(restarts.problems(Settings(quick=True))) == ["digits", "breast cancer"]


def test_runs_end_at_the_target_and_the_best_rho_is_the_best(small: Settings) -> None:
    traces = restarts.compute(small := replace(small, quick=False))
    ((title, problem),) = restarts.problems(small).items()
    f = build_problem(problem.options).objective
    for label, trace in traces.items():
        assert trace["certificate"][-1] <= problem.tol < trace["certificate"][-2], label
    plain = run(DualFL(), f, rounds=600, tol=problem.tol)
    assert traces[f"{title}: DualFL, suggested"]["rounds"][-1] == len(plain) - 1
    limit = f.mu.min() / f.L.max()
    needed = {
        m: len(run(DualFL(rho=m * limit), f, rounds=600, tol=problem.tol)) - 1
        for m in restarts.MULTIPLES
        if m * limit < 1
    }
    best = traces[f"{title}: DualFL, best rho"]
    assert best["rounds"][-1] == min(needed.values()) == needed[best["multiple"][-1]]
    scalars = traces[f"{title}: DualFL, gap restart"]
    np.testing.assert_allclose(scalars["vectors"], scalars["rounds"] * (1.0 + 2.0 / f.zeros().size), rtol=1e-12)
    assert len(restarts.draw(traces, small).axes) == 1


def test_the_table_says_what_was_needed() -> None:
    def trace(*certificate: float, **more: float) -> Trace:
        n = np.arange(float(len(certificate)))
        columns = {"rounds": n, "gradients": 7 * n, "certificate": certificate, "target": 0 * n + 1e-8}
        return Trace(columns=columns | {k: 0 * n + x for k, x in more.items()}, status="converged", theta=None)

    traces = {
        "p: DualFL, suggested": trace(1.0, 1e-7, 1e-9),
        "p: DualFL, rho = 0": trace(1.0, 1e-7),
        "q: DualFL, suggested": trace(1.0, 1e-8, multiple=3.0),
    }
    assert restarts.tabulate(traces) == [
        {"method": "DualFL, suggested", "p": "2; 14", "q": "1; 7 (rho = 3 nu/L)"},
        {"method": "DualFL, rho = 0", "p": "> 1", "q": ""},
    ]
