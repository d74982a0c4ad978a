"""The figure of bits: what is counted, and what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualopt.runs.trace import Trace
from figures import compression
from figures._settings import Settings
from figures.compression import CURVES


@pytest.mark.parametrize("small", [70], indirect=True)
def test_bits_and_numbers_are_those_of_a_client(small: Settings) -> None:
    """A model of 71 numbers: one client's share of every round."""
    traces = compression.compute(small)
    assert list(traces) == list(CURVES)
    per_round = {
        "fedsplit none": (71 * 64, 71),
        "fedsplit natural": (71 * 9, 71),
        "fedsplit quantisation": (64 + 71 * 4, 72),
        "fedsplit rand-k": (7 * 64, 7),
        "feddyn 20": (71 * 64, 71),
        "feddyn 5": (71 * 64 / 4, 71 / 4),
        "feddyn 1": (71 * 64 / 20, 71 / 20),
        "distributed-lbfgs": (72 * 64, 72),
        "distributed-lbfgs 6 bits": (64 + 64 + 71 * 6, 73),
        "anderson-fedsplit": (82 * 64, 82),
        "anderson-fedsplit 6 bits": (11 * 64 + 64 + 71 * 6, 83),
    }
    for name, (bits, numbers) in per_round.items():
        n = traces[name]["communications"]
        np.testing.assert_allclose(traces[name]["up"], bits * n, rtol=1e-12)
        np.testing.assert_allclose(traces[name]["numbers"], numbers * n, rtol=1e-12)
    rows = {row["method"]: row for row in compression.tabulate(traces)}
    assert set(rows) == {entry.title for entry in CURVES.values()}
    figure = compression.draw(traces, small)
    assert [axes.get_xlabel() for axes in figure.axes] == ["megabits sent by each client", "rounds"]
    assert all(len(axes.lines) == len(CURVES) for axes in figure.axes)
    for last, bottom in (
        (3e-5, 1e-5),
        (0.0, 1e-10),
    ):  # to the target, and not below what few rounds reach
        cut = {}
        for name, trace in traces.items():
            errors = np.linspace(1.0, last, len(trace))
            cut[name] = replace(trace, columns={**trace.columns, "error": errors})
        for axes in compression.draw(cut, small).axes:
            assert axes.get_ylim()[0] == pytest.approx(bottom)


def test_the_table_says_what_both_errors_took() -> None:
    columns = {"communications": [0, 1, 2], "up": [0, 2e6, 4e6], "numbers": [0, 1500, 3000], "gradients": [0, 3, 6]}
    trace = Trace(columns={**columns, "error": [1.0, 1e-5, 1e-7]}, status="converged", theta=None)
    (row,) = compression.tabulate({"fedsplit natural": trace})
    assert list(row.values()) == ["FedSplit, natural (9 bits)", "1 / -", "2 / -", "1,500 / -", "3 / -"]
