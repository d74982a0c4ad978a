"""Tables whose cells take long: some are run, others are taken from what is stored, and the rest is left empty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from dualopt.arrays._checks import require
from dualopt.runs.trace import Trace
from figures._settings import Settings
from figures._store import NotStoredError, missing

__all__ = ["NOT_RUN", "ONLY", "by_cell", "said_not_run"]

ONLY = "only must match a cell 'problem: method'"
NOT_RUN = "not run"


def by_cell(settings: Settings, labels: Iterable[str], run: Callable[[Settings, str], Trace]) -> dict[str, Trace]:
    """Return the traces of the cells ``problem: method`` that ``settings`` wants, and of others that are stored.

    Parameters
    ----------
    settings : Settings
        Whose ``only`` chooses cells, and whose ``stored_only`` refuses to run any.
    labels : iterable of str
        All cells of the table.
    run : callable
        ``run(settings, label)``, which looks into the store first.

    Raises
    ------
    ValueError
        If nothing matches ``only``, or nothing is stored and nothing may be run.

    Examples
    --------
    >>> from pathlib import Path
    >>> def run(settings, label):
    ...     return settings.stored(label, {"cell": label}, lambda: "a trace")
    >>> nothing = Settings(stored_only=True, out=Path("nowhere"))
    >>> by_cell(nothing, ["iid: fedavg"], run)
    Traceback (most recent call last):
    figures._store.NotStoredError: redraw: any cell is not stored in 'nowhere/cache'; leave --redraw out to compute it.
    """
    names = list(labels)
    require(any(map(settings.wants, names)), ONLY, settings.only)
    found, stored = {}, replace(settings, stored_only=True)  # one for all: what it knows of the rows it finds once
    for name in names:
        try:
            found[name] = run(settings if settings.wants(name) else stored, name)
        except NotStoredError:
            continue  # of ``stored``
    if not found:
        raise missing("any cell", settings.cache)
    return found


def said_not_run(labels: Iterable[str], traces: Mapping[str, Trace]) -> str:
    """Return the end of a caption that names the cells without traces; nothing where all have one.

    Examples
    --------
    >>> said_not_run(["iid: fedavg", "iid: feddyn"], {"iid: feddyn": None}), said_not_run([], {})
    (' Not run: iid: fedavg.', '')
    """
    empty = [name for name in labels if name not in traces]
    return f" Not run: {', '.join(empty)}." if empty else ""
