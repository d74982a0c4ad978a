"""Figure 1 (e, f) of the DualFL paper: its curves, the reference L-BFGS, and a part of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from dualopt.runs.trace import Trace
from figures import fig1b_clients, fig1c_rho, fig1ef_dualfl
from figures._drawing import drawable
from figures._settings import Settings
from figures._tuned import Search
from figures.fig1ef_dualfl import BETTER, POOLED

ROWS, ROUNDS = 160, 6


@pytest.fixture(scope="module")
def settings(three_classes: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(data=three_classes, out=tmp_path_factory.mktemp("fig1ef"), rounds=ROUNDS, quick=True)


@pytest.fixture(scope="module")
def traces(settings: Settings) -> dict[str, Trace]:
    return fig1ef_dualfl.compute(settings)


def test_the_curves_are_those_of_the_single_figures_and_the_reference(settings, traces):
    clients, rhos = fig1b_clients.compute(settings), fig1c_rho.compute(settings)
    assert list(traces) == [*clients, *rhos, POOLED, BETTER]
    for label, trace in (clients | rhos).items():
        np.testing.assert_array_equal(traces[label]["error"], trace["error"])
        assert trace.last["round"] == ROUNDS


@pytest.mark.parametrize("label", [POOLED, BETTER])
def test_the_references_minimise_over_all_rows_and_go_on_from_step_to_step(settings, traces, label):
    f, trace = settings.problem(1), traces[label]

    def energy(point: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = f.value_and_gradient(point.reshape(f.shape))
        return float(value[0]), gradient[0].ravel()

    found = minimize(energy, np.zeros(f.zeros().size), jac=True, method="L-BFGS-B", options={"ftol": 1e-15})
    assert trace["energy"].min() == pytest.approx(found.fun, rel=1e-9)
    # Without curvature pairs each step would be one of gradient descent, which is far away after as many.
    step, theta = 1.0 / float(f.L.max()), f.zeros()
    for _ in range(int(trace.last["gradients"])):
        theta = theta - step * f.gradient(theta)[0]
    assert trace.last["error"] < 1e-3 * (float(f.value(theta)[0]) / found.fun - 1.0)


def test_the_reference_is_drawn_over_its_gradients(settings, traces):
    left, middle, right = fig1ef_dualfl.draw(traces, settings).axes
    shown = {axes: {str(line.get_label()): line for line in axes.lines} for axes in (left, middle, right)}
    assert list(shown[left]) == ["$N = 8$", "$N = 32$", "L-BFGS on all rows"]
    assert [len(lines) for lines in shown.values()] == [3, 4, 4]
    seen = np.isfinite(drawable(traces[POOLED])["error"])  # what is rounding is not drawn
    for lines in shown.values():
        np.testing.assert_array_equal(lines["L-BFGS on all rows"].get_xdata(), traces[POOLED]["gradients"][seen])
    np.testing.assert_array_equal(shown[left]["$N = 32$"].get_xdata(), np.arange(ROUNDS + 1.0))
    tuned = r"$\rho$ = 0.003"
    np.testing.assert_array_equal(shown[right][tuned].get_xdata(), traces["N = 8"]["gradients"])
    assert (left.get_title(), middle.get_title()[:3]) == (r"(b) clients, $\rho$ = 0.003", "(c)")
    assert left.get_xlim()[1] == pytest.approx(1.02 * ROUNDS)


def made_up(errors: list[float], guarantee: str = "Theorem 3.2", **columns: list[float]) -> Trace:
    n = np.arange(float(len(errors)))
    given = {"round": n, "gradients": 3.0 * n, "error": errors, **columns}
    parameters = {"guarantee": guarantee, "hyperparameters": {"dualfl": {"rho": 0.0}}}
    return Trace(columns=given, status="max_rounds", theta=None, parameters=parameters)


def test_the_table_counts_gradients_of_the_reference_and_rounds_of_the_others():
    errors = [1.0, 1e-1, 5e-3, 8e-4]
    first, second = fig1ef_dualfl.tabulate({"N = 8": made_up(errors), POOLED: made_up(errors)})
    assert first == {
        "curve": "N = 8",
        **{"at 1": "1.0e-01", "at 3": "8.0e-04", "at 10": "-", "at 30": "-", "at 100": "-"},
        **{"<=1e-3": "3", "<=1e-4": "-", "<=1e-5": "-", "<=1e-6": "-"},
        **{"gradients": "9", "last": "8.0e-04"},
    }
    assert (second["at 1"], second["at 3"], second["<=1e-3"]) == ("1.0e+00", "1.0e-01", "9")


def test_lines_without_a_theorem_are_dashed(settings, traces):
    unproved = replace(traces["N = 8"], parameters={**traces["N = 8"].parameters, "guarantee": "none: too long"})
    proved = replace(unproved, parameters={**unproved.parameters, "guarantee": "Theorem 3.2: O(1/n^2)"})
    left, *_ = fig1ef_dualfl.draw(traces | {"N = 8": unproved, "N = 32": proved}, settings).axes
    styles = {str(line.get_label()): line.get_linestyle() for line in left.lines}
    assert styles == {"$N = 8$": "--", "$N = 32$": "-", "L-BFGS on all rows": "-"}


def test_a_number_of_rows_is_drawn_from_all_and_described(settings):
    whole, part = settings, replace(settings, rows=50)
    assert (whole.problem(1).sizes, part.problem(1).sizes, sum(part.problem(8).sizes)) == ((ROWS,), (50,), 50)
    assert whole.described(8)["rows"] != part.described(8)["rows"]  # stored apart from each other
    everything = {row.tobytes() for row in next(whole.problem(1).client_rows())[0]}
    assert {row.tobytes() for row in next(part.problem(1).client_rows())[0]} < everything
    assert sum(Search(part).problem.sizes) == 50  # a search looks at no other rows
    assert sum(Search(replace(part, part=20)).problem.sizes) == 20
