"""What mixed precision saves: rounds, and runs to a certificate, beside double precision.

Run with ``pytest tests/benchmarks/test_precision.py --benchmark-only -s``; CPU times of one thread, in turns. A run
certifies in every tenth round: a certificate in every round costs two gradients in double precision where local work in
double precision would have computed one of them.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from dualopt.engine.rounds import iterate
from dualopt.methods import AndersonFedSplit, DualFL, FedDyn
from dualopt.objectives import linear_model
from dualopt.runs.recording import run
from tests.problems import digits

from .race import report

ROUNDS = 10


def pair(f: Any) -> dict[str, Any]:
    """Return the clients with local work in double and in mixed precision."""
    return {p: replace(f, precision=p) for p in ("double", "mixed")}


def rounds_in_turns(method: Any, objectives: dict[str, Any]) -> dict[str, float]:
    """Return milliseconds of a round, medians over those from the third on."""
    snapshots = {name: iterate(method, f) for name, f in objectives.items()}
    times: dict[str, list[float]] = {name: [] for name in objectives}
    for _ in range(ROUNDS):
        for name, rounds in snapshots.items():
            began = time.process_time()
            list(islice(rounds, 1))
            times[name].append(time.process_time() - began)
    return {name: 1e3 * statistics.median(own[2:]) for name, own in times.items()}


def test_rounds(benchmark, images):
    """Rounds without certificates, the images by label and the digits."""
    X, y, source = images
    parts = [part.tolist() for part in np.array_split(np.argsort(y, kind="stable"), 8)]
    large = pair(linear_model(X, y, loss="multinomial", mu=1e-2, clients=parts))
    table = []
    for name, f in ((source, large), ("digits", pair(digits()))):
        for method in (AndersonFedSplit(), DualFL(), FedDyn()):
            found = rounds_in_turns(method, f)
            ratio = found["mixed"] / found["double"]
            own = [f"{found[p]:.1f}" for p in ("double", "mixed")]
            table.append([name, type(method).__name__, *own, f"{ratio:.2f}"])
    benchmark.pedantic(lambda: None, rounds=1)
    report("A round, ms", ["data", "method", "double", "mixed", "ratio"], table)
    assert len(table) == 6


def test_runs(benchmark):
    """Seconds to certified accuracies on the digits, with a certificate in every tenth round."""
    f, table = pair(digits()), []
    for tol in (1e-4, 1e-6, 1e-8, 1e-10):
        row = [f"{tol:g}"]
        for own in f.values():
            began = time.process_time()
            trace = run(AndersonFedSplit(), own, rounds=400, tol=tol, certify_every=10, measure_every=10)
            row += [f"{time.process_time() - began:.3f}", str(len(trace) - 1)]
            assert trace.status == "converged"
        table.append(row)
    benchmark.pedantic(lambda: None, rounds=1)
    report("digits, AndersonFedSplit", ["tol", "double, s", "rounds", "mixed, s", "rounds"], table)
