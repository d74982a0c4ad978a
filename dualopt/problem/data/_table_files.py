"""The files of tables: text and Parquet, read by PyArrow, as a whole or some columns."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from dualopt.arrays._extras import optional
from dualopt.problem.data._files import free_memory, open_binary

__all__ = ["SEPARATORS", "column_names", "is_parquet", "is_table_file", "read_table"]

TEXT = (".csv", ".tsv", ".csv.gz", ".csv.bz2", ".tsv.gz", ".tsv.bz2")
PARQUET = (".parquet", ".pq")
INDEX = r"__index_level_\d+__"  # columns that pandas adds
SEPARATORS = (",", ";", "\t", "|")
BYTES_PER_VALUE = 8


def is_table_file(path: Path) -> bool:
    """Tell by the end of its name whether a file holds a table.

    >>> is_table_file(Path("patients.csv.gz")), is_table_file(Path("a9a.bz2"))
    (True, False)
    """
    return path.name.lower().endswith(TEXT + PARQUET)


def is_parquet(path: Path) -> bool:
    """Tell by the end of its name whether a table is in Parquet."""
    return path.name.lower().endswith(PARQUET)


def read_table(path: Path, client: str | None, columns: list[str] | None = None, part: float = 1.0) -> Any:
    """Return a table, or some of its columns, a ``part`` of all; that of clients as text where the file is text."""
    return _read_parquet(path, columns, part) if is_parquet(path) else _read_text(path, client, columns, part)


def column_names(path: Path) -> list[str]:
    """Return the names of the columns."""
    if is_parquet(path):
        arrow, parquet = (optional(name, f"data {path.name!r}") for name in ("pyarrow", "pyarrow.parquet"))
        with _reading(path, arrow), parquet.ParquetFile(path) as file:
            return [name for name in file.schema_arrow.names if not re.fullmatch(INDEX, name)]
    arrow, csv, parse = _text(path)
    with _reading(path, arrow), open_binary(path) as stream:
        return csv.open_csv(_Limited(stream, path), parse_options=parse).schema.names


def _read_text(path: Path, client: str | None, columns: list[str] | None, part: float) -> Any:
    arrow, csv, parse = _text(path)
    convert = csv.ConvertOptions(
        null_values=[""],  # "NA" and "None" may be labels, or clients
        strings_can_be_null=True,
        column_types={} if client is None else {client: arrow.string()},
        include_columns=columns,
    )
    with _reading(path, arrow), open_binary(path) as stream:
        return csv.read_csv(_Limited(stream, path, part), parse_options=parse, convert_options=convert)


def _text(path: Path) -> tuple[Any, Any, Any]:
    """Return the modules that read a text file, and how its lines are split."""
    arrow, csv = optional("pyarrow", f"data {path.name!r}"), optional("pyarrow.csv", f"data {path.name!r}")
    with open_binary(path) as stream:
        head = stream.readline(2**20)
    try:
        first = head.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"path {str(path)!r} cannot be read as a table: it is not in UTF-8.") from None
    separator = "\t" if ".tsv" in path.name.lower() else max(SEPARATORS, key=first.count)
    return arrow, csv, csv.ParseOptions(delimiter=separator, newlines_in_values=True)


def _read_parquet(path: Path, columns: list[str] | None, part: float) -> Any:
    arrow = optional("pyarrow", f"data {path.name!r}")
    parquet = optional("pyarrow.parquet", f"data {path.name!r}")
    with _reading(path, arrow), parquet.ParquetFile(path, page_checksum_verification=True) as file:
        head = file.metadata
        stored = sum(head.row_group(n).total_byte_size for n in range(head.num_row_groups))
        if part * max(stored, head.num_rows * head.num_columns * BYTES_PER_VALUE) > free_memory() / 2:
            raise ValueError(
                f"path {str(path)!r} does not fit: {head.num_rows} x {head.num_columns} values are too many."
            )
        table = file.read(columns=columns)
    return table.drop_columns([n for n in table.column_names if re.fullmatch(INDEX, n)])


class _Limited(io.RawIOBase):
    """A text whose table takes at most a quarter of the free memory: a small compressed file may hold any text."""

    def __init__(self, stream: BinaryIO, path: Path, part: float = 1.0) -> None:
        self.stream, self.path, self.part = stream, path, part  # the part of the columns that is kept
        self.limit = self.room = free_memory() / 4

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.stream.read(len(buffer))
        values = sum(map(content.count, (b"\n", *map(str.encode, SEPARATORS))))
        self.room -= self.part * max(len(content), BYTES_PER_VALUE * values)
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
