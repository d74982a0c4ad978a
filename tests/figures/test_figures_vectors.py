"""The figure of vectors: its problems, what is counted, and what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dualopt.methods
from dualopt.problem.options import build_problem
from dualopt.runs.trace import Trace
from dualopt.spec.discover import discover
from figures import vectors
from figures._settings import Settings
from figures.vectors import ENTRIES, METHODS, PREPARED, QUICK, TARGETS, first, problems


def test_problems_are_six_with_the_users_data_and_four_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(problems(Settings())) == 4
    assert {options.data for options in problems(Settings(data_home=tmp_path)).values()} == {"digits", "mnist", "a9a"}
    assert len(problems(Settings(data_home=tmp_path))) == 6
    assert list(problems(Settings(quick=True))) == ["digits, by label", "digits, at random"]


def test_what_is_sent_and_done_is_counted(small: Settings) -> None:
    traces = vectors.compute(small)
    assert len(traces) == 2 * len(QUICK)
    for problem, options in problems(small).items():
        f = build_problem(options).objective
        size = f.zeros().size
        for name, scalars in (("distributed-lbfgs", 1), ("anderson-fedsplit", 11), ("dualfl", 0)):
            trace = traces[f"{problem}: {name}"]
            rounds = np.arange(1, len(trace) + 1)
            np.testing.assert_allclose(trace["vectors"], rounds * (1.0 + scalars / size), rtol=1e-12)
            if name == "distributed-lbfgs":
                np.testing.assert_allclose(trace["gradients"], rounds, rtol=1e-12)
        one_shot, p = traces[f"{problem}: distributed-lbfgs, from one-shot"], size  # one output: a model is p numbers
        np.testing.assert_allclose(one_shot["vectors"], 1.0 + np.arange(len(one_shot)) * (1.0 + 1.0 / p), rtol=1e-12)
        assert one_shot["gradients"][0] > 1.0
        sketched = traces[f"{problem}: anderson-fedsplit, in the sketch"]
        rank = min(5, p)
        sent = (rank * p + 1) / p + np.arange(len(sketched)) * (1.0 + 11 / p)
        np.testing.assert_allclose(sketched["vectors"], sent, rtol=1e-12)
        assert sketched["gradients"][0] == rank
    lbfgs = traces[f"{problem}: distributed-lbfgs"]
    assert lbfgs["error"][-1] <= TARGETS[-1] < lbfgs["error"][-2]


def test_the_table_says_when_targets_were_reached() -> None:
    def trace(*errors: float) -> Trace:
        n = np.arange(1.0, len(errors) + 1)
        return Trace(columns={"vectors": 1.1 * n, "gradients": 7 * n, "error": errors}, status="max_rounds", theta=None)

    traces = {"p: dualfl": trace(1e-3, 1e-4, 1e-10), "p: fedsplit": trace(1e-2, 1e-5)}
    assert first(traces["p: dualfl"], 1e-4) == (2.2, 14.0)
    told = [(row["method"], row["what"], row["p"]) for row in vectors.tabulate(traces)]
    assert told == [
        ("DualFL", "vectors", "2 / 3"),
        ("FedSplit", "vectors", "2 / -"),
        ("DualFL", "local gradients", "14 / 21"),
        ("FedSplit", "local gradients", "14 / -"),
    ]
    (axes, empty) = vectors.draw(traces | {"q: dualfl": trace(1.0), "q: fedsplit": trace(1.0)}, Settings()).axes
    assert axes.get_title() == "p"
    assert {text.get_text() for text in empty.texts} == {"neither within the limits"}
    assert {text.get_text() for text in axes.texts} == {"2 / 3", "2 / -"}


def test_every_exact_method_is_in_it() -> None:
    """But those that are FedPD when everybody takes part, forms of DualFL, and those that change another one's box."""
    known = discover(dualopt.methods)
    assert set(METHODS) <= set(known)
    f = build_problem(next(iter(problems(Settings(quick=True)).values()))).objective
    exact = {name for name, kind in known.items() if kind().suggested(f).fixed_point(f, f.zeros()) is not None}
    family = {"feddyn", "feddr", "fedadmm", "a-fedpd", "lazy-a-fedpd", "sampled-dualfl", "dual-ascent"}
    variants = {name for name in exact if set(known[name].__mro__[1:]) & set(known.values())} - set(METHODS)
    assert exact - family - variants - {"acc-s-dane", "growing-feddyn"} == set(METHODS)


def test_methods_after_a_preparation_say_so() -> None:
    assert {name.split(", ")[0] for name in PREPARED} <= set(METHODS)
    assert set(ENTRIES) == set(METHODS) | set(PREPARED)
    titles = [entry.title for entry in ENTRIES.values()]
    assert len(set(titles)) == len(titles)
    assert all(entry.prepare is not None for entry in PREPARED.values())
    words = {"in the sketch", "in own sketches", "from one-shot", "in the sketch from one-shot"}
    assert {name.split(", ")[1] for name in PREPARED} == words
