"""The search for parameters: it stops early, and finds what complete runs would."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualopt import CommunicateWithProbability, FedPD
from dualopt.runs import tuning
from dualopt.runs.tuning import METRICS, Candidate, Trial, pruned, tune, winner
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import Steps
from tests.problems import quadratic

PROBLEM = quadratic(3)
STEPS = (0.003, 0.03, 0.5, 0.1, 0.2, 3.0)
GRID = [
    Candidate(algorithm=FedPD(eta=eta, solver=solver, stop=stop))
    for eta in STEPS
    for solver, stop in ((Exact(), Steps(steps=1)), (Gradient(), Steps(steps=4)))
]
SEARCH = {"target": 1e-5, "rounds": 60}
MINIMUM = float(PROBLEM.value(PROBLEM.minimiser()).mean())


def timeless(outcomes):
    """Outcomes as text, without what a clock says."""
    return {n: repr(replace(outcome, seconds=0.0)) for n, outcome in outcomes.items()}


def outcome(*costs, status="converged"):
    return Trial(status=status, costs=costs, errors=(0.5,) * len(costs), seconds=0.0)


@pytest.mark.parametrize(("metric", "reference"), [("rounds", None), ("gradients", None), ("gradients", MINIMUM)])
def test_stopping_early_finds_what_complete_runs_find(metric, reference):
    options = {**SEARCH, "metric": metric, "reference": reference}
    complete = tune(GRID, PROBLEM, **options, early_stopping=False)
    found = tune(GRID, PROBLEM, **options)
    assert list(found) == list(complete) == list(range(len(GRID)))
    best = winner(complete)
    assert best is not None
    assert best == winner(found)
    assert timeless({0: found[best]}) == timeless({0: complete[best]})
    assert found[best].error <= SEARCH["target"] < found[best].errors[-2]
    assert complete[best].cost == min(o.cost for o in complete.values() if o.status == "converged")
    assert len({o.cost for o in complete.values()}) > 2
    budget = complete[best].cost
    dominated = [o for o in found.values() if o.status == "dominated"]
    assert len(dominated) >= 3
    for o in dominated:  # not a round too late or too early
        assert o.cost > budget >= max((0.0, *o.costs[:-1]))
    assert timeless(pruned(complete)) == timeless(found)


def test_the_metrics_are_what_runs_record():
    algorithm = FedPD(eta=0.1, solver=Gradient(), stop=Steps(steps=4))
    lossy = Candidate(algorithm=algorithm, participation=CommunicateWithProbability(probability=0.5))
    trace = tuning.run(algorithm, PROBLEM, rounds=7, participation=lossy.participation, seed=2, certify_every=1)
    expected = {
        "rounds": np.arange(1, 8),
        "communications": trace["communications"][1:],
        "floats": trace["floats_up"][1:] + trace["floats_down"][1:],
        "bits": trace["bits_up"][1:] + trace["bits_down"][1:],
        "gradients": trace["gradients"][1:],
    }
    assert set(expected) == set(METRICS)
    for metric, costs in expected.items():
        (found,) = tune([lossy], PROBLEM, metric=metric, target=1e-9, rounds=7, seed=2).values()
        assert found.status == "max_rounds"
        np.testing.assert_array_equal(found.costs, costs)
        np.testing.assert_array_equal(np.isfinite(found.errors), np.isfinite(trace["certified_error"][1:]))
        assert found.error == trace.last["certified_error"]


def test_a_candidate_may_have_a_number_of_rounds_of_its_own():
    usual = Candidate(algorithm=FedPD(eta=0.003, solver=Exact()))
    outcomes = tune([usual, replace(usual, rounds=7)], PROBLEM, target=1e-12, rounds=4)
    assert [(outcome.status, len(outcome.costs)) for outcome in outcomes.values()] == [
        ("max_rounds", 4),
        ("max_rounds", 7),
    ]


def test_the_order_of_candidates_does_not_change_what_each_is_worth():
    found = timeless(tune(GRID, PROBLEM, metric="gradients", **SEARCH))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(GRID)).tolist()
        shuffled = timeless(tune([GRID[n] for n in order], PROBLEM, metric="gradients", **SEARCH))
        assert {n: shuffled[order.index(n)] for n in found} == found


def test_the_first_of_equal_candidates_wins_whichever_ends_first():
    assert winner({3: outcome(1.0, 2.0), 1: outcome(2.0), 0: outcome(3.0), 2: outcome(1.0, status="stalled")}) == 1
    twice = [GRID[4], GRID[4], GRID[0]]
    found = tune(twice, PROBLEM, **SEARCH)
    assert winner(found) == 0
    assert found[1].status == "converged"
    late = tune(twice, PROBLEM, known={1: found[1]}, **SEARCH)
    assert winner(late) == 0


def test_processes_find_what_one_does():
    alone = tune(GRID, PROBLEM, metric="gradients", **SEARCH)
    seen = []
    together = tune(GRID, PROBLEM, metric="gradients", jobs=2, report=lambda found: seen.append(len(found)), **SEARCH)
    assert timeless(alone) == timeless(together)
    assert seen == list(range(1, len(GRID) + 1))


def test_runs_are_stopped_and_not_only_cut_afterwards(monkeypatch):
    lengths = []

    def run(*arguments, run=tuning.run, **options):
        trace = run(*arguments, **options)
        lengths.append(len(trace) - 1)
        return trace

    monkeypatch.setattr(tuning, "run", run)
    complete = tune(GRID, PROBLEM, **SEARCH, early_stopping=False)
    expected, best = [], np.inf
    for o in complete.values():
        expected.append(min(len(o.costs), best + 1))
        if o.status == "converged":
            best = min(best, len(o.costs))
    lengths.clear()
    tune(GRID, PROBLEM, **SEARCH)
    assert lengths == expected
    assert len(set(lengths)) > 2


def test_what_is_known_is_not_computed_again(monkeypatch):
    ran = []

    def run(algorithm, *arguments, run=tuning.run, **options):
        ran.append(algorithm)
        return run(algorithm, *arguments, **options)

    monkeypatch.setattr(tuning, "run", run)
    found = tune(GRID, PROBLEM, **SEARCH)
    assert ran == [c.algorithm for c in GRID]
    ran.clear()
    known = {n: o for n, o in found.items() if n % 3}
    assert timeless(tune(GRID, PROBLEM, known=known, **SEARCH)) == timeless(found)
    assert ran == [c.algorithm for n, c in enumerate(GRID) if n % 3 == 0]
    ran.clear()
    assert tune(GRID, PROBLEM, known=found, **SEARCH) == found
    assert ran == []


def test_an_interrupted_run_is_left_out_and_finished_ones_stay(monkeypatch):
    rounds = []
    monkeypatch.setattr(tuning, "_cost", lambda row, metric, of=tuning._cost: (rounds.append(1), of(row, metric))[1])
    complete = tune(GRID[4:6], PROBLEM, **SEARCH)
    first = len(complete[0].costs)
    rounds.clear()
    found = tune(GRID[4:6], PROBLEM, interrupted=lambda: len(rounds) > first + 3, **SEARCH)
    assert timeless(found) == timeless({0: complete[0]})


def test_a_run_within_a_budget():
    full = outcome(1.0, 1.0, 3.0, 4.0)
    assert full.within(4.0) is full
    assert full.within(3.0) is full  # it converged in the round that exceeds the budget
    assert full.within(2.0) == replace(outcome(1.0, 1.0, 3.0), status="dominated")
    assert full.within(1.0) == full.within(2.0)
    assert outcome(1.0, 2.0, status="max_rounds").within(1.0).status == "dominated"
    assert outcome(1.0, 2.0, status="diverged").within(1.0).status == "diverged"
    assert outcome(1.0, 2.0, status="max_rounds").within(2.0).status == "max_rounds"


def test_nobody_wins_when_nobody_arrives():
    found = tune(GRID[:2], PROBLEM, target=1e-12, rounds=3)
    assert winner(found) is None
    assert [(o.status, o.cost) for o in found.values()] == [("max_rounds", 3.0)] * 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"metric": "seconds"}, "metric must be one of rounds, communications, floats, bits, gradients; not 'seconds'"),
        ({"target": 0.0}, "target must be positive, not 0.0"),
        ({"target": float("nan")}, "target must be positive, not nan"),
        ({"rounds": 0}, "rounds must be at least 1, not 0"),
        ({"jobs": 0}, "jobs must be at least 1, not 0"),
    ],
)
def test_wrong_arguments_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        tune(GRID, PROBLEM, **options)
