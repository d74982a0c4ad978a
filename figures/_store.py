"""Results on disk: each is stored as soon as it is known, under a name that hashes everything that defines it.

A result also carries a hash of the code that computed it, :mod:`dualopt.runs._sources`. That of other code is stale: it
is computed again, unless stale results are to be kept.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dualopt.app.cli.output import write_json
from dualopt.runs._sources import sources
from dualopt.runs.trace import Trace

__all__ = ["NotStoredError", "digest", "key", "missing", "stored_number", "stored_trace"]

Stale = Callable[[str], Any] | None
FORMAT = 2  # to be raised when the meaning of what is stored changes
DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError, zipfile.BadZipFile)


class NotStoredError(ValueError):
    """Nothing is stored of what may not be computed."""


def key(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description with a hash of the code added, as JSON gives it back.

    Examples
    --------
    >>> key({"clients": (8, 16)})["clients"]
    [8, 16]
    """
    code = {"format": FORMAT, "sources": sources(packages=("theory", "figures"))}
    return json.loads(json.dumps({**code, **description}))


def stored_trace(
    folder: Path,
    what: str,
    description: Mapping[str, Any],
    compute: Callable[[], Trace] | None,
    stale: Stale = None,
) -> Trace:
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
    stale : callable, optional
        Called with ``what`` when a result of other code is taken; without it none is.

    Raises
    ------
    NotStoredError
        If nothing is stored and nothing may be computed.
    """
    wanted = key(description)
    path = folder / f"trace-{digest(wanted)}.npz"
    try:
        with zipfile.ZipFile(path):  # refuses a damaged archive, of which NumPy would leave the file open
            trace = Trace.from_npz(path)
        if _accepted(trace.parameters["key"], wanted, what, stale):
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
    folder: Path,
    what: str,
    description: Mapping[str, Any],
    compute: Callable[[], float] | None,
    stale: Stale = None,
) -> float:
    """Return the stored number of this description, computed as in :func:`stored_trace`.

    Raises
    ------
    NotStoredError
        If nothing is stored and nothing may be computed.
    """
    wanted = key(description)
    path = folder / f"number-{digest(wanted)}.json"
    try:
        record = json.loads(path.read_text())
        if _accepted(record["key"], wanted, what, stale):
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
    """Return the name of what a key describes, whatever code computes it."""
    return hashlib.sha256(json.dumps(_without_sources(wanted), sort_keys=True).encode()).hexdigest()[:20]


def _accepted(stored: Mapping[str, Any], wanted: Mapping[str, Any], what: str, stale: Stale) -> bool:
    """Tell whether a stored result may be taken, and say so where other code has computed it."""
    if stored == wanted:
        return True
    if stale is None or _without_sources(stored) != _without_sources(wanted):
        return False
    stale(what)
    return True


def _without_sources(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if name != "sources"}


def missing(what: str, folder: Path) -> NotStoredError:
    """Return the refusal to compute what is not stored."""
    return NotStoredError(f"redraw: {what} is not stored in {str(folder)!r}; leave --redraw out to compute it.")
