"""Tables in files: text with a line of names (``.csv``, ``.tsv``, compressed or not) and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dualopt.arrays._extras import optional
from dualopt.problem.data._files import file_hash
from dualopt.problem.data._source import Source
from dualopt.problem.data._table_files import column_names, is_parquet, is_table_file, read_columns
from dualopt.problem.data._table_rows import read_features
from dualopt.problem.inputs import as_offset, as_row_weights, by_owner, label_values
from dualopt.problem.inputs._frames import as_frame, require_column
from dualopt.problem.preprocessing import Table, TableOptions, fitted_columns

__all__ = ["check_names", "codes_of", "is_table_file", "read_table", "require_different", "source"]


def source(
    path: Path,
    *,
    dtype: str = "float64",
    label: str | None = None,
    client: str | None = None,
    sample_weight: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
    drop: Sequence[str] = (),
    missing: str = "refuse",
    categories: str = "refuse",
) -> Source:
    """Read a table: one column of labels, perhaps some of clients, weights and offsets, all others but some features.

    The first line of a text file names the columns, which a comma, semicolon, tab or bar separates. An empty cell is
    missing; words such as NA are words. Names of clients are kept as they are written.

    Columns that are no features are read first, of all rows; features of the rows that are wanted, a block of rows at a
    time. Where words or gaps are not refused, what features there are depends on all rows, which are read at once.

    Parameters
    ----------
    path : Path
        The file, whose name says what it is.
    dtype : str
        Type of the features.
    label : str
        The column of labels.
    client : str, optional
        The column that says whose a row is.
    sample_weight : str, optional
        The column that says what a row counts.
    offset, exposure : str, optional
        The column of what is added to the predictors, or of numbers whose logarithms are.
    drop : sequence of str
        Columns that are not used.
    missing, categories : str
        What becomes of gaps and words (`dualopt.problem.preprocessing.TableOptions`).

    Raises
    ------
    ValueError
        If the file is damaged or too large for the memory, ``label``, ``client``, ``sample_weight`` or what is in
        ``drop`` is no column, or a column holds what it must not; the sentence names the column.
    ModuleNotFoundError
        If PyArrow or narwhals is missing.
    """
    names = column_names(path)
    check_names(path, names)
    _require_label(names, label)
    own = {"label": label, "client": client, "sample_weight": sample_weight, "offset": offset, "exposure": exposure}
    features, options = _features(names, own, drop), TableOptions(missing=missing, categories=categories)
    columns = _columns(path, {argument: name for argument, name in own.items() if name is not None})
    if options.refuse_all:
        made, read = None, lambda rows: read_features(path, features, rows, dtype)
    else:
        table = options.table(as_frame(read_columns(path, features), "X"))
        made = fitted_columns(table, options)
        X, features = made.matrix(table), list(made.feature_names)
        read = lambda rows: X[rows]  # noqa: E731
    return Source(
        scale="none",
        description=f"table {path}",
        shape=(len(columns["y"]), len(features)),
        read=read,
        contents=lambda: {"contents of the file": file_hash(path)},
        feature_names=tuple(features),
        reading=own,
        room=lambda rows: len(rows) * len(features) * np.dtype(dtype).itemsize,
        columns=made,
        **columns,
    )


def read_table(
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
        As of `source`.

    Raises
    ------
    ValueError
        As by `source`.
    """
    names = column_names(path)
    check_names(path, names)
    _require_label(names, label)
    own = {"label": label, "offset": offset, "exposure": exposure}
    features = _features(names, own)
    columns = _columns(path, {argument: name for argument, name in own.items() if name is not None})
    table = options.table(as_frame(read_columns(path, features), "X"))
    return table, columns["y"], columns["offset"]


def _features(names: list[str], own: dict[str, str | None], drop: Sequence[str] = ()) -> list[str]:
    """Return the columns that are features; refuse names of others that there are not, or twice."""
    require_different(names, "X")
    rest = names
    for argument, name in (*own.items(), *(("drop", name) for name in drop)):
        if name is not None:
            require_column(rest, name, argument)
            rest = [other for other in rest if other != name]
    return rest


def require_different(names: list[str], what: str) -> None:
    """Refuse two columns of one name."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{what} has two columns named {twice!r}: rename or drop one.")


def _columns(path: Path, own: dict[str, str]) -> dict[str, Any]:
    """Return what columns say that are no features, by the names that `RawData` has for it."""
    clients = [own["client"]] if "client" in own else []
    table = read_columns(path, list(own.values()), text=clients)
    columns = {argument: table.column(name) for argument, name in own.items()}
    found: dict[str, Any] = {}
    if "client" in columns:
        owners, codes = _values(columns["client"], "client")
        numbers, found["client_names"] = codes_of(owners if is_parquet(path) else _numbered(owners.to_list()))
        found["clients"] = numbers[codes]
    if "sample_weight" in columns:
        weights = as_frame(columns["sample_weight"], "sample_weight")
        found["sample_weight"] = as_row_weights(weights, np.ones(1), len(table), "sample_weight")
    given = {name: as_frame(columns[name], name) for name in ("offset", "exposure") if name in columns}
    found["offset"] = as_offset(given.get("offset"), given.get("exposure"), np.ones(1), len(table))
    labels, codes = _values(columns["label"], "label")
    return found | {"y": label_values(labels)[codes]}


def _values(column: Any, argument: str) -> tuple[Any, Any]:
    """Return values of a column, and for each row which one it has: of many words each is there once."""
    arrow = optional("pyarrow", argument)
    is_text = arrow.types.is_string(column.type) or arrow.types.is_large_string(column.type)
    if not is_text or column.null_count:
        return as_frame(column, argument), slice(None)
    encoded = column.combine_chunks().dictionary_encode()
    return as_frame(encoded.dictionary, argument), encoded.indices.to_numpy()


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
