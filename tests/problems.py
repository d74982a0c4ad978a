"""Small federated problems that several tests use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dualopt.lab.contracts.problems import converted, hinge, logistic, quadratic, spd
from dualopt.losses import Logistic, Multinomial, Squared
from dualopt.objectives import LinearModel, ObjectiveWrapper, Quadratic, linear_model
from dualopt.problem.data import partition
from theory import _problems

__all__ = [
    "WithoutPreconditioner",
    "converted",
    "digits",
    "hinge",
    "least_squares",
    "logistic",
    "lopsided",
    "magnitudes",
    "one_concave_client",
    "one_flat_client",
    "quadratic",
    "spd",
    "unequal_rows",
]


@dataclass
class WithoutPreconditioner(ObjectiveWrapper):
    """An objective that offers Hessian products and nothing else."""

    forwarded: ClassVar[frozenset[str]] = frozenset({"hessian"})

    objective: Any


def digits(*, rows: int = 1797, mu: float = 1e-2) -> LinearModel:
    """The first rows of the handwritten digits, sorted by label and cut into 8 consecutive clients."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X, y = X / 16.0, y.astype(np.int64)
    order = np.argsort(y, kind="stable")[:rows]
    return linear_model(X[order], y[order], loss=Multinomial(classes=10), mu=mu, clients=8)


def least_squares(*, mu: float = 1e-2) -> LinearModel:
    """Even or odd: least squares on the digits of 8 clients, sorted by label."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.argsort(y, kind="stable")
    return linear_model(X[order] / 16.0, 1.0 - 2.0 * (y[order] % 2), loss=Squared(), mu=mu, clients=8)


def lopsided() -> Quadratic:
    """mu_j = 0.5, 1, 6, 0.8 with the mean 2.075, the curvature of E; L_j = 4, 20, 12, 10."""
    return _problems.lopsided().objective


def magnitudes(*, seed: int, rows: int = 200, columns: int = 6) -> LinearModel:
    """Logistic regression on log-normal columns with units of 1 to 3e4, some zero, dealt out by Dirichlet(0.3)."""
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.uniform(0.0, 4.5, columns)
    Z = rng.standard_normal((rows, columns))
    X = np.exp(Z) * units * (rng.random((rows, columns)) < 0.7)
    y = np.where(Z @ rng.standard_normal(columns) + rng.logistic(size=rows) > 0, 1.0, -1.0)
    parts = [part.tolist() for part in partition("dirichlet", y, 8, alpha=0.3, seed=seed)]
    return linear_model(X, y, loss=Logistic(), mu=1e-2, clients=parts)


def one_flat_client() -> Quadratic:
    """mu_j = 0, 1, 3, 0.8: the first client is not strongly convex, E is."""
    return _problems.one_flat_client().objective


def one_concave_client() -> Quadratic:
    """mu_j = -1, 1, 3, 0.8: the first client is not convex, E is strongly convex."""
    return _problems.one_concave_client().objective


def unequal_rows() -> LinearModel:
    """Least squares on clients of 2, 5 and 13 rows that count by their rows: L_j = 2.6, 1.4, 2.0, mu_j = 0.3."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    parts = [list(range(2)), list(range(2, 7)), list(range(7, 20))]
    return linear_model(X, 2.0 + y, loss=Squared(), mu=0.3, clients=parts, client_weights="rows")
