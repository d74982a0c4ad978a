"""Odd tables in the format Parquet: damaged, cut, nested, with what is missing, larger than they look."""

from __future__ import annotations

import functools
import gzip
import importlib
import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz_inputs._case import Case, Expected, typed
from tests.fuzz_inputs._rows import NAMING, OPTIONS, ROWS, Rng, clean_archive, damaged, good_rows, one

__all__ = ["parquet"]

Columns = dict[str, Any]
MAGIC = b"PAR1"
GROUP, GROUPS = 10**6, 100  # rows of equal values, which take a few kilobytes


def parquet(rng: Rng) -> Case:
    """A table in the format Parquet whose columns or bytes are odd."""
    X, y = good_rows(rng)
    columns: Columns = dict(zip("abcy", [*X.T, y], strict=True))
    if rng.random() < 0.6:
        what, change, expected = one(rng, ODD_COLUMNS)
        make = functools.partial(_odd, change, columns)
    else:
        what, damage, expected = one(rng, ODD_BYTES)
        make = functools.partial(_damaged, damage, int(rng.integers(2**31)), columns)
    return Case(
        what=f"a Parquet table with {what}",
        words=typed("run", {**OPTIONS, "data": "rows.parquet", "label": "y"}),
        expected=expected,
        naming=("column", *NAMING),
        clean=clean_archive({"X": X, "y": y}) if expected == Expected.SAME else None,
        arrange=functools.partial(_write, make),
        needs="pyarrow",
    )


def _write(make: Callable[[], bytes], folder: Path) -> None:
    (folder / "rows.parquet").write_bytes(make())


def _odd(change: Callable[[Any, Columns], Any], columns: Columns) -> bytes:
    made = change(importlib.import_module("pyarrow"), dict(columns))
    return made if isinstance(made, bytes) else _bytes(made)


def _damaged(damage: Callable[[Rng, bytes, Columns], bytes], seed: int, columns: Columns) -> bytes:
    return damage(np.random.default_rng(seed), _bytes(columns, use_dictionary=False), columns)


def _bytes(columns: Any, **options: Any) -> bytes:
    """Return a table as the bytes of a file whose pages carry checksums, as pages need not."""
    arrow, file = importlib.import_module("pyarrow"), io.BytesIO()
    table = arrow.table(columns) if isinstance(columns, dict) else columns
    options = {"compression": "none", "write_page_checksum": True} | options
    importlib.import_module("pyarrow.parquet").write_table(table, file, **options)
    return file.getvalue()


def _with(name: str, make: Callable[[Any, np.ndarray], Any]) -> Callable[[Any, Columns], Columns]:
    """Replace one column."""
    return lambda arrow, columns: columns | {name: make(arrow, columns[name])}


def _stored(**options: Any) -> Callable[[Any, Columns], bytes]:
    """Store the same table in another way."""
    return lambda arrow, columns: _bytes(columns, **options)


def _words(y: np.ndarray) -> list[str]:
    return ["yes" if label > 1 else "no" for label in y]


def _missing(values: np.ndarray) -> list[Any]:
    return [None, *values[1:].tolist()]


def _replaced(values: np.ndarray, value: float) -> np.ndarray:
    return np.where(np.arange(ROWS) == 3, value, values)


def _many(arrow: Any, columns: Columns) -> bytes:
    """Return a small file of far more rows than memory holds: all of them are equal."""
    file = io.BytesIO()
    chunk = arrow.table({"a": arrow.repeat(1.0, GROUP), "y": arrow.repeat(2.0, GROUP)})
    with importlib.import_module("pyarrow.parquet").ParquetWriter(file, chunk.schema) as writer:
        for _ in range(GROUPS):
            writer.write_table(chunk)
    return file.getvalue()


