"""The rows of a file, or of a data set that has a name, as a model takes them, and their labels if there are some."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dualopt.problem.data import _libsvm, _npz, _tables
from dualopt.problem.data._registry import _arguments, _checked, _reader, opened
from dualopt.problem.data._source import all_rows
from dualopt.problem.data._table_files import column_names, read_columns
from dualopt.problem.data._table_rows import read_features
from dualopt.problem.data._tables import check_names, require_different
from dualopt.problem.inputs._frames import as_frame, series_values
from dualopt.problem.models._schema import Schema

__all__ = ["NewRows", "new_rows"]


class NewRows(NamedTuple):
    """Rows that a model can predict for."""

    X: Any  # what the model takes, shape (m, d), not scaled
    y: np.ndarray | None  # raw labels, shape (m,), where the data have them
    offset: np.ndarray | None = None  # shape (m,), where the data have the column of the model
    unused: tuple[str, ...] = ()  # columns that are neither features nor labels


def new_rows(
    schema: Schema,
    name: str | os.PathLike[str],
    *,
    data_home: str | os.PathLike[str] | None = None,
    **options: Any,
) -> NewRows:
    """Read the rows of a file, without labels if it has none.

    Parameters
    ----------
    schema : Schema
        What the rows of the model are.
    name, data_home, **options
        As in `dualopt.problem.data.load`. Columns of a table need no option: those of the model are found by name.

    Raises
    ------
    ValueError
        If the file does not fit the model or is damaged.
    """
    name, folder = _checked(name, data_home, "none", schema.dtype, 0)
    reader, first = _reader(name, folder)
    if reader is _tables.source:
        _arguments(name, _no_options, folder, schema.dtype, 0, 1.0, options)
        return _table(schema, Path(first), f"data {name!r}")
    if reader is _npz.source:
        X, y = _npz.rows(Path(first), **_arguments(name, _npz.rows, folder, schema.dtype, 0, 1.0, options))
        return NewRows(schema.rows(X, f"data {name!r}"), y)
    if reader is _libsvm.source:
        known = {"n_features": schema.n_features, "first_index": schema.reading.get("first_index")}
        options = known | options
    source = opened(name, folder, schema.dtype, 0, 1.0, options)
    return NewRows(schema.rows(source.read(all_rows(source)), f"data {name!r}"), source.y)


def _no_options(path: Path) -> None:
    """Stand for a reader that takes none."""


def _table(schema: Schema, path: Path, what: str) -> NewRows:
    """Read those columns of a table that the model has, and its labels where they are complete."""
    names = column_names(path)
    check_names(path, names)
    wanted, label = list(schema.column_names or names), schema.reading.get("label")
    schema.places(names, what)
    labelled = isinstance(label, str) and label in names and label not in wanted
    origin = schema.offset
    offset = None if origin is None or origin.column not in names else origin.column
    others = [*([str(label)] if labelled else []), *([] if offset is None else [offset])]
    columns = [*wanted, *others]
    require_different([name for name in names if name in columns], what)
    whole = read_columns(path, others or columns[-1:])
    y = None if not labelled or whole.column(0).null_count else series_values(as_frame(whole.column(0), what))
    shift = None if offset is None else schema.offsets(as_frame(whole.select([offset]), what), what=what)
    own = {*columns, *schema.reading.values()}
    unused = tuple(one for one in dict.fromkeys(names) if one not in own)
    every = np.arange(len(whole))
    X = read_features(path, wanted, every, "float64") if schema.columns is None else read_columns(path, wanted)
    return NewRows(schema.rows(X, what), y, shift, unused)
