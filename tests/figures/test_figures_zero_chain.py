"""The figure of the zero chain: its numbers, its words, and what it draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dualopt.runs.trace import Trace
from figures import zero_chain
from figures._settings import Settings


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    return zero_chain.compute(Settings(quick=True))


def test_one_entry_per_communication_but_for_the_cheat(traces: dict[str, Trace]) -> None:
    assert set(traces) == set(zero_chain.LOOKS)
    for name, trace in traces.items():
        n = trace["communications"]
        assert n.tolist() == list(range(17))
        one_each = np.minimum(n, 8)
        honest = name != zero_chain.CHEAT
        assert np.all(trace["entries"] <= one_each) == honest, name
        assert np.all(trace["squared_gradient"][:8] >= 1.0 - 1e-12) == honest, name
        assert trace["squared_gradient"][0] == pytest.approx(1.0)
    assert np.array_equal(traces["FedPD"]["entries"], np.minimum(np.arange(17), 8))


def test_the_words_are_those_of_the_traces(traces: dict[str, Trace]) -> None:
    rows = {row["method"]: row for row in zero_chain.tabulate(traces)}
    assert rows["FedAvg, long steps"]["|grad E|^2 < eps"] == rows["SCAFFOLD"]["all entries"] == "8"
    assert (rows[zero_chain.CHEAT]["entries after 1"], rows[zero_chain.CHEAT]["all entries"]) == ("8", "1")
    made_up = {
        name: Trace(
            columns={"communications": range(4), "entries": range(4), "squared_gradient": values},
            status="max_rounds",
            theta=None,
            parameters={"entries": 2},
        )
        for name, values in {
            "FedAvg": [1.0, 2.0, 1.0, 0.5],
            "FedPD": [1.0, 2.0, 0.9, 0.5],
            zero_chain.CHEAT: [1.0, 0.5, 0.4, 0.3],
        }.items()
    }
    words = zero_chain.caption(made_up, Settings())
    assert words.startswith("The bound is 2 communications")
    assert words.endswith("the fastest method needs 2 and the one that cheats 1.")
    never = {name: made_up[name] for name in ("FedAvg", zero_chain.CHEAT)}
    never = {
        name: Trace(**(vars(t) | {"columns": t.columns | {"squared_gradient": [1.0] * 4}})) for name, t in never.items()
    }
    assert zero_chain.caption(never, Settings()).endswith("< eps.")


def test_the_picture_shows_every_method_twice(traces: dict[str, Trace], tmp_path: Path) -> None:
    figure = zero_chain.draw(traces, Settings(out=tmp_path, quick=True))
    for axes, column in zip(figure.axes, ("entries", "squared_gradient"), strict=True):
        for line, (name, trace) in zip(axes.lines, traces.items(), strict=True):
            assert (line.get_color(), line.get_marker()) == zero_chain.LOOKS[name]
            np.testing.assert_array_equal(line.get_ydata(), trace[column])
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "log"]
    assert len(figure.legends[0].get_texts()) == len(traces)
