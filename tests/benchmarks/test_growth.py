"""How the time of a gradient and of a round grows with rows, features, classes and clients, by fitted exponents.

Run with ``pytest tests/benchmarks/test_growth.py --benchmark-only -s``; CPU times of one thread, medians of contestants
that take turns. An exponent of 1 is time in proportion to the data.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.losses import Multinomial
from dualopt.methods import DualFL
from dualopt.objectives import LinearModel, linear_model
from dualopt.solvers.stopping import Steps

from .race import in_turns, report

BASE = {"rows": 8000, "features": 64, "classes": 10, "clients": 8}
RANGES = {
    "rows": (4000, 8000, 16000, 32000, 64000),
    "features": (32, 64, 128, 256, 512),
    "classes": (2, 5, 10, 20, 40),
    "clients": (2, 8, 32, 128, 512),
}


def model(rows: int, features: int, classes: int, clients: int) -> LinearModel:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((rows, features)), rng.integers(0, classes, rows)
    return linear_model(X, y, loss=Multinomial(classes=classes), mu=1e-2, clients=clients)


def rounds(f: LinearModel) -> Any:
    """Three rounds of four local steps each."""
    return list(islice(iterate(DualFL(rho=0.1, nu=1e-2, stop=Steps(steps=4)), f), 3))[-1]


@pytest.mark.parametrize("what", RANGES)
def test_growth(benchmark, what):
    """No faster than in proportion to rows, features and classes, and hardly with clients of the same rows."""
    models = {number: model(**{**BASE, what: number}) for number in RANGES[what]}
    points = {n: np.full(f.shape, 0.01) for n, f in models.items()}
    for f in models.values():
        rounds(f)  # preconditioners are computed once
    gradient, _ = in_turns({str(n): partial(f.value_and_gradient, points[n]) for n, f in models.items()}, 7)
    run, _ = in_turns({str(n): partial(rounds, f) for n, f in models.items()}, 3)
    benchmark.pedantic(partial(models[BASE[what]].value_and_gradient, points[BASE[what]]), rounds=3)

    def exponent(seconds: dict[str, float]) -> float:
        return float(np.polyfit(np.log(list(models)), np.log(list(seconds.values())), 1)[0])

    found = {"gradient": exponent(gradient), "round": exponent(run)}
    others = ", ".join(f"{number:,} {name}" for name, number in BASE.items() if name != what)
    report(
        f"Growth with {what} ({others}): exponents {found['gradient']:.2f} and {found['round']:.2f}",
        [what, "gradient, ms", "round of DualFL, ms"],
        [[f"{n:,}", f"{1e3 * gradient[str(n)]:.2f}", f"{1e3 * run[str(n)] / 3:.1f}"] for n in models],
    )
    assert found["gradient"] <= (0.3 if what == "clients" else 1.25)
