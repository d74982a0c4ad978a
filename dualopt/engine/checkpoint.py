"""A run that is kept in a journal while it lasts, and continued from there.

The file (:mod:`dualopt.engine.journal`) holds the whole federation after a round (states of server, clients and local
solvers, what was sent to whom), the latest local solutions, from which certificates are made, and the trace. Random
streams need no place in it: each is a function of the seed and the round. A run that is continued ends with the same
digits as one that was never interrupted, on the same machine with the same libraries and number of threads.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.codec import Known, pack
from dualopt.arrays.xp import Array
from dualopt.engine.journal import Journal, known_types
from dualopt.engine.rounds import ResumePoint
from dualopt.runs._sources import sources

__all__ = ["Checkpoint", "RunProgress", "table"]

SHARE = 20.0  # a checkpoint is made after so many times what the last one took: at most 5% of the time


class RunProgress(NamedTuple):
    """A run after a round: what its further rounds and rows depend on."""

    columns: tuple[str, ...]  # of the trace
    rows: Array  # (rounds + 1, columns)
    gradients: float  # local gradients so far, of all clients
    latest: Any  # latest local solutions of the clients
    still: int  # rounds since the model moved
    theta: Array  # the model, in the coordinates of the user
    best: Array  # the one of the least energy so far
    resume_point: ResumePoint


class Checkpoint(Journal):
    """Where a run is kept, and how often.

    Parameters
    ----------
    path : str or Path
        The file. It is replaced by each checkpoint, as a whole; the run leaves the last one behind.
    seconds : float, default 60
        Least time between two checkpoints; 0 makes one only where the run is stopped by its callback. They take at most
        a twentieth of the time, however large the federation is.
    resume : bool, default False
        Whether to continue from the file, if there is one.
    keep_stale : bool, default False
        Whether to continue what other code has begun (``stale`` says so then).

    Attributes
    ----------
    rounds : int
        The round from which the run was continued; 0 for none.
    stale : bool
        Whether other code has written it.

    Raises
    ------
    ValueError
        If ``seconds`` is negative; from ``run`` if the file is damaged, of another run, or of other code.

    Examples
    --------
    >>> import tempfile
    >>> from dualopt import DualFL, Quadratic, run
    >>> f = Quadratic(A=np.stack([np.eye(2), 2 * np.eye(2)]), b=np.array([[1.0, 0.0], [0.0, 3.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "run.journal")
    ...     half = run(DualFL(), f, rounds=20, checkpoint=Checkpoint(path), callback=lambda s, row: row["round"] == 7)
    ...     rest = run(DualFL(), f, rounds=20, checkpoint=Checkpoint(path, resume=True))
    >>> half.status, len(half), bool((rest.theta == run(DualFL(), f, rounds=20).theta).all())
    ('stopped', 8, True)
    """

    def __init__(
        self, path: str | Path, *, seconds: float = 60.0, resume: bool = False, keep_stale: bool = False
    ) -> None:
        if not seconds >= 0:
            raise ValueError(f"seconds must be at least 0, not {seconds}.")
        super().__init__(path, "checkpoint")
        self.seconds, self.resume, self.keep_stale = seconds, resume, keep_stale
        self.rounds, self.stale = 0, False
        self._run: dict[str, Any] = {}
        self._sources = ""
        self._saved, self._took, self._tried = time.monotonic(), 0.0, False

    def begin(
        self, description: Mapping[str, Any], parts: Iterable[Any], initial: Any, like: Array
    ) -> RunProgress | None:
        """Return what the file holds of the run; None where it begins.

        Parameters
        ----------
        description : dict
            What the run is, in terms of JSON.
        parts : iterable
            The method and what else may be code of the user's.
        initial : tree
            The states before the first round: the types in the file must be among theirs, or in their modules.
        like : array
            An array of the data.
        """
        parts = list(parts)
        self._run = json.loads(json.dumps(description, default=repr))
        self._sources = sources(parts)
        found = self._read(known_types(map(type, parts), initial), like) if self.resume else None
        if found is None:
            return None
        code, run, progress = found
        self._compare(code, json.loads(run))
        self.rounds = progress.resume_point.rounds
        return progress

    def keep(self, progress: Callable[[], RunProgress], *, now: bool = False) -> None:
        """Write a checkpoint if the last one is old, or ``now``.

        A disk that is full costs a checkpoint, not the run: it is a warning.
        """
        if not self._tried:  # what cannot be kept is refused in the first round
            try:
                pack([progress()], exact=True)
            except TypeError as error:
                raise ValueError(f"state must consist of what a checkpoint can keep, but {error}") from None
            self._tried = True
        waited = time.monotonic() - self._saved
        if not now and (not self.seconds or waited < max(self.seconds, SHARE * self._took)):
            return
        start = time.monotonic()
        try:
            self.write(self._sources, json.dumps(self._run), progress())
        except OSError as error:
            warnings.warn(f"{self} cannot be written: {error.strerror}.", stacklevel=3)
        self._saved = time.monotonic()
        self._took = self._saved - start

    def _read(self, known: Known, like: Array) -> tuple[str, str, RunProgress] | None:
        """Return the hash of the code, the description of the run and its state; None where there is no file."""
        found = self.read(known, like)
        if found is None:
            return None
        try:
            code, run, progress = found
            right = progress.rows.shape == (progress.resume_point.rounds + 1, len(progress.columns))
        except (AttributeError, TypeError, ValueError):
            raise self.damaged() from None
        if not (right and isinstance(progress, RunProgress) and isinstance(run, str)):
            raise self.damaged()
        return code, run, progress

    def _compare(self, code: str, there: Mapping[str, Any]) -> None:
        """Refuse a checkpoint of another run, or of other code."""
        here = self._run
        for name in [*here, *there]:
            if there.get(name) != here.get(name):
                raise ValueError(
                    f"{self} is of another run: {name} is {there.get(name)!r} there and {here.get(name)!r} here."
                )
        self.stale = code != self._sources
        if self.stale and not self.keep_stale:
            raise ValueError(
                f"{self} was written by other code, so that it would not end with the digits of an unbroken "
                "run: start over, or continue it with keep_stale."
            )


def table(rows: list[list[float]]) -> Array:
    """Return the rows of a trace as an array in host memory.

    Examples
    --------
    >>> table([[0.0, 1.0], [1.0, 0.5]]).shape
    (2, 2)
    """
    return np.array(rows, dtype=float)
