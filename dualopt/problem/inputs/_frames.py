"""DataFrames and Series of any library that narwhals knows: pandas, polars, PyArrow, Modin, cuDF and more.

narwhals gives them one interface. It is imported when the first frame comes, never before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from dualopt.arrays._extras import optional
from dualopt.problem.inputs._values import as_numbers, object_array

__all__ = [
    "as_frame",
    "as_matrix",
    "column_names",
    "column_numbers",
    "frame_features",
    "is_table",
    "require_column",
    "series_values",
    "take_column",
]

LIBRARIES = {"cudf", "dask", "duckdb", "ibis", "modin", "narwhals", "pandas", "polars", "pyarrow", "pyspark"}
SHOWN = 20  # columns that a sentence names


def as_frame(x: Any, argument: str) -> Any:
    """Return a DataFrame or a Series as that of narwhals; None for anything else.

    Raises
    ------
    ModuleNotFoundError
        If narwhals is missing.
    ValueError
        If a DataFrame has two columns of one name.
    """
    library = type(x).__module__.partition(".")[0]
    if library not in LIBRARIES and not hasattr(x, "__arrow_c_stream__"):
        return None
    nw = optional("narwhals", f"{argument}, a {type(x).__name__},")
    if library == "pandas" and not hasattr(x, "columns") and hasattr(x, "dtype"):  # also an index, or an array
        x = import_module("pandas").Series(x)
    elif library == "pyarrow" and hasattr(x, "to_pylist") and not hasattr(x, "schema"):  # also an array
        x = optional("pyarrow", argument).chunked_array(x.chunks if hasattr(x, "chunks") else [x])
    elif library == "pyarrow" and hasattr(x, "schema"):  # also a batch
        x = optional("pyarrow", argument).table(x)
    elif library not in LIBRARIES:
        x = nw.from_arrow(x, backend=optional("pyarrow", argument))
    try:
        known = nw.from_native(x, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError:
        ((name, _),) = Counter(map(str, getattr(x, "column_names", x.columns))).most_common(1)
        raise ValueError(f"{argument} has two columns named {name!r}: rename or drop one.") from None
    if isinstance(known, nw.LazyFrame):
        return known.collect()
    return known if isinstance(known, nw.DataFrame | nw.Series) else None


def is_table(frame: Any) -> bool:
    """Tell a DataFrame of narwhals from a Series."""
    return hasattr(frame, "columns")


def column_names(frame: Any) -> tuple[str, ...]:
    """Return the names of the columns as text, in their order."""
    return tuple(map(str, frame.columns))


def take_column(frame: Any, name: str, argument: str) -> tuple[Any, Any]:
    """Return a column and the frame without it.

    Raises
    ------
    ValueError
        If there is no such column; the sentence names those there are.
    """
    names = column_names(frame)
    require_column(names, name, argument)
    place = names.index(name)
    return frame[:, place], frame[:, [other for other in range(len(names)) if other != place]]


def require_column(names: Sequence[str], name: str, argument: str) -> None:
    """Refuse a name that is none of these."""
    if name not in names:
        shown = ", ".join(map(repr, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")
        raise ValueError(f"{argument} must name a column, one of {shown}; not {name!r}.")


def frame_features(frame: Any) -> np.ndarray:
    """Return the columns of a frame as a matrix of float64, or of float32 where NumPy needs no more for all of them.

    Raises
    ------
    ValueError
        If a column holds anything but numbers, or misses a value; the sentence names the column and the row.
    """
    columns = zip(frame.iter_columns(), column_names(frame), strict=True)
    return as_matrix([column_numbers(column, name) for column, name in columns], len(frame))


def as_matrix(columns: list[np.ndarray], rows: int) -> np.ndarray:
    """Return columns beside each other, in float64, or in float32 where NumPy needs no more for all of them.

    >>> as_matrix([np.ones(2, np.float32), np.ones(2, bool)], 2).dtype
    dtype('float32')
    """
    common = np.result_type(*columns) if columns else np.dtype(np.float64)
    X = np.empty((rows, len(columns)), np.float32 if common.kind == "f" and common.itemsize <= 4 else np.float64)
    for place, column in enumerate(columns):
        X[:, place] = column
    return X


def column_numbers(column: Any, name: str, rows: Any = None) -> np.ndarray:
    """Return a column of features as finite numbers; ``rows`` are the numbers of its rows in the data, if not its own.

    Raises
    ------
    ValueError
        If it holds anything but numbers, or misses a value; the sentence names the column and the first such row.
    """
    what = f"X: column {name!r}"
    if column.dtype.is_temporal():
        raise ValueError(f"{what} must hold numbers, not times ({column.dtype}): make numbers of it or drop it.")
    rows = range(len(column)) if rows is None else rows
    missing = column.is_null().to_list().index(True) if column.null_count() else len(column)
    numbers = as_numbers(series_values(column[:missing]), what, rows)
    finite = np.isfinite(numbers)
    if not finite.all():
        row = rows[int(np.argmin(finite))]
        raise ValueError(f"{what} must not have missing or infinite values, but row {row} (counted from 0) has one.")
    if missing < len(column):
        raise ValueError(f"{what} must not have missing values, but row {rows[missing]} (counted from 0) has one.")
    return numbers


def series_values(series: Any) -> np.ndarray:
    """Return a Series as an array: of numbers, or else of objects, those that are missing being None."""
    dtype = series.dtype
    if series.null_count() == 0 and (str(dtype) == "Boolean" or (dtype.is_numeric() and not dtype.is_decimal())):
        values = series.to_numpy()
        if values.dtype.kind in "biuf":
            return values
    missing = series.is_null().to_list()
    return object_array([None if gone else value for value, gone in zip(series.to_list(), missing, strict=True)])