ODD_COLUMNS: list[tuple[str, Callable[[Any, Columns], Any], str]] = [
    ("nothing odd", lambda arrow, c: c, Expected.SAME),
    ("compressed pages", _stored(compression="zstd"), Expected.SAME),
    ("pages of Snappy", _stored(compression="snappy"), Expected.SAME),
    ("pages of the second version", _stored(data_page_version="2.0"), Expected.SAME),
    ("the first version of the format", _stored(version="1.0"), Expected.SAME),
    ("many groups of rows", _stored(row_group_size=2), Expected.SAME),
    ("no dictionaries", _stored(use_dictionary=False), Expected.SAME),
    ("split bytes", _stored(use_dictionary=False, column_encoding="BYTE_STREAM_SPLIT"), Expected.SAME),
    ("no schema of Arrow", _stored(store_schema=False), Expected.SAME),
    ("an index of pandas", lambda arrow, c: {"__index_level_0__": np.arange(ROWS), **c}, Expected.SAME),
    ("words as labels", _with("y", lambda arrow, y: _words(y)), Expected.SAME),
    (
        "words of a dictionary as labels",
        _with("y", lambda arrow, y: arrow.array(_words(y)).dictionary_encode()),
        Expected.SAME,
    ),
    ("small integers as labels", _with("y", lambda arrow, y: y.astype(np.int8)), Expected.SAME),
    ("unsigned integers as labels", _with("y", lambda arrow, y: y.astype(np.uint64)), Expected.SAME),
    ("truth values as labels", _with("y", lambda arrow, y: y > 1), Expected.SAME),
    ("days as labels", _with("y", lambda arrow, y: y.astype("datetime64[s]")), Expected.EITHER),
    ("lists", _with("b", lambda arrow, x: [[v] for v in x.tolist()]), Expected.REFUSED),
    ("lists of one length", _with("b", lambda arrow, x: arrow.FixedSizeListArray.from_arrays(x, 1)), Expected.REFUSED),
    ("records", _with("b", lambda arrow, x: [{"u": v} for v in x.tolist()]), Expected.REFUSED),
    ("labels that are lists", _with("y", lambda arrow, y: [[v] for v in y.tolist()]), Expected.REFUSED),
    ("labels that are records", _with("y", lambda arrow, y: [{"u": v} for v in y.tolist()]), Expected.REFUSED),
    (
        "a map",
        _with("b", lambda a, x: a.array([[("u", 1.0)]] * ROWS, a.map_(a.string(), a.float64()))),
        Expected.REFUSED,
    ),
    ("words", _with("b", lambda arrow, x: [f"{v:g} m" for v in x]), Expected.REFUSED),
    ("words of a dictionary", _with("b", lambda a, x: a.array(["u", "v"] * 6).dictionary_encode()), Expected.REFUSED),
    ("bytes", _with("b", lambda arrow, x: [b"\xff"] * ROWS), Expected.REFUSED),
    ("times", _with("b", lambda arrow, x: np.arange(ROWS).astype("datetime64[s]")), Expected.REFUSED),
    ("durations", _with("b", lambda arrow, x: np.arange(ROWS).astype("timedelta64[s]")), Expected.REFUSED),
    ("a missing number", _with("b", lambda arrow, x: _missing(x)), Expected.REFUSED),
    ("a missing label", _with("y", lambda arrow, y: _missing(y)), Expected.REFUSED),
    ("a column of nothing", _with("b", lambda arrow, x: arrow.nulls(ROWS)), Expected.REFUSED),
    ("labels of nothing", _with("y", lambda arrow, y: arrow.nulls(ROWS)), Expected.REFUSED),
    ("NaN", _with("b", lambda arrow, x: _replaced(x, np.nan)), Expected.REFUSED),
    ("infinity", _with("b", lambda arrow, x: _replaced(x, np.inf)), Expected.REFUSED),
    ("labels that are NaN", _with("y", lambda arrow, y: _replaced(y, np.nan)), Expected.REFUSED),
    ("one class", _with("y", lambda arrow, y: np.ones(ROWS)), Expected.REFUSED),
    ("no rows", lambda arrow, c: {name: x[:0] for name, x in c.items()}, Expected.REFUSED),
    ("one row", lambda arrow, c: {name: x[:1] for name, x in c.items()}, Expected.REFUSED),
    ("no columns", lambda arrow, c: {}, Expected.REFUSED),
    ("labels alone", lambda arrow, c: {"y": c["y"]}, Expected.REFUSED),
    (
        "no column of labels",
        lambda arrow, c: {"z" if name == "y" else name: x for name, x in c.items()},
        Expected.REFUSED,
    ),
    ("capitals in names", lambda arrow, c: {name.upper(): x for name, x in c.items()}, Expected.REFUSED),
    (
        "a name that is empty",
        lambda arrow, c: {"" if name == "b" else name: x for name, x in c.items()},
        Expected.REFUSED,
    ),
    ("a name twice", lambda arrow, c: arrow.table(list(c.values()), ["a", "a", "c", "y"]), Expected.REFUSED),
    ("labels twice", lambda arrow, c: arrow.table(list(c.values()), ["a", "y", "c", "y"]), Expected.REFUSED),
    ("more rows than memory holds", _many, Expected.REFUSED),
]


