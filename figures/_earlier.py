"""What a folder holds of a figure: a command replaces files of its own, and others only where it is told to.

Beside its files every figure leaves ``NAME.json``, with the options and the data that they come from. It is written
before them, so that a command that was killed in between is repeated without more ado.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualopt.app.cli.earlier import INSTEAD, other_data, read_record, require_same_options
from dualopt.app.cli.output import write_json
from dualopt.problem.data._files import is_file
from dualopt.runs._sources import sources
from dualopt.runs.trace import versions
from figures._settings import Settings

__all__ = ["described", "require_own", "write_record"]

OPTIONS = ("data", "rounds", "quick", "rows", "part", "most_gradients", "only", "width")  # on which a figure depends
ENDS = (".png", ".pdf", ".csv", "_table.csv", ".txt")


def described(name: str, file: str | None, settings: Settings) -> dict[str, Any]:
    """Return the record of a figure.

    Parameters
    ----------
    name : str
        Name of the figure.
    file : str, optional
        The file that defines it, if it is not of this package.
    settings : Settings
        What the user asked for. Threads, processes and where data and results are have no effect on a figure.
    """
    options = {n: getattr(settings, n) for n in OPTIONS}
    return {
        "command": "figures",
        "figure": name,
        "options": options | {"file": file},
        "data": settings.fingerprint,
        "sources": sources(packages=("theory", "figures")),
        "versions": versions(),
    }


def require_own(folder: Path, record: Mapping[str, Any]) -> None:
    """Refuse to replace what the figure has not written, or has written with other options or data.

    Raises
    ------
    ValueError
        If the folder holds such a file; the sentence names it and what differs.
    """
    name = record["figure"]
    path = folder / f"{name}.json"
    if not is_file(path):
        for end in ENDS:
            if is_file(folder / f"{name}{end}"):
                raise ValueError(f"out {str(folder)!r} holds {name + end!r} of something else: {INSTEAD}.")
        return
    there = read_record(path, INSTEAD, "figure", "data")
    require_same_options(path, there["options"], record["options"])
    if there["data"] != record["data"]:
        raise other_data(folder, str(there["data"]), record["data"])


def write_record(folder: Path, record: Mapping[str, Any]) -> str:
    """Write NAME.json; return the name of the file."""
    write_json(folder / f"{record['figure']}.json", record)
    return f"{record['figure']}.json"
