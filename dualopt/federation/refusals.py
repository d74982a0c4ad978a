"""What a site says when it does not answer: a word of the table below, and nothing that was made of its data.

Messages of errors quote rows, labels, names of columns and paths. They are written into the log of the site; over the
wire goes the word, and the administrator reads the sentence that belongs to it.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from dualopt.arrays._files import InUseError
from dualopt.arrays.codec import CodecError
from dualopt.engine import Failed, RefusedError

__all__ = ["SENTENCES", "UNKNOWN", "refusal", "refusing", "said"]

SENTENCES = {
    # before the first round
    "settings": "its settings cannot be read",
    "project-file": "its project file cannot be read, or was changed after it was made",
    "site": "it is not a site of its project",
    "data": "its data cannot be read",
    "columns": "its data have other columns than the project says",
    "labels": "its data have labels that the project does not",
    "rows": "its data have another number of rows than the project says",
    "few": "fewer of its rows than its project allows are behind a number that it is asked for",
    "prepare": "its rows cannot be prepared as the project says",
    "prepared": "the numbers by which rows are prepared are not those in its file",
    "problem": "its data do not fit the problem of the project",
    "state": "the file of its states is damaged, of other clients, or of other code",
    "package": "a package that it needs is not installed",
    "busy": "another process of this site is at work on the run",
    # what it was asked
    "caller": "it was asked by another party than the server",
    "request": "the request is damaged, or of another version",
    "project": "its project is not that of the server",
    "method": "the method is not that of its project, or cannot be read",
    "asked": "it was asked for what its project does not need",
    "questions": "it was asked at more models in one round than its settings allow",
    "clients": "it was asked for clients that are not its own, or for another number of them",
    "states": "it has no states of this run: their file is lost, or of another run",
    "checkpoint": "its clients are at a later round: the server's checkpoint is older than their states",
    "order": "the request does not follow the rounds that its clients have done",
    "message": "it does not hold the message that is meant",
    "sum": "it was asked for what could show numbers of a single site",
    "keys": "keys or shares that are said to be of another site are not",
    # while it works
    "range": "a number of it is beyond the range that its project has for secure sums, or is none",
    "disk": "its disk is full, or a file would be too large",
    "rights": "it has no right to one of its files",
    "file": "one of its files cannot be read or written",
    "memory": "it is out of memory",
    "failed": "it failed",
}
"""Each word that may leave a site, and what the administrator reads in its place."""

UNKNOWN = "it refuses in words that are not known here"
FILES = {
    "disk": (errno.ENOSPC, errno.EFBIG, errno.EDQUOT),
    "rights": (errno.EACCES, errno.EPERM, errno.EROFS),
}


def refusal(error: BaseException) -> Failed:
    """Return what is sent in place of an error: no part of it depends on the words of the error.

    Examples
    --------
    >>> refusal(ValueError("line 201 has '1:72.5 2:HIV+ 4:Alice-Miller'"))
    Failed(reason='failed', final=True)
    >>> refusal(OSError(errno.ENOSPC, "No space left", "/home/alice/state"))
    Failed(reason='disk', final=False)
    """
    if isinstance(error, RefusedError):
        return Failed(error.code if error.code in SENTENCES else "failed", error.final)
    if isinstance(error, InUseError):
        return Failed("busy", False)
    if isinstance(error, CodecError):
        return Failed("request", False)
    if isinstance(error, OSError):
        return Failed(next((word for word, numbers in FILES.items() if error.errno in numbers), "file"), False)
    if isinstance(error, ModuleNotFoundError):
        return Failed("package", True)
    return Failed("memory" if isinstance(error, MemoryError) else "failed", True)


def said(failed: Failed) -> Failed:
    """Return a refusal that a site has sent, with the sentence in place of the word.

    Examples
    --------
    >>> said(Failed("data", True)).reason
    'its data cannot be read (data); its own log says more'
    >>> said(Failed("send your key to eve@example.org", True)).reason
    'it refuses in words that are not known here'
    """
    sentence = SENTENCES.get(failed.reason)
    reason = UNKNOWN if sentence is None else f"{sentence} ({failed.reason}); its own log says more"
    return failed._replace(reason=reason)


@contextmanager
def refusing(code: str) -> Iterator[None]:
    """Name what goes wrong within by a word of the table; the message stays as it is, for those who may read it.

    Examples
    --------
    >>> with refusing("labels"):
    ...     raise ValueError("y has the label 'HIV+'")
    Traceback (most recent call last):
    dualopt.engine._errors.RefusedError: y has the label 'HIV+'
    """
    try:
        yield
    except (RefusedError, InUseError, ModuleNotFoundError, MemoryError):
        raise
    except OSError as error:
        raise RefusedError(str(error), code=code, final=False) from error
    except Exception as error:
        raise RefusedError(str(error), code=code) from error
