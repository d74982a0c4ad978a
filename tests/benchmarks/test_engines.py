"""What a round costs where clients are in blocks: one process against 1, 2 and 8 blocks of it.

Run with ``pytest tests/benchmarks/test_engines.py --benchmark-only -s``; CPU times of one thread, medians of
contestants that take turns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dualopt.engine import Blocks
from dualopt.losses import Logistic
from dualopt.methods import DualFL, FedDyn
from dualopt.objectives import linear_model
from dualopt.runs.recording import run
from dualopt.solvers import Exact
from dualopt.solvers.stopping import Steps

from .race import in_turns, report
from .test_overhead import quadratic

ENGINES = {"one process": None, "1 block": Blocks(number=1), "2 blocks": Blocks(number=2), "8 blocks": Blocks(number=8)}


def rows(clients: int, features: int, each: int = 20) -> Any:
    """Return logistic regression on random rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((clients * each, features))
    return linear_model(X, np.sign(X[:, 0] + 0.1), loss=Logistic(), mu=0.1, clients=clients, intercept=False)


def tiny() -> Any:
    """Return eight quadratics in the plane."""
    f = quadratic()
    return type(f)(A=np.concatenate([f.A, f.A]), b=np.concatenate([f.b, 2 * f.b]))


CASES: dict[str, tuple[Any, Callable[[], Any], int]] = {
    "8 quadratics, d = 2": (DualFL(solver=Exact()), tiny, 100),
    "64 clients, d = 650": (DualFL(stop=Steps(steps=3)), partial(rows, 64, 650), 5),
    "8 clients, d = 10,000": (DualFL(stop=Steps(steps=3)), partial(rows, 8, 10_000), 5),
    "10,000 clients, d = 20": (FedDyn(alpha=0.3, stop=Steps(steps=3)), partial(rows, 10_000, 20), 2),
}


def test_blocks(benchmark):
    """The same model in every bit; a block costs at most a quarter of a millisecond and half of a round."""
    table, limits = [], []
    for name, (method, make, rounds) in CASES.items():
        f = make()
        contestants: dict[str, Any] = {
            way: partial(run, method, f, rounds=rounds, engine=engine, measure_every=rounds)
            for way, engine in ENGINES.items()
        }
        seconds, traces = in_turns(contestants, 5)
        for trace in traces.values():
            np.testing.assert_array_equal(trace.theta, traces["one process"].theta)
        each = {way: 1e3 * time / rounds for way, time in seconds.items()}
        table.append([name, *(f"{time:.2f}" for time in each.values())])
        limits.append((each["1 block"], 1.5 * each["one process"] + 0.25))
    benchmark.pedantic(partial(run, DualFL(solver=Exact()), tiny(), rounds=20, engine=Blocks(number=2)), rounds=3)
    report("Clients in blocks of one process, milliseconds a round", ["problem", *ENGINES], table)
    assert all(time <= limit for time, limit in limits), limits
