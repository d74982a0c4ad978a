"""What is said to diverge: never a run that converges, however far it rises at first; one that grows, and keeps on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt import AndersonDANE, DualFL, FedAvg, GradientDescent, Quadratic, UniformSubset, iterate, run
from dualopt.app.cli import output
from dualopt.engine.checkpoint import Checkpoint
from dualopt.methods import anderson_dane
from dualopt.runs._recorder import EXPLOSION
from dualopt.runs.divergence import above, at_rest, diverges
from dualopt.runs.recording import RISING, STALL_ROUNDS
from dualopt.solvers import Exact
from dualopt.spec.discover import discover
from tests.problems import quadratic
from tests.promises import quadratics

ALGORITHMS = discover(dualopt.methods)
ROUNDS = 160
PROBLEMS = {
    "kappa 30": quadratics(6, 3, 30.0, 0),
    "kappa 1e4": quadratics(5, 3, 1e4, 1),
    "kappa 1e6": quadratics(4, 2, 1e6, 2),
}
WRONG = DualFL(nu=50.0, rho=0.0, solver=Exact())


def energies(name: str, f: Quadratic, who: Any) -> Iterator[float]:
    """Energies of a run of the method with its defaults and exact local solutions, if it has any."""
    try:
        method: Any = ALGORITHMS[name](solver=Exact())
    except (TypeError, ValueError):
        method = ALGORITHMS[name]()
    yield float(f.mean(f.value(f.initial())))
    for snapshot in islice(iterate(method, f, participation=who, seed=1), ROUNDS):
        yield float(f.mean(f.value(snapshot.server.theta)))


@pytest.mark.parametrize("problem", ["kappa 30", "kappa 1e6"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_converges_is_never_said_to_diverge(name: str, problem: str) -> None:
    """After whatever number of rounds the run may be asked: the defaults of all methods."""
    f = PROBLEMS[problem]
    least, shortest = float(f.mean(f.value(f.minimiser()))), RISING * STALL_ROUNDS
    for who in (None, UniformSubset(size=2)) if "partial" in ALGORITHMS[name].supports else (None,):
        found = list(energies(name, f, who))
        if found[-1] - least < found[0] - least:
            share = 1.0 if who is None else 2.0 / f.n_clients
            assert not any(diverges(found[: n + 1], shortest / share) for n in range(len(found)))


def ramp(low: float, high: float) -> list[float]:
    return np.linspace(low, high, 10).tolist()


GROWS = [5.0, *ramp(70.0, 75.0), *ramp(70.0, 80.0), *ramp(90.0, 95.0)]  # 65 is 10 (1 + 5) above the start


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({10: 1000.0}, True),  # before the last two thirds
        ({11: 1000.0}, False),  # of the range of the second third, that of the last one is little then
        ({20: 1000.0}, False),
        ({21: 65.0}, False),  # not above
        ({21: 70.0}, True),  # as low as the third before
        ({21: 69.9}, False),  # it comes down
        ({20: 60.0, 21: 65.0}, False),  # not above, and not below the third before
        ({20: 66.0, 21: 66.0}, True),
        ({30: 65.0}, False),
        (dict(enumerate(ramp(90.0, 94.0), 21)), False),  # its range is 0.4 times as large: it settles
        (dict(enumerate(ramp(90.0, 94.1), 21)), True),
        (dict.fromkeys(range(11, 21), 70.0) | dict(enumerate(ramp(90.0, 90.05), 21)), False),  # at rest
        (dict.fromkeys(range(11, 21), 70.0) | dict(enumerate(ramp(90.0, 90.2), 21)), True),
        (dict.fromkeys(range(11, 21), float("nan")), False),
        ({11: float("nan"), 21: float("nan")}, True),
    ],
    ids=str,
)
def test_the_rule_looks_at_two_thirds(changed: dict[int, float], expected: bool) -> None:
    """At its borders: of the thirds, of the height, of what settles and of what rests."""
    found = [changed.get(n, energy) for n, energy in enumerate(GROWS)]
    assert diverges(found, 30) == expected
    assert not diverges(found, 31)


def test_what_rests_moves_by_a_thousandth() -> None:
    assert [above(-3.0, 10.0), above(5.0, 10.0)] == [37.0, 65.0]
    assert [at_rest(x) for x in ([-1000.0, -999.0], [-1000.0, -998.9], [1000.0, 999.0])] == [True, False, True]


def test_heights_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """AndersonDANE that takes every point rises beyond what was once said to be an explosion, and converges."""
    monkeypatch.setattr(anderson_dane, "below", lambda *values, **room: True)
    f = PROBLEMS["kappa 1e4"]
    trace = run(AndersonDANE(solver=Exact(), eta=0.2), f, rounds=ROUNDS)
    assert max(trace["energy"]) > EXPLOSION
    assert trace.status == "stalled"
    assert trace.last["energy"] == pytest.approx(float(f.mean(f.value(f.minimiser()))))


def test_a_biased_method_comes_to_rest_and_does_not_diverge() -> None:
    f = PROBLEMS["kappa 1e4"]
    trace = run(FedAvg(solver=Exact()), Quadratic(A=f.A, b=100.0 * f.b), rounds=400)
    assert trace["energy"][-1] > 20.0 * (1.0 + abs(trace["energy"][0]))
    assert trace.status == "stalled"
    assert "E = 0 at the start was less" in output.outcome(trace, None)["status"]


def test_a_method_that_stays_above_its_start_diverges_and_the_best_model_is_kept() -> None:
    """Steps of 2.03/L, by which the steepest part grows by 1.03 a round; 30 rounds are too few to tell."""
    f = Quadratic(A=np.stack([np.diag([1.0, 100.0])] * 2), b=np.array([[1.0, 100.0], [3.0, 100.0]]))
    method = GradientDescent(step=0.0203)
    trace = run(method, f, check_assumptions=False)
    assert (trace.status, trace.last["round"]) == ("diverged", RISING * STALL_ROUNDS)
    assert float(f.mean(f.value(trace.theta))) == np.min(trace["energy"]) == 0.0
    assert trace.last["energy"] == pytest.approx(-52.0 + 2.0 * 0.9797**200 + 50.0 * 1.03**200)
    said = output.outcome(trace, None)["status"]
    assert said.startswith("diverged: the energy is not finite, or stays far above")
    assert said.endswith("; the model of round 0, E = 0, is kept")
    assert run(method, f, rounds=30, check_assumptions=False).status == "max_rounds"


def test_the_best_model_is_not_lost_with_an_interruption(tmp_path: Path) -> None:
    f = quadratic(mu=1.0, L=100.0)
    theta0 = f.minimiser() + 1e-3
    options: dict[str, Any] = {"rounds": 300, "check_assumptions": False, "theta0": theta0}
    whole, path = run(WRONG, f, **options), tmp_path / "run.npz"
    run(WRONG, f, **options, checkpoint=Checkpoint(path), callback=lambda s, row: row["round"] == 20)
    rest = run(WRONG, f, **options, checkpoint=Checkpoint(path, resume=True))
    assert (rest.status, rest.theta.tolist(), len(rest)) == ("diverged", theta0.tolist(), len(whole))
