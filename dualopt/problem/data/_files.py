"""Finding the files of a data set and opening them, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

__all__ = [
    "FILE_SUFFIXES",
    "expanded",
    "file_hash",
    "find",
    "find_bare",
    "free_memory",
    "home",
    "is_file",
    "is_folder",
    "open_binary",
]

FILE_SUFFIXES = (".bz2", ".npz", ".gz", ".svm", ".libsvm", ".txt", ".csv", ".csv.gz", ".tsv", ".parquet")


def home(data_home: str | os.PathLike[str] | None) -> Path | None:
    """Return the user's folder of data sets: the argument, else ``DUALOPT_DATA_HOME``, else None.

    Raises
    ------
    ValueError
        If the folder does not exist.
    """
    named = data_home if data_home is not None else os.environ.get("DUALOPT_DATA_HOME") or None
    if named is None:
        return None
    if not isinstance(named, str | os.PathLike) or str(named) == "":
        raise ValueError(f"data_home must be the path of a folder, not {named!r}.")
    folder = expanded(Path(named))
    if not is_folder(folder):
        raise ValueError(f"data_home {str(named)!r} is not a folder.")
    return folder


def expanded(path: Path) -> Path:
    """Return a path with ``~`` replaced by the folder of the user, where there is such a user."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def file_hash(path: Path) -> bytes:
    """Return a hash of the bytes of a file, which is read once and never held as a whole.

    >>> file_hash(Path(__file__)) == file_hash(Path(__file__)), len(file_hash(Path(__file__)))
    (True, 32)
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def is_file(path: Path) -> bool:
    """Tell whether a path is a file; what no file system can hold is none.

    >>> is_file(Path("a" * 5000))
    False
    """
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, a folder that must not be read, a null character
        return False


def is_folder(path: Path) -> bool:
    """Tell whether a path is a folder, as `is_file` does."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def find(data: str, data_home: Path | None, places: Iterable[str]) -> Path:
    """Return the first of ``places``, paths below ``data_home``, that is a file.

    Raises
    ------
    ValueError
        If there is no ``data_home``, or none of the places is a file in it; the sentence lists them.
    """
    places = list(places)
    if data_home is None:
        raise ValueError(
            f"data_home is needed for data {data!r}: pass the folder that holds {places[0]} or set DUALOPT_DATA_HOME."
        )
    for place in places:
        if is_file(data_home / place):
            return data_home / place
    raise ValueError(f"data_home {str(data_home)!r} has no file for data {data!r}: looked for {', '.join(places)}.")


def find_bare(name: str, data_home: Path | None) -> Path | None:
    """Return the file that a bare name such as ``a9a`` means in ``data_home``, or None."""
    if data_home is None:
        return None
    folders = (data_home, data_home / "libsvm", data_home / name)
    candidates = (folder / (name + suffix) for folder in folders for suffix in ("", *FILE_SUFFIXES))
    return next((path for path in candidates if is_file(path)), None)


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a plain, ``.gz`` or ``.bz2`` file for reading.

    Raises
    ------
    ValueError
        If the file cannot be opened, or turns out damaged while it is read.
    """
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    try:
        with openers.get(path.suffix, open)(path, "rb") as stream:
            yield stream
    except (EOFError, OSError, zlib.error) as error:  # what gzip and bz2 raise on cut or damaged data
        raise ValueError(f"path {str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def free_memory() -> float:
    """Return the free memory in bytes, within the limits of this process; infinity where nobody tells.

    What the system keeps of files that were read counts as free: it gives it away when memory is asked for.
    """
    return min(_free_of_machine(), _free_of_container(), _free_of_process())


def _free_of_machine() -> float:
    try:
        known = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return 1024.0 * int(known["MemAvailable"].split()[0])
    except (KeyError, OSError, ValueError):  # not Linux
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not a POSIX system, or one without this name
        return float("inf")


def _free_of_container(root: Path = Path("/sys/fs/cgroup"), listing: Path = Path("/proc/self/cgroup")) -> float:
    """Return what the control groups of this process, version 2, leave to it."""
    free = float("inf")
    try:
        (own,) = (line[3:] for line in listing.read_text().splitlines() if line.startswith("0::"))
        group = root / own.lstrip("/")
    except (OSError, ValueError):
        return free
    for folder in (group, *group.parents):
        try:
            limit, used = ((folder / f"memory.{name}").read_text().strip() for name in ("max", "current"))
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            if limit != "max":
                free = min(free, max(0.0, float(limit) - float(used) + float(stat["inactive_file"])))
        except (KeyError, OSError, ValueError):  # the group of all has no limit
            continue
    return free


def _free_of_process() -> float:
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            return float(max(0, limit - used))
    except (ImportError, OSError):  # not Linux
        pass
    return float("inf")
