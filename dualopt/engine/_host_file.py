"""The file in which a host keeps the states of its clients: a NumPy archive of plain arrays and a description in JSON.

It holds the states before the latest round, and the requests of that round: a host that was killed does the round once
more, which gives the same numbers, and can take it back as one that was not. It is written as a whole under another
name, brought to the disk, and renamed; a host that is killed meanwhile leaves the earlier file, and nothing else.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from dualopt.arrays._files import SUFFIX, remove_leftovers, write_atomically
from dualopt.arrays._packing import named_tuples, pack, unpack
from dualopt.arrays.xp import Array
from dualopt.engine._protocol import Commit, Propose, Start
from dualopt.methods import Algorithm
from dualopt.runs._sources import sources
from dualopt.spec import Spec, types_in

__all__ = ["HostFile", "Stored"]

FORMAT, VERSION = "dualopt host", 1
DAMAGED = (AttributeError, EOFError, IndexError, KeyError, OSError, TypeError, ValueError, zipfile.BadZipFile)


class Stored(NamedTuple):
    """The clients where their latest round began, and what they were asked in it."""

    rounds: int  # that were over
    message: Any
    made: int
    clients: Any
    solver: Any
    latest: Any  # as `LatestSolutions.kept`
    asked: Propose | None
    over: Commit | None


class HostFile:
    """The file of one host.

    Parameters
    ----------
    path : str or Path
        Where it is, ``.npz``; there need be none yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._head: dict[str, Any] = {}
        for left in self.path.parent.glob(f".{self.path.name}.*{SUFFIX}"):
            if left.exists():
                remove_leftovers(self.path.parent)
                break

    def __str__(self) -> str:
        return str(self.path)

    def describe(self, start: Start) -> None:
        """Say of which run the next states are."""
        description, arrays = pack(start)
        self._head = {"format": FORMAT, "version": VERSION, "sources": sources(), "start": description}
        self._start = arrays

    def write(self, kept: Stored) -> None:
        """Replace the file.

        Raises
        ------
        OSError
            If that fails; the earlier file is whole then.
        """
        description, arrays = pack(kept)
        head = json.dumps(self._head | {"kept": description})
        members: dict[str, Any] = {f"start_{n}": x for n, x in enumerate(self._start)}
        members |= {f"array_{n}": x for n, x in enumerate(arrays)}

        def write(file: IO[Any]) -> None:
            np.savez(file, head=np.array(head), **members)
            file.flush()
            os.fsync(file.fileno())

        write_atomically(self.path, write, "wb")
        synchronise(self.path.parent)

    def read(self, like: Array, types: Iterable[type]) -> tuple[Start, Algorithm, Stored] | None:
        """Return the run, its method and the states; None where there is no file. Nothing in it is ever executed.

        Raises
        ------
        ValueError
            If the file is damaged, or other code has written it.
        """
        if not self.path.exists():
            return None
        try:
            with zipfile.ZipFile(self.path), np.load(self.path, allow_pickle=False) as archive:
                head = json.loads(str(archive["head"]))
                if head["format"] != FORMAT or head["version"] != VERSION:
                    raise ValueError
                self._start = [archive[f"start_{n}"] for n in range(len(head["start"]["arrays"]))]
                arrays = [archive[f"array_{n}"] for n in range(len(head["kept"]["arrays"]))]
            start = unpack(head["start"], self._start, named_tuples(_START, ()), like=like)
            method = Spec.from_json(start.method, "method").build("algorithm", types)
            kept = unpack(head["kept"], arrays, state_types(method), like=like)
            if not isinstance(kept, Stored):
                raise ValueError
        except DAMAGED:
            raise ValueError(f"file {str(self.path)!r} is damaged, or no file of a host of this method.") from None
        if head["sources"] != sources():
            raise ValueError(
                f"file {str(self.path)!r} was written by other code of dualopt, so that the run would not end with the "
                "digits of an unbroken one: start over."
            )
        self._head = {name: head[name] for name in ("format", "version", "sources", "start")}
        return start, method, kept


def state_types(method: Algorithm) -> dict[str, type]:
    """Return the NamedTuples that states and messages of a method may consist of, by name."""
    modules = {kind.__module__ for part in types_in(method) for kind in part.__mro__}
    import sys

    own = {name for name in sys.modules if name.partition(".")[0] == "dualopt"}
    return named_tuples(_KEPT, sorted((modules | own) & set(sys.modules)))


def synchronise(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):  # pragma: no cover - Windows
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_START = Start("", 0, 0, (), "", None, None, "", "")
_KEPT = (
    Stored(0, None, 0, (), (), None, None, None),
    Propose("", 0, 0, 0, True, None, 0, None),
    Commit("", 0, True, None, 0, None),
)
