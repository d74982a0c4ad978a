"""A case in a process of its own, with bounds of memory, time and files."""

from __future__ import annotations

import ctypes
import fcntl
import gc
import hashlib
import io
import os
import pickle
import resource
import signal
import stat
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz_inputs._case import Case

__all__ = ["MOST_BYTES", "MOST_SECONDS", "Ending", "drop_privileges", "execute", "listing"]

MOST_BYTES = 1500 * 2**20  # of address space beyond what this process has
MOST_SECONDS = 60.0
TICK = 0.002
PIPE = 2**20  # bytes
CAPABILITY_VERSION = 0x20080522
OVERRIDE = 0b110  # of capabilities, the bits that let an administrator read and write whatever the permissions


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a case ended.

    Attributes
    ----------
    code : int or None
        Exit code; None where a signal or the clock ended the process.
    out, err : str
        What it printed.
    seconds : float
        How long it took.
    bytes : int
        By how much its memory grew.
    before, after : dict of str to str
        The files in its folder.
    value : object
        What a call returned.
    """

    code: int | None
    out: str
    err: str
    seconds: float
    bytes: int
    before: Mapping[str, str]
    after: Mapping[str, str]
    value: Any = None


def execute(case: Case, folder: Path) -> Ending:
    """Run a case in an empty folder.

    Parameters
    ----------
    case : Case
        What to run.
    folder : Path
        Its folder, which is empty; the process works in ``folder/here``.
    """
    here = folder / "here"
    here.mkdir()
    case.arrange(here)
    before = listing(here)
    pipes = [_pipe() for _ in range(3)]  # of the standard output, of the errors, of a value
    sys.stdout.flush()
    sys.stderr.flush()
    started = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: the child only computes
        pid = os.fork()
    if pid == 0:
        _child(case, here, [write for _, write in pipes])  # does not return
    status, usage = _wait(pid, started + MOST_SECONDS)
    seconds = time.monotonic() - started
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out, err, value = (_content(*pipe) for pipe in pipes)
    return Ending(
        code=os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
        out=out.decode(errors="replace"),
        err=err.decode(errors="replace"),
        seconds=seconds,
        bytes=max(0, (usage - own) * 1024),
        before=before,
        after=listing(here),
        value=pickle.loads(value) if value else None,
    )


def listing(folder: Path) -> dict[str, str]:
    """Return what is in a folder: the kind of each file, and a hash of what it holds."""
    found: dict[str, str] = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(root) / name
            kind = path.lstat()
            text = f"{stat.S_IFMT(kind.st_mode):o}"
            if stat.S_ISREG(kind.st_mode):
                with path.open("rb") as file:
                    text += f" {kind.st_size} {hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"
            found[str(path.relative_to(folder))] = text
    return found


def drop_privileges() -> bool:
    """Give up, in this process, the right to read and write whatever the permissions; tell whether that worked."""
    if os.geteuid() != 0:
        return True
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
        data = (ctypes.c_uint32 * 6)()
        if libc.capget(header, data) != 0:
            return False
        for word in range(3):  # effective, permitted and inheritable, of the lower 32
            data[word] &= ~OVERRIDE
        return libc.capset(header, data) == 0
    except (AttributeError, OSError):  # not Linux
        return False


def _pipe() -> tuple[int, int]:
    """Return a pipe that holds all that a case prints: no file, which the limits of a case would concern."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE)
    os.set_blocking(write, False)
    return read, write


def _content(read: int, write: int) -> bytes:
    os.close(write)
    with os.fdopen(read, "rb") as file:
        return file.read()


def _wait(pid: int, deadline: float) -> tuple[int | None, int]:
    """Return the status of a process, None if it had to be killed, and its largest memory in KiB."""
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            return status, usage.ru_maxrss
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            _, _, usage = os.wait4(pid, 0)
            return None, usage.ru_maxrss
        time.sleep(TICK)


def _child(case: Case, here: Path, pipes: list[int]) -> None:
    code = 70
    try:
        gc.disable()  # what is collected at the end belongs to the parent
        os.environ.pop("DUALOPT_DATA_HOME", None)
        os.environ.update(case.environment)
        _redirect(pipes)
        os.chdir(here)
        _limit(case)
        warnings.resetwarnings()
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", "invalid value encountered in matmul", RuntimeWarning)  # padding of kernels
        if case.permissions:
            drop_privileges()
        code = _called(case, pipes[2]) if case.call else _typed(case)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stderr.flush()
            sys.stdout.flush()
        finally:
            os._exit(code)


def _redirect(pipes: list[int]) -> None:
    os.dup2(pipes[0], 1)
    os.dup2(pipes[1], 2)
    if device := os.environ.get("FUZZ_OUT"):
        os.dup2(os.open(device, os.O_WRONLY), 1)
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), encoding=encoding, errors=errors or "strict")
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), encoding="utf-8", errors="backslashreplace")
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)


def _limit(case: Case) -> None:
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if case.file_size is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (case.file_size, case.file_size))


def _typed(case: Case) -> int:
    """Run a program as ``__main__`` would, and return its exit code."""
    if case.program == "figures":
        from figures._program import main
    elif case.program == "theory":
        from theory._program import main
    else:
        from dualopt.app.cli import main
    try:
        main(list(case.words))
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    return 0


def _called(case: Case, pipe: int) -> int:
    """Call the library: a ValueError, or a TypeError, is a refusal of one sentence, as a user would see it."""
    assert case.call is not None
    try:
        value = case.call()
    except (ValueError, TypeError) as error:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").partition(".")[0] != "dualopt":
            raise
        print(f"dualopt: {error}", file=sys.stderr)
        return 2
    with os.fdopen(pipe, "wb") as stream:
        pickle.dump(value, stream)
    return 0
