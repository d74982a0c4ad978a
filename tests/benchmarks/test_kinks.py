"""Losses with kinks to a certified accuracy, against scikit-learn's linear program.

Run with ``pytest tests/benchmarks/test_kinks.py --benchmark-only -s``; CPU times of one thread, medians of contestants
that take turns. The linear program has all rows together, no ridge, and no certificate.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor

from dualopt.losses import AbsoluteDeviation, Quantile
from dualopt.methods import DualFL, OptimizedDualFL
from dualopt.objectives import linear_model
from dualopt.runs.recording import run

from .race import in_turns, report

TOL, MU, ROWS = 1e-6, 1e-2, 2000


@pytest.mark.parametrize("loss", [AbsoluteDeviation(), Quantile(level=0.9)], ids=repr)
def test_a_linear_program(benchmark, loss):
    """Two thousand rows of six columns, the constant one among them, of one client and of four."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 5))
    y = X @ rng.normal(size=5) + rng.standard_t(3, size=ROWS)
    program = QuantileRegressor(quantile=getattr(loss, "level", 0.5), alpha=0.0, solver="highs")
    methods: dict[str, Any] = {"scikit-learn, central": lambda: program.fit(X, y)}
    for clients in (1, 4):
        f = linear_model(X, y, loss=loss, mu=MU, clients=clients)
        for method in (DualFL(), OptimizedDualFL()):
            label = f"{type(method).__name__}, {clients} clients"
            methods[label] = partial(run, method, f, rounds=2000, tol=TOL, threads=1)
    seconds, results = in_turns(methods, 3)
    for label, trace in results.items():
        if label != "scikit-learn, central":
            assert trace.status == "converged"
            assert trace["certified_error"][-1] <= TOL
    benchmark.pedantic(methods["DualFL, 1 clients"], rounds=1)
    report(
        f"{loss}, {ROWS} x 6, certified error {TOL:g}",
        ["contestant", "s of CPU time", "time / scikit-learn"],
        [[n, f"{s:.2f}", f"{s / seconds['scikit-learn, central']:.1f}"] for n, s in seconds.items()],
    )
