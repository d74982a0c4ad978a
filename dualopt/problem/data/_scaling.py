"""A scaling of features with the numbers that were found in a data set, which later rows are scaled with, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dualopt.arrays.xp import is_sparse

__all__ = ["SHIFTS", "Scaling", "require_dense"]

SHIFTS = ("standard", "minmax", "robust")  # those that shift and divide each column by numbers of its own


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaling:
    r"""What a scaling does to a row, with the numbers that were found in the rows of a data set.

    Rows that come later are scaled by the same operations, one after the other, as the rows that the numbers are from,
    so that a row which occurs in both becomes the same to the last bit.

    Attributes
    ----------
    how : {"none", "divide", "unit-rows", "standard", "minmax", "robust"}
        Nothing; division by ``divisor``; division of each row by its Euclidean norm; or, of the others,
        ``(x - mean) / peak * factor``.
    divisor : float
        Of "divide": a number that was asked for, or the largest absolute value of the rows, of ``scale="max"``.
    mean, peak, factor : array, shape (d,)
        In the type of the rows. Of "standard" the means of the columns, the powers of two below the largest absolute
        values of what is left, and the inverse deviations of these quotients, 0 for a constant column. Of "minmax"
        minima, ranges and 1, or 0 for a constant column; of "robust" medians, distances of the quartiles and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.problem.data import load
    >>> scaling = load("breast_cancer").scaling
    >>> scaling.how, scaling.mean.shape
    ('standard', (30,))
    >>> Scaling(how="divide", divisor=4.0).apply_in_place(np.array([[1.0, 2.0]])).tolist()
    [[0.25, 0.5]]
    """

    how: str = "none"
    divisor: float = 1.0
    mean: np.ndarray | None = None
    peak: np.ndarray | None = None
    factor: np.ndarray | None = None

    def apply_in_place(self, X: Any) -> Any:
        """Scale rows, a finite writable matrix in the floating-point type of the fitted ones, and return them.

        Raises
        ------
        ValueError
            If rows are sparse and the scaling shifts columns, which would fill in their zeros.
        """
        if is_sparse(X) and self.how != "none":
            X.sum_duplicates()
        if self.how == "divide":
            entries = X.data if is_sparse(X) else X
            entries /= self.divisor
        elif self.how == "unit-rows":
            _sparse_unit_rows(X) if is_sparse(X) else _unit_rows(X)
        elif self.how in SHIFTS:
            require_dense(X)
            X -= self.mean
            X /= self.peak
            X *= self.factor
        return X


def _unit_rows(X: np.ndarray) -> None:
    """Divide each row by its norm: first by its largest entry, so that no square overflows or vanishes."""
    X /= _nonzero(np.maximum(X.max(axis=1), -X.min(axis=1)))[:, None]
    X /= _nonzero(np.sqrt(np.einsum("ij,ij->i", X, X)))[:, None]


def _sparse_unit_rows(X: Any) -> None:
    """Do the same to the stored entries of a matrix in compressed sparse rows without duplicates."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    peaks = np.zeros(X.shape[0], dtype=X.dtype)
    np.maximum.at(peaks, rows, np.abs(X.data))
    X.data /= _nonzero(peaks)[rows]
    X.data /= _nonzero(np.sqrt(np.bincount(rows, X.data.astype(np.float64) ** 2, X.shape[0])))[rows].astype(X.dtype)


def require_dense(X: Any) -> None:
    """Refuse to shift the columns of sparse features."""
    if is_sparse(X):
        raise ValueError(
            'scale must not be "standard" for sparse features, whose zeros it would fill in, nor "minmax" or "robust"; '
            '"unit-rows" and "max" keep them.'
        )


def _nonzero(divisor: np.ndarray) -> np.ndarray:
    """Replace zeros by ones: what they would divide is zero already."""
    return np.where(divisor > 0, divisor, np.ones_like(divisor))
