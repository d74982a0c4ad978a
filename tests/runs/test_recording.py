"""Recorded runs: counting, stopping, statuses, refusals; traces are written whole and read back the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualopt.methods import DualFL, FedDR
from dualopt.objectives import Composite, Quadratic
from dualopt.regularisers import L1
from dualopt.runs.recording import run
from dualopt.runs.reference import solve
from dualopt.runs.trace import Trace
from dualopt.solvers import LBFGS, Exact, Gradient
from dualopt.solvers.stopping import Steps
from tests.problems import logistic, quadratic

EXACT = DualFL(solver=Exact())


def test_floats_and_communications_add_up() -> None:
    trace = run(EXACT, quadratic(n=5, d=4), rounds=3)
    assert trace["floats_up"].tolist() == [0, 20, 40, 60]
    assert trace["floats_down"].tolist() == [0, 50, 75, 100]
    assert trace["communications"].tolist() == [0, 1, 2, 3]


def test_counts_gradients() -> None:
    trace = run(DualFL(solver=Gradient(), stop=Steps(steps=3)), logistic(), rounds=2)
    assert trace["gradients"].tolist() == [0.0, 3.0, 6.0]


def test_row_zero_is_the_start() -> None:
    f = logistic()
    trace = run(EXACT.__class__(), f, rounds=2)
    assert trace["energy"][0] == pytest.approx(np.log(2.0))
    assert trace["seconds"][0] == 0
    assert np.all(np.diff(trace["seconds"]) > 0)


def test_converged_is_certified() -> None:
    f = quadratic()
    trace = run(EXACT, f, rounds=500, tol=1e-8)
    optimum = float(f.value(f.minimiser()).mean())
    assert trace.status == "converged"
    assert 0 <= trace["energy"][-1] - optimum <= 1e-8 * abs(optimum)
    assert trace["certified_error"][-1] <= 1e-8 < trace["certified_error"][-2]


def test_a_tolerance_of_zero_asks_for_all_rounds_and_for_no_certificates() -> None:
    f = quadratic()
    for found in (run(EXACT, f, rounds=4, tol=0), run(EXACT, f, rounds=4, tol=0.0, atol=0)):
        assert np.isnan(found["certificate"]).tolist() == [True, True, True, True, False]
        assert found.status == "max_rounds"


def test_certificate_on_request_and_at_the_end() -> None:
    f = quadratic()
    assert np.isnan(run(EXACT, f, rounds=4)["certificate"]).tolist() == [True, True, True, True, False]
    assert np.isnan(run(EXACT, f, rounds=4, certify_every=2)["certificate"]).tolist() == [
        False, True, False, True, False,
    ]  # fmt: skip


def test_measuring_every_third_round_changes_what_is_known_and_nothing_else() -> None:
    f, seen = quadratic(), []

    def measure(snapshot) -> float:
        seen.append(snapshot.round.n + 1)
        return float(snapshot.round.n)

    often = run(EXACT, f, rounds=7, certify_every=1)
    seldom = run(
        EXACT,
        f,
        rounds=7,
        certify_every=1,
        measure_every=3,
        measure={"n": measure},
        reference=1.0,
        reference_gap=np.inf,
    )
    known = np.array([True, False, False, True, False, False, True, True])
    for name in ("energy", "certificate", "certified_error", "gradient_norm"):
        np.testing.assert_array_equal(seldom[name], np.where(known, often[name], np.nan))
    np.testing.assert_array_equal(seldom["error"], np.where(known, often["energy"] - 1.0, np.nan))
    for name in ("round", "communications", "floats_up", "floats_down", "gradients"):
        np.testing.assert_array_equal(seldom[name], often[name])
    np.testing.assert_array_equal(seldom["n"], [np.nan, np.nan, np.nan, 2, np.nan, np.nan, 5, 6])
    assert seen == [3, 6, 7]
    assert seldom.theta.tolist() == often.theta.tolist()
    assert seldom.parameters["measure_every"] == 3


def test_the_last_round_is_measured_wherever_the_run_ends() -> None:
    f, every = quadratic(), []
    trace = run(
        EXACT, f, rounds=50, measure_every=20, measure={"n": lambda s: every.append(s) or 1.0},
        callback=lambda s, row: s.round.n == 10,
    )  # fmt: skip
    assert (trace.status, len(trace), len(every)) == ("stopped", 12, 1)
    assert np.isfinite(trace.last["energy"])
    assert np.isfinite(trace.last["certificate"])
    assert trace.last["n"] == 1.0
    trace = run(EXACT, f, rounds=500, tol=1e-8, measure_every=10)
    assert trace.status == "converged"
    assert trace.last["round"] % 10 == 0  # certified where it is measured
    assert trace.last["certified_error"] <= 1e-8


def test_divergence_between_two_measurements_is_seen() -> None:
    """At the next one, at the end, or as soon as the model itself explodes, before numbers overflow."""
    f = quadratic(mu=1.0, L=100.0)
    wrong = DualFL(nu=50.0, rho=0.0, solver=Exact())
    often = run(wrong, f, rounds=500, check_assumptions=False)
    next_one = run(wrong, f, rounds=500, check_assumptions=False, measure_every=2)
    exploded = run(wrong, f, rounds=500, check_assumptions=False, measure_every=600)
    ended = run(wrong, f, rounds=500, check_assumptions=False, measure_every=600, stop=lambda s, row: s.round.n == 4)
    assert [t.status for t in (often, next_one, exploded)] == ["diverged"] * 3
    assert often.last["round"] <= next_one.last["round"] <= often.last["round"] + 1
    assert exploded.last["round"] == often.last["round"]
    for trace in (often, next_one, exploded):
        assert trace.last["energy"] > 1e154
        assert trace.theta.tolist() == [0.0] * 4  # the start is better than all others
    assert (ended.status, ended.last["round"], ended.last["energy"] > 1e8) == ("converged", 5, True)  # as it was told


def test_a_tolerance_of_zero_is_none() -> None:
    """As ``--tol 0`` of the command line."""
    trace, without = (run(EXACT, quadratic(), rounds=300, **options) for options in ({"tol": 0, "atol": 0.0}, {}))
    assert (trace.status, trace.theta.tolist()) == (without.status, without.theta.tolist())
    assert trace.parameters["tol"] is trace.parameters["atol"] is None
    np.testing.assert_array_equal(trace["certificate"], without["certificate"])


def test_max_rounds() -> None:
    trace = run(EXACT, quadratic(), rounds=2, tol=1e-12)
    assert (trace.status, len(trace)) == ("max_rounds", 3)


def test_zero_rounds_measures_the_start() -> None:
    trace = run(EXACT, quadratic(), rounds=0)
    assert (trace.status, len(trace), trace.theta.tolist()) == ("max_rounds", 1, [0.0] * 4)


def test_stalled_at_machine_precision() -> None:
    trace = run(EXACT, quadratic(L=2.0), rounds=1000)
    assert trace.status == "stalled"
    assert len(trace) < 200


def test_diverged() -> None:
    f = quadratic(mu=1.0, L=100.0)
    wrong = DualFL(nu=50.0, rho=0.0, solver=Exact())
    with pytest.raises(ValueError, match="nu"):
        run(wrong, f, rounds=500)
    trace = run(wrong, f, rounds=5000, check_assumptions=False)
    assert trace.status == "diverged"
    assert len(trace) < 5000


def test_callback_records_and_stops() -> None:
    seen = []

    def callback(snapshot, row):
        seen.append((snapshot.round.n, row["round"]))
        return row["round"] == 3

    trace = run(EXACT, quadratic(), rounds=10, callback=callback)
    assert (trace.status, seen) == ("stopped", [(0, 1.0), (1, 2.0), (2, 3.0)])


@pytest.mark.parametrize(("function", "kind"), [(len, "TypeError"), (lambda snapshot: "much", "ValueError")])
def test_a_measure_that_is_no_number_is_named(function, kind) -> None:
    f = Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [3.0]]))
    sentence = f"^measure 'mine' must return a number for a Snapshot, but raises {kind}\\.$"
    with pytest.raises(ValueError, match=sentence) as info:
        run(EXACT, f, rounds=2, measure={"mine": function})
    assert type(info.value.__cause__).__name__ == kind


def test_own_measures_and_own_stopping_rule() -> None:
    trace = run(
        EXACT,
        quadratic(),
        rounds=100,
        measure={"norm": lambda s: float(np.linalg.norm(s.server.theta))},
        stop=lambda s, row: row["norm"] > 0,
    )
    assert (trace.status, len(trace)) == ("converged", 2)
    assert trace["norm"][-1] == pytest.approx(np.linalg.norm(trace.theta))


def test_reference_gives_relative_errors() -> None:
    f = quadratic()
    trace = run(EXACT, f, rounds=3, reference=0.5)
    np.testing.assert_allclose(trace["error"], (trace["energy"] - 0.5) / 0.5)


class Lower(L1):
    """A regulariser whose certificates are false: its least subgradient is a tenth of what it should be."""

    def minimal_subgradient(self, theta: Any, gradient: Any) -> Any:
        return 0.1 * super().minimal_subgradient(theta, gradient)


@pytest.mark.parametrize(
    "options", [{"certify_every": 1}, {"certify_every": 4}, {"tol": 1e-9}, {"rounds": 3}, {"rounds": 0}]
)
def test_a_certificate_below_the_known_error_is_false(options: dict) -> None:
    """The run ends where it is found, and shows both numbers; whoever is right is not contradicted, ever."""
    f = logistic()
    right, wrong = (Composite(objective=f, regulariser=kind(weight=0.02)) for kind in (L1, Lower))
    known = solve(right)
    given: dict[str, Any] = {"rounds": 60, "reference": known.energy, **options}
    found = run(FedDR(), wrong, **given)
    assert found.status == "contradicted"
    assert found.last["certificate"] < found.last["energy"] - known.energy
    assert run(FedDR(), wrong, **{**given, "reference": None}).status != "contradicted"
    for gap in (0.0, known.gap):
        assert run(FedDR(), right, **given, reference_gap=gap).status != "contradicted"


def test_what_the_reference_may_be_wrong_by_contradicts_nothing() -> None:
    f = quadratic()
    best, gap = solve(f).energy, solve(f).gap
    for low, doubt, status in ((1e-3, 0.0, "contradicted"), (1e-3, 1e-3, "converged"), (0.0, gap, "converged")):
        trace = run(EXACT, f, rounds=500, tol=1e-9, reference=best - low, reference_gap=doubt)
        assert trace.status == status
    assert trace.parameters["reference_gap"] == gap


def test_start_moves_the_local_solvers_only() -> None:
    f = logistic()
    theta0 = np.ones(f.shape)
    loose, exact = DualFL(stop=Steps(steps=1)), DualFL(solver=LBFGS(), stop=Steps(steps=60))
    assert np.abs(run(loose, f, rounds=1, theta0=theta0).theta - run(loose, f, rounds=1).theta).max() > 1e-3
    np.testing.assert_allclose(run(exact, f, rounds=3, theta0=theta0).theta, run(exact, f, rounds=3).theta, atol=1e-8)


def interpolated(*, shift: float = 1.0) -> Quadratic:
    """``E* = 0``: all clients have the minimiser ``shift (1, 1)``, where they are zero."""
    A = np.stack([np.diag([1.0, 2.0]), np.diag([3.0, 1.0])])
    x = shift * np.ones(2)
    return Quadratic(A=A, b=A @ x, c=0.5 * (A @ x) @ x)


def test_a_minimum_of_zero_needs_an_absolute_tolerance() -> None:
    """The relative error is undefined for ``E* = 0``: a run with ``tol`` alone goes on, ``atol`` ends it."""
    f = interpolated()
    endless = run(EXACT, f, rounds=60, tol=1e-3)
    assert endless.status in ("stalled", "max_rounds")
    assert np.all(np.isinf(endless["certified_error"]))
    for tol in (None, 1e-3):
        trace = run(EXACT, f, rounds=60, tol=tol, atol=1e-6)
        assert trace.status == "converged"
        assert 0 <= trace["energy"][-1] <= trace["certificate"][-1] <= 1e-6
        assert trace["certificate"][-2] > 1e-6


def test_atol_holds_beside_a_positive_minimum() -> None:
    """Whichever tolerance is met first ends the run."""
    f = quadratic()
    both = run(EXACT, f, rounds=100, tol=1e-9, atol=1e-2)
    assert both.status == "converged"
    assert both["certificate"][-1] <= 1e-2
    assert both["certified_error"][-1] > 1e-9
    assert run(EXACT, f, rounds=100, tol=1e-1, atol=1e-12)["certified_error"][-1] <= 1e-1


def test_a_reference_of_zero_gives_absolute_errors() -> None:
    trace = run(EXACT, interpolated(), rounds=3, reference=0.0)
    np.testing.assert_array_equal(trace["error"], trace["energy"])


def test_a_start_at_a_minimum_of_zero() -> None:
    """Everything is zero, the relative error too or not; nothing is raised, and the bound is absolute."""
    trace = run(EXACT, interpolated(shift=0.0), tol=1e-6, reference=0.0)
    assert trace.status == "stalled"
    assert 0 < trace["certificate"][-1] < 1e-300
    assert trace["certified_error"][-1] == np.inf


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"rounds": -1}, "rounds"),
        ({"tol": -1.0}, "tol must be at least 0, not -1.0"),
        ({"atol": -1.0}, "atol must be at least 0, not -1.0"),
        ({"certify_every": -1}, "certify_every"),
        ({"measure_every": 0}, "measure_every must be at least 1, not 0"),
        ({"threads": 0}, "threads"),
        ({"theta0": np.zeros(3)}, "theta0"),
        ({"theta0": np.full(4, np.nan)}, "theta0"),
        ({"theta0": np.zeros(4, dtype=np.float32)}, "theta0"),
    ],
)
def test_refuses_bad_arguments(options: dict, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        run(EXACT, quadratic(), **options)


def test_parameters_are_recorded() -> None:
    parameters = run(EXACT, quadratic(), rounds=1, parameters={"data": "test"}).parameters
    assert parameters["algorithm"] == "DualFL"
    assert parameters["hyperparameters"]["dualfl"]["solver"] == {"exact": {}}
    assert parameters["hyperparameters"]["dualfl"]["nu"] == pytest.approx(1.0)
    assert parameters["data"] == "test"


# Traces.


@pytest.fixture(scope="module")
def trace() -> Trace:
    return run(DualFL(solver=Exact()), quadratic(), rounds=5, parameters={"data": "tests, with a comma"})


def assert_same(a: Trace, b: Trace) -> None:
    assert (a.status, dict(a.parameters), list(a.columns)) == (b.status, dict(b.parameters), list(b.columns))
    for name in a.columns:
        np.testing.assert_array_equal(a[name], b[name])  # every digit, NaN included


def test_csv_round_trip(trace: Trace, tmp_path) -> None:
    trace.to_csv(tmp_path / "trace.csv")
    assert_same(trace, Trace.from_csv(tmp_path / "trace.csv"))


def test_npz_round_trip(trace: Trace, tmp_path) -> None:
    trace.to_npz(tmp_path / "trace.npz")
    back = Trace.from_npz(tmp_path / "trace.npz")
    assert_same(trace, back)
    np.testing.assert_array_equal(back.theta, trace.theta)


def test_first_below() -> None:
    t = Trace(columns={"round": [0, 5, 10], "error": [1.0, 0.1, 0.01]}, status="max_rounds", theta=None)
    assert (t.first_below("error", 0.1), t.first_below("error", 1e-3)) == (5, None)
    assert t.last == {"round": 10.0, "error": 0.01}


def test_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="status"):
        Trace(columns={"round": [0]}, status="fine", theta=None)
    with pytest.raises(ValueError, match="columns"):
        Trace(columns={"round": [0], "energy": [1.0, 2.0]}, status="stalled", theta=None)


def test_what_measuring_and_certifying_sends_is_counted_apart() -> None:
    """Five clients, four coordinates: an energy up, or a gradient and a dual point with five numbers."""
    f = quadratic()
    word = 64 * f.n_clients
    trace = run(DualFL(), f, rounds=4, certify_every=2)
    ups = [4 + 3, 1, 2 * 4 + 5, 1, 2 * 4 + 5]  # no client has a dual point before the first round
    assert trace["bits_measuring_up"].tolist() == [word * sum(ups[: n + 1]) for n in range(5)]
    assert trace["bits_measuring_down"].tolist() == [word * 4 * (n + 1) for n in range(5)]
    assert trace["bits_up"].tolist() == [word * 4 * n for n in range(5)]
    last = run(DualFL(), f, rounds=4)
    assert last["bits_measuring_up"][-1] == word * (5 + 2 * 4 + 5)  # the end is certified, whatever was asked
    stopped = run(DualFL(), f, rounds=4, certify_every=2, measure_every=2)
    assert stopped["bits_measuring_up"].tolist() == [word * n for n in (7, 7, 20, 20, 33)]
