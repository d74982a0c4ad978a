"""Traces are written whole and read back the same."""

from __future__ import annotations

import numpy as np
import pytest

from dualopt.methods import DualFL
from dualopt.runs.recording import run
from dualopt.runs.trace import Trace
from dualopt.solvers import Exact
from tests.problems import quadratic


@pytest.fixture(scope="module")
def trace() -> Trace:
    return run(DualFL(solver=Exact()), quadratic(), rounds=5, parameters={"data": "tests, with a comma"})


def assert_same(a: Trace, b: Trace) -> None:
    assert (a.status, dict(a.parameters), list(a.columns)) == (b.status, dict(b.parameters), list(b.columns))
    for name in a.columns:
        np.testing.assert_array_equal(a[name], b[name])  # every digit, NaN included


def test_csv_round_trip(trace: Trace, tmp_path) -> None:
    trace.to_csv(tmp_path / "trace.csv")
    assert_same(trace, Trace.from_csv(tmp_path / "trace.csv"))


def test_npz_round_trip(trace: Trace, tmp_path) -> None:
    trace.to_npz(tmp_path / "trace.npz")
    back = Trace.from_npz(tmp_path / "trace.npz")
    assert_same(trace, back)
    np.testing.assert_array_equal(back.theta, trace.theta)


def test_first_below() -> None:
    t = Trace(columns={"round": [0, 5, 10], "error": [1.0, 0.1, 0.01]}, status="max_rounds", theta=None)
    assert (t.first_below("error", 0.1), t.first_below("error", 1e-3)) == (5, None)
    assert t.last == {"round": 10.0, "error": 0.01}


def test_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="status"):
        Trace(columns={"round": [0]}, status="fine", theta=None)
    with pytest.raises(ValueError, match="columns"):
        Trace(columns={"round": [0], "energy": [1.0, 2.0]}, status="stalled", theta=None)
