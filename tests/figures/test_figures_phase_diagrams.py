"""The phase diagrams: cells against runs, literal loops, and closed forms."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from dualopt.engine.rounds import initial_state, iterate
from dualopt.lab.chance import coin
from dualopt.methods.participation import CommunicateWithProbability, UniformSubset
from dualopt.runs.trace import Trace
from figures import phase_diagrams
from figures._settings import Settings
from figures.phase_diagrams import ACTIVE, KINDS, N, clients, kind, kinds, limit_of, panels
from theory import phase_maps
from theory._problems import solved
from theory._rounds import flatten, mean_square_radius, round_matrix
from theory.afedpd._runs import afedpd_case, matrices
from theory.limits import work_of_steps as local_work
from theory.phase_maps import Clients, limit_statistics

CONVERGES, WITHIN_1, WITHIN_10, FARTHER, DIVERGES, NOTHING = range(len(KINDS))
HALF = CommunicateWithProbability(probability=0.5)
PARTICIPATION = {"fedpd:skip": HALF} | dict.fromkeys(
    ("a-fedpd", "fedadmm:1", "fedadmm:P/N"), UniformSubset(size=ACTIVE)
)


def distances(name: str, step: float, s: float, rounds: int) -> np.ndarray:
    """Distances of the model from the solution along a run."""
    run = iterate(panels()[name].method(step), clients(s).repeated(1), participation=PARTICIPATION.get(name))
    return np.array([abs(float(shot.server.theta[0]) - 1.0) for shot in islice(run, rounds)])


@pytest.mark.parametrize(
    ("name", "step", "s", "expected"),
    [
        ("fedavg", 0.3, 0.5, FARTHER),
        ("fedavg", 0.05, 0.5, WITHIN_10),
        ("fedavg", 1.0, 3.0, DIVERGES),
        ("fedpd", 0.45, 5.0, CONVERGES),
        ("fedpd", 0.7, 20.0, DIVERGES),
        ("a-fedpd", 0.3, 3.0, CONVERGES),
        ("a-fedpd", 0.8, 20.0, DIVERGES),
        ("fedadmm:1", 10.0, 0.5, FARTHER),
        ("fedadmm:1", 0.1, 0.5, DIVERGES),
        ("fedadmm:P/N", 0.6, 3.0, CONVERGES),
    ],
)
def test_cells_are_what_runs_do(name: str, step: float, s: float, expected: int) -> None:
    found = limit_of(panels()[name], step, s)
    assert kind(found) == expected
    if expected == DIVERGES:
        far = distances(name, step, s, 100)
        assert far[-1] > 1e3 * far[0]
    else:
        far = distances(name, step, s, math.ceil(math.log(1e-8) / math.log(found.radius)))
        assert far[-1] == pytest.approx(found.error, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("step", "s"), [(0.5, 0.3), (1.0, 0.5), (0.3, 1.0)])
def test_skipped_rounds_leave_the_noise_that_a_literal_loop_has(step: float, s: float) -> None:
    found = limit_of(panels()["fedpd:skip"], step, s)
    assert kind(found) in (WITHIN_10, FARTHER)
    rng, chains = np.random.default_rng(0), 20_000
    curvature, b = clients(s)
    theta0 = np.zeros((chains, N))
    dual, server = np.zeros((chains, N)), np.zeros(chains)
    for _ in range(math.ceil(math.log(1e-4) / math.log(found.radius))):
        theta = (b - dual + theta0 / step) / (curvature + 1.0 / step)
        dual = dual + (theta - theta0) / step
        theta0 = theta + step * dual
        heads = rng.random(chains) < 0.5
        server = np.where(heads, theta0.mean(axis=1), server)
        theta0 = np.where(heads[:, None], server[:, None], theta0)
    squares = (server - 1.0) ** 2
    standard_error = squares.std() / math.sqrt(chains)
    assert abs(squares.mean() - found.error**2) < 4 * standard_error < 0.1 * found.error**2


@pytest.mark.parametrize("s", [0.5, 1.5, 30.0])
def test_closed_forms(s: float) -> None:
    own, step = clients(s), 0.2
    Q = local_work(own.curvature[:, None, None], step, phase_diagrams.LOCAL_STEPS)[:, 0, 0]
    fedavg = limit_of(panels()["fedavg"], step, s)
    assert fedavg.radius == pytest.approx(abs(np.mean(1.0 - Q * own.curvature)), rel=1e-10)
    if fedavg.radius < 1:
        assert fedavg.error == pytest.approx(abs(np.sum(Q * own.linear) / np.sum(Q * own.curvature) - 1), rel=1e-9)
    for step in (0.3, 0.45):
        f = solved("", own.repeated(1))
        case = afedpd_case(f, rho=1.0 / step, active=ACTIVE, rounds=1, theta0=np.zeros(1))
        radius = limit_of(panels()["a-fedpd"], step, s).radius
        assert radius**2 == pytest.approx(mean_square_radius(matrices(case)), rel=1e-8)


@pytest.mark.parametrize("name", panels())
def test_one_round_in_many_coordinates_has_the_matrices_of_rounds(name: str) -> None:
    panel, own = panels()[name], clients(0.5)
    f = own.repeated(1)
    method = panel.method(0.3).suggested(f)
    first = initial_state(method, f, f.zeros())
    start, maps = phase_maps._maps(method, own, panel.outcomes)
    np.testing.assert_array_equal(start, flatten(first))
    for outcome, (A, c) in zip(panel.outcomes, maps, strict=True):
        Z = round_matrix(method, f, outcome.round, first)
        np.testing.assert_allclose(np.column_stack([A, c]), Z[:-1], rtol=0, atol=1e-12 * np.max(np.abs(Z)))


def test_dual_drift_in_closed_form() -> None:
    """E'(theta) = c (theta - theta0) with c = rho (1 - P/N) and E'' = 1/(1 + s)."""
    s, step = 0.5, 10.0
    c, curvature = (1 - ACTIVE / N) / step, 1 / (1 + s)
    assert limit_of(panels()["fedadmm:1"], step, s).error == pytest.approx(abs(c / (curvature - c)), rel=1e-9)


