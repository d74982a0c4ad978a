"""The commands of docs/resuming.md do what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dualopt.app.cli import main as dualopt
from figures._program import main as figures
from tests.kill import contents
from tests.programs import ended

PAGE = (Path(__file__).parents[2] / "docs" / "resuming.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the listings of the page in one language; commands have none."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


@pytest.mark.usefixtures("undrawn")
def test_the_commands_run_in_turn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("") for line in block.splitlines()]
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(line)
        program, arguments = (dualopt, words[1:]) if words[0] == "dualopt" else (figures, words[3:])
        assert ended(program, *arguments) == 0, (line, capsys.readouterr())
    first, second = contents(Path("long")), contents(Path("again"))
    assert first.keys() == second.keys() == {"convergence.png", "run.json", "trace.csv", "trace.npz"}
    assert all(first[name] == second[name] for name in first if name != "run.json")  # which says where it is
    assert {"tune.csv", "tune.json"} == set(contents(Path("search")))
    assert ended(dualopt, *shlex.split(lines[0])[1:]) == 0
    assert "long: complete" in capsys.readouterr().out


def test_the_python_example_runs_and_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    exec(code, {})
    exec(code.replace('"federation.journal", seconds=30', '"federation.journal", seconds=1e-9'), {})
    exec(code, {})
    statuses = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [status for status, _ in statuses] == ["max_rounds"] * 3
    first, second, third = (int(rounds) for _, rounds in statuses)
    assert first == second == 0 < third < 40
