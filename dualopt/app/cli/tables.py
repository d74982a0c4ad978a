"""Tables on a screen: as wide as it is, with whole numbers and words, and nothing left out.

What is too wide is broken between words first, in the widest columns. If that is not enough, the columns that have no
room go on in a table below, in their order, behind the columns that tell rows apart. Numbers are never broken, words
only where one alone is wider than the screen, long ones, such as methods with their parameters, first behind a
punctuation mark.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

__all__ = ["is_number", "make_console", "say", "show_pairs", "show_table", "wrapped"]

WIDTH = 120  # where it is not that of a screen
LONG_WORD = 24  # characters from which on a word may be broken behind its punctuation
SHORT = 14  # characters up to which words stay in one line, unless their column has room for itself alone
MOST_LINES = 4  # that a cell takes before its column goes on in a table below
MARK = re.compile(r"(?<=[,;:/@=(-])(?!\d)|(?<=[^\d\s][:=(@])(?=\d)")


@dataclass
class _Column:
    """The cells of a column, its name first where there are names."""

    texts: list[str]
    numeric: bool

    def __post_init__(self) -> None:
        self.width = max(max(_widths(text), default=0) for text in self.texts) or 1
        units = [(unit, cell_len(unit)) for text in self.texts for unit in _units(text)]
        self.number = max((size for unit, size in units if is_number(unit)), default=1)
        self.least = max((size for _, size in units), default=1)
        self.wanted = max(self.least, min(self.width, SHORT) * (not self.numeric), -(-self.width // MOST_LINES))


def make_console() -> Console:
    """Return a console on the standard output, in a file or a pipe as wide as ``COLUMNS`` says, or 120 characters."""
    if sys.stdout is not None and sys.stdout.isatty():  # it is None where it was closed (>&-)
        return Console(emoji=False)
    columns = os.environ.get("COLUMNS", "")
    return Console(
        width=int(columns) if columns.isdecimal() and int(columns) else WIDTH, force_terminal=False, emoji=False
    )


def show_table(console: Console, title: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Print a table whose columns are named by its first row: words to the left, numbers to the right.

    Parameters
    ----------
    console : Console
        Says how wide the table may be.
    title : str
        Stands above it; empty for none.
    rows : sequence of mappings from str to str
        All with the same names. A row whose ``status`` begins with ``diverged`` or ``contradicted`` is red.
    """
    names = list(rows[0])
    numeric = [any(is_number(row[name]) for row in rows) for name in names]
    columns = [_Column([name, *(row[name] for row in rows)], n) for name, n in zip(names, numeric, strict=True)]
    styles = [_style(row.get("status", "")) for row in rows]
    _show_title(console, title)
    for block in _blocks(columns, _leading(rows), console.width):
        _show(console, block, styles, header=True)


def show_pairs(console: Console, title: str, lines: Mapping[str, str]) -> None:
    """Print names and what is told of them; a ``status`` in the colour of how a run has ended."""
    columns = [_Column(list(lines), False), _Column(list(lines.values()), False)]
    styles = [_style(value) if name == "status" else None for name, value in lines.items()]
    _show_title(console, title)
    _show(console, columns, styles, header=False)


def say(console: Console, text: str) -> None:
    """Print sentences: on a screen broken between words, in files and pipes one line as it is."""
    shown = "\n".join(wrapped(text, console.width)) if console.is_terminal else text
    console.print(shown, highlight=False, markup=False, soft_wrap=True)


