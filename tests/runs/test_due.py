"""Certificates in few rounds: where a tolerance is met, what is asked meanwhile, and what a resumed run asks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt.engine._remote import RemoteClients
from dualopt.engine.checkpoint import Checkpoint
from dualopt.methods import DualFL, FedDyn
from dualopt.runs._due import next_certificate
from dualopt.runs.recording import run
from tests.engine.problems import problems
from tests.engine.wired import elsewhere

CLIENTS = [(1, 3), (0, 2, 4)]


def stopped(certificates: Any, tol: float) -> tuple[int, int]:
    """Return the first round that is seen to meet the tolerance, and how many were looked at."""
    known: list[tuple[int, float]] = []
    n = 0
    while True:
        known.append((n, certificates(n) / tol))
        if known[-1][1] <= 1.0:
            return n, len(known)
        n = next_certificate(known)


@pytest.mark.parametrize("rate", [0.3, 0.9, 0.97, 0.995])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_a_linear_rate_ends_in_the_first_round_that_meets_the_tolerance(rate: float, tol: float) -> None:
    n, looks = stopped(lambda n: rate**n, tol)
    assert n == math.ceil(math.log(tol) / math.log(rate))
    assert looks <= 12 + 8 * math.log(1 + n)


@pytest.mark.parametrize(
    "certificate", [lambda n: 1.0 / (1 + n) ** 2, lambda n: 0.5 ** (n * n / 50), lambda n: 10.0 if n < 77 else 0.1]
)
def test_other_rates_end_at_most_a_fifth_later(certificate: Any) -> None:
    """Slower than linear, faster, and not to be foreseen."""
    first = next(n for n in range(10**6) if certificate(n) <= 1e-4 or n > 76)
    n, _ = stopped(certificate, max(certificate(first), 1e-4))
    assert first <= n <= first + max(1, first // 5)


def test_unknown_certificates_are_asked_for_again() -> None:
    """Before each client has had a solution, and where the latest one is no smaller."""
    assert next_certificate([(20, math.inf)]) == next_certificate([(10, math.inf), (20, 1e9)]) == 24
    assert next_certificate([(10, 5.0), (20, 7.0)]) == next_certificate([(10, 5.0), (20, 5.0)]) == 24


@pytest.mark.parametrize("method", [DualFL(), FedDyn(fraction=1.0)], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("tolerance", [{"tol": 1e-6}, {"atol": 1e-6}, {"tol": 1e-9, "atol": 1e-7}], ids=str)
def test_a_run_over_a_wire(method: Any, tolerance: dict[str, Any]) -> None:
    """It ends at most a fifth later than with a certificate in each round, at the same models, and asks for less."""
    f = problems()["smooth"]
    every = run(method, f, rounds=300, certify_every=1, **tolerance)
    few = run(method, elsewhere(f, CLIENTS), rounds=300, **tolerance)
    assert every.status == few.status == "converged"
    first, last = (int(trace.last["round"]) for trace in (every, few))
    assert first <= last <= 1.2 * first
    known = np.flatnonzero(~np.isnan(few["certificate"]))
    assert known[0] == 0
    assert known[-1] == last
    assert len(known) < 0.7 * last
    assert np.array_equal(np.isnan(few["certificate"]), np.isnan(few["energy"]))
    both = known[known <= first]
    assert np.array_equal(few["certificate"][both], every["certificate"][both])
    longer = run(method, f, rounds=last, certify_every=0)
    assert np.array_equal(few.theta, longer.theta)
    assert few.last["bits_measuring_up"] < 0.7 * every.last["bits_measuring_up"]


def test_in_one_process_every_round_has_one() -> None:
    trace = run(DualFL(), problems()["smooth"], rounds=300, tol=1e-6)
    assert not np.isnan(trace["certificate"]).any()


def test_without_a_tolerance_the_ends_have_one() -> None:
    trace = run(DualFL(), elsewhere(problems()["smooth"], CLIENTS), rounds=12)
    assert np.flatnonzero(~np.isnan(trace["certificate"])).tolist() == [12]


def test_a_resumed_run_asks_as_one_that_was_not_interrupted(tmp_path: Path) -> None:
    f = problems()["smooth"]
    options: dict[str, Any] = {"tol": 1e-6}
    whole = run(DualFL(), elsewhere(f, CLIENTS), rounds=300, **options)
    half = int(whole.last["round"]) // 2
    place = tmp_path / "run.journal"
    clients = elsewhere(f, CLIENTS)
    run(DualFL(), clients, rounds=half, checkpoint=Checkpoint(place), **options)
    again = RemoteClients(clients.engine)
    found = run(DualFL(), again, rounds=300, checkpoint=Checkpoint(place, resume=True), **options)
    known = ~np.isnan(whole["certificate"])
    known[half] = ~np.isnan(found["certificate"][half])  # the last round of the first part has one
    assert np.array_equal(found.theta, whole.theta)
    assert np.array_equal(found["round"], whole["round"])
    assert np.array_equal(~np.isnan(found["certificate"]), known)
