"""Odd tables as text."""

from __future__ import annotations

import functools
from collections.abc import Callable

from tests.fuzz_inputs._case import Case, Expected, typed
from tests.fuzz_inputs._rows import NAMING, OPTIONS, Rng, clean_archive, good_rows, one, write

__all__ = ["table"]


def table(rng: Rng) -> Case:
    """A table as text, with a line that is odd, or odd as a whole; Python's reader of such files says what it holds."""
    X, y = good_rows(rng)
    rows = [
        ["a", "b", "c", "y"],
        *([*map(repr, map(float, row)), f"{label:g}"] for row, label in zip(X, y, strict=True)),
    ]
    what, change, good = one(rng, ODD_TABLES)
    content = change(rows)
    return Case(
        what=f"a table with {what}",
        words=typed("run", {**OPTIONS, "data": "rows.csv", "label": "y"}),
        expected=Expected.SAME if good else Expected.REFUSED,
        naming=("column", "label", "path", *NAMING),
        clean=clean_archive({"X": X, "y": y}) if good else None,
        arrange=functools.partial(write, {"rows.csv": content}),
        needs="pyarrow",
    )


def _lines_of(rows: list[list[str]], separator: str = ",", end: str = "\n") -> bytes:
    return "".join(separator.join(row) + end for row in rows).encode()


def _with(i: int, j: int, text: str) -> Callable[[list[list[str]]], bytes]:
    """Replace one cell."""

    def change(rows: list[list[str]]) -> bytes:
        rows = [list(row) for row in rows]
        rows[i][j] = text
        return _lines_of(rows)

    return change


ODD_TABLES: list[tuple[str, Callable[[list[list[str]]], bytes], bool]] = [
    ("commas", _lines_of, True),
    ("semicolons", lambda rows: _lines_of(rows, ";"), True),
    ("tabs", lambda rows: _lines_of(rows, "\t"), True),
    ("the ends of lines of Windows", lambda rows: _lines_of(rows, end="\r\n"), True),
    ("quotes", lambda rows: _lines_of([[f'"{cell}"' for cell in row] for row in rows]), True),
    ("a mark of its byte order", lambda rows: b"\xef\xbb\xbf" + _lines_of(rows), True),
    ("no end of its last line", lambda rows: _lines_of(rows)[:-1], True),
    ("names in quotes", lambda rows: _lines_of([['"a, or not"', *rows[0][1:]], *rows[1:]]), True),
    ("a word", _with(3, 1, "many"), False),
    ("an empty cell", _with(3, 1, ""), False),
    ("an empty label", _with(3, 3, ""), False),
    ("a NaN", _with(3, 1, "nan"), False),
    ("infinity", _with(3, 1, "inf"), False),
    ("a number too large", _with(3, 1, "1e999"), False),
    ("a decimal comma", _with(3, 1, '"1,5"'), False),
    ("a short row", lambda rows: _lines_of([*rows, ["1", "2"]]), False),
    ("a long row", lambda rows: _lines_of([*rows, ["1"] * 5]), False),
    ("a quote that is not closed", _with(3, 1, '"1'), False),
    ("no names", lambda rows: _lines_of(rows[1:]), False),
    ("no rows", lambda rows: _lines_of(rows[:1]), False),
    ("nothing", lambda rows: b"", False),
    ("a line without anything", lambda rows: b"\n", False),
    ("a name twice", _with(0, 1, "a"), False),
    ("no name of labels", _with(0, 3, "z"), False),
    ("a name that is empty", _with(0, 1, ""), False),
    ("bytes", lambda rows: bytes(range(256)), False),
    ("two bytes for a letter", lambda rows: _lines_of(rows).decode().encode("utf-16"), False),
    ("nulls", lambda rows: _lines_of(rows).replace(b".", b"\0"), False),
    ("labels alone", lambda rows: _lines_of([row[3:] for row in rows]), False),
    ("one class", lambda rows: _lines_of([rows[0], *([*row[:3], "1"] for row in rows[1:])]), False),
    ("a page", lambda rows: b"<html>\n<body></body>\n</html>\n", False),
]
