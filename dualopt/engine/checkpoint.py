"""A run that is kept in a file while it lasts, and continued from there.

The file is a NumPy archive: plain arrays and a description in JSON, no pickled object. It holds the whole federation
after a round (states of server, clients and local solvers, what was sent to whom), the latest local solutions, from
which certificates are made, and the trace. Random streams need no place in it: each is a function of the seed and the
round. A run that is continued ends with the same digits as one that was never interrupted, on the same machine with
the same libraries and number of threads.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from dualopt.arrays._files import write_atomically
from dualopt.arrays._packing import named_tuples, pack, unpack
from dualopt.arrays.xp import Array
from dualopt.engine.rounds import ResumePoint, State
from dualopt.runs._sources import sources

__all__ = ["Checkpoint", "Progress", "table"]

FORMAT, VERSION = "dualopt checkpoint", 1
DAMAGED = (AttributeError, EOFError, IndexError, KeyError, OSError, TypeError, ValueError, zipfile.BadZipFile)
SHARE = 20.0  # a checkpoint is made after so many times what the last one took: at most 5% of the time


class Progress(NamedTuple):
    """A run after a round: what its further rounds and rows depend on."""

    columns: tuple[str, ...]  # of the trace
    rows: Array  # (rounds + 1, columns)
    gradients: float  # local gradients so far, of all clients
    latest: Any  # latest local solutions of the clients
    still: int  # rounds since the model moved
    theta: Array  # the model, in the coordinates of the user
    best: Array  # the one of the least energy so far
    resume_point: ResumePoint


class Checkpoint:
    """Where a run is kept, and how often.

    Parameters
    ----------
    path : str or Path
        The file, ``.npz``. It is replaced by each checkpoint, as a whole; the run leaves the last one behind.
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
    ...     path = Path(folder, "run.npz")
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
        self.path = Path(path)
        self.seconds, self.resume, self.keep_stale = seconds, resume, keep_stale
        self.rounds, self.stale = 0, False
        self._head: dict[str, Any] = {}
        self._saved, self._took, self._tried = time.monotonic(), 0.0, False

    def begin(self, description: Mapping[str, Any], parts: Iterable[Any], initial: Any, like: Array) -> Progress | None:
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
        self._head = {
            "format": FORMAT,
            "version": VERSION,
            "run": json.loads(json.dumps(description, default=repr)),
            "sources": sources(parts),
        }
        if not (self.resume and self.path.exists()):
            return None
        modules = {kind.__module__ for part in parts for kind in type(part).__mro__} | {
            name for name in sys.modules if name.partition(".")[0] == "dualopt"
        }
        types = named_tuples((initial, _NOTHING), sorted(modules & set(sys.modules)))
        head, progress = self._read(types, like)
        self._compare(head)
        self.rounds = progress.resume_point.rounds
        return progress

    def keep(self, progress: Callable[[], Progress], *, now: bool = False) -> None:
        """Write a checkpoint if the last one is old, or ``now``.

        A disk that is full costs a checkpoint, not the run: it is a warning.
        """
        if not self._tried:  # what cannot be kept is refused in the first round
            pack(progress())
            self._tried = True
        waited = time.monotonic() - self._saved
        if not now and (not self.seconds or waited < max(self.seconds, SHARE * self._took)):
            return
        start = time.monotonic()
        try:
            self._write(progress())
        except OSError as error:
            warnings.warn(f"checkpoint {str(self.path)!r} cannot be written: {error.strerror}.", stacklevel=3)
        self._saved = time.monotonic()
        self._took = self._saved - start

    def _write(self, progress: Progress) -> None:
        description, arrays = pack(progress)
        head = json.dumps(self._head | {"state": description})
        members: dict[str, Any] = {f"array_{n}": x for n, x in enumerate(arrays)}

        def write(file: IO[Any]) -> None:
            np.savez(file, head=np.array(head), **members)
            file.flush()
            os.fsync(file.fileno())  # hosts with files of their own rely on what is in it

        write_atomically(self.path, write, "wb")

    def _read(self, types: Mapping[str, type], like: Array) -> tuple[dict[str, Any], Progress]:
        """Return the description and the content of the file; nothing in it is ever executed."""
        try:
            with zipfile.ZipFile(self.path), np.load(self.path, allow_pickle=False) as archive:
                head = json.loads(str(archive["head"]))
                if head["format"] != FORMAT:
                    raise ValueError
                if head["version"] != VERSION:
                    raise _ForeignError(f"is of version {head['version']}, not {VERSION}")
                count = len(head["state"]["arrays"])
                if set(archive.files) != {"head", *(f"array_{n}" for n in range(count))}:
                    raise ValueError
                arrays = [archive[f"array_{n}"] for n in range(count)]
            progress = unpack(head["state"], arrays, types, like=like)
            if not isinstance(progress, Progress) or progress.rows.shape != (
                progress.resume_point.rounds + 1,
                len(progress.columns),
            ):
                raise ValueError
        except _ForeignError as error:
            raise ValueError(f"checkpoint {str(self.path)!r} {error}.") from None
        except DAMAGED:
            raise ValueError(f"checkpoint {str(self.path)!r} is damaged, or no checkpoint of this method.") from None
        return head, progress

    def _compare(self, head: Mapping[str, Any]) -> None:
        """Refuse a checkpoint of another run, or of other code."""
        there, here = head["run"], self._head["run"]
        for name in [*here, *there]:
            if there.get(name) != here.get(name):
                raise ValueError(
                    f"checkpoint {str(self.path)!r} is of another run: "
                    f"{name} is {there.get(name)!r} there and {here.get(name)!r} here."
                )
        self.stale = head["sources"] != self._head["sources"]
        if self.stale and not self.keep_stale:
            raise ValueError(
                f"checkpoint {str(self.path)!r} was written by other code, so that it would not end with the digits of "
                "an unbroken run: start over, or continue it with keep_stale."
            )


def table(rows: list[list[float]]) -> Array:
    """Return the rows of a trace as an array in host memory.

    Examples
    --------
    >>> table([[0.0, 1.0], [1.0, 0.5]]).shape
    (2, 2)
    """
    return np.array(rows, dtype=float)


class _ForeignError(Exception):
    """A checkpoint that this version does not read."""


_NOTHING = Progress((), (), 0.0, None, 0, (), (), ResumePoint(0, State((), (), ()), ()))