def _cut(rng: Rng, content: bytes, columns: Columns) -> bytes:
    return content[: int(rng.integers(len(content)))]


def _other_bit(rng: Rng, content: bytes, columns: Columns) -> bytes:
    """Change one bit of a number: the checksum of its page shows it."""
    numbers = columns["b"].tobytes()
    data, place = bytearray(content), content.index(numbers) + int(rng.integers(len(numbers)))
    data[place] ^= 1 << int(rng.integers(8))
    return bytes(data)


def _other_head(rng: Rng, content: bytes, columns: Columns) -> bytes:
    """Damage the head, which is at the end and has no checksum: another name, or a comment, may come of it."""
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return content[:begin] + damaged(rng, content[begin:-8]) + content[-8:]


def _length(length: int) -> Callable[[Rng, bytes, Columns], bytes]:
    """Replace what the file says of the length of its head."""
    return lambda rng, content, columns: content[:-8] + struct.pack("<I", length) + MAGIC


ODD_BYTES: list[tuple[str, Callable[[Rng, bytes, Columns], bytes], str]] = [
    ("an end that is cut off", _cut, Expected.REFUSED),
    ("its last byte cut off", lambda rng, content, columns: content[:-1], Expected.REFUSED),
    ("a bit of a number changed", _other_bit, Expected.REFUSED),
    ("a damaged head", _other_head, Expected.EITHER),
    ("a head of no length", _length(0), Expected.REFUSED),
    ("a head longer than the file", _length(10**6), Expected.REFUSED),
    ("a head of 4 GB", _length(2**32 - 1), Expected.REFUSED),
    ("another beginning", lambda rng, content, columns: b"PK\x03\x04" + content[4:], Expected.EITHER),
    ("another end", lambda rng, content, columns: content[:-4] + b"PAR2", Expected.REFUSED),
    ("the end of an encrypted file", lambda rng, content, columns: content[:-4] + b"PARE", Expected.REFUSED),
    ("nothing", lambda rng, content, columns: b"", Expected.REFUSED),
    ("its magic word alone", lambda rng, content, columns: MAGIC, Expected.REFUSED),
    ("its magic word twice", lambda rng, content, columns: MAGIC + MAGIC, Expected.REFUSED),
    ("a text", lambda rng, content, columns: b"a,b,c,y\n1,2,3,1\n4,5,6,2\n", Expected.REFUSED),
    ("a compressed table", lambda rng, content, columns: gzip.compress(content), Expected.REFUSED),
    ("itself twice", lambda rng, content, columns: content + content, Expected.EITHER),
    ("zeros in place of its pages", lambda rng, content, columns: MAGIC + bytes(900) + content[904:], Expected.REFUSED),
]
