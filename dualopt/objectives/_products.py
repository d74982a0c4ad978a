"""Products with the rows of one dense or sparse matrix, and their norms."""

from __future__ import annotations

import math
from typing import Any

from dualopt.arrays.xp import Array, array_namespace, csr_matrix, device, is_sparse
from dualopt.objectives._rounding import client_norm, tiny

__all__ = ["predictors", "pulled_back", "row_norms"]


def predictors(X: Any, theta: Array) -> Array:
    """Return ``theta x_i`` of the rows of a dense or sparse ``X``: ``(m,)``, or ``(k, m)`` for ``theta`` ``(k, p)``."""
    if is_sparse(X):
        return (X @ theta.T).T
    return X @ theta if theta.ndim == 1 else theta @ array_namespace(X).matrix_transpose(X)


def pulled_back(u: Array, X: Any) -> Array:
    """Return ``sum_i u_i x_i'`` for ``u`` of shape ``(m,)`` or ``(k, m)`` and a dense or sparse ``X``."""
    return (X.T @ u.T).T if is_sparse(X) else u @ X


def row_norms(X: Any) -> Array:
    """Return ``|x_i|`` of the rows of a dense or sparse ``X``, ``(m,)``, without overflow of the squares."""
    if not is_sparse(X):
        return client_norm(X)
    xp = array_namespace(X.data)
    largest = xp.max(xp.abs(X.data)) if X.data.shape[0] else xp.zeros((), dtype=X.data.dtype, device=device(X.data))
    unit = xp.where(largest > 0, largest, xp.ones_like(largest))
    squares = csr_matrix((X.data / unit) ** 2, X.indices, X.indptr, X.shape)
    # an entry whose square underflows is below sqrt(tiny) of the largest: that much is added
    room = math.sqrt(X.shape[1] * tiny(X.data))
    return unit * (xp.sqrt(squares @ xp.ones((X.shape[1],), dtype=X.data.dtype, device=device(X.data))) + room)
