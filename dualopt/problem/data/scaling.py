"""Scaling of features."""

from __future__ import annotations

import difflib
import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualopt.arrays.communicator import ALONE, Communicator
from dualopt.arrays.xp import is_sparse
from dualopt.problem.data._dataset import check_features
from dualopt.problem.data._scaling import Scaling, nonzero, peak_of, require_dense

__all__ = ["SCALES", "Part", "check_scale", "fit_in_place", "scale", "scale_in_place"]

PIECE = 2**20  # numbers that are added at once where rows are on several processes
SCALES = ("none", "max", "unit-rows", "standard")


def scale(X: Any, how: str | float) -> Any:
    r"""Return a scaled copy of a matrix of features.

    * ``"none"``: as it is;
    * ``"max"``: divided by :math:`\max_{ik} |X_{ik}|`;
    * ``"unit-rows"``: each row divided by its Euclidean norm, rows of zeros left alone;
    * ``"standard"``: each column shifted and divided to mean 0 and variance 1 (divisor m); a constant column
      becomes 0;
    * a positive number: divided by it.

    A sparse matrix stays sparse; ``"standard"``, which would fill in its zeros, is refused.

    Parameters
    ----------
    X : array or sparse matrix, shape (m, d)
        Features; integers are converted to float64, floating-point types are kept.
    how : str or float
        One of the above.

    Returns
    -------
    array or matrix in compressed sparse rows, shape (m, d)

    Raises
    ------
    ValueError
        If ``X`` is not a nonempty finite matrix, ``how`` is none of the above, or "standard" for a sparse ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.problem.data import scale
    >>> scale(np.array([[3.0, 4.0], [0.0, 0.0]]), "unit-rows")
    array([[0.6, 0.8],
           [0. , 0. ]])
    >>> scale(np.array([[0, 255], [51, 102]]), 255)
    array([[0. , 1. ],
           [0.2, 0.4]])
    """
    X = X.tocsr() if is_sparse(X) else np.asarray(X)
    check_features(X)
    check_scale(how)
    return scale_in_place(X.astype(X.dtype if X.dtype.kind == "f" else np.float64), how)


def check_scale(how: str | float) -> None:
    """Refuse anything but a known name or a positive number."""
    if isinstance(how, str):
        if how not in SCALES:
            close = difflib.get_close_matches(how, SCALES, 1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise ValueError(f"scale must be one of {', '.join(SCALES)} or a positive number, got {how!r}{hint}")
    elif isinstance(how, bool) or not isinstance(how, numbers.Real) or not 0 < how < math.inf:
        raise ValueError(f"scale must be one of {', '.join(SCALES)} or a positive finite number, got {how!r}.")


def scale_in_place(X: Any, how: str | float, part: Part | None = None) -> Any:
    """Scale a finite, writable, floating-point matrix in its own memory, and return it.

    In place because a second copy of a large data set can be what does not fit; ``how`` has been checked. Where the
    rows are a ``part`` of those of all processes, each becomes what it is in the whole, to the last bit.
    """
    fit_in_place(X, how, part)
    return X


def fit_in_place(X: Any, how: str | float, part: Part | None = None) -> Scaling:
    """Scale a matrix as `scale_in_place` does, and return the scaling, with which others can be scaled alike."""
    if how == "none":
        return Scaling()
    part = Part(rows=np.arange(X.shape[0]), total=X.shape[0], peers=ALONE) if part is None else part
    if how == "standard":
        require_dense(X)
        low, high = -part.peers.largest(-X.min(axis=0)), part.peers.largest(X.max(axis=0))
        X -= (mean := (part.sum(X) / part.total).astype(X.dtype))
        X /= (peak := nonzero(part.peers.largest(peak_of(X, 0))))
        # Multiplying by 0 clears the rounding error that a constant column has about its mean.
        deviations = np.sqrt(part.sum(X, squared=True) / part.total)
        X *= (factor := np.where(low < high, 1 / nonzero(deviations), 0.0).astype(X.dtype))
        return Scaling(how="standard", mean=mean, peak=peak, factor=factor)
    if is_sparse(X):
        X.sum_duplicates()  # the largest entry is that of the matrix, not that of what is stored
    if how == "max":
        largest = np.max(np.abs(X.data), initial=0.0) if is_sparse(X) else peak_of(X, None)
        how = float(nonzero(part.peers.largest(largest)))
    found = Scaling(how="unit-rows") if how == "unit-rows" else Scaling(how="divide", divisor=float(how))
    found.apply_in_place(X)
    return found


@dataclass(frozen=True)
class Part:
    """Some rows of a matrix, all of which several processes have together.

    Parameters
    ----------
    rows : array of int64, shape (m,)
        Their numbers, increasing.
    total : int
        How many there are.
    peers : Communicator
        The processes.
    """

    rows: np.ndarray
    total: int
    peers: Communicator

    def sum(self, X: np.ndarray, *, squared: bool = False) -> np.ndarray:
        """Return the sums of the columns, or of their squares, in double precision.

        They are added in the order of the rows, on whatever process these are, as one process adds them: rows, some at
        a time, go to the first one.
        """
        if self.peers.size == 1:
            return np.einsum("ij,ij->j", X, X, dtype=np.float64) if squared else X.sum(axis=0, dtype=np.float64)
        columns, found = X.shape[1], np.zeros((0, X.shape[1]))
        # a single column is one run of numbers in memory, which NumPy adds in another order
        step = self.total if columns == 1 else max(1, PIECE // columns)
        for start in range(0, self.total, step):
            a, b = np.searchsorted(self.rows, (start, start + step))
            some = X[a:b].astype(np.float64)
            numbers, values = (self.peers.collected(x) for x in (self.rows[a:b], some * some if squared else some))
            if numbers is not None and values is not None:
                rows = np.concatenate(values)[np.argsort(np.concatenate(numbers))]
                found = np.add.reduce(np.concatenate([found, rows]), axis=0)[None, :]
        return self.peers.shared(found[0] if len(found) else np.zeros(columns))
