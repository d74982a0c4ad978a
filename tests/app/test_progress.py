"""Progress in files and pipes: a line now and then on the standard error, nothing on the standard output."""

from __future__ import annotations

import pytest
from rich.console import Console

from dualopt.app.cli import progress
from dualopt.app.cli.progress import make_progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_is_written_when_the_last_one_is_old(capsys, clock: list[float]) -> None:
    with make_progress(Console(force_terminal=False), "E {task.fields[energy]:.3g}") as shown:
        task = shown.add_task("dualfl", total=30, energy=2.0)
        for round_ in range(1, 31):
            clock[0] = float(round_)
            shown.update(task, completed=round_, energy=1.0 / round_)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 3
    assert "dualfl" in lines[1]
    assert "20/30" in lines[1]
    assert "E 0.05" in lines[1]


def test_short_work_writes_nothing(capsys, clock: list[float]) -> None:
    with make_progress(Console(force_terminal=False)) as shown:
        task = shown.add_task("a", total=3)
        for _ in range(3):
            clock[0] += 3.0
            shown.update(task, advance=1)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_has_a_bar() -> None:
    shown = make_progress(Console(force_terminal=True))
    assert not shown.disable
    assert shown.console.is_terminal
