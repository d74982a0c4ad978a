"""How programs report mistakes of the user, and how they end."""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from threading import current_thread, main_thread
from typing import Any

from dualopt.arrays._extras import EXTRAS

__all__ = ["CONTRADICTED", "INTERRUPTED", "TERMINATED", "exit_on_user_error", "program", "terminable"]

OURS = ("dualopt", "theory", "figures")
USER_ERROR = 2  # exit code
CONTRADICTED = 3  # of a command that has found a certificate to be false
INTERRUPTED, TERMINATED = 130, 143  # what shells report for a program that Ctrl-C, or SIGTERM, ended
LONG, SHOWN = 200, 60  # characters of a word that a sentence does not quote in full, and what it shows of its ends


def program(app: Callable[..., Any], name: str, arguments: Sequence[str] | None = None) -> None:
    """Run a program; it ends by ``SystemExit``, with exit code 2 for a mistake of the user's.

    Parameters
    ----------
    app : callable
        ``app(args=..., prog_name=...)``, such as a ``typer.Typer``.
    name : str
        What a user types to run it: ``dualopt``, or ``python -m theory``.
    arguments : sequence of str, optional
        What follows the name; ``sys.argv[1:]`` when not given.
    """
    if arguments is None:  # a process of its own: the system takes its memory back, which needs no search for cycles
        atexit.register(gc.freeze)
    words = sys.argv[1:] if arguments is None else list(arguments)
    if isinstance(sys.stdout, TextIOWrapper):  # names of files may hold what no encoding has
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with terminable(), exit_on_user_error(name.rpartition(" ")[2].rpartition(".")[2]):
            # Without words, help is shown by the program itself.
            code = app(args=words, prog_name=name, **({"standalone_mode": False} if words else {}))
            print(end="", flush=True)
    except KeyboardInterrupt:  # while modules were imported, nothing has begun
        raise SystemExit(INTERRUPTED) from None
    raise SystemExit(code if isinstance(code, int) else 0)


@contextmanager
def terminable() -> Iterator[None]:
    """Turn SIGTERM into ``SystemExit`` with exit code 143: temporary files go and workers end, as after Ctrl-C."""

    def end(*_: object) -> None:
        raise SystemExit(TERMINATED)

    if current_thread() is not main_thread():  # the others receive no signals
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def exit_on_user_error(name: str) -> Iterator[None]:
    r"""Turn a mistake of the user's into one sentence on the standard error and exit code 2.

    Parameters
    ----------
    name : str
        The program, with which the sentence begins: ``name: ...``.

    Examples
    --------
    >>> import contextlib, io
    >>> with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.suppress(SystemExit):
    ...     with exit_on_user_error("figures"):
    ...         raise FileNotFoundError(2, "No such file or directory", "digits.npz")
    >>> said.getvalue()
    "figures: file 'digits.npz' cannot be used: No such file or directory.\n"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package and package not in EXTRAS:
            raise
        extra = EXTRAS[package][1] if package else ""
        _refuse(name, f'package {package} is missing: pip install "dualopt[{extra}]".' if package else str(error))
    except ValueError as error:
        if not _is_ours(error):
            raise
        _refuse(name, _with_line(error))
    except MemoryError as error:
        _refuse(name, f"memory is too small: {error}." if str(error) else "memory is too small.")
    except OSError as error:
        where = f" {error.filename!r}" if error.filename else ""
        _discard_output()
        _refuse(name, f"file{where} cannot be used: {error.strerror or error}.")
    except Exception as error:
        if not hasattr(error, "format_message"):  # of the parser of options
            raise
        from dualopt.app.cli.usage import sentence

        _refuse(name, sentence(error.format_message()))  # pyright: ignore[reportAttributeAccessIssue]


def _is_ours(error: BaseException) -> bool:
    """Tell whether this project raised the error; one from elsewhere is not written for the user to read."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__", "").partition(".")[0] in OURS


def _with_line(error: BaseException) -> str:
    """Return what the error says, and in which line of a plug-in it was raised: its author may need it."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    if not frame.f_globals.get("__name__", "").startswith("dualopt.spec.plugins.files."):
        return str(error)
    return f"{str(error).rstrip('.')} ({frame.f_globals['__file__']}, line {line})."


def _discard_output() -> None:
    """Drop what the standard output cannot take, so that the interpreter does not try again at its end."""
    try:
        print(end="", flush=True)
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(name: str, sentence: str) -> None:
    """Print a sentence on one line, without control characters, and with what is long cut short; and end."""
    if (output := sys.modules.get("dualopt.app.cli.output")) is not None:
        output.remove_empty_folders()
    sentence = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in sentence)
    sentence = re.sub(rf"\S{{{LONG},}}", lambda word: f"{word[0][:SHOWN]}...{word[0][-SHOWN:]}", sentence)
    print(f"{name}: {sentence}", file=sys.stderr)
    raise SystemExit(USER_ERROR)
