"""A file that is replaced as a whole while something goes on, and from which it goes on: of a run, or of a host.

==========================  ====================================================================
bytes                       what they are
==========================  ====================================================================
15                          ``dualopt journal``
1                           number of the version
4                           CRC-32 of all that follows, little endian
others                      `dualopt.arrays.codec`: what the file is, and the trees that it holds
==========================  ====================================================================

It is written under another name, brought to the disk, and renamed: whoever is killed meanwhile leaves the earlier file,
and half of a new one, which is removed when the file is read again. Nothing in it is ever executed.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from dualopt.arrays._files import remove_leftovers, write_atomically
from dualopt.arrays.codec import CodecError, Known, chunks, pack, read, unpack
from dualopt.arrays.xp import Array

__all__ = ["VERSION", "Journal", "known_types"]

MAGIC, VERSION = b"dualopt journal", 2
PREFIX = len(MAGIC) + 1 + 4
ARCHIVE = b"PK"  # version 1 was an archive of NumPy


class Journal:
    """One such file.

    Parameters
    ----------
    path : str or Path
        Where it is; there need be none yet.
    kind : str
        What it is, in words; files of another kind are refused.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder, "a.journal"), "checkpoint")
    ...     journal.write("a run", (1, 0.5))
    ...     journal.read(Known())
    ['a run', (1, 0.5)]
    """

    def __init__(self, path: str | Path, kind: str) -> None:
        self.path, self.kind = Path(path), kind

    def __str__(self) -> str:
        return f"{self.kind} {str(self.path)!r}"

    def write(self, *parts: Any) -> None:
        """Replace the file by one that holds these trees.

        Raises
        ------
        OSError
            If that fails; the earlier file is whole then.
        TypeError
            If something in the trees cannot be written.
        """
        content = chunks(pack([self.kind, *parts], exact=True))

        def write(file: IO[Any]) -> None:
            file.write(MAGIC + bytes([VERSION]) + _sum(content))
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())  # hosts with files of their own rely on what is in it

        write_atomically(self.path, write, "wb")
        _synchronise(self.path.parent)

    def read(self, known: Known, like: Array | None = None) -> list[Any] | None:
        """Return the trees; None where there is no file.

        Parameters
        ----------
        known : Known
            The NamedTuples that may be in them.
        like : array, optional
            Arrays that were not in host memory come back as arrays of its library.

        Raises
        ------
        ValueError
            If the file is damaged, of another version or kind, or something else.
        """
        remove_leftovers(self.path.parent)
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file:
                start = file.read(PREFIX)
                if start[: len(ARCHIVE)] == ARCHIVE:
                    raise ValueError(f"{self} is an archive, as version 1 was, and not of version {VERSION}.")
                if len(start) < PREFIX or start[: len(MAGIC)] != MAGIC:
                    raise self.damaged()
                if (version := start[len(MAGIC)]) != VERSION:
                    raise ValueError(f"{self} is of version {version}, not {VERSION}.")
                packed = read(file, os.fstat(file.fileno()).st_size - PREFIX, exact=True)
            if _sum(chunks(packed)) != start[-4:]:
                raise self.damaged()
            kind, *parts = unpack(packed, known, like, exact=True)
        except (CodecError, OSError):
            raise self.damaged() from None
        if kind != self.kind:
            raise self.damaged()
        return parts

    def damaged(self) -> ValueError:
        """Return the refusal of what is in the file."""
        return ValueError(f"{self} is damaged, or no {self.kind} of this method.")


def known_types(kinds: Iterable[type], trees: Any = ()) -> Known:
    """Return the NamedTuples of this package, of the modules of some classes, and of some trees.

    Parameters
    ----------
    kinds : iterable of type
        Methods, solvers and so on that may be from elsewhere.
    trees : tree
        States of theirs.
    """
    own = {name for name in sys.modules if name.partition(".")[0] == "dualopt"}
    return Known(own | {base.__module__ for kind in kinds for base in kind.__mro__}, trees)


def _sum(content: Iterable[Any]) -> bytes:
    check = 0
    for x in content:
        check = zlib.crc32(x, check)
    return check.to_bytes(4, "little")


def _synchronise(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):  # pragma: no cover - Windows
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
