"""Figures beyond the papers: vectors, bits, restarts, scales and lower bounds; what is counted, and what they say."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import dualopt.methods
from dualopt import run
from dualopt.methods import DualFL, FedDyn, FedSplit
from dualopt.problem.build import build_problem
from dualopt.runs.plotting import style, styles
from dualopt.runs.trace import Trace
from dualopt.spec.discover import discover
from figures import compression, lower_bounds, restarts, scales, vectors, zero_chain
from figures._settings import Settings
from figures.compression import CURVES
from figures.vectors import ENTRIES, METHODS, PREPARED, QUICK, TARGETS, first, problems

# Vectors.


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
    marked = [line for line in axes.lines if line.get_marker() != "None"]
    marks = [(float(np.asarray(line.get_xdata())[0]), line.get_markerfacecolor()) for line in marked]
    at = [spent[0] for t in traces.values() for target in vectors.TARGETS if (spent := vectors.first(t, target))]
    assert marks == list(zip(at, ("white", style("dualfl").color, "white"), strict=True))
    assert not [line for line in empty.lines if line.get_marker() != "None"]  # neither within the limits


def test_every_exact_method_is_in_it() -> None:
    """But those that are FedPD when everybody takes part, forms of DualFL, and those that change another one's box."""
    known = discover(dualopt.methods)
    assert set(METHODS) <= set(known)
    f = build_problem(next(iter(problems(Settings(quick=True)).values()))).objective
    exact = {name for name, kind in known.items() if kind().suggested(f).fixed_point(f, f.zeros()) is not None}
    family = {"feddyn", "feddr", "fedadmm", "a-fedpd", "sampled-dualfl", "dual-ascent"}
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


# Restarts.


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
    scalars = traces[f"{title}: DualFL, adaptive"]
    np.testing.assert_allclose(scalars["vectors"], scalars["rounds"] * (1.0 + 7.0 / f.zeros().size), rtol=1e-12)
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


# Bits.


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
        "anderson-fedsplit 6 bits": (11 * 32 + 64 + 71 * 6, 83),
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
    for last, bottom in ((3e-5, 1e-5), (0.0, 1e-10)):  # to the target, and not below what few rounds reach
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


# Scales.


NAMES = ("fedsplit", "feddyn")


@pytest.fixture(scope="module")
def scale_settings(tmp_path_factory) -> Settings:
    return Settings(data="breast_cancer", out=tmp_path_factory.mktemp("figures"), quick=True)


@pytest.fixture(scope="module")
def of_scales(scale_settings: Settings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scales, "SPREADS", {True: (1.0, 100.0)})
        patch.setattr(scales, "ACTIVE", (5,))
        patch.setattr(scales, "METHODS", {name: scales.METHODS[name] for name in NAMES})
        yield scales.compute(scale_settings)


def test_scales_of_their_own_take_fewer_rounds_and_equal_ones_change_nothing(of_scales) -> None:
    assert len(of_scales) == 8
    for kind in ("quadratics", "data"):
        for name in NAMES:
            one, own = (of_scales[f"{kind}, 5 of 20: {name}, {form}"]["rounds"] for form in scales.FORMS.values())
            assert own[1] < 0.75 * one[1]
    one, own = (of_scales[f"quadratics, 5 of 20: fedsplit, {form}"]["rounds"] for form in scales.FORMS.values())
    assert own[0] == one[0]


def test_the_problems_have_the_spread() -> None:
    f = scales.quadratics(100.0).objective
    np.testing.assert_allclose(f.L / f.mu, scales.KAPPA, rtol=1e-9)
    assert np.max(f.L) / np.min(f.L) == pytest.approx(100.0, rel=1e-9)
    assert scales.quadratics(100.0).error(f.zeros()) == 1.0


def test_features_are_scaled(scale_settings: Settings) -> None:
    plain, scaled = (scales.scaled_rows(scale_settings, spread).objective for spread in (1.0, 100.0))
    ratios = np.sort((scaled.L - scale_settings.mu) / (plain.L - scale_settings.mu))
    np.testing.assert_allclose(ratios, np.geomspace(0.01, 1.0, scales.N), rtol=1e-6)
    np.testing.assert_allclose(scaled.mu, scale_settings.mu)


def test_runs_that_are_too_long_have_a_dash(of_scales, scale_settings: Settings) -> None:
    assert math.isnan(scales.rounds(scales.quadratics(1.0), FedSplit(), "none", 2, 3, 0))
    assert math.isnan(scales.rounds(scales.scaled_rows(scale_settings, 1.0), FedDyn(), "suggested", 2, 3, 0))
    rows = scales.tabulate(of_scales)
    assert [row["method"] for row in rows] == ["FedSplit", "FedSplit", "FedDyn", "FedDyn"] * 2
    label = "data, 5 of 20: feddyn, one scale"
    long = replace(of_scales[label], columns={**of_scales[label].columns, "rounds": np.array([math.nan, 7.0])})
    assert [row["one scale"] for row in scales.tabulate(of_scales | {label: long})[6:]] == ["-", "7"]


def test_the_figure_has_both_forms(of_scales, scale_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scales, "ACTIVE", (5,))
    monkeypatch.setattr(scales, "LEGEND", {name: scales.LEGEND[name] for name in NAMES})
    figure = scales.draw(of_scales, scale_settings)
    panels = figure.get_axes()
    assert [len(panel.get_lines()) for panel in panels] == [4, 4]
    assert [line.get_linestyle() for line in panels[0].get_lines()] == ["--", "-"] * 2
    assert panels[0].get_title() == "quadratics, $\\kappa_j$ = 100, to $10^{-10}$\n5 of 20 active"


# Lower bounds.


KINDS = ("error", "rounds", "nonsmooth")


