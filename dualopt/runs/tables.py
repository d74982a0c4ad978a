"""Several traces in one file: a table that pandas reads, and blocks that gnuplot reads, both without options."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from dualopt.runs.trace import Trace, shortest, write_atomically

__all__ = ["write_blocks", "write_rows"]


def write_rows(traces: Mapping[str, Trace], path: str | Path, *, name: str = "run") -> None:
    """Write one line of names of columns, and below one row for each row of each trace, separated by commas.

    Parameters
    ----------
    traces : dict of str to Trace
        The traces. Where one lacks a column of another, there is nan.
    path : str or Path
        The file.
    name : str, default "run"
        The name of the first column, which has the label of the trace.

    Examples
    --------
    >>> import tempfile
    >>> trace = Trace(columns={"round": [0, 1], "energy": [2.0, 0.5]}, status="max_rounds", theta=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_rows({"a": trace, "b, c": trace}, Path(folder) / "all.csv")
    ...     print((Path(folder) / "all.csv").read_text())
    run,round,energy
    a,0,2
    a,1,0.5
    "b, c",0,2
    "b, c",1,0.5
    <BLANKLINE>
    """
    columns = _columns(traces)

    def write(file: IO[Any]) -> None:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([name, *columns])
        for label, trace in traces.items():
            writer.writerows([label, *row] for row in _rows(trace, columns))

    write_atomically(path, write)


def write_blocks(traces: Mapping[str, Trace], path: str | Path) -> None:
    """Write one block for each trace: its label, then its rows, separated by spaces.

    In gnuplot ``plot for [i=0:3] "compare.dat" index i using 2:6 with lines title columnheader(1)`` draws four traces.
    The first line of the file is a comment that numbers the columns.

    Parameters
    ----------
    traces : dict of str to Trace
        The traces. Where one lacks a column of another, there is NaN.
    path : str or Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> trace = Trace(columns={"round": [0, 1], "energy": [2.0, 0.5]}, status="max_rounds", theta=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_blocks({"a": trace}, Path(folder) / "all.dat")
    ...     print((Path(folder) / "all.dat").read_text())
    # 1 round, 2 energy
    "a"
    0 2
    1 0.5
    <BLANKLINE>
    """
    columns = _columns(traces)

    def write(file: IO[Any]) -> None:
        file.write(f"# {', '.join(f'{n} {column}' for n, column in enumerate(columns, start=1))}\n")
        blocks = [
            "".join(f"{line}\n" for line in (f'"{_quoted(label)}"', *map(" ".join, _rows(trace, columns))))
            for label, trace in traces.items()
        ]
        file.write("\n\n".join(blocks))

    write_atomically(path, write)


def _columns(traces: Mapping[str, Trace]) -> list[str]:
    return list(dict.fromkeys(column for trace in traces.values() for column in trace.columns))


def _rows(trace: Trace, columns: Sequence[str]) -> list[list[str]]:
    """Return the rows of a trace as text, with nan in the columns that it lacks."""
    missing = ["nan"] * len(trace)
    texts = [list(map(shortest, trace[name])) if name in trace.columns else missing for name in columns]
    return [list(row) for row in zip(*texts, strict=True)]


def _quoted(label: str) -> str:
    return label.replace('"', "'").replace("\\", "/").replace("\n", " ")
