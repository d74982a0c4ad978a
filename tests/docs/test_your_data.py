"""The page about data runs as it is written, in an empty folder: its snippets in order, then its commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dualopt.app.cli import main
from tests.programs import ended

PAGE = (Path(__file__).parents[2] / "docs/your_data.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
COMMANDS = re.findall(r"^dualopt (.*)$", PAGE, flags=re.MULTILINE)


def run_snippets() -> dict:
    names: dict = {}
    for snippet in SNIPPETS:
        exec(snippet, names)
    return names


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_snippets_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_snippets()
    printed = capsys.readouterr().out.splitlines()
    said = [line.rpartition("  # ")[2] for snippet in SNIPPETS for line in snippet.splitlines() if "print(" in line]
    assert printed[:2] == said[:2]
    fitted = names["fitted"]
    assert printed[2] == f"{fitted.n_iter_} {fitted.certified_gap_}"
    assert printed[3] == str(fitted.certified_distance_)
    assert 0 < fitted.certified_gap_ < 1e-6
    assert names["trace"].status == "converged"


def test_the_commands_run(undrawn: None, capsys: pytest.CaptureFixture[str]) -> None:
    run_snippets()
    capsys.readouterr()
    assert len(COMMANDS) == 3
    for command in COMMANDS:
        assert ended(main, *shlex.split(command)) == 0
        out = capsys.readouterr().out
        assert "converged" in out
        assert "3 (natural)" in out


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) < 170