@pytest.fixture(scope="module")
def bound_settings(tmp_path_factory) -> Settings:
    return Settings(out=tmp_path_factory.mktemp("figures"), quick=True)


@pytest.fixture(scope="module")
def of_bounds(bound_settings: Settings) -> dict[str, Trace]:
    return lower_bounds.compute(bound_settings)


@pytest.fixture(scope="module")
def picture(bound_settings: Settings, of_bounds: dict[str, Trace]) -> Figure:
    return lower_bounds.draw(of_bounds, bound_settings)


def test_what_is_measured_lies_between_the_bounds(of_bounds) -> None:
    assert [label.partition(":")[0] for label in of_bounds] == ["error", "rounds"] * 3 + ["nonsmooth"] * 2
    for label, trace in of_bounds.items():
        slack = 1.0 + 1e-12
        assert (trace["least"] <= slack * trace["measured"]).all(), label
        if "fedsplit" in label:
            assert np.isnan(trace["theorem"]).all()
            np.testing.assert_allclose(trace["measured"], trace["least"], rtol=1e-9)
        else:
            assert (trace["measured"] <= slack * trace["theorem"]).all(), label
            assert (trace["measured"] > 1.05 * trace["least"]).any(), label


def test_errors_are_relative_and_start_at_round_one(of_bounds) -> None:
    error = of_bounds["error: dualfl"]
    assert error["at"].tolist() == list(range(1, 61))
    assert error["least"][0] == pytest.approx((9 / 11) ** 2, rel=1e-12)
    squares = np.arange(1.0, 601.0) ** -3.0
    assert of_bounds["nonsmooth: dualfl"]["least"][9] == pytest.approx(squares[10:].sum() / squares.sum(), rel=1e-12)


def test_the_table_has_both_factors(of_bounds) -> None:
    rows = {(row["method"], row["kappa"]): row for row in lower_bounds.tabulate(of_bounds)}
    assert len(rows) == 6
    row = rows["DualFL", "100"]
    assert [row[name] for name in ("least", "rounds", "theorem")] == ["46", "92", "220"]
    assert [row[name] for name in ("rounds/least", "theorem/rounds")] == ["2.00", "2.39"]
    assert rows["FedSplit", "10"]["theorem/rounds"] == "-"


def test_every_panel_shows_methods_in_their_style_theorems_dashed_and_the_edge(picture, of_bounds) -> None:
    for axes, kind in zip(picture.axes, KINDS, strict=True):
        lines = {str(line.get_label()): line for line in axes.lines}
        for name, words in lower_bounds.LEGEND.items():
            if f"{kind}: {name}" not in of_bounds:
                assert words not in lines
                continue
            trace, line = of_bounds[f"{kind}: {name}"], lines[words]
            assert (line.get_color(), line.get_marker()) == style(name)[:2]
            np.testing.assert_array_equal(line.get_ydata()[:5], trace["measured"][:5])
            if name != "fedsplit":
                promised = lines[f"{words}: theorem"]
                assert promised.is_dashed()
                np.testing.assert_array_equal(promised.get_ydata(), trace["theorem"])
        edge = lines["no method is below"]
        np.testing.assert_array_equal(edge.get_ydata()[:5], of_bounds[f"{kind}: dualfl"]["least"][:5])
        assert len(axes.collections) == 1  # what is impossible


def test_the_caption_says_what_was_found(of_bounds) -> None:
    found = lower_bounds.caption(of_bounds, Settings())
    assert found.startswith("Rounds of DualFL: 1.7 to 2.0 times the least of any method, which FedSplit attains; ")
    assert found.endswith("those of its theorem: 2.2 to 2.4 times those of DualFL.")
    slower = of_bounds["rounds: fedsplit"]
    slower = replace(slower, columns={**slower.columns, "measured": slower["measured"] + 1})
    assert "FedSplit" not in lower_bounds.caption(of_bounds | {"rounds: fedsplit": slower}, Settings())


# The zero chain.


@pytest.fixture(scope="module")
def of_chain() -> dict[str, Trace]:
    return zero_chain.compute(Settings(quick=True))


def test_one_entry_per_communication_but_for_the_cheat(of_chain: dict[str, Trace]) -> None:
    assert set(of_chain) == set(zero_chain.LABELS)
    for name, trace in of_chain.items():
        n = trace["communications"]
        assert n.tolist() == list(range(17))
        one_each = np.minimum(n, 8)
        honest = name != zero_chain.CHEAT
        assert np.all(trace["entries"] <= one_each) == honest, name
        assert np.all(trace["squared_gradient"][:8] >= 1.0 - 1e-12) == honest, name
        assert trace["squared_gradient"][0] == pytest.approx(1.0)
    assert np.array_equal(of_chain["FedPD"]["entries"], np.minimum(np.arange(17), 8))


def test_the_words_are_those_of_the_traces(of_chain: dict[str, Trace]) -> None:
    rows = {row["method"]: row for row in zero_chain.tabulate(of_chain)}
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


def test_the_picture_shows_every_method_twice(of_chain: dict[str, Trace], tmp_path: Path) -> None:
    figure = zero_chain.draw(of_chain, Settings(out=tmp_path, quick=True))
    looks = styles(zero_chain.LABELS, zero_chain.METHODS)
    for axes, column in zip(figure.axes, ("entries", "squared_gradient"), strict=True):
        for line, (name, trace) in zip(axes.lines, of_chain.items(), strict=True):
            assert (line.get_color(), line.get_marker()) == looks[name][:2]
            np.testing.assert_array_equal(line.get_ydata(), trace[column])
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "log"]
    assert len({str(line.get_label()) for line in figure.axes[1].lines}) == len(of_chain)
