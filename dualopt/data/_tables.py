"""Tables in files: text with a line of names (``.csv``, ``.tsv``, compressed or not) and Parquet."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dualopt.data._dataset import RawData
from dualopt.data._files import free_memory, open_binary
from dualopt.inputs import as_features, by_owner, label_values, without_column
from dualopt.inputs._frames import optional

__all__ = ["codes_of", "is_table_file", "load"]

TEXT = (".csv", ".tsv", ".csv.gz", ".csv.bz2", ".tsv.gz", ".tsv.bz2")
PARQUET = (".parquet", ".pq")
SEPARATORS = (",", ";", "\t", "|")
BYTES_PER_VALUE = 8


def is_table_file(path: Path) -> bool:
    """Tell by the end of its name whether a file holds a table.

    >>> is_table_file(Path("patients.csv.gz")), is_table_file(Path("a9a.bz2"))
    (True, False)
    """
    return path.name.lower().endswith(TEXT + PARQUET)


def load(path: Path, *, label: str | None = None, client: str | None = None) -> RawData:
    """Read a table: one column of labels, perhaps one of clients, all others features.

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

    Raises
    ------
    ValueError
        If the file is damaged or too large for the memory, ``label`` or ``client`` is no column, or a column holds what
        it must not; the sentence names the column.
    ModuleNotFoundError
        If PyArrow or narwhals is missing.
    """
    is_parquet = path.name.lower().endswith(PARQUET)
    table = _read_parquet(path) if is_parquet else _read_text(path, client)
    names = [str(name) for name in table.column_names]
    if not names:
        raise ValueError(f"path {str(path)!r} has no columns.")
    if not is_parquet and names and all(map(_is_number, names)):
        raise ValueError(f"path {str(path)!r} must begin with a line of column names, not with numbers.")
    if "" in names:
        raise ValueError(
            f"path {str(path)!r} has a column without a name, perhaps row numbers: name it or leave it out."
        )
    if label is None:
        shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
        raise ValueError(f"label must name the column of labels, one of {shown}.")
    rest, y = without_column(table, label, "label")
    clients = client_names = None
    if client is not None:
        rest, owners = without_column(rest, client, "client")
        values = owners.to_list() if is_parquet else _numbered(owners.to_list())
        clients, client_names = codes_of(values)
    X, feature_names = as_features(rest)
    return RawData(
        X=X,
        y=label_values(y),
        scale="none",
        description=f"table {path}",
        clients=clients,
        client_names=client_names,
        feature_names=feature_names,
    )


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


def _read_text(path: Path, client: str | None) -> Any:
    arrow, csv = optional("pyarrow", f"data {path.name!r}"), optional("pyarrow.csv", f"data {path.name!r}")
    with open_binary(path) as stream:
        head = stream.readline(2**20)
    try:
        first = head.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"path {str(path)!r} cannot be read as a table: it is not in UTF-8.") from None
    separator = "\t" if ".tsv" in path.name.lower() else max(SEPARATORS, key=first.count)
    convert = csv.ConvertOptions(
        null_values=[""],  # "NA" and "None" may be labels, or clients
        strings_can_be_null=True,
        column_types={} if client is None else {client: arrow.string()},
    )
    parse = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    with _reading(path, arrow), open_binary(path) as stream:
        return csv.read_csv(_Limited(stream, path), parse_options=parse, convert_options=convert)


def _read_parquet(path: Path) -> Any:
    arrow = optional("pyarrow", f"data {path.name!r}")
    parquet = optional("pyarrow.parquet", f"data {path.name!r}")
    with _reading(path, arrow), parquet.ParquetFile(path, page_checksum_verification=True) as file:
        head = file.metadata
        stored = sum(head.row_group(n).total_byte_size for n in range(head.num_row_groups))
        if max(stored, head.num_rows * head.num_columns * BYTES_PER_VALUE) > free_memory() / 2:
            raise ValueError(
                f"path {str(path)!r} does not fit: {head.num_rows} x {head.num_columns} values are too many."
            )
        table = file.read()
    return table.drop_columns([n for n in table.column_names if re.fullmatch(r"__index_level_\d+__", n)])  # of pandas


class _Limited(io.RawIOBase):
    """A text whose table takes at most a quarter of the free memory: a small compressed file may hold any text."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self.stream, self.path = stream, path
        self.limit = self.room = free_memory() / 4

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.stream.read(len(buffer))
        values = sum(map(content.count, (b"\n", *map(str.encode, SEPARATORS))))
        self.room -= max(len(content), BYTES_PER_VALUE * values)
        if self.room < 0:
            raise ValueError(f"path {str(self.path)!r} does not fit: it takes more than {self.limit:.3g} bytes.")
        buffer[: len(content)] = content
        return len(content)


@contextmanager
def _reading(path: Path, arrow: Any) -> Iterator[None]:
    """Say in one sentence what PyArrow finds wrong."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(f"path {str(path)!r} does not fit: its columns take more than the free memory.") from error
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise ValueError(f"path {str(path)!r} cannot be read as a table: {reason}.") from error


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
