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
from dualopt.problem.data._scaling import Scaling, require_dense
from dualopt.problem.preprocessing import Found, Numbers, answered, asked_of_peers, plan_of_numbers

__all__ = [
    "OF_ALL_ROWS",
    "SCALES",
    "Part",
    "check_scale",
    "fit_in_place",
    "scale",
    "scale_in_place",
    "scaling_of",
]

SCALES = ("none", "max", "unit-rows", "standard", "minmax", "robust")
OF_ALL_ROWS = ("max", "standard", "minmax", "robust")  # scales to which every row contributes


def scale(X: Any, how: str | float) -> Any:
    r"""Return a scaled copy of a matrix of features.

    * ``"none"``: as it is;
    * ``"max"``: divided by :math:`\max_{ik} |X_{ik}|`;
    * ``"unit-rows"``: each row divided by its Euclidean norm, rows of zeros left alone;
    * ``"standard"``: each column shifted and divided to mean 0 and variance 1 (divisor m); a constant column
      becomes 0;
    * ``"minmax"``: each column shifted and divided to the range from 0 to 1; a constant column becomes 0;
    * ``"robust"``: each column less its median, divided by the distance of its quartiles where that is not 0;
    * a positive number: divided by it.

    A sparse matrix stays sparse; ``"standard"``, ``"minmax"`` and ``"robust"``, which would fill in its zeros, are
    refused.

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
        If ``X`` is not a nonempty finite matrix, ``how`` is none of the above, or shifts columns of a sparse ``X``.

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
    if is_sparse(X):
        X.sum_duplicates()  # the largest entry is that of the matrix, not that of what is stored
    if how in OF_ALL_ROWS:
        if how != "max":
            require_dense(X)
        rows = Numbers(X.data[:, None] if is_sparse(X) else X)
        ask = asked_of_peers(rows, ALONE if part is None else part.peers)
        found = scaling_of(how, answered(plan_of_numbers(str(how), X.dtype), ask))
    else:
        found = scaling_of(how)
    found.apply_in_place(X)
    return found


def scaling_of(how: str | float, found: Found | None = None) -> Scaling:
    """Return a scaling by its name or divisor, with what its plan has found where it has one."""
    if found is None:
        return Scaling(how=how) if isinstance(how, str) else Scaling(how="divide", divisor=float(how))
    if how == "max":
        return Scaling(how="divide", divisor=float(found.unit[0]))
    return Scaling(how=str(how), mean=found.centre, peak=found.unit, factor=found.factor)


@dataclass(frozen=True)
class Part:
    """Some rows of a matrix, all of which several processes have together.

    Parameters
    ----------
    rows : array of int64, shape (m,)
        Their numbers, increasing.
    peers : Communicator
        The processes.
    """

    rows: np.ndarray
    peers: Communicator
