"""A round of every method on arrays of other libraries beside NumPy's, on a CPU.

Run with ``pytest tests/benchmarks/test_devices.py --benchmark-only -s`` where JAX or PyTorch are installed; digits by
label, 8 clients, what methods choose by default, no certificates. Times are CPU times of a process with one thread of
linear algebra, medians over rounds of contestants that take turns. JAX compiles what clients do in a round: the first
round, in which it does, is a column of its own.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt.engine.rounds import iterate
from dualopt.losses import Multinomial
from dualopt.objectives import linear_model
from dualopt.problem.data import by_label, load
from dualopt.spec.discover import discover
from tests.conftest import BACKENDS

from .race import report

EARLY, ROUNDS = 15, 25  # rounds that are not counted, in which memories fill and programs are made, and those that are
JAX_LIMIT, TORCH_LIMIT = 20e-3, 1.5


def digits(library: str) -> Any:
    """Return the digits by label in arrays of a library."""
    data, to = load("digits"), BACKENDS[library]
    X, y = data.X / 16.0, data.y.astype(np.int64)
    return linear_model(to(X), to(y), loss=Multinomial(classes=10), mu=1e-2, clients=by_label(y, 8))


def each_method(libraries: list[str]) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of rounds of every method with arrays of each library, and see that models agree."""
    objectives, found = {name: digits(name) for name in libraries}, {}
    for method in sorted(discover(dualopt.methods)):
        found[method] = {name: [] for name in libraries}
        rounds = {name: iterate(method, f) for name, f in objectives.items()}
        for _ in range(EARLY + ROUNDS):
            models = {}
            for name, own in rounds.items():
                start = time.process_time()
                models[name] = np.asarray(next(own).server.theta)  # JAX has it when it has computed it
                found[method][name].append(time.process_time() - start)
        first, *others = models.values()
        for other in others:
            np.testing.assert_allclose(other, first, rtol=0, atol=1e-6 * max(1e-3, np.abs(first).max()))
    return found


def median(seconds: list[float]) -> float:
    return statistics.median(seconds[EARLY:])


def shown(seconds: list[float]) -> str:
    return f"{1e3 * median(seconds):.2f}"


def test_rounds_under_jax(benchmark: Any) -> None:
    """No method takes more than 20 ms a round once its programs are there."""
    pytest.importorskip("jax", reason="JAX is not installed")
    found = each_method(["numpy", "jax"])
    benchmark.pedantic(lambda: None, rounds=1)
    report(
        f"A round on the digits by label, N = 8, milliseconds, medians of {ROUNDS}: NumPy and JAX",
        ["method", "NumPy", "JAX", "programs, s"],
        [
            [
                name,
                shown(own["numpy"]),
                shown(own["jax"]),
                f"{sum(own['jax'][:EARLY]):.1f}",
            ]
            for name, own in found.items()
        ],
    )
    assert max(median(own["jax"]) for own in found.values()) <= JAX_LIMIT


def test_rounds_with_pytorch(benchmark: Any) -> None:
    """No method takes more than 1.5 times what it takes with NumPy, which works on the memory that both share."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    torch.set_num_threads(1)
    found = each_method(["numpy", "torch"])
    benchmark.pedantic(lambda: None, rounds=1)
    ratios = {name: median(own["torch"]) / median(own["numpy"]) for name, own in found.items()}
    report(
        f"A round on the digits by label, N = 8, milliseconds, medians of {ROUNDS}: NumPy and PyTorch on a CPU",
        ["method", "NumPy", "PyTorch", "ratio"],
        [
            [
                name,
                shown(own["numpy"]),
                shown(own["torch"]),
                f"{ratios[name]:.2f}",
            ]
            for name, own in found.items()
        ],
    )
    assert max(ratios.values()) <= TORCH_LIMIT
