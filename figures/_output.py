"""What a figure leaves behind: the pictures, the numbers as CSV, and a table on the screen."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from matplotlib.figure import Figure

from dualopt.runs import plotting
from dualopt.runs.tables import write_rows
from dualopt.runs.trace import Trace, write_atomically

__all__ = ["table", "write_all", "write_caption", "write_table"]

LEVELS = (1e-3, 1e-6, 1e-10)
AT_ROUNDS = (1, 10)


def write_all(folder: Path, name: str, figure: Figure, traces: Mapping[str, Trace]) -> list[str]:
    """Write NAME.png, NAME.pdf and NAME.csv; return the names of the files.

    Parameters
    ----------
    folder : Path
        Where they go.
    name : str
        Name of the figure.
    figure : Figure
        The picture.
    traces : dict of str to Trace
        The curves; in the CSV file one row per curve and round.
    """
    pictures = plotting.save_for_print(figure, folder / name)
    write_rows(traces, folder / f"{name}.csv", name="curve")
    return [*pictures, f"{name}.csv"]


def write_table(folder: Path, name: str, rows: Sequence[Mapping[str, str]]) -> str:
    """Write the rows that a figure shows on the screen to NAME_table.csv; return the name of the file.

    Parameters
    ----------
    folder : Path
        Where it goes.
    name : str
        Name of the figure.
    rows : sequence of dict of str to str
        The rows, all with the same columns.
    """

    def write(file: IO[Any]) -> None:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows(row.values() for row in rows)

    write_atomically(folder / f"{name}_table.csv", write)
    return f"{name}_table.csv"


def write_caption(folder: Path, name: str, caption: str) -> str:
    """Write what is said below a figure to NAME.txt; return the name of the file.

    Parameters
    ----------
    folder : Path
        Where it goes.
    name : str
        Name of the figure.
    caption : str
        Sentences.
    """
    write_atomically(folder / f"{name}.txt", lambda file: file.write(caption + "\n"))
    return f"{name}.txt"


def table(traces: Mapping[str, Trace], deviations: Mapping[str, float]) -> list[dict[str, str]]:
    """Return one row per curve: errors, rounds to given errors, local gradients per client, certified error.

    Parameters
    ----------
    traces : dict of str to Trace
        The curves.
    deviations : dict of str to float
        The distance of curves from those with exact local solutions; empty when it was not computed.
    """
    return [_row(label, trace, deviations.get(label)) for label, trace in traces.items()]


def _row(label: str, trace: Trace, deviation: float | None) -> dict[str, str]:
    last, error = trace.last, dict(zip(trace["round"], trace["error"], strict=True))
    row = {"curve": label, "rounds": f"{last['round']:.0f}"}
    row |= {f"at {n}": f"{error[n]:.1e}" if n in error else "-" for n in AT_ROUNDS}
    row["last"] = f"{last['error']:.1e}"
    if "gradients" not in last:  # computed, not run
        return row
    for level in LEVELS:
        first = trace.first_below("error", level)
        row[f"<={level:.0e}".replace("e-0", "e-")] = "-" if first is None else f"{first}"
    certified = last["certified_error"]
    row |= {
        "grads": f"{last['gradients']:.0f}",
        "sec": f"{last['seconds']:.1f}",
        "certified": f"{certified:.1e}" if math.isfinite(certified) else "-",
    }
    return row if deviation is None else row | {"off": f"{deviation:.1%}"}
