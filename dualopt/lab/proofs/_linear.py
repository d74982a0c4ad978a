"""Row spaces and null spaces of matrices of rational numbers, exactly, and of floating-point ones to a tolerance."""

from __future__ import annotations

import numpy as np

__all__ = ["TOLERANCE", "echelon", "left_null_space", "null_space", "solve_in"]

TOLERANCE = 1e-9


def echelon(A: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Return the reduced row echelon form without its zero rows, and the columns of the pivots.

    Examples
    --------
    >>> echelon(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]))
    (array([[1., 2., 3.]]), [0])
    """
    A, pivots, exact = A.copy(), [], A.dtype == object
    scale = 1.0 if exact or not A.size else max(float(np.abs(A).max()), 1.0)  # coefficients are of the order 1
    row = 0
    for column in range(A.shape[1]):
        if row == len(A):
            break
        sizes = np.abs(A[row:, column])
        k = row + int(np.argmax(sizes != 0 if exact else sizes))
        if A[k, column] == 0 or (not exact and abs(A[k, column]) <= TOLERANCE * scale):
            continue
        A[[row, k]] = A[[k, row]]
        A[row] = A[row] / A[row, column]
        others = np.flatnonzero(A[:, column])
        others = others[others != row]
        A[others] = A[others] - np.outer(A[others, column], A[row])
        pivots.append(column)
        row += 1
    return A[:row], pivots


def null_space(A: np.ndarray) -> np.ndarray:
    """Return a basis of the vectors x with Ax = 0, a column each.

    Examples
    --------
    >>> null_space(np.array([[1.0, 2.0]])).tolist()
    [[-2.0], [1.0]]
    """
    R, pivots = echelon(A)
    free = [j for j in range(A.shape[1]) if j not in pivots]
    basis = np.zeros((A.shape[1], len(free)), dtype=A.dtype)
    for k, j in enumerate(free):
        basis[j, k] = 1
        for row, pivot in enumerate(pivots):
            basis[pivot, k] = -R[row, j]
    return basis


def left_null_space(A: np.ndarray) -> np.ndarray:
    """Return a basis of the vectors x with xA = 0, a row each."""
    return null_space(A.T).T


def solve_in(B: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return X with BX = Y, where B has independent columns and Y lies in their span."""
    R, pivots = echelon(np.concatenate([B, Y], axis=1))
    n = B.shape[1]
    if pivots != list(range(n)):
        raise ValueError("the columns of Y are not in the span of those of B.")
    return R[:n, n:]