def is_number(text: str) -> bool:
    """Tell whether a cell holds a number, perhaps as a bound, a share, or in thousands.

    >>> [is_number(text) for text in ("<= 1.2e-10", "97.3%", "33.3M", "1,024", "100 (50 sent)", "")]
    [True, True, True, True, False, False]
    """
    return bool(re.fullmatch(r"([<>]=? )?[-+]?[\d,.]*\d[\d,.]*(e[+-]?\d+)?[%kMGT]?", text))


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text, broken between words.

    Examples
    --------
    >>> wrapped("certified <= 1.2e-10 after 30 rounds", 12)
    ['certified', '<= 1.2e-10', 'after 30', 'rounds']
    >>> wrapped("mine@my_methods.py:Damped:part=0.5,step=1e-3", 20)
    ['mine@my_methods.py:', 'Damped:part=0.5,', 'step=1e-3']
    """
    return [line for paragraph in text.split("\n") for line in _filled(paragraph, width)]


def _filled(text: str, width: int) -> Iterator[str]:
    line = ""
    for unit, space in _spaced(text):
        gap = " " * (space and bool(line))
        if line and cell_len(line + gap + unit) > width:
            yield line
            line, gap = "", ""
        line += gap + unit
        while cell_len(line) > width and not is_number(line):  # one unit alone
            head = _head(line, width)
            yield head
            line = line[len(head) :]
    yield line


def _head(text: str, width: int) -> str:
    """Return as much of a word as fits, up to a punctuation mark if there is one, at least a character."""
    marks = [mark.start() for mark in MARK.finditer(text)]
    fits = [n for n in range(1, len(text)) if cell_len(text[:n]) <= width] or [1]
    return text[: max((n for n in fits if n in marks), default=fits[-1])]


def _spaced(text: str) -> Iterator[tuple[str, bool]]:
    """Yield what is not broken, and whether a space was before it."""
    for word in re.findall(r"(?:[<>]=? (?=[-\d.]))?\S+", text):
        parts = MARK.split(word) if len(word) > LONG_WORD else [word]
        yield from ((part, n == 0) for n, part in enumerate(parts) if part)


def _units(text: str) -> list[str]:
    return [unit for unit, _ in _spaced(text)]


def _widths(text: str) -> list[int]:
    return [cell_len(line) for line in text.split("\n")]


def _leading(rows: Sequence[Mapping[str, str]]) -> int:
    """Return how many columns tell the rows apart."""
    names = list(rows[0])
    for n in range(1, len(names)):
        if len({tuple(row[name] for name in names[:n]) for row in rows}) == len(rows):
            return n
    return 1


def _blocks(columns: Sequence[_Column], leading: int, room: int) -> Iterator[list[_Column]]:
    """Yield the columns of each of the tables below one another."""
    while leading > 1 and _needed(columns[:leading]) > room // 2:
        leading -= 1
    block = list(columns[:leading])
    for column in columns[leading:]:
        if len(block) > leading and _needed([*block, column]) > room:
            yield block
            block = list(columns[:leading])
        block.append(column)
    yield block


def _needed(columns: Sequence[_Column]) -> int:
    return sum(column.wanted for column in columns) + _edges(columns)


def _edges(columns: Sequence[_Column]) -> int:
    return 3 * len(columns) + 1


def _fitted(columns: Sequence[_Column], room: int) -> list[int]:
    """Return widths that fit as far as numbers stay whole: the widest columns give way first."""
    widths = [column.width for column in columns]
    for least in ([c.wanted for c in columns], [c.least for c in columns], [c.number for c in columns]):
        while sum(widths) + _edges(columns) > room and (wide := [i for i, w in enumerate(widths) if w > least[i]]):
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _show(console: Console, columns: Sequence[_Column], styles: Sequence[str | None], *, header: bool) -> None:
    widths = _fitted(columns, console.width)
    cells = [["\n".join(wrapped(t, w)) for t in column.texts] for column, w in zip(columns, widths, strict=True)]
    table = Table(show_header=header, width=sum(widths) + _edges(columns))
    for column, texts, width in zip(columns, cells, widths, strict=True):
        justify = "right" if column.numeric else "left"
        table.add_column(escape(texts[0]) if header else "", justify=justify, width=width, no_wrap=True)
    for n, style in enumerate(styles, start=int(header)):
        table.add_row(*(escape(texts[n]) for texts in cells), style=style)
    console.print(table, highlight=False, crop=False)


def _show_title(console: Console, title: str) -> None:
    if title:
        console.print(Text("\n".join(wrapped(title, console.width)), style="table.title"), soft_wrap=True)


def _style(status: str) -> str | None:
    """Return the colour of a row, by how its run has ended."""
    return "red" if status.partition(":")[0] in ("contradicted", "diverged") else None
