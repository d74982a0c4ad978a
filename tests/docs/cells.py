"""The cells of a page of the guide, run as a notebook runs them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualopt.app.cli import main
from tests.lab.test_contracts import environment
from tests.programs import ended

__all__ = ["GUIDE", "cells", "ran"]

GUIDE = Path(__file__).parents[2] / "docs" / "site" / "guide"


def cells(page: str) -> list[str]:
    """Return all blocks of a page, every one of which must be a cell."""
    text = (GUIDE / page).read_text()
    found = re.findall(r"^```\{code-cell\} python\n+(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert 2 * len(found) == len(re.findall("^```", text, flags=re.MULTILINE))
    return found


def ran(cell: str, known: dict[str, Any], codes: Mapping[str, int] | None = None) -> None:
    """Run a cell: ``%%writefile`` writes it, and lines that begin with an exclamation mark are commands.

    ``codes`` has the exit codes that are not 0, by a part of the command.
    """
    if cell.startswith("%%writefile "):
        first, _, source = cell.partition("\n")
        Path(first.split()[1]).write_text(source)
        return
    for line in re.split(r"^(!.*)\n", cell, flags=re.MULTILINE):
        if line.startswith("!"):
            expected = next((code for part, code in (codes or {}).items() if part in line), 0)
            assert command(*shlex.split(line[1:])) == expected, line
        else:
            exec(line, known)


def command(program: str, *words: str) -> int:
    """Run a command and return its exit code; those of dualopt run in this process."""
    if program == "dualopt":
        return ended(main, *words)
    done = subprocess.run(
        [sys.executable if program == "python" else program, *words], env=environment, capture_output=True, text=True
    )
    print(done.stdout)
    return done.returncode