def test_the_proved_range_is_blue_and_nearly_all_that_is() -> None:
    """rho > 2L with all clients, however different they are; hardly less would do."""
    panel, rng = panels()["fedpd"], np.random.default_rng(0)
    for step, s in zip(rng.uniform(0.02, 0.5, 40), 10 ** rng.uniform(-1, 3, 40), strict=True):
        assert kind(limit_of(panel, step, s)) == CONVERGES
    assert kind(limit_of(panel, 0.51, 1e3)) == DIVERGES
    # partial participation needs more: the end that theory/afedpd measures, rho = 2.75 L for 2 of 6
    assert kind(limit_of(panels()["a-fedpd"], 1 / 2.6, 1e3)) == DIVERGES


def test_conserved_quantities_are_not_taken_for_slow_ones(monkeypatch) -> None:
    """Without the restriction to what can be reached, A-FedPD has a factor 1: the mean of what clients keep stays."""
    panel, own = panels()["a-fedpd"], clients(0.5)
    assert limit_statistics(panel.method(0.5), own, panel.outcomes).radius < 0.95
    monkeypatch.setattr(phase_maps, "_reachable", lambda matrices, moved: np.eye(moved.shape[1]))
    assert limit_statistics(panel.method(0.5), own, panel.outcomes).radius == pytest.approx(1.0, abs=1e-9)


def test_clients_that_agree_have_no_noise() -> None:
    """Equal gradients at the solution: skipping costs nothing."""
    curvature = np.array([0.3, 1.0])
    method = panels()["fedpd:skip"].method(0.3)
    assert limit_statistics(method, Clients(curvature, curvature), coin(2, 0.5)).error < 1e-12
    assert limit_statistics(method, Clients(curvature, np.array([0.4, 0.9])), coin(2, 0.5)).error > 1e-3


def test_local_problems_need_a_minimum() -> None:
    panel = panels()["fedpd"]
    limit = (1 + 5.0) / (5.0 - 1)  # L over the size of the negative curvature
    assert kind(limit_of(panel, 1.01 * limit, 5.0)) == NOTHING
    assert kind(limit_of(panel, 0.99 * limit, 5.0)) == DIVERGES


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(out=tmp_path_factory.mktemp("phase"), quick=True)


@pytest.fixture(scope="module")
def traces(settings: Settings) -> dict[str, Trace]:
    return phase_diagrams.compute(settings)


def test_cells_are_stored_and_drawn(settings: Settings, traces: dict[str, Trace]) -> None:
    again = phase_diagrams.compute(replace(settings, stored_only=True))
    figure = phase_diagrams.draw(again, settings)
    columns, rows = phase_diagrams.CELLS[True]
    for axes, (name, trace) in zip(figure.axes, traces.items(), strict=True):
        cells = kinds(trace)
        n = columns + 2  # a cell of the second row
        assert cells[n] == kind(limit_of(panels()[name], trace["step"][n], trace["heterogeneity"][n]))
        drawn = axes.collections[0].get_array()
        assert drawn is not None
        np.testing.assert_array_equal(np.ma.filled(drawn, NOTHING).reshape(rows, columns), cells.reshape(rows, columns))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(KINDS)


def test_the_caption_and_the_table_tell_what_fails(traces: dict[str, Trace]) -> None:
    steps = phase_diagrams.centres(*phase_diagrams.STEPS, phase_diagrams.CELLS[True][0])
    found = phase_diagrams.failures(traces)
    assert found["fedpd"] == pytest.approx(steps[3], rel=1e-12)  # 0.24 converges, 0.63 does not
    assert found["fedavg"] == pytest.approx(steps[0], rel=1e-12)
    assert f"with all clients eta L = {steps[3]:.2g};" in phase_diagrams.caption(traces, Settings())
    rows = phase_diagrams.tabulate(traces)
    assert [row["panel"] for row in rows] == list(panels())
    assert all(99 <= sum(int(row[words].rstrip("%")) for words in KINDS) <= 102 for row in rows)


def test_no_failure_is_no_step(traces: dict[str, Trace]) -> None:
    def fine(trace: Trace) -> Trace:
        return replace(
            trace, columns={**trace.columns, "radius": 0.5 + 0 * trace["radius"], "limit": 0 * trace["step"]}
        )

    found = phase_diagrams.caption({name: fine(trace) for name, trace in traces.items()}, Settings())
    assert "with all clients no step;" in found
