"""Features: a matrix of one floating-point type, of whatever holds one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array, array_namespace, detached, host_array, is_array, is_sparse
from dualopt.problem.inputs._frames import as_frame, column_names, frame_features, is_table, series_values
from dualopt.problem.inputs._values import as_numbers, object_array

__all__ = ["as_features", "host_values"]


def as_features(X: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Return features as a floating-point array or sparse matrix, and the names of their columns, if they have any.

    Float64 and float32 stay what they are, in the library and on the device where they are; float16 becomes float32,
    everything else float64.

    Raises
    ------
    ValueError
        If ``X`` is no matrix of real numbers, with one sentence.
    """
    if type(X) is np.ndarray and X.dtype in (np.float64, np.float32) and X.ndim < 3:
        return X, None
    frame = as_frame(X, "X")
    if frame is not None:
        if not is_table(frame):
            raise ValueError("X must be a matrix or a DataFrame, not a Series: X.to_frame() makes one of one column.")
        return frame_features(frame), column_names(frame)
    if is_sparse(X):
        rows: Any = X.tocsr()  # pyright: ignore[reportAttributeAccessIssue]
        return (rows.astype("float64") if rows.dtype.kind in "biu" else rows), None
    if is_array(X) and not isinstance(X, np.ndarray):  # of another library: it stays there
        return _floating(detached(X)), None
    return _floating(_host_matrix(X)), None


def host_values(values: Any, argument: str) -> np.ndarray:
    """Return a vector of anything as a NumPy array, one of objects unless all are numbers or all are words.

    Raises
    ------
    ValueError
        If values are masked, or it is no sequence.
    """
    frame = as_frame(values, argument)
    if frame is not None:
        if is_table(frame):
            if len(frame.columns) != 1:
                raise ValueError(f"{argument} must be one column, not the {len(frame.columns)} of a DataFrame.")
            frame = frame[:, 0]
        return series_values(frame)
    if isinstance(values, str | bytes | Mapping | set | frozenset) or is_sparse(values):
        raise ValueError(f"{argument} must be a vector, not a {type(values).__name__}.")
    if _is_listed(values):
        return object_array(values)
    return _unmasked(values, argument)


def _host_matrix(X: Any) -> np.ndarray:
    """Return lists, NumPy's arrays and all that exports one as a NumPy array."""
    if isinstance(X, str | bytes):
        raise ValueError(f"X must be a matrix, not the text {X!r}: dualopt.problem.data.load reads files.")
    if isinstance(X, Mapping):
        raise ValueError("X must be a matrix, not a dict: pandas.DataFrame(X) makes one of its columns.")
    if _is_listed(X):
        X = _rows(X)
    array = _unmasked(X, "X")
    if array.ndim > 2:
        raise ValueError(
            f"X must be a matrix with one row per sample, not of shape {array.shape}: X.reshape(len(X), -1) makes one."
        )
    if array.dtype.kind in "biufc":
        return array
    flat = [as_numbers(array[:, i], f"X: column {i}") for i in range(array.shape[1])] if array.ndim == 2 else []
    return np.stack(flat, axis=1) if flat else np.empty(array.shape)


def _rows(rows: Sequence[Any]) -> np.ndarray:
    """Return a list of rows as a matrix, whose rows must be equally long."""
    sizes = {len(row) if hasattr(row, "__len__") and not isinstance(row, str | bytes) else None for row in rows}
    if len(sizes) > 1 or any(isinstance(row, Mapping) for row in rows):
        raise ValueError("X must be a matrix, but its rows are not all equally long sequences of numbers.")
    try:
        array = np.asarray(rows)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("X must be a matrix, but its rows are not all equally long sequences of numbers.") from None
    return array if array.dtype.kind in "biuf" else np.asarray(rows, dtype=object)  # words and numbers apart


def _unmasked(x: Any, argument: str) -> np.ndarray:
    if np.ma.is_masked(x):
        raise ValueError(f"{argument} must not have masked values.")
    try:
        array = np.asarray(host_array(x))  # no subclass, such as np.matrix
    except (TypeError, ValueError, BufferError, RuntimeError):
        raise ValueError(f"{argument} cannot be read as an array: it is a {type(x).__name__}.") from None
    if array.ndim == 0:
        raise ValueError(f"{argument} must not be a single {type(x).__name__}.")
    return array.astype(str) if array.dtype.kind == "T" else array.astype(array.dtype.newbyteorder("="), copy=False)


def _is_listed(x: Any) -> bool:
    """Tell sequences of Python, whose values are looked at one by one, from what NumPy reads as a whole."""
    return isinstance(x, Sequence) and not isinstance(x, memoryview) and not hasattr(x, "__array__")


def _floating(X: Array) -> Array:
    """Return an array of real numbers in float64 or float32; other types are left to the checks of an objective."""
    xp = array_namespace(X)
    if X.dtype in (xp.float64, xp.float32):
        return X
    if xp.isdtype(X.dtype, "complex floating"):
        return X
    narrow = "float16" in str(X.dtype)  # and bfloat16
    return xp.astype(X, xp.float32 if narrow else xp.float64)
