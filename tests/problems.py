"""Small federated problems that several tests use."""

from __future__ import annotations

import numpy as np

from dualopt.losses import Hinge, Logistic, Multinomial, Squared
from dualopt.objectives import LinearModel, Quadratic, linear_model
from theory import _problems


def spd(rng: np.random.Generator, n: int, d: int, mu: float, L: float) -> np.ndarray:
    """Symmetric matrices with eigenvalues exactly in [mu, L], both attained."""
    matrices = []
    for _ in range(n):
        q, _ = np.linalg.qr(rng.standard_normal((d, d)))
        eigenvalues = np.concatenate([[mu, L], rng.uniform(mu, L, d - 2)])
        matrix = q @ np.diag(eigenvalues) @ q.T
        matrices.append(0.5 * (matrix + matrix.T))
    return np.stack(matrices)


def quadratic(n: int = 5, d: int = 4, *, mu: float = 1.0, L: float = 20.0, seed: int = 0) -> Quadratic:
    rng = np.random.default_rng(seed)
    return Quadratic(A=spd(rng, n, d, mu, L), b=rng.standard_normal((n, d)), c=rng.uniform(1.0, 2.0, n))


def converted(objective: Quadratic, array) -> Quadratic:
    """The same quadratic in another array library."""
    return Quadratic(A=array(objective.A), b=array(objective.b), c=array(objective.c))


def logistic(n: int = 4, rows: int = 60, d: int = 3, *, mu: float = 0.05, seed: int = 0) -> LinearModel:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, d))
    y = np.sign(X[:, 0] - 0.3 * X[:, 1] + 0.5 * rng.standard_normal(rows))
    return linear_model(X, y, loss=Logistic(), mu=mu, clients=n)


def hinge(n: int = 4, rows: int = 60, d: int = 3, *, mu: float = 0.05, seed: int = 0) -> LinearModel:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, d))
    y = np.sign(X[:, 0] - 0.3 * X[:, 1] + 0.5 * rng.standard_normal(rows))
    return linear_model(X, y, loss=Hinge(), mu=mu, clients=n)


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


def one_flat_client() -> Quadratic:
    """mu_j = 0, 1, 3, 0.8: the first client is not strongly convex, E is."""
    return _problems.one_flat_client().objective


def one_concave_client() -> Quadratic:
    """mu_j = -1, 1, 3, 0.8: the first client is not convex, E is strongly convex."""
    return _problems.one_concave_client().objective


def unequal_rows() -> LinearModel:
    """Least squares on clients of 2, 5 and 13 rows that count by their rows: L_j = 0.98, 1.1, 3.6, mu_j = 0.3."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    parts = [list(range(2)), list(range(2, 7)), list(range(7, 20))]
    return linear_model(X, 2.0 + y, loss=Squared(), mu=0.3, clients=parts, weights="rows")
