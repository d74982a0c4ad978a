"""Figure 1 (a) of the DualFL paper: how methods are tuned, what is stored, and what is drawn and tabulated."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.methods import DualFL, FedDyn, FedPD, Scaffnew
from dualopt.methods.participation import CommunicateWithProbability
from dualopt.objectives import Quadratic
from dualopt.runs import plotting, recording
from dualopt.runs.reference import newton
from dualopt.runs.trace import Trace
from dualopt.runs.tuning import Trial
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import GradientReduction, Steps
from figures import _methods, _tuned, fig1a_floats, fig1a_gradients, fig1a_methods, fig1a_primal, table2_tuning
from figures._cached import CachedObjective
from figures._curves import deviation, exactly
from figures._methods import UNTUNED, method_traces, title
from figures._settings import Settings
from figures._table2 import METHODS, PRIMAL, gradients_needed, grid, paper_values, per_row, to_candidate
from figures._table2_grids import DUALFL_TABLE_2, paper_grid
from figures._tuned import TARGET, Search, best
from tests.problems import quadratic

FEW = {name: METHODS[name] for name in ("fedpd", "scaffnew", "dualfl")}
POINTS = {
    "fedpd": [{"eta": "0.0001"}, {"eta": "2"}, {"eta": "20"}],
    "scaffnew": [
        {"solver": "gradient", "solver.step": s, "probability": "0.5", "participation": "communicate=0.5"}
        for s in ("0.2", "0.02")
    ],
    "dualfl": [{"rho": "0.5"}, {"rho": "0.003"}],
}


ROWS = 160


@pytest.fixture(autouse=True)
def here(three_classes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder with the small data set is the present one."""
    monkeypatch.chdir(Path(three_classes).parent)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three methods with two or three points each, the first or the last of which is poor."""
    for module in (_methods, table2_tuning):
        monkeypatch.setattr(module, "METHODS", FEW)
    monkeypatch.setattr(_methods, "UNTUNED", {"distributed-lbfgs": UNTUNED["distributed-lbfgs"]})
    monkeypatch.setattr(_tuned, "grid", lambda name, rows_per_client: POINTS[name])


def settings(out: Path, **options: Any) -> Settings:
    return Settings(**{"data": "small.npz", "out": out, "rounds": 8, **options})


def outcome(*errors: float, status: str = "max_rounds") -> Trial:
    costs = tuple(float(n) for n in range(1, len(errors) + 1))
    return Trial(status=status, costs=costs, errors=errors, seconds=0.0)


def test_a_poor_value_loses_whatever_the_order(few, tmp_path, monkeypatch):
    found = {name: Search(settings(tmp_path)).tuned(name) for name in FEW}
    assert found["fedpd"].point == {"eta": "20"}
    assert found["scaffnew"].point["solver.step"] == "0.2"
    assert found["dualfl"].point == {"rho": "0.003"}
    monkeypatch.setattr(_tuned, "grid", lambda name, rows_per_client: POINTS[name][::-1])
    again = {name: Search(settings(tmp_path / "reversed")).tuned(name) for name in FEW}
    assert {name: tuned.point for name, tuned in again.items()} == {name: tuned.point for name, tuned in found.items()}


def test_the_winner_is_the_first_to_arrive_then_the_most_accurate():
    arrived = outcome(0.1, 1e-7, status="converged")
    closer = outcome(0.1, 1e-8, status="converged")
    later = outcome(0.1, 0.1, 1e-9, status="converged")
    far, lost = outcome(0.1, 0.1, 0.2), outcome(0.1, float("nan"), status="diverged")
    assert best({0: lost, 1: later, 2: far, 3: arrived, 4: closer}) == 4
    assert best({0: lost, 1: later, 2: far, 3: arrived}) == 3
    assert best({0: lost, 1: far, 2: outcome(0.3, 0.1)}) == 2
    assert best({0: lost, 1: far}) == 1


def test_searches_end_where_the_winner_arrives(few, tmp_path):
    search = Search(settings(tmp_path, rounds=60))
    outcomes, tuned = search.outcomes("dualfl"), search.tuned("dualfl")
    assert tuned.reached is not None
    assert tuned.outcome.error <= TARGET < tuned.outcome.errors[-2]
    assert tuned.outcome.costs == tuple(range(1, tuned.reached + 1))
    assert {o.status for o in outcomes.values()} == {"converged", "dominated"}
    assert Search(settings(tmp_path, rounds=3)).tuned("dualfl").reached is None


def test_every_curve_has_the_same_number_of_communications(few, tmp_path):
    traces = method_traces(settings(tmp_path))
    assert list(traces) == [*FEW, "distributed-lbfgs"]
    assert traces["distributed-lbfgs"]["gradients"].tolist() == list(range(9))
    for trace in traces.values():
        np.testing.assert_array_equal(trace["communications"], np.arange(9.0))
        np.testing.assert_array_equal(trace["floats"], trace["floats_up"] + trace["floats_down"])
    scaffnew = traces["scaffnew"]
    assert scaffnew.last["round"] > 8  # and so it has rounds without communication, which are left out
    np.testing.assert_array_equal(scaffnew["gradients"], scaffnew["round"])
    f = settings(tmp_path).problem(8)
    method = Scaffnew(probability=0.5, solver=Gradient(step=0.2))
    snapshots = islice(iterate(method, f, participation=CommunicateWithProbability(probability=0.5)), 30)
    energies = [float(np.mean(f.value(s.server.theta))) for s in snapshots if s.round.communicate]
    np.testing.assert_allclose(scaffnew["energy"][1:], energies[:8], rtol=1e-13)


def test_an_interrupted_search_resumes(few, tmp_path, monkeypatch):
    genuine = _tuned.tune
    tried: list[int] = []

    def interrupted(candidates, *arguments, known, report, **options):
        def report_once(outcomes):
            report(outcomes)
            if len(tried) == 1:
                raise KeyboardInterrupt

        tried.append(len(candidates) - len(known))
        return genuine(candidates, *arguments, known=known, report=report_once, **options)

    monkeypatch.setattr(_tuned, "tune", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Search(settings(tmp_path)).tuned("fedpd")
    resumed = Search(settings(tmp_path)).tuned("fedpd")
    assert tried == [3, 2]
    monkeypatch.setattr(_tuned, "tune", genuine)
    assert resumed.point == Search(settings(tmp_path / "at once")).tuned("fedpd").point


def test_exact_local_solutions_are_run_with_the_same_parameters(few, tmp_path):
    exact = settings(tmp_path / "exact", stop=GradientReduction(factor=1e-6, first=1e-6))
    for name in FEW:
        found, usual = Search(exact).tuned(name), Search(settings(tmp_path)).tuned(name)
        assert (found.point, found.outcome.errors) == (usual.point, usual.outcome.errors)
    near, far = method_traces(exact)["fedpd"], method_traces(settings(tmp_path))["fedpd"]
    assert 0 < np.abs(near["error"] / far["error"] - 1).max() < 0.5


def test_a_part_of_the_rows_serves_for_tuning(few, tmp_path, monkeypatch):
    whole = Search(settings(tmp_path))
    assert (sum(whole.problem.sizes), whole.rows) == (ROWS, ROWS)
    minimum, errors = whole.energy, whole.tuned("dualfl").outcome.errors
    converted = []
    monkeypatch.setattr(_tuned, "grid", lambda name, rows_per_client: converted.append(rows_per_client) or POINTS[name])
    part = Search(settings(tmp_path, part=80))
    assert (sum(part.problem.sizes), part.rows) == (80, ROWS)
    assert part.energy == pytest.approx(newton(part.problem).energy, rel=1e-12)
    assert part.energy != pytest.approx(minimum, rel=1e-3)
    assert part.tuned("dualfl").outcome.errors != errors  # stored apart from each other
    assert set(converted) == {ROWS / 8}
    trace = method_traces(settings(tmp_path, part=80))["dualfl"]
    method = DualFL(rho=0.003, stop=_methods.CAREFUL)
    expected = recording.run(method, settings(tmp_path).problem(8), rounds=8)  # curves are of all rows
    np.testing.assert_allclose(trace["energy"], expected["energy"], rtol=1e-13)


def test_points_are_tried_from_the_cheapest_to_the_dearest_admitted(tmp_path):
    search = Search(settings(tmp_path, rounds=100, most_gradients=1000))
    work = [gradients_needed(point, 100) for point in search.points("scaffnew")]
    assert work == sorted(work)
    assert set(work) == {100.0, 1000.0}
    larger = Search(settings(tmp_path, rounds=100, most_gradients=10_000)).points("scaffnew")
    assert {float(point["probability"]) for point in larger} == {1.0, 0.1, 0.01}
    L = float(settings(tmp_path).problem(8).L.max())
    steps = {float(point["solver.step"]) * L for point in larger}
    assert 0.1 <= min(steps) < 1 < 10 < max(steps) <= 300
    everything = {float(point["solver.step"]) for point in grid("scaffnew", rows_per_client=ROWS / 8)}
    assert len(steps) == sum(0.1 <= step * L <= 300 for step in everything)


def test_the_values_of_table_2_in_units_of_means():
    def mean(name: str, data: str, rows: float) -> dict[str, float]:
        return {p: per_row(name, p, v, rows_per_client=1.0 / rows) for p, v in paper_values(name, data).items()}

    assert mean("fedpd", "mnist", 7500) == {"eta": pytest.approx(0.75)}
    assert mean("feddyn", "mnist", 7500) == {"alpha": pytest.approx(2 / 15)}
    assert mean("scaffnew", "cifar10", 6250) == {"solver.step": pytest.approx(6.25e-4), "probability": 1e-3}
    assert mean("dualfl", "mnist", 7500) == {"rho": 3e-3}
    for name in METHODS:  # the paper's values are points of the grid, wherever it is not cut off
        for data, rows in (("mnist", 7500.0), ("cifar10", 6250.0)):
            for parameter, value in mean(name, data, rows).items():
                listed = {_tuned_value(point[parameter]) for point in grid(name, rows_per_client=rows)}
                assert any(entry == pytest.approx(value, rel=1e-9, abs=1e-15) for entry in listed), (name, parameter)


def test_conversion_changes_steps_and_weights_and_nothing_else():
    """The best values of Table 2 for MNIST, with 7500 rows for each client."""
    best = {
        "fedpd": ({"eta": "0.0001"}, {"eta": "0.75"}),
        "feddr": ({"eta": "0.0001", "relaxation": "1"}, {"eta": "0.75", "relaxation": "1"}),
        "feddualavg": (
            {"solver": "gradient", "solver.step": "0.001", "server_step": "1", "stop": "steps=10"},
            {"solver": "gradient", "solver.step": "7.5", "server_step": "1", "stop": "steps=10"},
        ),
        "feddyn": ({"alpha": "1000"}, {"alpha": "0.133333333333"}),
        "scaffnew": (
            {"solver": "gradient", "solver.step": "1e-05", "probability": "0.1", "participation": "communicate=0.1"},
            {"solver": "gradient", "solver.step": "0.075", "probability": "0.1", "participation": "communicate=0.1"},
        ),
        "apda-inexact": ({"eta_x": "0.001", "beta_y": "0.01"}, {"eta_x": "7.5", "beta_y": "75"}),
        "fivegcs": ({"gamma": "0.0001"}, {"gamma": "0.75"}),
        "dualfl": ({"rho": "0.003"}, {"rho": "0.003"}),
    }
    assert set(best) == set(DUALFL_TABLE_2)
    for algorithm, (mean, total) in best.items():
        taken, converted = paper_grid(algorithm), paper_grid(algorithm, rows=7500.0)
        assert converted[taken.index(mean)] == total
        assert len(taken) == len(converted) == len({tuple(point.items()) for point in converted})


def test_the_conversion_gives_the_same_iterates_on_sums():
    """FedPD and FedDyn on sums over 50 rows, with the values as typed, are those on means with converted ones."""
    f = quadratic(3)
    assert f.c is not None
    sums = Quadratic(A=50 * f.A, b=50 * f.b, c=50 * f.c)
    methods: list[tuple[Any, str, str]] = [(FedPD, "fedpd", "eta"), (FedDyn, "feddyn", "alpha")]
    for kind, algorithm, name in methods:
        for there, here in zip(paper_grid(algorithm), paper_grid(algorithm, rows=50.0), strict=True):
            thetas = [
                recording.run(kind(**{name: float(point[name])}, solver=Exact()), g, rounds=4).theta
                for point, g in ((there, sums), (here, f))
            ]
            np.testing.assert_allclose(*thetas, rtol=1e-8, atol=1e-12)


PRIMAL_POINTS = {
    "dualfl": [{"rho": "0.003"}],
    "fedavg": [{"solver": "gradient", "solver.step": s, "stop": "steps=2"} for s in ("0.01", "0.2")],
    "fedcm": [{"solver": "gradient", "solver.step": "0.2", "stop": "steps=2", "alpha": a} for a in ("1", "0.3")],
    "fedsam": [{"solver": "gradient", "solver.step": "0.2", "stop": "steps=2", "radius": r} for r in ("0.05", "5")],
}


def test_the_primal_methods_of_remark_7_1_are_tuned_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tuned, "grid", lambda name, rows_per_client: PRIMAL_POINTS[name])
    given = settings(tmp_path)
    traces = fig1a_primal.compute(given)
    assert list(traces) == ["dualfl", "fedavg", "fedcm", "fedsam"]
    f = given.problem(8)
    for name, trace in traces.items():
        point = Search(given).tuned(name).point
        assert point in PRIMAL_POINTS[name]
        if name != "dualfl":
            method = to_candidate(name, point, stop=GradientReduction(), communications=8).algorithm
            assert type(method).__name__ == PRIMAL[name].title
            assert method.stop == Steps(steps=2)
            energies = [float(np.mean(f.value(s.server.theta))) for s in islice(iterate(method, f), 8)]
            np.testing.assert_allclose(trace["energy"][1:], energies, rtol=1e-12)
    assert Search(given).tuned("fedavg").point["solver.step"] == "0.2"
    rows = fig1a_primal.tabulate(traces)
    assert [row["method"] for row in rows] == ["DualFL", "FedAvg", "FedCM", "FedSAM"]
    assert rows[1]["tuned"] == "s = 0.2, K = 2"
    assert len(fig1a_primal.draw(traces, given).axes[0].get_lines()) == 4
    assert "as suggested" not in fig1a_primal.caption(traces, given)


def _tuned_value(text: str) -> float:
    return float(text.removeprefix("steps="))


def test_all_methods_that_minimise_use_the_same_solver_and_rule():
    f, stop = settings(Path()).problem(8), GradientReduction(factor=0.3)
    for name in METHODS:
        point = grid(name, rows_per_client=200.0)[0]
        algorithm: Any = to_candidate(name, point, stop=stop, communications=5).algorithm.suggested(f)
        if name in ("feddualavg", "scaffnew"):
            assert type(algorithm.solver).__name__ == "Gradient"
        else:
            assert (type(algorithm.solver).__name__, algorithm.stop) == ("LBFGS", stop)


def test_local_solutions_leave_the_curves_where_exact_ones_put_them(tmp_path, monkeypatch):
    chosen = settings(tmp_path, rounds=25)
    points = {"fedpd": [{"eta": "2"}], "feddyn": [{"alpha": "0.5"}], "feddr": [{"eta": "2", "relaxation": "2"}]}
    monkeypatch.setattr(_methods, "METHODS", {name: METHODS[name] for name in points})
    monkeypatch.setattr(_methods, "UNTUNED", {})
    monkeypatch.setattr(_tuned, "grid", lambda name, rows_per_client: points[name])
    curves, exact = method_traces(chosen), method_traces(exactly(chosen))
    assert max(deviation(curves[name], exact[name]) for name in points) <= 0.1
    monkeypatch.setattr(_methods, "CAREFUL", GradientReduction(factor=0.3))
    loose = method_traces(chosen)
    assert max(deviation(loose[name], exact[name]) for name in points) > 0.1


def test_remembering_saves_gradients_and_changes_no_bit():
    f = quadratic(3)
    counts = {"value": 0, "value_and_gradient": 0}

    class Counting(CachedObjective):
        def __getattr__(self, name):
            return getattr(f, name)

        def _at(self, name, theta):
            before = self._cache.get(name)
            found = super()._at(name, theta)
            counts[name] += self._cache[name] is not before
            return found

    rare = CommunicateWithProbability(probability=0.25)
    method = Scaffnew(probability=0.25, solver=Gradient(step=0.05))
    objectives: tuple[Any, ...] = (f, Counting(f))
    plain, known = (recording.run(method, g, rounds=20, participation=rare) for g in objectives)
    np.testing.assert_array_equal(plain.theta, known.theta)
    np.testing.assert_array_equal(plain["energy"], known["energy"])
    communications = int(plain.last["communications"])
    assert 0 < communications < 10
    assert 20 < counts["value_and_gradient"] <= 20 + communications + 2  # 40 without it
    assert counts["value"] == communications + 1  # 21 without it


def made_up(errors: list[float], **columns: list[float]) -> Trace:
    n = np.arange(len(errors))
    given = {"communications": n, "gradients": 3.0 * n, "floats": 10.0 * n, "error": errors, **columns}
    return Trace(
        columns=given, status="max_rounds", theta=None, parameters={"search": {"tuned": "eta = 1", "part": None}}
    )


def test_the_tables_count_what_was_spent_up_to_the_levels():
    traces = {"fedpd": made_up([1.0, 0.5, 1e-3, 1e-4, 2e-7, 1e-7]), "dualfl": made_up([1.0, 1e-9])}
    first, second = fig1a_methods.tabulate(traces)
    assert (first["method"], first["part"], second["method"]) == ("FedPD", "-", "DualFL")
    assert [first[f"at {n}"] for n in (1, 3, 5, 10)] == ["5.0e-01", "1.0e-04", "1.0e-07", "-"]
    assert [first[level] for level in ("<=1e-3", "<=1e-6", "<=1e-9")] == ["2", "4", "-"]
    assert [second[level] for level in ("<=1e-3", "<=1e-6", "<=1e-9")] == ["1", "1", "1"]
    assert fig1a_gradients.tabulate(traces)[0] == {
        "method": "FedPD",
        "tuned": "eta = 1",
        "<=1e-3": "6",
        "<=1e-6": "12",
        "<=1e-9": "-",
        "in all": "15",
        "last": "1.0e-07",
    }
    assert fig1a_floats.tabulate(traces)[1]["<=1e-9"] == "10"


@pytest.mark.parametrize(
    ("figure", "column"),
    [(fig1a_methods, "communications"), (fig1a_floats, "floats"), (fig1a_gradients, "gradients")],
)
def test_methods_have_their_own_style_and_what_they_spent_in_every_picture(figure, column, tmp_path):
    names = [*METHODS, *UNTUNED]
    traces = {name: made_up([1.0, 0.5 / (n + 1), 1e-3, 1e-16]) for n, name in enumerate(names)}
    (axes,) = figure.draw(traces, settings(tmp_path)).axes
    assert [line.get_label() for line in axes.lines] == list(map(title, names))
    assert [(line.get_color(), line.get_marker()) for line in axes.lines] == [
        plotting.style(name)[:2] for name in names
    ]
    assert len({plotting.style(name) for name in names}) == len(names)
    start = 1 if figure is fig1a_gradients else 0  # no gradient has a place on a logarithmic axis
    for name, line in zip(names, axes.lines, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), traces[name][column][start:3])
        np.testing.assert_array_equal(line.get_ydata(), traces[name]["error"][start:3])
    assert axes.get_ylim()[0] == pytest.approx(1e-3)  # no empty half below curves that end early
    lines = {(line.get_color(), *map(str, line._dash_pattern)) for line in axes.lines}  # pyright: ignore
    assert len(lines) == len(names)  # told apart without their markers too


def test_the_cost_of_bad_tuning_is_measured_when_the_winner_has_arrived(few, tmp_path):
    chosen = settings(tmp_path, rounds=60)
    traces = table2_tuning.compute(chosen)
    search, trace = Search(chosen), traces["dualfl"]
    np.testing.assert_array_equal(trace["value"], [0.003, 0.5])
    np.testing.assert_array_equal(trace["step"], [0.0, 1.0])
    tuned, outcomes = search.tuned("dualfl"), search.outcomes("dualfl")
    poor = search.points("dualfl").index({"rho": "0.5"})
    assert tuned.reached is not None
    assert trace["error"].tolist() == [tuned.outcome.error, outcomes[poor].errors[tuned.reached - 1]]
    assert trace["error"][0] <= TARGET < trace["error"][1]
    rows = {(row["method"], row["parameter"]): row for row in table2_tuning.tabulate(traces)}
    assert rows["FedPD", "eta"]["paper, of a sum"] == "0.0001"
    assert rows["FedPD", "eta"]["paper"] == "0.75"
    assert float(rows["FedPD", "eta"]["of a sum"]) == pytest.approx(20 / (ROWS / 8), rel=1e-2)
    assert (rows["DualFL", "rho"]["tuned"], rows["DualFL", "rho"]["of a sum"]) == ("0.003", "0.003")
    assert rows["DualFL", "rho"]["rounds"] == f"{tuned.reached}"
    figure = table2_tuning.draw({"dualfl": trace, "fedpd": traces["fedpd"]}, chosen)
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), trace["error"])
