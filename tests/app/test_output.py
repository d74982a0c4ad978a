"""Tables on narrow and wide consoles, and progress in files and pipes: a line now and then on the standard error."""

from __future__ import annotations

import pytest
from rich.console import Console

from dualopt.app.cli import output, progress
from dualopt.app.cli.progress import make_progress

ROWS = [
    {
        "run": "anderson-fedsplit",
        "status": "max_rounds",
        "rounds": "100 (50 sent)",
        "energy E": "0.74116028",
        "certified": "<= 1.21e-10",
        "bits up": "2.1G",
    },
    {
        "run": "dualfl:rho=0",
        "status": "diverged",
        "rounds": "12",
        "energy E": "0.7",
        "certified": "none",
        "bits up": "33.3M",
    },
]
WHOLE = ("anderson-fedsplit", "dualfl:rho=0", "max_rounds", "0.74116028", "<= 1.21e-10", "33.3M", "certified")


def shown_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    output.show_table(output.make_console(), "a title", ROWS)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("columns", ["30", "80", "90", "200"])
def test_a_table_breaks_no_number_and_no_word(columns: str, monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = shown_lines(capsys)
    assert all(any(text in line for line in lines) for text in WHOLE)
    needed = max(map(len, lines))
    assert needed <= max(int(columns), 78)
    assert sum("100" in line and "(50 sent)" in line for line in lines) == (int(columns) >= 87)  # between words


@pytest.mark.parametrize(
    ("columns", "width"), [("77", 77), ("", output.WIDTH), ("0", output.WIDTH), ("x", output.WIDTH)]
)
def test_a_file_is_as_wide_as_columns_says(columns: str, width: int, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert output.make_console().width == width


def test_long_words_and_words_in_columns_of_numbers(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    output.show_table(
        output.make_console(), "", [{"name": "x" * 200, "n": "1"}, {"name": "a b", "n": "not run at all"}]
    )
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= output.LONGEST_TITLE + 4 + 3 + len("not")
    assert sum(line.count("x") for line in lines) == 200


# Progress.


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
