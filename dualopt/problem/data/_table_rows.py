"""The features of some rows of a table in a file, read block by block into one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dualopt.arrays._extras import optional
from dualopt.problem.data._table_files import blocks, is_parquet
from dualopt.problem.inputs._frames import as_frame, column_numbers, series_values
from dualopt.problem.inputs._values import is_missing, kind_of, shown
from dualopt.problem.preprocessing._columns import gap, no_number

__all__ = ["read_features"]

TRUTHS = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
TRUTHS_AND_BITS = TRUTHS | {"1": 1.0, "0": 0.0}
BLANKS = " \t"
PARQUET_COLUMNS = 16  # that are read at once: of each, a dictionary and a page are in memory, 1 MB each


def read_features(path: Path, columns: Sequence[str], rows: np.ndarray, dtype: Any) -> np.ndarray:
    """Return numbers in some columns of some rows, whose numbers increase; no other row is converted.

    In text, a column whose first cell is a word for a truth value, such as ``true`` or ``False``, holds truth values,
    1 and 0; all others hold numbers.

    Raises
    ------
    ValueError
        If the file is damaged, or a cell of these rows holds no finite number. The sentence names the first such column
        and its first such row, wherever blocks end.
    """
    X = np.empty((len(rows), len(columns)), dtype)
    step = PARQUET_COLUMNS if is_parquet(path) else max(1, len(columns))
    for start in range(0, len(columns), step):
        _fill(X[:, start : start + step], path, columns[start : start + step], rows)
    return X


def _fill(X: np.ndarray, path: Path, columns: Sequence[str], rows: np.ndarray) -> None:
    """Write the numbers in some columns of some rows into a matrix."""
    read: Any = None
    sound, complaint = len(columns), ValueError()
    end = 0
    for block in blocks(path, columns):
        start, end = end, end + len(block)
        read = read or (_Typed() if is_parquet(path) else _Text(block))
        a, b = np.searchsorted(rows, (start, end))
        if a == b:
            continue
        some = _some(block, rows[a:b] - start)
        with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite, which is refused later
            if sound == len(columns) and read.all_at_once(some, X[a:b]):
                continue
            for place in range(sound):  # of columns behind one that is wrong none is named
                try:
                    X[a:b, place] = read.column(some, place, rows[a:b])
                except ValueError as error:
                    sound, complaint = place, error
                    break
    if sound < len(columns):
        raise complaint


def _some(block: Any, rows: np.ndarray) -> Any:
    """Return some rows of a block, without a copy where they lie one after the other."""
    first, count = int(rows[0]), len(rows)
    return (
        block.slice(first, count) if rows[-1] - first == count - 1 else block.take(optional("pyarrow", "X").array(rows))
    )


class _Typed:
    """Blocks whose columns have types."""

    def __init__(self) -> None:
        self.types = optional("pyarrow", "X").types

    def all_at_once(self, block: Any, X: np.ndarray) -> bool:
        """Fill a matrix with a block, unless something in it may be no finite number."""
        for place, column in enumerate(block.columns):
            kind = column.type
            plain = self.types.is_floating(kind) or self.types.is_integer(kind) or self.types.is_boolean(kind)
            if not plain or column.null_count:
                return False
            numbers = column.to_numpy(zero_copy_only=False)
            if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
                return False
            X[:, place] = _doubles(numbers)
        return True

    def column(self, block: Any, place: int, rows: np.ndarray) -> np.ndarray:
        """Return the numbers of a column in rows that have these numbers."""
        return _doubles(_numbers(as_frame(block.column(place), "X"), block.schema.names[place], rows))


def _numbers(column: Any, name: str, rows: np.ndarray) -> np.ndarray:
    """Return a column as numbers; what refuses words and gaps says how they can be had."""
    what, values = f"X: column {name!r}", series_values(column)
    for row, value in zip(rows.tolist(), values.tolist(), strict=False):
        if is_missing(value):
            raise ValueError(gap(what, row))
        if isinstance(value, str):
            raise ValueError(no_number(what, row, value))
        if kind_of(value) != "numbers" or not np.isfinite(float(value)):
            break
    return column_numbers(column, name, rows)


def _doubles(numbers: np.ndarray) -> np.ndarray:
    """Return integers in double precision, which they become before they become shorter."""
    return numbers.astype(np.float64) if numbers.dtype.kind in "iu" else numbers


class _Text:
    """Blocks whose cells are text; the first one says which columns hold truth values."""

    def __init__(self, first: Any) -> None:
        self.arrow, self.compute = optional("pyarrow", "X"), optional("pyarrow.compute", "X")
        self.words = self.arrow.array(list(TRUTHS_AND_BITS))
        self.values = self.arrow.array(list(TRUTHS_AND_BITS.values()))
        holds = [column[0].as_py() in TRUTHS for column in first.columns]
        self.truths, self.numbers = [j for j, so in enumerate(holds) if so], [j for j, so in enumerate(holds) if not so]

    def all_at_once(self, block: Any, X: np.ndarray) -> bool:
        """Fill a matrix with a block, unless something in it is no finite number."""
        columns = block.columns
        for convert, places in ((self._as_truths, self.truths), (self._as_numbers, self.numbers)):
            if places:
                try:
                    found = convert(self.arrow.concat_arrays([columns[place] for place in places]))
                except ValueError:
                    return False
                if found.null_count or not np.isfinite(numbers := found.to_numpy()).all():
                    return False
                X[:, places if self.truths else slice(None)] = numbers.reshape(len(places), -1).T
        return True

    def column(self, block: Any, place: int, rows: np.ndarray) -> np.ndarray:
        """Return the numbers of a column in rows that have these numbers."""
        cells, name = block.column(place), block.schema.names[place]
        convert = self._as_truths if place in self.truths else self._as_numbers
        good = self._convertible(cells, convert)
        numbers = _numbers(as_frame(convert(cells[:good]), "X"), name, rows)
        if good == len(cells):
            return numbers
        cell, row = cells[good].as_py(), f"row {rows[good]} (counted from 0)"
        if place in self.truths:
            raise ValueError(
                f"X: column {name!r} must hold true and false like its first row, but {row} holds {shown(cell)}."
            )
        if self._is_time(cells[good]):
            times = f"times such as {shown(cell)} in {row}"
            raise ValueError(f"X: column {name!r} must hold numbers, not {times}: make numbers of it or drop it.")
        raise ValueError(no_number(f"X: column {name!r}", rows[good], cell))

    def _as_numbers(self, cells: Any) -> Any:
        try:
            return cells.cast(self.arrow.float64())
        except ValueError:
            return self.compute.utf8_trim(cells, BLANKS).cast(self.arrow.float64())

    def _as_truths(self, cells: Any) -> Any:
        cells = self.compute.utf8_trim(cells, BLANKS)
        found = self.values.take(self.compute.index_in(cells, value_set=self.words))
        if found.null_count > cells.null_count:
            raise ValueError("there is another word")
        return found

    def _convertible(self, cells: Any, convert: Any) -> int:
        """Return how many cells can be converted before the first one that cannot, by bisection."""
        good, bad = 0, len(cells) + 1
        while good + 1 < bad:
            middle = (good + bad) // 2
            try:
                convert(cells[:middle])
                good = middle
            except ValueError:
                bad = middle
        return good

    def _is_time(self, cell: Any) -> bool:
        for kind in (self.arrow.date32(), self.arrow.timestamp("ns")):
            try:
                cell.cast(kind)
                return True
            except ValueError:
                continue
        return False
