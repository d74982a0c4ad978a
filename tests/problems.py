"""Small federated problems that several tests use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualopt.losses import Hinge, Logistic, Multinomial, Squared
from dualopt.objectives import LinearModel, Quadratic, linear_model


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


def with_spectra(spectra: Sequence[Sequence[float]], *, seed: int = 0) -> Quadratic:
    """Clients with the given eigenvalues, of which the first belongs to the first unit vector for every client.

    So the curvature of ``E`` along that vector is the mean of the first eigenvalues, and ``mu_j`` is exact where it is
    the first: the matrix is one number and a block.
    """
    rng = np.random.default_rng(seed)
    N, d = np.shape(spectra)
    A = np.zeros((N, d, d))
    for matrix, (first, *others) in zip(A, spectra, strict=True):
        q, _ = np.linalg.qr(rng.standard_normal((d - 1, d - 1)))
        block = q @ np.diag(others) @ q.T
        matrix[0, 0], matrix[1:, 1:] = first, 0.5 * (block + block.T)
    return Quadratic(A=A, b=3.0 * rng.standard_normal((N, d)), c=rng.uniform(10.0, 20.0, N))


def lopsided() -> Quadratic:
    """mu_j = 0.5, 1, 6, 0.8 with the mean 2.075, the curvature of E; L_j = 4, 20, 12, 10."""
    return with_spectra([[0.5, 1.0, 2.0, 4.0], [1.0, 2.0, 8.0, 20.0], [6.0, 7.0, 9.0, 12.0], [0.8, 3.0, 5.0, 10.0]])


def one_flat_client() -> Quadratic:
    """mu_j = 0, 1, 3, 0.8: the first client is not strongly convex, E is."""
    return with_spectra([[0.0, 1.0, 2.0, 3.0], [1.0, 1.5, 2.0, 4.0], [3.0, 3.2, 3.5, 3.8], [0.8, 1.0, 2.0, 2.5]])


def one_concave_client() -> Quadratic:
    """mu_j = -1, 1, 3, 0.8: the first client is not convex, E is strongly convex."""
    return with_spectra([[-1.0, 1.0, 2.0, 3.0], [1.0, 1.5, 2.0, 4.0], [3.0, 3.2, 3.5, 3.8], [0.8, 1.0, 2.0, 2.5]])


def unequal_rows() -> LinearModel:
    """Least squares on clients of 2, 5 and 13 rows that count by their rows: L_j = 0.98, 1.1, 3.6, mu_j = 0.3."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    parts = [list(range(2)), list(range(2, 7)), list(range(7, 20))]
    return linear_model(X, 2.0 + y, loss=Squared(), mu=0.3, clients=parts, weights="rows")
