"""The figures of the A-FedPD paper: the method they add, what they measure, and what they say about it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest

from dualopt.engine import rounds as engine
from dualopt.methods import AFedPD
from dualopt.methods.participation import Schedule
from dualopt.objectives import Quadratic
from dualopt.runs import recording
from dualopt.runs.plotting import style, styles
from dualopt.runs.reference import newton
from dualopt.runs.trace import Trace
from dualopt.solvers import Exact
from dualopt.solvers.stopping import Steps
from figures import _drift, afedpd_drift, afedpd_residuals
from figures._curves import stationarity
from figures._drift import KINDS, RHO, Residuals, convex_problem, drift_traces, methods, name_of, nonconvex_problem
from figures._local_models import LocalModels
from figures._settings import Settings

TURNS = Schedule(clients=((0, 2), (1, 2), (2, 3), (0, 1)))


def quadratic() -> Quadratic:
    rng = np.random.default_rng(3)
    M = rng.standard_normal((4, 3, 3))
    return Quadratic(A=M @ M.transpose(0, 2, 1) + np.eye(3), b=3.0 * rng.standard_normal((4, 3)))


@pytest.fixture
def settings(tmp_path, monkeypatch) -> Settings:
    """Return a short run on 120 rows of three classes, dealt out to ten clients."""
    monkeypatch.setattr(_drift, "CLIENTS", 10)
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    np.savez(tmp_path / "mine.npz", X=rng.standard_normal((120, 4)) + y[:, None], y=y)
    return Settings(data=str(tmp_path / "mine.npz"), out=tmp_path / "out", rounds=6, quick=True, stop=Steps(steps=3))


def test_the_residuals_are_those_of_the_paper():
    f, rho = quadratic(), 0.7
    method = AFedPD(rho=rho, solver=Exact())
    residuals = Residuals(f, rho=rho)
    latest, before = np.zeros((4, 3)), np.zeros(3)
    for shot in islice(engine.iterate(method, f, participation=TURNS), 6):
        assert shot.solution is not None
        for j, own in zip(shot.round.clients, shot.solution.theta, strict=True):
            latest[j] = own
        theta = shot.server.theta
        primal = sum(np.sqrt(np.sum((theta - latest[j]) ** 2)) for j in range(4)) / 4
        assert residuals.primal(shot) == pytest.approx(primal, rel=1e-13)
        assert residuals.dual(shot) == pytest.approx(rho * np.sqrt(np.sum((theta - before) ** 2)), rel=1e-13)
        before = theta
    assert primal > 1e-3


def test_inactive_clients_keep_their_latest_models():
    f = quadratic()
    latest = LocalModels(f)
    shots = list(islice(engine.iterate(AFedPD(rho=0.7, solver=Exact()), f, participation=TURNS), 3))
    models = [latest.after(shot).copy() for shot in shots]
    assert [bool(model.any()) for model in models[0]] == [True, False, True, False]
    np.testing.assert_array_equal(models[2][1], models[1][1])
    assert (models[2][2] != models[1][2]).any()


def test_with_everybody_all_primal_dual_methods_draw_one_curve(settings):
    names = [name for name in methods(settings) if name != "fedavg"]
    traces = drift_traces(settings, percents=(100,), names=names)
    for kind in KINDS:
        first, *others = (traces[name_of(kind, 100, name)] for name in names)
        assert first["error"][-1] < 0.9 * first["error"][0]
        for other in others:
            np.testing.assert_allclose(other["error"], first["error"], rtol=1e-7)
            np.testing.assert_allclose(other["primal"][1:], first["primal"][1:], rtol=1e-7)


def test_errors_begin_at_the_common_start(settings):
    traces = drift_traces(settings, percents=(10,), names=("feddyn",))
    problems = convex_problem(settings), nonconvex_problem(settings)
    convex, nonconvex = (problem.build() for problem in problems)
    energy = problems[0].options(convex)["reference"]
    assert energy == pytest.approx(newton(convex).energy, rel=1e-12)
    assert traces["convex, 10%: feddyn"]["error"][0] == pytest.approx(np.log(3) / energy - 1, rel=1e-12)
    start = stationarity(nonconvex, nonconvex.zeros())
    assert traces["nonconvex, 10%: feddyn"]["error"][0] == start
    gradient = nonconvex.gradient(nonconvex.zeros()).mean(axis=0)
    assert start == pytest.approx(float(np.linalg.norm(gradient) ** 2), rel=1e-13)
    np.testing.assert_allclose(nonconvex.L, convex.L, rtol=1e-12)  # the curvature of the ridge at zero
    assert (nonconvex.mu < 0).all()
    assert len(traces["convex, 10%: feddyn"]) == 5
    assert [_drift.rounds_of(replace(settings, quick=quick)) for quick in (True, False)] == [4, 12]


def test_the_two_figures_share_their_runs(settings, monkeypatch):
    computed = []
    genuine = recording.run

    def counted(algorithm, *arguments, **options):
        computed.append((type(algorithm).__name__, options["participation"].size))
        return genuine(algorithm, *arguments, **options)

    monkeypatch.setattr(recording, "run", counted)
    assert len(afedpd_drift.compute(settings)) == len(computed) == 16
    computed.clear()
    afedpd_residuals.compute(settings)
    assert computed == [("FedAvg", 1), ("FedAvg", 1)]
    stored = replace(settings, stored_only=True)
    with pytest.raises(ValueError, match="redraw: the curve 'convex, 20%: a-fedpd' is not stored"):
        drift_traces(stored, percents=(20,), names=("a-fedpd",))


def made_up(error: float, status: str = "max_rounds", dual: float = 1.0) -> Trace:
    columns = {"round": range(31), "error": [9.0] * 15 + [error] * 16, "primal": [8.0] * 31, "dual": [dual] * 31}
    columns["energy"] = [1.0] * 31
    return Trace(columns=columns, status=status, theta=None, parameters={})


def made_up_drift(a_fedpd: float, feddyn: float) -> dict[str, Trace]:
    values = {"fedadmm": made_up(1.0, "diverged"), "active-fedadmm": made_up(0.5)}
    values |= {"feddyn": made_up(feddyn), "a-fedpd": made_up(a_fedpd)}
    return {name_of(kind, p, name): t for kind in KINDS for p in (10, 100) for name, t in values.items()}


@pytest.mark.parametrize(
    ("a_fedpd", "feddyn", "worse", "ahead", "behind"),
    [(0.1, 0.2, 2, 2, 0), (0.2, 0.1, 2, 0, 2), (0.1, 0.105, 2, 0, 0), (0.6, 0.1, 0, 0, 2)],
)
def test_the_caption_says_what_was_found(settings, a_fedpd, feddyn, worse, ahead, behind):
    found = afedpd_drift.caption(made_up_drift(a_fedpd, feddyn), settings)
    assert "Of the 2 panels" in found
    assert "diverges in 2," in found
    assert f"behind A-FedPD in {worse};" in found
    assert f"ahead of FedDyn in {ahead} and clearly behind it in {behind} " in found


def test_the_pictures_show_every_curve_in_the_style_of_its_method(settings):
    traces = afedpd_drift.compute(settings) | afedpd_residuals.compute(settings)
    figure, looks = afedpd_drift.draw(traces, settings), styles(afedpd_drift.LEGEND)
    assert looks["feddyn"] == style("feddyn")
    assert len(figure.axes) == 4
    for axes, kind, percent in zip(figure.axes, ("convex",) * 2 + ("nonconvex",) * 2, (10, 100) * 2, strict=True):
        for line, name in zip(axes.lines, afedpd_drift.LEGEND, strict=True):
            assert (line.get_color(), line.get_marker()) == looks[name][:2]
            np.testing.assert_array_equal(line.get_ydata(), traces[name_of(kind, percent, name)]["error"])
    (left, right) = afedpd_residuals.draw(traces, settings).axes
    assert [len(left.lines), len(right.lines)] == [5, 5]


def test_the_words_below_narrow_panels_do_not_touch(settings):
    percents = afedpd_drift.PERCENTS[False]
    traces = {name_of(k, p, name): made_up(1e-3) for k in KINDS for p in percents for name in afedpd_drift.LEGEND}
    figure = afedpd_drift.draw(traces, replace(settings, quick=False))
    figure.draw_without_rendering()
    boxes = [axes.xaxis.label.get_window_extent() for axes in figure.axes[-len(percents) :]]
    assert not any(one.overlaps(other) for one, other in pairwise(boxes))


def test_ratios_are_averaged_geometrically_and_ranked():
    traces = {
        name_of(kind, 10, name): made_up(1.0, dual=dual)
        for kind in KINDS
        for name, dual in zip(afedpd_residuals.LEGEND, (4.0, 2.0, 8.0, 1.0, 0.5), strict=True)
    }
    words = afedpd_residuals.order(traces, "convex")
    assert words == "FedDyn 1.0, FedADMM 2.0, FedADMM (paper) 4.0, A-FedPD 8.0, FedAvg 16.0"
    ratios = np.tile([1.0, 4.0], 10)
    np.testing.assert_allclose(afedpd_residuals.smoothed(ratios), np.full(11, 2.0), rtol=1e-12)
    assert len(afedpd_residuals.ratio(made_up(1.0))) == 30
    assert len(afedpd_residuals.smoothed(ratios[:5])) == 0
    traces[name_of("convex", 10, "feddyn")] = made_up(1.0, "diverged", dual=8.0)
    assert afedpd_residuals.order(traces, "convex").startswith("FedDyn* 1.0")
    assert RHO == 0.3  # the number in the reported results
