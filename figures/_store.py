"""Results on disk: each is stored as soon as it is known, under a name that hashes everything that defines it."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dualopt.cli.output import write_json
from dualopt.recording import versions
from dualopt.trace import Trace

__all__ = ["digest", "key", "missing", "stored_number", "stored_trace"]

FORMAT = 2  # to be raised when the meaning of what is stored changes
DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError, zipfile.BadZipFile)


def key(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description with the versions added, as JSON gives it back.

    Examples
    --------
    >>> key({"clients": (8, 16)})["clients"]
    [8, 16]
    """
    return json.loads(json.dumps({"format": FORMAT, "dualopt": versions().get("dualopt"), **description}))


def stored_trace(folder: Path, what: str, description: Mapping[str, Any], compute: Callable[[], Trace] | None) -> Trace:
    """Return the stored trace of this description; compute and store it when there is none, or a damaged one.

    Its ``parameters["key"]`` is the :func:`key`.

    Parameters
    ----------
    folder : Path
        It is created when it is needed.
    what : str
        What the trace is, for messages.
    description : dict
        Everything that defines the result.
    compute : callable, optional
        None refuses to compute.

    Raises
    ------
    ValueError
        If nothing is stored and nothing may be computed.
    """
    wanted = key(description)
    path = folder / f"trace-{digest(wanted)}.npz"
    try:
        with zipfile.ZipFile(path):  # refuses a damaged archive, of which NumPy would leave the file open
            trace = Trace.from_npz(path)
        if trace.parameters["key"] == wanted:
            return trace
    except DAMAGED:
        pass
    if compute is None:
        raise missing(what, folder)
    trace = compute()
    trace = replace(trace, parameters={**trace.parameters, "key": wanted})
    folder.mkdir(parents=True, exist_ok=True)
    trace.to_npz(path)
    return trace


def stored_number(
    folder: Path, what: str, description: Mapping[str, Any], compute: Callable[[], float] | None
) -> float:
    """Return the stored number of this description, computed as in :func:`stored_trace`.

    Raises
    ------
    ValueError
        If nothing is stored and nothing may be computed.
    """
    wanted = key(description)
    path = folder / f"number-{digest(wanted)}.json"
    try:
        record = json.loads(path.read_text())
        if record["key"] == wanted:
            return float(record["number"])
    except DAMAGED:
        pass
    if compute is None:
        raise missing(what, folder)
    number = compute()
    folder.mkdir(parents=True, exist_ok=True)
    write_json(path, {"number": number, "key": wanted})
    return number


def digest(wanted: Mapping[str, Any]) -> str:
    """Return the name of what a key describes."""
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:20]


def missing(what: str, folder: Path) -> ValueError:
    """Return the refusal to compute what is not stored."""
    return ValueError(f"redraw: {what} is not stored in {str(folder)!r}; leave --redraw out to compute it.")
