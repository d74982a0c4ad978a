"""What a round costs beside its arithmetic: DualFL on four clients whose problems take no time.

Run with ``pytest tests/benchmarks/test_overhead.py --benchmark-only -s``; CPU times of one thread, medians of
contestants that take turns. "NumPy" is the same method on the quadratic problems written for them alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from dualopt.engine.rounds import iterate
from dualopt.losses import Logistic
from dualopt.methods import DualFL, FedAvg, FedDyn, FedSplit, OptimizedDualFL
from dualopt.methods.dualfl import momentum
from dualopt.objectives import Quadratic, linear_model
from dualopt.runs.recording import run
from dualopt.solvers import LBFGS, Exact, NewtonCG

from .race import in_turns, report

ROUNDS, TURNS = 60, 21
QUADRATIC_LIMIT, LOGISTIC_LIMIT, LESSON_LIMIT = 50e-6, 0.4e-3, 30e-3


def quadratic() -> Quadratic:
    """Return four quadratics in the plane."""
    rng = np.random.default_rng(0)
    A = np.stack([np.diag(d) + 0.1 for d in rng.uniform(1, 5, (4, 2))])
    return Quadratic(A=A, b=rng.normal(size=(4, 2)))


def logistic() -> Any:
    """Return four clients of ten rows with two features."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = np.where(X @ [1, 2] + rng.normal(size=40) > 0, 1.0, -1.0)
    return linear_model(X, y, loss=Logistic(), mu=0.1, clients=4, intercept=False)


def rounds(algorithm: Any, objective: Any) -> Callable[[], Any]:
    return lambda: [s.server.theta for s in islice(iterate(algorithm, objective), ROUNDS)][-1]


def plain(f: Quadratic, nu: float, rho: float) -> np.ndarray:
    """Run DualFL on quadratics with nothing around it."""
    inverse = np.linalg.inv(f.A)
    zeta = v = np.zeros_like(f.b)
    t, mean = 1.0, f.b[0]
    for _ in range(ROUNDS):
        theta = np.matmul(inverse, (f.b + nu * zeta)[..., None])[..., 0]
        mean = theta.mean(axis=0)
        t, beta = momentum(t, rho)
        v, last = zeta + mean - theta, v
        zeta = (1.0 + beta) * v - beta * last
    return mean


def test_overhead(benchmark: Any) -> None:
    """At most 50 microseconds where a round is one system, and 0.4 milliseconds with a local solver."""
    f, g = quadratic(), logistic()
    exact = DualFL(solver=Exact()).suggested(f)
    contestants = {
        "quadratic, exact": rounds(exact, f),
        "quadratic, NumPy": lambda: plain(f, exact.nu, exact.rho),
        "logistic, default": rounds(DualFL(), g),
        "logistic, L-BFGS, 20 pairs": rounds(DualFL(solver=LBFGS(history=20)), g),
        "logistic, Newton-CG": rounds(DualFL(solver=NewtonCG()), g),
        "logistic, FedDyn": rounds(FedDyn(), g),
        "logistic, FedAvg": rounds(FedAvg(), g),
    }
    seconds, results = in_turns(contestants, TURNS)
    benchmark.pedantic(contestants["quadratic, exact"], rounds=5)
    np.testing.assert_allclose(results["quadratic, exact"], results["quadratic, NumPy"], rtol=1e-12)
    each = {name: time / ROUNDS for name, time in seconds.items()}
    report(
        f"Four clients, microseconds a round (limit of the first: {1e6 * QUADRATIC_LIMIT:.0f}), {ROUNDS} rounds, "
        f"medians of {TURNS}",
        ["problem and solver", "microseconds"],
        [[name, f"{1e6 * time:.0f}"] for name, time in each.items()],
    )
    assert each["quadratic, exact"] <= QUADRATIC_LIMIT
    assert each["logistic, default"] <= LOGISTIC_LIMIT


def test_a_lesson(benchmark):
    """Three methods on the quadratics, up to 60 rounds each with a certificate in every round: below 30 ms."""
    f = quadratic()
    methods = [DualFL(solver=Exact()), OptimizedDualFL(solver=Exact()), FedSplit(solver=Exact())]

    def lesson() -> list[int]:
        return [len(run(method, f, rounds=ROUNDS, certify_every=1)) - 1 for method in methods]

    seconds, results = in_turns({"three methods": lesson}, TURNS)
    benchmark.pedantic(lesson, rounds=5)
    done = " + ".join(map(str, results["three methods"]))
    report(
        f"A lesson: {done} rounds of DualFL, OptimizedDualFL and FedSplit with certificates (they end at rounding)",
        ["", "ms"],
        [["all of it", f"{1e3 * seconds['three methods']:.1f}"]],
    )
    assert seconds["three methods"] <= LESSON_LIMIT
