"""Tables in files: text with a line of names (``.csv``, ``.tsv``, compressed or not) and Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._files import file_hash
from dualopt.problem.data._source import Source, in_memory
from dualopt.problem.data._table_files import column_names, is_parquet, is_table_file, read_table
from dualopt.problem.inputs import as_offset, as_row_weights, by_owner, label_values, without_column
from dualopt.problem.inputs._frames import as_frame, as_matrix
from dualopt.problem.preprocessing import Columns, Table, TableOptions, fitted_columns

__all__ = ["check_names", "codes_of", "is_table_file", "load", "read_columns", "source"]

PASSES = 8  # over a file of which some rows are wanted: an eighth of the columns is in memory as a whole


def load(
    path: Path,
    *,
    label: str | None = None,
    client: str | None = None,
    sample_weight: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
    missing: str = "refuse",
    categories: str = "refuse",
) -> RawData:
    """Read a table: one column of labels, perhaps some of clients, weights and offsets, all others features.

    The first line of a text file names the columns, which a comma, semicolon, tab or bar separates. An empty cell is
    missing; words such as NA are words. Names of clients are kept as they are written.

    Parameters
    ----------
    path : Path
        The file, whose name says what it is.
    label : str
        The column of labels.
    client : str, optional
        The column that says whose a row is.
    sample_weight : str, optional
        The column that says what a row counts.
    offset, exposure : str, optional
        The column of what is added to the predictors, or of numbers whose logarithms are.
    missing, categories : str
        What becomes of gaps and words (`dualopt.problem.preprocessing.TableOptions`).

    Raises
    ------
    ValueError
        If the file is damaged or too large for the memory, an argument names no column, or a column holds what it must
        not; the sentence names the column.
    ModuleNotFoundError
        If PyArrow or narwhals is missing.
    """
    table = read_table(path, client)
    check_names(path, table.column_names)
    _require_label(table.column_names, label)
    own = {"label": label, "client": client, "sample_weight": sample_weight, "offset": offset, "exposure": exposure}
    rest, columns = _columns(table, own, is_parquet(path))
    X, feature_names, prepared = _features(rest, TableOptions(missing=missing, categories=categories))
    return RawData(
        X=X,
        columns=prepared,
        scale="none",
        description=f"table {path}",
        feature_names=feature_names,
        reading=own,
        **columns,
    )


def read_columns(
    path: Path,
    options: TableOptions,
    *,
    label: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> tuple[Table, np.ndarray, np.ndarray | None]:
    """Return the columns of a table that are features, as they are, the labels, and the offsets if it has any.

    Parameters
    ----------
    path : Path
        The file.
    options : TableOptions
        What is refused.
    label, offset, exposure : str, optional
        As of `load`.

    Raises
    ------
    ValueError
        As by `load`.
    """
    table = read_table(path, None)
    check_names(path, table.column_names)
    _require_label(table.column_names, label)
    own = {"label": label, "offset": offset, "exposure": exposure}
    rest, columns = _columns(table, own, is_parquet(path))
    return options.table(as_frame(rest, "X")), columns["y"], columns["offset"]


def source(
    path: Path,
    *,
    label: str | None = None,
    client: str | None = None,
    sample_weight: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
    missing: str = "refuse",
    categories: str = "refuse",
) -> Source:
    """Read what is no feature of a table, rows when they are wanted; arguments and errors are those of `load`.

    Types of columns depend on all rows: columns are read as a whole, some at a time.
    """
    names = column_names(path)
    check_names(path, names)
    _require_label(names, label)
    own = {"label": label, "client": client, "sample_weight": sample_weight, "offset": offset, "exposure": exposure}
    of_rows = [name for name in own.values() if name is not None]
    options = TableOptions(missing=missing, categories=categories)
    wrong = len({*names}) < len(names) or len({*of_rows}) < len(of_rows) or not {*of_rows} <= {*names}
    if wrong or not options.refuse_all:  # `load` says what is wrong; how many features there are depends on all rows
        return in_memory(load(path, **own, missing=missing, categories=categories))
    features = [name for name in names if name not in of_rows]

    def table(columns: list[str]) -> Any:
        return read_table(path, client if client in columns else None, columns, len(columns) / len(names))

    def read(rows: np.ndarray) -> np.ndarray:
        step = -(-len(features) // PASSES)
        found: list[np.ndarray] = []
        for start in range(0, len(features), step):
            frame = as_frame(table(features[start : start + step]), "X")
            found += [column[rows] for column in options.table(frame).columns]
        return as_matrix(found, len(rows))

    _, columns = _columns(table(of_rows), own, is_parquet(path))
    return Source(
        scale="none",
        description=f"table {path}",
        shape=(len(columns["y"]), len(features)),
        read=read,
        contents=lambda: {"contents of the file": file_hash(path)},
        feature_names=tuple(features),
        reading=own,
        **columns,
    )


def _features(columns: Any, options: TableOptions) -> tuple[np.ndarray, tuple[str, ...], Columns | None]:
    """Return columns as features, their names, and how they became them where words or gaps are not refused."""
    table = options.table(as_frame(columns, "X"))
    if options.refuse_all:
        return as_matrix(table.columns, table.rows), table.names, None
    found = fitted_columns(table, options)
    return found.matrix(table), found.feature_names, found


def _columns(table: Any, own: dict[str, str | None], typed: bool) -> tuple[Any, dict[str, Any]]:
    """Return the columns of the features, and what the others say, by the names that `RawData` has for it."""
    rest, columns = table, {}
    for argument, name in own.items():
        if name is not None:
            rest, columns[argument] = without_column(rest, name, argument)
    found: dict[str, Any] = {}
    like, rows = np.ones(1), len(columns["label"])
    if "client" in columns:
        values = columns["client"].to_list() if typed else _numbered(columns["client"].to_list())
        found["clients"], found["client_names"] = codes_of(values)
    if "sample_weight" in columns:
        found["sample_weight"] = as_row_weights(columns["sample_weight"], like, rows, "sample_weight")
    found["offset"] = as_offset(columns.get("offset"), columns.get("exposure"), like, rows)
    return rest, found | {"y": label_values(columns["label"])}


def check_names(path: Path, columns: list[Any]) -> None:
    """Refuse a table without a line of names, or with a column that has none."""
    names = [str(name) for name in columns]
    if not names:
        raise ValueError(f"path {str(path)!r} has no columns.")
    if not is_parquet(path) and names and all(map(_is_number, names)):
        raise ValueError(f"path {str(path)!r} must begin with a line of column names, not with numbers.")
    if "" in names:
        raise ValueError(
            f"path {str(path)!r} has a column without a name, perhaps row numbers: name it or leave it out."
        )


def _require_label(columns: list[Any], label: str | None) -> None:
    if label is None:
        names = [str(name) for name in columns]
        shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
        raise ValueError(f"label must name the column of labels, one of {shown}.")


def codes_of(owners: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Return the number of the client of each row, and the names of the clients.

    >>> codes_of(["b", "a", "b"])
    (array([1, 0, 1]), ('a', 'b'))
    """
    parts, names = by_owner(owners, len(owners))
    codes = np.empty(len(owners), dtype=np.int64)
    for number, rows in enumerate(parts):
        codes[rows] = number
    return codes, names


def _numbered(names: list[Any]) -> list[Any]:
    """Return names as integers where all are written as integers are, so that 10 comes after 9."""
    try:
        numbers = [int(name) for name in names]
    except (TypeError, ValueError):
        return names
    return numbers if all(str(n) == name for n, name in zip(numbers, names, strict=True)) else names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
