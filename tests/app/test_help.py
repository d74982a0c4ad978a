"""Help in groups: what most people need on a screen, and every option, with its default and its page, on request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from typer import Option, Typer
from typer.main import get_command

from dualopt.app.cli import main, tree
from dualopt.app.cli.groups import GROUPS, OTHERS, group_of
from dualopt.app.cli.options import option_groups
from dualopt.app.cli.programs import PassedOn
from dualopt.app.cli.usage import GroupedHelp
from tests.programs import ended

ROOT = Path(__file__).parents[2]
MOST = 60  # lines on a screen of 80 characters


def leaves(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    for name, each in below.items():
        yield from leaves(each, f"{path} {name}".strip())
    if not below:
        yield path, command


@pytest.fixture(scope="module")
def commands() -> dict[str, Any]:
    """Return all commands by what a user types behind the name of the program."""
    found = dict(leaves(get_command(tree())))
    return {name: command for name, command in found.items() if not isinstance(command, PassedOn)}


def options(command: Any) -> list[Any]:
    return [p for p in command.params if p.param_type_name == "option" and p.name != "help_all"]


def told(capsys: pytest.CaptureFixture[str], name: str, *words: str) -> list[str]:
    assert ended(main, *name.split(), *words) == 0
    return capsys.readouterr().out.rstrip().splitlines()


def test_every_option_is_in_exactly_one_group(commands: dict[str, Any]) -> None:
    used = Counter()
    for name, command in commands.items():
        for option in options(command):
            group = group_of(option.name, name)
            assert group is not OTHERS, (name, option.name)
            assert (*group.main, *group.more).count(option.name) == 1
            same = [g for g in GROUPS if option.name in (*g.main, *g.more) and g.commands == group.commands]
            assert same == [group], (name, option.name)
            used[group.title, option.name] += 1
    named = {(group.title, name) for group in GROUPS for name in (*group.main, *group.more)}
    assert named - set(used) == set(), "no command has these"
    assert {of for group in GROUPS for of in group.commands} <= set(commands)


def test_pages_that_explain_options_are_there() -> None:
    assert [group.page for group in (*GROUPS, OTHERS) if not (ROOT / group.page).is_file()] == []


def test_help_fits_on_a_screen_and_help_all_shows_everything(commands: dict[str, Any], capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name, command in commands.items():
        short = told(capsys, name, "--help")
        assert len(short) <= MOST, name
        if not options(command):
            continue
        every = told(capsys, name, "--help-all")
        entries = Counter(re.findall(r"^  (?:-\w, )?--(?:\[no-\])?([a-z-]+)", "\n".join(every), flags=re.MULTILINE))
        names = {word.removeprefix("--") for option in options(command) for word in option.opts if word[:2] == "--"}
        assert entries == Counter(names), name
        text = "".join("".join(every).split())
        for option in options(command):
            known = option.multiple or option.required or "default" in option.help
            assert "".join(f"{option.help}{'' if known else ' [default: '}".split()) in text, (name, option.name)
        for group in {group_of(option.name, name) for option in options(command)}:
            assert f"{group.title} ({group.page})" in every
        main_names = {o.name for o in options(command) if o.name in group_of(o.name, name).main}
        more = len(options(command)) - len(main_names)
        assert (f"dualopt {name} --help-all shows {more} more options, and all defaults." in short) == (more > 0)


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 140])
def test_help_is_as_wide_as_the_screen(columns: int, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = told(capsys, "prove", "--help-all")
    assert max(map(len, lines)) <= columns
    monkeypatch.setenv("COLUMNS", "300")
    wide = told(capsys, "prove", "--help-all")
    assert "".join(lines).replace(" ", "") == "".join(wide).replace(" ", "")
    assert len(wide) < len(lines)


@dataclass(frozen=True, kw_only=True)
class Own:
    """Options of a test.

    Parameters
    ----------
    unheard_of : int
        A number that is in no group.
    """

    unheard_of: int = 0


@option_groups
def command(*, mu: Annotated[float, Option(help="A weight.")], own: Own) -> None:
    """Do nothing."""


def test_an_option_without_a_group_is_shown_with_everything(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    program = Typer(add_completion=False)
    program.command(cls=GroupedHelp)(command)
    with pytest.raises(SystemExit, match="0"):
        program(["--help-all"], prog_name="dualopt")
    lines = capsys.readouterr().out.splitlines()
    assert "  --unheard-of N  A number that is in no group. [default: 0]" in lines
    assert "  --mu NUMBER     A weight. [required]" in lines
    with pytest.raises(SystemExit, match="0"):
        program(["--help"], prog_name="dualopt")
    shown = capsys.readouterr().out
    assert "--unheard-of" not in shown
    assert "--help-all shows 1 more options" in shown
