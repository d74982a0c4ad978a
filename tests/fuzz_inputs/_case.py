"""One case: the files it finds, what is typed or called, and what has to come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["BASE_OPTIONS", "RESULTS", "Case", "Expected", "nothing", "typed"]

BASE_OPTIONS: Mapping[str, Any] = {
    "data": "synthetic-logistic",
    "data-param": ["m=24", "d=3"],
    "clients": "3",
    "rounds": "2",
    "seed": "1",
}
RESULTS = {  # what a command leaves behind in its folder
    "run": ("convergence.png", "model.json", "model.npz", "run.json", "trace.csv", "trace.npz"),
    "compare": ("compare.csv", "compare.dat", "compare.json", "compare.pdf", "compare.png"),
    "tune": ("tune.csv", "tune.json"),
}


class Expected:
    """What has to come of a case."""

    REFUSED = "refused"
    """One sentence that names the argument, exit code 2, nothing written."""
    SAME = "same"
    """What the clean case gives, number for number."""
    EITHER = "either"
    """A refusal, or sound numbers: for values at the ends of the arithmetic, where both are right."""
    HELP = "help"
    """A text on the standard output and exit code 0."""


def nothing(folder: Path) -> None:
    """Arrange no file."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case.

    Attributes
    ----------
    what : str
        The case in words.
    words : tuple of str
        What is typed behind the name of the program; for ``call``, nothing.
    program : str
        ``dualopt``, ``figures``, ``theory``, or ``python`` where ``call`` is called.
    expected : str
        One of `Expected`.
    naming : tuple of str
        Words of which a refusal names one.
    arrange : callable
        Makes the files in the folder of the case.
    clean : Case, optional
        The case whose result this one must give.
    call : callable, optional
        A call of the library: it returns numbers to compare, or raises.
    out : str
        The folder of the results, in the folder of the case.
    file_size : int, optional
        Largest file that can be written, in bytes: a disk that is full.
    permissions : bool
        Whether the case depends on permissions, which the administrator of a system may ignore.
    leaves : tuple of str
        Further files that an accepted case leaves behind.
    needs : str, optional
        A package without which the case is left out.
    """

    what: str
    words: tuple[str, ...] = ()
    program: str = "dualopt"
    expected: str = Expected.REFUSED
    naming: tuple[str, ...] = ()
    arrange: Callable[[Path], Any] = nothing
    clean: Case | None = None
    call: Callable[[], Any] | None = None
    out: str = "out"
    file_size: int | None = None
    permissions: bool = False
    leaves: tuple[str, ...] = ()
    needs: str | None = None
    environment: dict[str, str] = field(default_factory=dict)


def typed(command: str, options: Mapping[str, Any], base: Mapping[str, Any] = BASE_OPTIONS) -> tuple[str, ...]:
    """Return the words of a command: options are texts, lists of them, or flags."""
    words = [command]
    chosen = {**base, **options}
    if "data" in options and "data-param" not in options:
        chosen.pop("data-param", None)  # it belongs to the other data
    for name, value in chosen.items():
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            for text in value if isinstance(value, list) else [value]:
                words += [f"--{name}", text]
    return tuple(words)
