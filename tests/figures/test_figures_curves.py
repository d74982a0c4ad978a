"""The curves: how far adaptive local solves take them from exact ones, and how they are drawn."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from dualopt.methods import DualFL
from dualopt.objectives import Quadratic
from dualopt.runs.trace import Trace
from dualopt.solvers.stopping import GradientReduction
from figures import fig1b_clients, fig1c_rho
from figures._curves import Curve, data_problem, deviation, exactly, trace_curves
from figures._drawing import draw_errors, in_range
from figures._output import table
from figures._settings import Settings


def run_one(settings: Settings, rho: float = 3e-3) -> Trace:
    method = DualFL(rho=rho, nu=settings.mu, stop=settings.stop)
    curve = Curve(problem=data_problem(settings, 8), algorithm=method, rounds=settings.rounds)
    return trace_curves({"curve": curve}, settings)["curve"]


def test_adaptive_local_solves_stay_within_ten_percent_of_exact_ones_and_loose_ones_do_not(tmp_path):
    settings = Settings(out=tmp_path, rounds=40)
    exact = run_one(exactly(settings))
    adaptive = run_one(settings)
    loose = run_one(replace(settings, stop=GradientReduction(factor=0.9, first=0.9)))
    assert exact["error"].min() > 1e-10  # so that all rounds are compared
    assert 0 < deviation(adaptive, exact) <= 0.1
    assert deviation(loose, exact) > 0.1
    assert adaptive.last["gradients"] < 0.2 * exact.last["gradients"]
    assert adaptive.last["error"] <= adaptive.last["certified_error"]


def test_the_energy_does_not_depend_on_the_partition(tmp_path):
    settings = Settings(out=tmp_path)
    theta = np.random.default_rng(0).normal(size=settings.whole.objective.shape)
    f = settings.whole.objective
    whole = float(f.mean(f.value(theta)))
    for clients in (8, 64):  # 1797 rows: the clients are of unequal sizes
        g = settings.problem(clients)
        np.testing.assert_allclose(float(g.mean(g.value(theta))), whole, rtol=1e-13)


def test_shuffled_data_keep_their_order_and_the_tuned_rho_is_that_of_table_2():
    known = [Settings(data=name) for name in ("mnist", "cifar10", "digits")]
    assert [settings.partition for settings in known] == ["consecutive", "consecutive", "iid"]
    assert [settings.tuned_rho for settings in known] == [3e-3, 0.0, 3e-3]


def names_of(figure: Figure) -> list[str]:
    return [str(line.get_label()) for line in figure.axes[0].lines]


def made_up(rho: float, errors: list[float], largest: float = 5.0) -> Trace:
    names = ("round", "error", "gradients", "seconds", "certified_error")
    columns = dict.fromkeys(names, errors) | {"round": range(len(errors))}
    f = Quadratic(A=np.reshape([1.0, largest], (2, 1, 1)), b=np.ones((2, 1)))
    said = DualFL(rho=rho, nu=1e-2).guarantee(f)
    parameters = {"hyperparameters": {"dualfl": {"rho": rho, "nu": 1e-2}}, "guarantee": said}
    return Trace(columns=columns, status="max_rounds", theta=None, parameters=parameters)


def test_the_deviation_counts_missing_rounds_and_ignores_tiny_errors():
    exact = made_up(0.1, [1.0, 0.5, 1e-11])
    assert deviation(made_up(0.1, [1.0, 0.4, 1.0]), exact) == pytest.approx(0.2)
    assert deviation(made_up(0.1, [1.0]), exact) == math.inf
    assert deviation(made_up(0.1, [1.0, math.nan, 1.0]), exact) == math.inf


@pytest.mark.parametrize(("rho", "inside"), [(0.0, False), (1e-3, True), (2e-3, True), (2.1e-3, False)])
def test_rho_outside_the_theorem_is_dashed(rho, inside):
    trace = made_up(rho, [1.0, 1e-3])  # nu / L = 2e-3
    assert in_range(trace) == inside
    figure = draw_errors({"a": trace}, title="", legend={"a": "words"})
    (line,) = figure.axes[0].lines
    assert (line.get_linestyle() == "-") == inside
    assert names_of(figure) == ["words"]


def test_errors_below_the_floor_are_not_drawn_and_all_others_are_in_view():
    traces = {"a": made_up(1e-3, [1.0, 3e-13, 9e-15, 2e-14, -1e-16])}
    (axes,) = draw_errors(traces, title="", legend={"a": "a"}).axes
    drawn = np.asarray(axes.lines[0].get_ydata(), dtype=float)
    np.testing.assert_array_equal(drawn[np.isfinite(drawn)], [1.0, 3e-13, 2e-14])
    bottom, top = axes.get_ylim()
    assert (bottom, top) == (pytest.approx(1e-14), 10.0)
    short = draw_errors({"a": made_up(1e-3, [1.0, 3e-5])}, title="", legend={"a": "a"}).axes[0]
    assert short.get_ylim()[0] == pytest.approx(1e-5)  # no empty half below a short run


def test_names_and_title_say_which_theorem_covers_a_curve():
    traces = {"rho = 0": made_up(0.0, [1.0]), "rho = 1/kappa": made_up(2e-3, [1.0])}
    names = names_of(fig1c_rho.draw(traces, Settings()))
    assert [name.partition("(")[2] for name in names] == ["Theorem 3.2)", "Theorem 3.3)"]
    for largest, word in ((5.0, "(outside"), (3.0, "(in")):
        figure = fig1b_clients.draw({"N = 8": made_up(3e-3, [1.0], largest)}, Settings())
        assert word in figure.get_suptitle()


def test_the_table_counts_rounds_to_given_errors():
    (row,) = table({"a": made_up(0.1, [1.0, 2e-3, 1e-3, 1e-7])}, {"a": 0.012})
    assert row["rounds"] == "3"
    assert [row[name] for name in ("at 1", "at 10", "last")] == ["2.0e-03", "-", "1.0e-07"]
    assert [row[name] for name in ("<=1e-3", "<=1e-6", "<=1e-10")] == ["2", "3", "-"]
    assert row["off"] == "1.2%"
