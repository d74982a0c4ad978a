"""Data sets: a matrix of features, raw labels, and their source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dualopt.arrays.xp import is_sparse
from dualopt.problem.data._scaling import Scaling
from dualopt.problem.preprocessing import Columns

__all__ = ["Dataset", "RawData", "check_features"]


def check_features(X: Any, rows: np.ndarray | None = None) -> None:
    """Refuse anything but a nonempty matrix of finite numbers.

    Parameters
    ----------
    X : array or matrix in compressed sparse rows, shape (m, d)
        Features, one row per sample.
    rows : array of integers, shape (m,), optional
        Their numbers in the data set, where they are a part of it.

    Raises
    ------
    ValueError
        If ``X`` is not a matrix of real numbers, has no rows or columns, or holds NaN or infinite values.
    """
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, but its type is {X.dtype}.")
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be a matrix with at least one row and one column, but its shape is {X.shape}.")
    if is_sparse(X):
        if not np.isfinite(X.data).all():
            row = int(np.searchsorted(X.indptr, np.argmin(np.isfinite(X.data)), side="right")) - 1
            raise _not_finite(row, rows)
        return
    # Minimum and maximum propagate NaN and need no temporary matrix, which isfinite(X) would.
    if not (np.isfinite(X.min()) and np.isfinite(X.max())):
        row = int(np.argmin(np.isfinite(X).all(axis=1)))
        raise _not_finite(row, rows)


def _not_finite(row: int, rows: np.ndarray | None) -> ValueError:
    number = row if rows is None else int(rows[row])
    return ValueError(f"X must be finite, but row {number} (counted from 0) holds NaN or infinite values.")


@dataclass(frozen=True, kw_only=True)
class RawData:
    """The result of a loader: features before conversion and scaling.

    Parameters
    ----------
    X : array or matrix in compressed sparse rows, shape (m, d)
        Features of any real type; the caller owns the array and may overwrite it.
    y : array, shape (m,)
        Raw labels.
    scale : str or float
        The scaling that ``scale="auto"`` stands for with these features.
    description : str
        The source in one line.
    clients : array of integers, shape (m,), optional
        The number of the client that each row belongs to; None when the source names no clients.
    client_names : tuple, optional
        The names of the clients, by their numbers from 0.
    feature_names : tuple of str, optional
        The names of the columns.
    sample_weight : array, shape (m,), optional
        What each row counts, where the source says it.
    offset : array, shape (m,), optional
        What is added to the predictor of each row, where the source says it.
    reading : mapping, optional
        Options with which other files of the same kind must be read so that their columns mean the same.
    columns : Columns, optional
        How the columns of a table became features, where words or gaps are not refused.
    """

    X: Any
    y: np.ndarray
    scale: str | float
    description: str
    clients: np.ndarray | None = None
    client_names: tuple[Any, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    sample_weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    columns: Columns | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """A data set with raw labels.

    Parameters
    ----------
    X : array or matrix in compressed sparse rows, shape (m, d)
        Features in float64 or float32, one row per sample.
    y : array, shape (m,)
        Raw labels as the source has them; `dualopt.problem.data.encode_labels` turns them into what a loss needs.
    name : str
        The name or path that was passed to `load`.
    description : str
        The source in one line.
    clients : array of integers, shape (m,), optional
        The number of the client that each row belongs to, which `dualopt.problem.data.natural` turns into a partition;
        None when the source names no clients.
    client_names : tuple, optional
        The names of the clients, by their numbers from 0.
    feature_names : tuple of str, optional
        The names of the columns.
    sample_weight : array, shape (m,), optional
        What each row counts, where the source says it.
    offset : array, shape (m,), optional
        What is added to the predictor of each row, where the source says it.
    reading : mapping, optional
        Options with which other files of the same kind must be read so that their columns mean the same, such as the
        column of labels.
    scaling : Scaling
        What was done to the features.
    columns : Columns, optional
        How the columns of a table became features, where words or gaps are not refused.

    Raises
    ------
    ValueError
        If ``X`` is not a nonempty finite matrix of float64 or float32, ``y`` has not one label per row, or
        ``clients`` has not one integer per row.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.problem.data import Dataset
    >>> Dataset(X=np.eye(2), y=np.array([0, 1]), name="corners", description="two unit vectors").X.shape
    (2, 2)
    """

    X: Any
    y: np.ndarray
    name: str
    description: str
    clients: np.ndarray | None = None
    client_names: tuple[Any, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    sample_weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    scaling: Scaling = field(default_factory=Scaling)
    columns: Columns | None = None

    def __post_init__(self) -> None:
        """Refuse arrays that no objective could use."""
        check_features(self.X)
        if self.X.dtype not in (np.float64, np.float32):
            raise ValueError(f"X must be of type float64 or float32, but it is {self.X.dtype}.")
        if self.y.shape != self.X.shape[:1]:
            raise ValueError(
                f"y must hold one label for each of the {self.X.shape[0]} rows of X, but its shape is {self.y.shape}."
            )
        owners = self.clients
        if owners is not None and (owners.shape != self.y.shape or owners.dtype.kind not in "iu"):
            raise ValueError(
                f"clients must hold one integer for each of the {self.X.shape[0]} rows of X, but it is an array of "
                f"{owners.dtype} with shape {owners.shape}."
            )
