"""Calling the programs in this process: what they print, how they end, and the one sentence with which they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

__all__ = ["called", "ended", "refusal"]

Main = Callable[[Sequence[str]], Any]
Capture = pytest.CaptureFixture[str]


def ended(main: Main, *words: Any) -> int:
    """Call a program; return its exit code."""
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(str(end.value.code or 0))


def called(capsys: Capture, main: Main, *words: Any) -> tuple[int, str, str]:
    """Call a program; return exit code, standard output and standard error."""
    code, (out, err) = ended(main, *words), capsys.readouterr()
    return code, out, err


def refusal(capsys: Capture, main: Main, *words: Any) -> str:
    """Call a program that must refuse; return its one sentence, without the name of the program."""
    capsys.readouterr()  # what was printed before
    code, out, err = called(capsys, main, *words)
    assert (code, out) == (2, ""), (out, err)
    assert re.fullmatch(r"[\w -]+: [^\n]+[.?]\n", err), err
    return err.partition(": ")[2].rstrip("\n")
