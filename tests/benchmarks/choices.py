"""``python -m tests.benchmarks.choices 200 201``: what a run that chooses its method needs, beside methods alone.

Vectors of a client to a certified 1e-6, on logistic regressions that are drawn: four for each seed, whose columns have
units of 1, up to 10, up to 300 and up to 3e4; and on wine, scaled. Nothing is there where 250 rounds are too few.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_wine

from dualopt import linear_model, run
from dualopt.losses import Logistic
from dualopt.objectives import LinearModel
from dualopt.problem.data import partition

METHODS = ("auto", "anderson-dane", "giant", "anderson-fedsplit", "distributed-lbfgs")


def problem(X: np.ndarray, y: np.ndarray, alpha: float, seed: int) -> LinearModel:
    """Logistic regression on the rows, dealt out to eight clients by Dirichlet(alpha)."""
    parts = [part.tolist() for part in partition("dirichlet", y, 8, alpha=alpha, seed=seed)]
    return linear_model(X, y, loss=Logistic(), mu=1e-2, clients=parts)


def drawn(seed: int, power: float) -> LinearModel:
    """160 rows of 6 columns with units of up to 10^power; Gaussian columns and alike clients for the power 0."""
    rng = np.random.default_rng(seed)
    units, Z = 10.0 ** rng.uniform(0.0, power, 6), rng.standard_normal((160, 6))
    X = np.exp(Z) * units * (rng.random(Z.shape) < 0.7) if power else Z
    y = np.where(Z @ rng.standard_normal(6) + rng.logistic(size=160) > 0, 1.0, -1.0)
    return problem(X, y, 0.3 if power else 100.0, seed)


def problems(seeds: list[int]) -> Iterator[tuple[str, LinearModel]]:
    """All problems with their names."""
    for seed in seeds:
        for power in (0.0, 1.0, 2.5, 4.5):
            yield f"drawn {seed}, 10^{power:g}", drawn(seed, power)
    X, y = (np.asarray(part) for part in load_wine(return_X_y=True))
    yield "wine", problem((X - X.mean(axis=0)) / X.std(axis=0), np.where(y == 0, 1.0, -1.0), 0.3, 1)


def vectors(f: LinearModel, method: str) -> str:
    """Return what a client has sent, in vectors, where the run converged, and how far E rose where it did."""
    trace = run(method, f, rounds=250, tol=1e-6)
    sent = trace["floats_up"][-1] / (f.n_clients * math.prod(f.shape))
    rise = trace["energy"].max() / trace["energy"][0]
    return (f"{sent:.0f}" if trace.status == "converged" else "-") + (f" (rose by {rise:.2g})" if rise > 1.01 else "")


if __name__ == "__main__":
    print("problem", "kappa", *METHODS, sep=" | ")
    for name, f in problems([int(text) for text in sys.argv[1:]]):
        kappa = float(f.L.max() / f.mu.min())
        print(name, f"{kappa:.1e}", *(vectors(f, method) for method in METHODS), sep=" | ", flush=True)
