"""Every public name and every option is in the entry of a term, and the entries name nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import dualopt
from dualopt.app.cli import tree
from dualopt.spec import KINDS, names

PAGE = (Path(__file__).parents[2] / "docs" / "site" / "glossary.md").read_text()
ENTRIES = re.findall(r"^(\S.*)\n((?:  .*\n)+)", PAGE, flags=re.MULTILINE)
NAMED = {name for _, text in ENTRIES for name in re.findall(r"`([^`]+)`", text)}
# Terms that explain all names of a kind: there are many, and `dualopt list` has a line for each.
WALKED = {"algorithm": "method", "loss": "loss, ridge, penalty", "solver": "local solver, stopping rule"}


@pytest.fixture
def program() -> Any:
    """Return the program with all its commands."""
    return get_command(tree())


def options(command: Any) -> set[str]:
    """Return the long options of a command and of those below it."""
    own = {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}
    below = [options(each) for each in getattr(command, "commands", {}).values()]
    return {word for word in own if word.startswith("--")}.union(*below) - {"--help", "--version"}


def public() -> set[str]:
    """Return the public names but those of a walked kind."""
    walked = {known.__name__ for kind in WALKED for known in names(kind).values() if isinstance(known, type)}
    return set(dualopt.__all__) - walked


def test_walked_kinds_have_their_terms() -> None:
    assert set(WALKED) <= set(KINDS)
    assert set(WALKED.values()) <= {term for term, _ in ENTRIES}


def test_every_public_name_is_explained_by_a_term() -> None:
    assert sorted(public() - NAMED) == []


def test_every_option_is_explained_by_a_term(program: Any) -> None:
    found = options(program)
    assert {"--algorithm", "--grid", "--intercept"} <= found
    assert sorted(found - NAMED) == []


def test_nothing_is_named_that_is_gone(program: Any) -> None:
    looks_like_one = {name for name in NAMED if re.fullmatch(r"--[a-z-]+|[A-Z]\w+", name)}
    assert sorted(looks_like_one - public() - options(program)) == []
