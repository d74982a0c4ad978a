"""The lines of LIBSVM text files: what they hold before values are parsed, and what is wrong with them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from dualopt.problem.data._files import open_binary

__all__ = ["Extent", "first_complaint", "lines", "measured"]

LONGEST_LINE = 2**26  # bytes: a row of some million features
MOST_EMPTY = 10**6


class Extent(NamedTuple):
    """The size of a matrix in a file."""

    rows: int
    columns: int
    entries: int
    zero_based: bool


def measured(path: Path, room: float, labels: array[float] | None = None) -> Extent:
    """Measure the matrix from the last index of each line, without parsing any value but the labels, where wanted.

    Raises
    ------
    ValueError
        If it has more than ``room`` entries or rows, or a line is malformed.
    """
    rows, largest, entries, zero_based = 0, -1, 0, False
    with open_binary(path) as stream:
        for number, content in lines(path, stream):
            rows += 1
            if max(entries, rows) > room:
                raise ValueError(f"path {str(path)!r} does not fit: half of the free memory is full after {rows} rows.")
            if b"_" in content:  # Python reads 1_0 as 10
                raise ValueError(_sentence(path, number, content))
            if labels is not None:
                labels.append(_label(path, number, content))
            before, colon, _ = content.rpartition(b":")
            if not colon:  # a row of zeros
                continue
            last = before.rsplit(None, 1)[-1:]
            if not last or not last[0].isdigit() or len(last[0]) > 18:
                raise ValueError(_sentence(path, number, content))
            largest = max(largest, int(last[0]))
            entries += content.count(b":")
            zero_based = zero_based or b" 0:" in content or b"\t0:" in content
    if largest < 0:
        raise ValueError(f"path {str(path)!r} holds no features.")
    return Extent(rows, largest + 1 if zero_based else largest, entries, zero_based)


def _label(path: Path, number: int, content: bytes) -> float:
    try:
        return float(content.split(None, 1)[0])
    except ValueError:
        raise ValueError(_sentence(path, number, content)) from None


def first_complaint(path: Path) -> str | None:
    """Return a sentence about the first malformed line, or None; only called when parsing has failed."""
    with open_binary(path) as stream:
        for number, content in lines(path, stream):
            if not _well_formed(content):
                return _sentence(path, number, content)
    return None


def lines(path: Path, stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each line that has a row; refuse what no file of rows looks like.

    A compressed file of a few megabytes can hold a line of gigabytes: lines are read up to a limit.
    """
    number = empty = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            raise ValueError(
                f"path {str(path)!r} is malformed in line {number}: it is longer than {LONGEST_LINE} bytes."
            )
        if content := line.partition(b"#")[0].strip():
            yield number, content
            continue
        empty += 1
        if empty > MOST_EMPTY:
            raise ValueError(f"path {str(path)!r} is malformed: it has more than {MOST_EMPTY} lines without a row.")


def _well_formed(content: bytes) -> bool:
    label, *pairs = content.split()
    try:
        float(label)
        split = [pair.partition(b":") for pair in pairs if not pair.startswith(b"qid:")]
        indices = [int(index) for index, _, _ in split]
        for _, _, value in split:
            float(value)
    except ValueError:
        return False
    return all(a < b for a, b in zip([-1, *indices], indices, strict=False))


def _sentence(path: Path, number: int, content: bytes) -> str:
    shown = content[:60].decode("ascii", "replace")
    return (
        f"path {str(path)!r} is malformed in line {number}: it needs a label and pairs index:value with "
        f"increasing indices, got {shown!r}."
    )
