"""Problems whose clients differ in mu, L and size, and who may take part in them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dualopt.lab.contracts.problems import spd
from dualopt.losses import Hinge, Logistic
from dualopt.methods.participation import (
    Bernoulli,
    CommunicateWithProbability,
    Full,
    Participation,
    UniformSubset,
    WeightedSubset,
)
from dualopt.objectives import Composite, LinearModel, Quadratic, linear_model
from dualopt.regularisers import L1

CHANCE: dict[str, Participation] = {
    "full": Full(),
    "subset": UniformSubset(size=2),
    "weighted": WeightedSubset(size=2),
    "bernoulli": Bernoulli(probability=0.4),
    "skip": CommunicateWithProbability(probability=0.6),
}


def lopsided_quadratic() -> Quadratic:
    rng = np.random.default_rng(3)
    bounds = [(0.2, 4.0), (0.5, 30.0), (1.0, 8.0), (0.3, 2.0), (2.0, 12.0), (0.25, 60.0)]
    A = np.stack([spd(rng, 1, 4, mu, L)[0] for mu, L in bounds])
    return Quadratic(A=A, b=3 * rng.standard_normal((6, 4)), c=rng.uniform(5, 9, 6))


def lopsided_rows(loss: Any, mu: float, dtype: Any = np.float64) -> LinearModel:
    rng, sizes = np.random.default_rng(5), [3, 40, 7, 22, 11]
    scales = [0.3, 1.0, 3.0, 0.7, 2.0]
    X = np.concatenate([scale * rng.standard_normal((m, 4)) for m, scale in zip(sizes, scales, strict=True)])
    y = np.sign(X @ np.array([1.0, -0.5, 0.2, 0.1]) + 0.7 * rng.standard_normal(len(X)))
    clients = [part.tolist() for part in np.split(np.arange(len(X)), np.cumsum(sizes)[:-1])]
    return linear_model(X.astype(dtype), y.astype(dtype), loss=loss, mu=mu, clients=clients, client_weights="rows")


@cache
def problems() -> dict[str, Any]:
    smooth, quadratic = lopsided_rows(Logistic(), 0.03), lopsided_quadratic()
    return {
        "smooth": smooth,
        "nonsmooth": lopsided_rows(Hinge(), 0.5),
        "quadratic": quadratic,
        "regularised": Composite(objective=smooth, regulariser=L1(weight=0.02)),
        "regularised-quadratic": Composite(objective=quadratic, regulariser=L1(weight=0.02)),
    }
