"""Files that are written whole or not at all, locks on folders, and what a killed process leaves behind.

Every temporary file has a name that ends in ``SUFFIX``, and its writer holds a lock on it. The system gives locks back
however a process ends, so that a temporary file without a lock belongs to nobody. Where the system has no such locks
(Windows) nothing is locked, and nothing removed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None

__all__ = ["SUFFIX", "InUseError", "locked", "remove_leftovers", "write_atomically"]

SUFFIX = ".dualopt-part"


class InUseError(ValueError):
    """Another process holds the lock."""


def write_atomically(path: str | Path, write: Callable[[IO[Any]], Any], mode: str = "w") -> None:
    """Write a file under a temporary name and rename it: an earlier file stays whole if anything fails.

    Parameters
    ----------
    path : str or Path
        The file.
    write : callable
        ``write(file)`` writes the content.
    mode : str, default "w"
        ``"wb"`` for bytes.

    Raises
    ------
    OSError
        If that fails, as on a full disk; its ``filename`` is the file.
    """
    path = Path(path)
    handle, name = _temporary(path)
    try:
        with os.fdopen(handle, mode) as file:
            write(file)
            file.flush()
            umask = os.umask(0)
            os.umask(umask)
            Path(name).chmod(0o666 & ~umask)  # mkstemp makes files for the owner alone
            if fcntl is not None:
                Path(name).replace(path)  # while the lock is held
        if fcntl is None:  # pragma: no cover - Windows renames no open file
            Path(name).replace(path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:  # where there is no room is not said
            error.filename = str(path)
        raise


def remove_leftovers(folder: str | Path) -> list[Path]:
    """Remove the temporary files of processes that were killed while they wrote; return their paths.

    Parameters
    ----------
    folder : str or Path
        Where to look; not in folders below it.
    """
    removed = []
    if fcntl is None:  # pragma: no cover - Windows
        return removed
    for path in sorted(Path(folder).glob(f".*{SUFFIX}")):
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while the writer lives
            path.unlink()
            removed.append(path)
    return removed


@contextmanager
def locked(folder: str | Path, name: str, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock in a folder, which no other process can hold meanwhile; nothing of it remains afterwards.

    Parameters
    ----------
    folder : str or Path
        The folder; there may be several locks in one.
    name : str
        Name of the lock.
    wait : bool, default True
        Whether to wait for a process that holds it.

    Raises
    ------
    InUseError
        If another process holds it, without ``wait``.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with locked(folder, "tune"):
    ...         inside = len(list(Path(folder).iterdir()))
    ...     inside, list(Path(folder).iterdir())
    (1, [])
    """
    if fcntl is None:  # pragma: no cover - Windows
        yield
        return
    path = Path(folder) / f".{name}.lock{SUFFIX}"
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(handle)
            raise InUseError(f"out {str(folder)!r} is in use by another dualopt {name}.") from None
        except BaseException:
            os.close(handle)
            raise
        if _is(path, handle):
            break
        os.close(handle)  # whoever held it has removed it meanwhile
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _temporary(path: Path) -> tuple[int, str]:
    """Return a new file beside ``path``, open and locked."""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=SUFFIX)
        if fcntl is None:  # pragma: no cover - Windows
            return handle, name
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is(Path(name), handle):
                return handle, name
        except OSError:  # a file system without locks: nobody can hold this file for a leftover either
            return handle, name
        except BaseException:
            os.close(handle)
            Path(name).unlink(missing_ok=True)
            raise
        os.close(handle)  # taken for a leftover before it was locked


def _is(path: Path, handle: int) -> bool:
    """Tell whether the path still leads to the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
