"""Sparse rows with everything that a CSR matrix may hold, and the same rows dense."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from model_instances import EPS, rows

from dualopt.objectives import LinearModel, linear_model

sparse = pytest.importorskip("scipy.sparse")


class Pair(NamedTuple):
    """One model twice."""

    sparse: LinearModel
    dense: LinearModel


def holes(m: int, d: int, seed: int = 0) -> np.ndarray:
    """Return rows of which every fifth is empty, and of whose columns the third is."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.3)
    X[::5] = 0.0
    X[:, 2] = 0.0
    return X


def messy(X: np.ndarray, *, index: Any = np.int64, seed: int = 0) -> Any:
    """Store a matrix in CSR with columns in random order, halves of entries twice, and zeros where there are some."""
    rng = np.random.default_rng(seed)
    data, indices, indptr = [], [], [0]
    for row in X:
        columns = np.concatenate([np.flatnonzero(row), np.flatnonzero(row), [int(rng.integers(len(row)))]])
        values = np.concatenate([row[row != 0] / 2, row[row != 0] / 2, [0.0]])
        order = rng.permutation(len(columns))
        data.append(values[order])
        indices.append(columns[order])
        indptr.append(indptr[-1] + len(columns))
    arrays = (np.concatenate(data).astype(X.dtype), np.concatenate(indices).astype(index), np.array(indptr, index))
    return sparse.csr_array(arrays, shape=X.shape)


def pair(loss: Any, *, d: int = 6, mu: float = 0.1, weights: Any = None, dtype: Any = np.float64, **more) -> Pair:
    """Return a model of lopsided clients, one of a single row, in both forms."""
    sizes = (3, 7, 3, 1, 12, 7, 3)
    _, y, clients = rows(loss, sizes=sizes)
    X = holes(sum(sizes), d).astype(dtype)
    y = y if loss.labels == "class" else y.astype(dtype)
    options = {"loss": loss, "mu": mu, "clients": clients, "weights": weights} | more
    return Pair(linear_model(messy(X), y, storage="sparse", **options), linear_model(X, y, **options))


def points(f: LinearModel, seed: int = 1) -> np.ndarray:
    """Return a point for each client, of the type of the data."""
    return np.random.default_rng(seed).normal(size=(f.n_clients, *f.shape)).astype(f.zeros().dtype)


def rounding(f: LinearModel, theta: np.ndarray) -> float:
    """Bound the difference of two orders of summation in values, gradients and Hessian products along ``theta``.

    A predictor is a sum of ``p`` products, a derivative one of ``m`` of them times slopes; slopes are at most
    ``1 + curvature |z|`` for the losses here (labels are below 4), known to 16 units in the last place and to the
    curvature times the error of ``z``.
    """
    eps = float(np.finfo(theta.dtype).eps) if theta.dtype == np.float32 else EPS
    c = f.loss.curvature if np.isfinite(f.loss.curvature) else 0.0
    X = [np.abs(np.asarray(X.toarray() if sparse.issparse(X) else X)) for X, _, _ in f.client_rows()]
    largest = max(float(np.sum(x, axis=1).max()) for x in X) * float(np.abs(theta).max())  # of |z|
    slope = 4.0 + (1.0 + c) * largest
    terms = max(float(np.sum(x, axis=0).max()) for x in X) + 1.0
    n = f.n_features + max(f.sizes) + 16
    return 4.0 * n * eps * (1.0 + c) * terms * slope * (1.0 + largest) + 4.0 * eps * f.ridge * float(np.sum(theta**2))
