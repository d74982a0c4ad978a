"""The figure of the lower bounds: what is stored, what is drawn, and what is said about it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from dualopt.runs.plotting import style
from dualopt.runs.trace import Trace
from figures import lower_bounds
from figures._settings import Settings

KINDS = ("error", "rounds", "nonsmooth")


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> Settings:
    return Settings(out=tmp_path_factory.mktemp("figures"), quick=True)


@pytest.fixture(scope="module")
def traces(quick: Settings) -> dict[str, Trace]:
    return lower_bounds.compute(quick)


@pytest.fixture(scope="module")
def figure(quick: Settings, traces: dict[str, Trace]) -> Figure:
    return lower_bounds.draw(traces, quick)


def test_what_is_measured_lies_between_the_bounds(traces) -> None:
    assert [label.partition(":")[0] for label in traces] == ["error", "rounds"] * 3 + ["nonsmooth"] * 2
    for label, trace in traces.items():
        slack = 1.0 + 1e-12
        assert (trace["least"] <= slack * trace["measured"]).all(), label
        if "fedsplit" in label:
            assert np.isnan(trace["theorem"]).all()
            np.testing.assert_allclose(trace["measured"], trace["least"], rtol=1e-9)
        else:
            assert (trace["measured"] <= slack * trace["theorem"]).all(), label
            assert (trace["measured"] > 1.05 * trace["least"]).any(), label


def test_errors_are_relative_and_start_at_round_one(traces) -> None:
    error = traces["error: dualfl"]
    assert error["at"].tolist() == list(range(1, 61))
    assert error["least"][0] == pytest.approx((9 / 11) ** 2, rel=1e-12)
    squares = np.arange(1.0, 601.0) ** -3.0
    assert traces["nonsmooth: dualfl"]["least"][9] == pytest.approx(squares[10:].sum() / squares.sum(), rel=1e-12)


def test_the_table_has_both_factors(traces) -> None:
    rows = {(row["method"], row["kappa"]): row for row in lower_bounds.tabulate(traces)}
    assert len(rows) == 6
    row = rows["DualFL", "100"]
    assert [row[name] for name in ("least", "rounds", "theorem")] == ["46", "92", "220"]
    assert [row[name] for name in ("rounds/least", "theorem/rounds")] == ["2.00", "2.39"]
    assert rows["FedSplit", "10"]["theorem/rounds"] == "-"


def test_every_panel_shows_methods_in_their_style_theorems_dashed_and_the_edge(figure, traces) -> None:
    for axes, kind in zip(figure.axes, KINDS, strict=True):
        lines = {str(line.get_label()): line for line in axes.lines}
        for name, words in lower_bounds.LEGEND.items():
            if f"{kind}: {name}" not in traces:
                assert words not in lines
                continue
            trace, line = traces[f"{kind}: {name}"], lines[words]
            assert (line.get_color(), line.get_marker()) == style(name)
            np.testing.assert_array_equal(line.get_ydata()[:5], trace["measured"][:5])
            if name != "fedsplit":
                promised = lines[f"{words}: theorem"]
                assert promised.is_dashed()
                np.testing.assert_array_equal(promised.get_ydata(), trace["theorem"])
        edge = lines["no method is below"]
        np.testing.assert_array_equal(edge.get_ydata()[:5], traces[f"{kind}: dualfl"]["least"][:5])
        assert len(axes.collections) == 1  # what is impossible


def test_the_caption_says_what_was_found(traces) -> None:
    found = lower_bounds.caption(traces, Settings())
    assert found.startswith("Rounds of DualFL: 1.7 to 2.0 times the least of any method, which FedSplit attains; ")
    assert found.endswith("those of its theorem: 2.2 to 2.4 times those of DualFL.")
    slower = traces["rounds: fedsplit"]
    slower = replace(slower, columns={**slower.columns, "measured": slower["measured"] + 1})
    assert "FedSplit" not in lower_bounds.caption(traces | {"rounds: fedsplit": slower}, Settings())
