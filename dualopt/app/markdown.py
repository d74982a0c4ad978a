"""Tables of Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

__all__ = ["table_lines", "table_of_rows"]


RULES = {"-": "---", "l": ":---", "r": "---:"}


def table_lines(head: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> Iterator[str]:
    r"""Yield the lines of a table, each row as soon as it is known.

    Parameters
    ----------
    head : sequence of str
        Names of the columns.
    rows : iterable of sequences of str
        A cell for every column; a ``|`` in a cell is escaped where it is not yet.
    align : str, optional
        A letter for each column: ``l`` left, ``r`` right, ``-`` as the reader of the page does.

    Yields
    ------
    str
        A line without its end.

    Raises
    ------
    ValueError
        If a row has more or fewer cells than there are columns, or ``align`` another number of letters.

    Examples
    --------
    >>> print(*table_lines(["method", "|x|"], [["fedsplit", "1"]], align="-r"), sep="\n")
    | method | \|x\| |
    | --- | ---: |
    | fedsplit | 1 |
    """
    yield _line(head)
    for cells in chain([[RULES[letter] for letter in align or "-" * len(head)]], rows):
        if len(cells) != len(head):
            raise ValueError(f"rows must have {len(head)} cells, one for each column; got {len(cells)}.")
        yield _line(cells)


def table_of_rows(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a table whose columns are the names of the first row.

    Examples
    --------
    >>> print(table_of_rows([{"method": "fedsplit", "rounds": "12"}]))
    | method | rounds |
    | --- | --- |
    | fedsplit | 12 |
    """
    return "\n".join(table_lines(list(rows[0]), [list(row.values()) for row in rows]))


def _line(cells: Iterable[str]) -> str:
    escaped = (re.sub(r"(?<!\\)[|]", r"\\|", cell) for cell in cells)
    return f"| {' | '.join(escaped)} |"
