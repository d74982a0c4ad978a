"""What a host keeps in its journal: the states of its clients before the latest round, and the requests of that round.

A host that was killed does the round once more, which gives the same numbers, and can take it back as one that was not.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.engine._protocol import Commit, Propose, Start
from dualopt.engine.journal import Journal, known_types
from dualopt.methods import Algorithm
from dualopt.runs._sources import sources
from dualopt.spec import Spec

__all__ = ["HostFile", "Stored"]


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
    memory: Any = ()  # what clients remember of compressed uploads


class HostFile(Journal):
    """The journal of one host.

    Parameters
    ----------
    path : str or Path
        Where it is; there need be none yet.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(path, "host file")

    def keep(self, start: Start, kept: Stored) -> None:
        """Replace the file by one with these states of a run.

        Raises
        ------
        OSError
            If that fails; the earlier file is whole then.
        """
        self.write(sources(), start, kept)

    def kept(self, like: Array, types: Iterable[type]) -> tuple[Start, Algorithm, Stored] | None:
        """Return the run, its method and the states; None where there is no file.

        Raises
        ------
        ValueError
            If the file is damaged, or other code has written it.
        """
        found = self.read(known_types(types), like)
        if found is None:
            return None
        try:
            code, start, kept = found
            method = Spec.from_json(start.method, "method").build("algorithm", types)
        except (AttributeError, TypeError, ValueError):
            raise self.damaged() from None
        if not (isinstance(start, Start) and isinstance(kept, Stored)):
            raise self.damaged()
        if code != sources():
            raise ValueError(
                f"{self} was written by other code of dualopt, so that the run would not end with the digits of an "
                "unbroken one: start over."
            )
        return start, method, kept
