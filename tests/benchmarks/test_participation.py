"""Rounds in which a part of 100,000 clients takes part, against federations of as many clients alone.

Run with ``pytest tests/benchmarks/test_participation.py --benchmark-only -s``; CPU times of one thread, medians of
rounds that take turns. Local solvers do the same number of steps in both, because a client that is visited seldom would
else need more of them than one that takes part in every round; by default settings, which stop where they are told to,
the gradients are shown. Scaffnew needs everybody, so it is compared per client.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.losses import Logistic
from dualopt.methods import AFedPD, FedAvg, FedDyn, SampledDualFL, Scaffnew, Scaffold
from dualopt.methods.participation import Full, UniformSubset
from dualopt.objectives import LinearModel, linear_model
from dualopt.solvers.stopping import Steps

from .race import peak_memory, report

CLIENTS, ROWS, FEATURES = 100_000, 20, 20
ROUNDS = 9
METHODS: dict[str, Any] = {
    "FedDyn": FedDyn(stop=Steps(steps=4)),
    "FedAvg": FedAvg(),
    "SCAFFOLD": Scaffold(),
    "A-FedPD": AFedPD(stop=Steps(steps=4)),
}


def federation(clients: int) -> LinearModel:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(clients * ROWS, FEATURES))
    y = np.where(X @ rng.normal(size=FEATURES) + rng.normal(size=len(X)) > 0, 1.0, -1.0)
    return linear_model(X, y, loss=Logistic(), mu=1e-2, clients=clients, intercept=False)


def seconds_in_turns(runs: dict[str, Iterator[Any]]) -> dict[str, float]:
    return measured_in_turns(runs, ROUNDS)[0]


def measured_in_turns(runs: dict[str, Iterator[Any]], rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return the median seconds and the mean gradients of a round, without the first two."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    gradients: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, snapshots in runs.items():
            start = time.process_time()
            snapshot = next(snapshots)
            times[name].append(time.process_time() - start)
            gradients[name] += [statistics.fmean(snapshot.solution.gradients)]
    return (
        {name: statistics.median(all_[2:]) for name, all_ in times.items()},
        {name: statistics.fmean(all_[2:]) for name, all_ in gradients.items()},
    )


@pytest.mark.parametrize("percent", [1, 10])
def test_rounds(benchmark, percent):
    """At most twice the time of the active clients alone."""
    size = CLIENTS * percent // 100
    everybody, alone = federation(CLIENTS), federation(size)
    few = UniformSubset(size=size)
    found = {}
    for name, method in METHODS.items():
        snapshots = {"part": iterate(method, everybody, participation=few), "alone": iterate(method, alone)}
        found[name] = seconds_in_turns(snapshots)
    benchmark.pedantic(next, args=(iterate(FedAvg(), alone),), rounds=1)
    report(
        f"A round of {size:,} of {CLIENTS:,} clients, {ROWS} x {FEATURES} each, and of {size:,} alone; "
        "FedDyn and A-FedPD make 4 local steps, by default they take longer",
        ["method", "ms", "ms, alone", "ratio"],
        [
            [name, f"{1e3 * s['part']:.1f}", f"{1e3 * s['alone']:.1f}", f"{s['part'] / s['alone']:.2f}"]
            for name, s in found.items()
        ],
    )
    assert max(s["part"] / s["alone"] for s in found.values()) <= 2.0


def test_default_settings(benchmark):
    """At most twice the time of the active clients alone, whose problems are nearly solved."""
    everybody, alone = federation(CLIENTS), federation(CLIENTS // 100)
    few = UniformSubset(size=CLIENTS // 100)
    found = {}
    for method in (FedDyn(), SampledDualFL(), FedAvg(), Scaffold(), AFedPD()):
        snapshots = {"part": iterate(method, everybody, participation=few), "alone": iterate(method, alone)}
        times, gradients = measured_in_turns(snapshots, 2 * ROUNDS)
        found[type(method).__name__] = [times["part"], times["alone"], gradients["part"], gradients["alone"]]
    benchmark.pedantic(next, args=(iterate(FedAvg(), alone),), rounds=1)
    report(
        f"A round of {CLIENTS // 100:,} of {CLIENTS:,} clients, {ROWS} x {FEATURES} each, and of as many alone; "
        "default settings",
        ["method", "ms", "ms, alone", "ratio", "gradients", "alone"],
        [
            [name, f"{1e3 * part:.1f}", f"{1e3 * own:.1f}", f"{part / own:.2f}", f"{many:.1f}", f"{less:.1f}"]
            for name, (part, own, many, less) in found.items()
        ],
    )
    assert max(part / alone for part, alone, _, _ in found.values()) <= 2.0


def test_everybody(benchmark):
    """Rounds of everybody: at 100,000 clients at most three times as long for each, as gradients are allowed."""
    methods = METHODS | {"Scaffnew": Scaffnew()}
    federations = {n: federation(n) for n in (1000, CLIENTS)}
    found = {}
    for name, method in methods.items():
        runs = {str(n): iterate(method, f, participation=Full()) for n, f in federations.items()}
        per_client = {n: 1e6 * s / int(n) for n, s in seconds_in_turns(runs).items()}
        found[name] = list(per_client.values())
    benchmark.pedantic(next, args=(iterate(FedAvg(), federations[1000]),), rounds=1)
    report(
        f"A round of everybody, clients of {ROWS} x {FEATURES}; FedDyn and A-FedPD make 4 local steps",
        ["method", *(f"us per client, N = {n:,}" for n in federations)],
        [[name, *(f"{us:.1f}" for us in numbers)] for name, numbers in found.items()],
    )
    assert max(many / few for few, many in found.values()) <= 3.0


MEMORY = """
import sys
from itertools import islice
from dualopt import FedAvg, FedDyn, UniformSubset, iterate
from tests.benchmarks.test_participation import CLIENTS, federation
f = federation(CLIENTS)
note("after the data were built")
method = {"FedDyn": FedDyn, "FedAvg": FedAvg}[sys.argv[1]]()
for snapshot in islice(iterate(method, f, participation=UniformSubset(size=CLIENTS // 100)), 50):
    pass
note("at most")
"""


@pytest.mark.parametrize("method", ["FedDyn", "FedAvg"])
def test_memory(benchmark, method):
    """A run of 50 rounds needs at most three times the memory of the data, everything included."""
    megabytes = peak_memory(MEMORY, method)
    benchmark.pedantic(lambda: None, rounds=1)
    data = 8e-6 * CLIENTS * ROWS * FEATURES
    report(
        f"Memory of 50 rounds of {method}, 1 percent of {CLIENTS:,} clients, data {data:.0f} MB",
        ["", "MB", "times the data"],
        [[name, f"{number:.0f}", f"{number / data:.2f}"] for name, number in megabytes.items()],
    )
    assert megabytes["at most"] <= 3.0 * data
