"""The files of tables, text and Parquet, which PyArrow reads: some columns as a whole, or blocks of rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from dualopt.arrays._extras import optional
from dualopt.problem.data._files import free_memory, open_binary

__all__ = ["SEPARATORS", "blocks", "column_names", "is_parquet", "is_table_file", "read_columns"]

TEXT = (".csv", ".tsv", ".csv.gz", ".csv.bz2", ".tsv.gz", ".tsv.bz2")
PARQUET = (".parquet", ".pq")
INDEX = r"__index_level_\d+__"  # columns that pandas adds
SEPARATORS = (",", ";", "\t", "|")
BLOCK = 2**20  # bytes of a block: PyArrow has some twenty of them in memory at once
LONGEST_CELL = 64  # bytes of a cell in the mean of a row: a row must fit into a block
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


def column_names(path: Path) -> list[str]:
    """Return the names of the columns."""
    if is_parquet(path):
        with _parquet(path) as file:
            return [name for name in file.schema_arrow.names if not re.fullmatch(INDEX, name)]
    with _lines(path) as reader:
        return reader.schema.names


def read_columns(path: Path, columns: Sequence[str], text: Sequence[str] = ()) -> Any:
    """Return some columns of all rows as a table, whose types are those that all rows have.

    Parameters
    ----------
    path : Path
        The file.
    columns : sequence of str
        Names of columns.
    text : sequence of str, optional
        Columns that stay text where the file is text.

    Raises
    ------
    ValueError
        If the file is damaged, or the columns take more than a quarter of the free memory.
    """
    arrow = optional("pyarrow", f"data {path.name!r}")
    if is_parquet(path):
        with _parquet(path) as file:
            _require_room(path, max(file.metadata.num_rows * len(columns) * BYTES_PER_VALUE, _stored(file, columns)))
    parts, size = [], 0
    for block in blocks(path, columns):
        parts.append(block)
        size += block.nbytes
        _require_room(path, size)
    if not parts:
        return _without_rows(path, columns)
    table = arrow.Table.from_batches(parts)
    return table if is_parquet(path) else _typed(table, text)


def blocks(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Yield some columns of all rows, some rows at a time; the cells of a text file as text, None for empty ones.

    Raises
    ------
    ValueError
        If the file is damaged, when that is found.
    """
    if is_parquet(path):
        with _parquet(path) as file:
            rows = max(1, 4 * BLOCK // (BYTES_PER_VALUE * max(1, len(columns))))
            for block in file.iter_batches(rows, columns=list(columns)):
                yield block.select(list(columns))  # a.b comes with a
    else:
        with _lines(path, columns) as reader:
            yield from reader


@contextmanager
def _lines(path: Path, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Open a text file whose cells are read as text; some columns, or those there are."""
    arrow, csv = (optional(name, f"data {path.name!r}") for name in ("pyarrow", "pyarrow.csv"))
    with open_binary(path) as stream:
        head = stream.readline(2**20)
    try:
        first = head.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"path {str(path)!r} cannot be read as a table: it is not in UTF-8.") from None
    separator = "\t" if ".tsv" in path.name.lower() else max(SEPARATORS, key=first.count)
    convert = _conversion(csv)
    if columns is not None:
        convert.include_columns, convert.column_types = list(columns), dict.fromkeys(columns, arrow.string())
    with _reading(path, arrow), open_binary(path) as stream:
        yield csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=max(BLOCK, LONGEST_CELL * (1 + first.count(separator)))),
            parse_options=csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=convert,
        )


def _conversion(csv: Any) -> Any:
    return csv.ConvertOptions(null_values=[""], strings_can_be_null=True)  # "NA" and "None" may be labels, or clients


def _typed(table: Any, text: Sequence[str]) -> Any:
    """Return columns of text in the first types of PyArrow that take all their cells."""
    arrow, csv = optional("pyarrow", "data"), optional("pyarrow.csv", "data")
    written, convert = BytesIO(), _conversion(csv)
    csv.write_csv(table, written)
    convert.column_types = dict.fromkeys(text, arrow.string())
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    return csv.read_csv(BytesIO(written.getvalue()), parse_options=parse, convert_options=convert)


def _without_rows(path: Path, columns: Sequence[str]) -> Any:
    """Return the columns of a file without rows."""
    arrow = optional("pyarrow", f"data {path.name!r}")
    if is_parquet(path):
        with _parquet(path) as file:
            return file.read(columns=list(columns))
    return arrow.table({name: arrow.nulls(0) for name in columns})


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    arrow, parquet = (optional(name, f"data {path.name!r}") for name in ("pyarrow", "pyarrow.parquet"))
    options = {"page_checksum_verification": True, "pre_buffer": False, "buffer_size": 2**16}  # pages as they come
    with _reading(path, arrow), parquet.ParquetFile(path, **options) as file:
        yield file


def _stored(file: Any, columns: Sequence[str]) -> int:
    """Return the bytes of some columns when they are not compressed."""
    head, found = file.metadata, 0
    for n in range(head.num_row_groups):
        group = head.row_group(n)
        chunks = (group.column(place) for place in range(group.num_columns))
        found += sum(
            c.total_uncompressed_size
            for c in chunks
            if {c.path_in_schema, c.path_in_schema.partition(".")[0]} & {*columns}
        )
    return found


def _require_room(path: Path, size: float) -> None:
    if size > (limit := free_memory() / 4):
        raise ValueError(
            f"path {str(path)!r} does not fit: columns that are read of all its rows take more than {limit:.3g} bytes, "
            "a quarter of the free memory."
        )


@contextmanager
def _reading(path: Path, arrow: Any) -> Iterator[None]:
    """Say in one sentence what PyArrow finds wrong."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(f"path {str(path)!r} does not fit: its blocks take more than the free memory.") from error
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise ValueError(f"path {str(path)!r} cannot be read as a table: {reason}.") from error
