"""Tables as wide as the console, with whole numbers and words; progress that says what is known."""

from __future__ import annotations

import math
import re

import pytest
from rich.console import Console
from rich.progress import ProgressColumn

from dualopt.app.cli import output, progress, tables
from dualopt.app.cli.progress import Measured, RunProgress, make_progress, rounds_left
from dualopt.app.cli.tables import is_number, wrapped

OWN = "mine@my_methods.py:Damped:part=0.5,step=1e-3,solver=lbfgs:history=20"


def row(run: str) -> dict[str, str]:
    return {
        "run": run,
        "status": "max_rounds",
        "rounds": "100 (50 sent)",
        "energy E": "0.7411602812",
        "certified": "<= 1.21e-10",
        "error": "-3.4e-16",
        "gradients": "1,234,567.5",
        "numbers up": "33.3M",
        "bits up": "2.1G",
        "seconds": "0.0123",
        "accuracy": "97.12%",
        "test accuracy": "96.83%",
    }


ROWS = [*(row(run) for run in ("anderson-fedsplit", "dualfl:rho=0", OWN)), *(row(f"run {n}") for n in range(20))]
SHORT = [word for name, text in row("dualfl:rho=0").items() for word in (*name.split(), *text.split(" ("))]
TOLD = {
    "status": "diverged: the energy is not finite, or stays far above that of the start without coming down",
    "energy E": "0.7411602812",
    "certified relative error": "none, where <= 1.21e-10 was asked for, and a gap of 12,345.678 is all that is left",
    "files": "a folder: trace.npz, trace.csv, run.json, convergence.png",
}


def shown(capsys: pytest.CaptureFixture[str], columns: int, monkeypatch: pytest.MonkeyPatch, show, *what) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    show(output.make_console(), "a title of several words, which is rather long for a narrow console", *what)
    return capsys.readouterr().out.splitlines()


def cells(lines: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in lines if line[0] in "│┃"]


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 140, 200])
def test_a_table_fits_and_breaks_no_number_and_no_word(columns: int, monkeypatch, capsys) -> None:
    lines = shown(capsys, columns, monkeypatch, output.show_table, ROWS)
    assert max(map(len, lines)) <= columns
    pieces = {cell for line in cells(lines) for cell in line}
    for text in ("33.3M", "0.7411602812", "<= 1.21e-10", "-3.4e-16", "1,234,567.5", "max_rounds", "anderson-fedsplit"):
        assert text in pieces
    words = " ".join(" ".join(line) for line in cells(lines))
    assert all(word in words for word in SHORT)


@pytest.mark.parametrize("columns", [30, 60, 80, 100, 140, 200])
def test_columns_without_room_go_on_below_in_their_order_behind_the_name_of_their_row(
    columns: int, monkeypatch, capsys
) -> None:
    lines = shown(capsys, columns, monkeypatch, output.show_table, ROWS)
    tables = "\n".join(lines).split("└")[:-1]
    heads: list[str] = []
    for table in tables:
        of = cells(table.splitlines())
        names = [line for line in of if not any(re.search(r"\d", cell) for cell in line)]
        head = [" ".join(filter(None, column)) for column in zip(*names[: len(names)], strict=True)]
        assert head[0].startswith("run")
        heads += head[1:]
        assert sum(line[0].startswith("run") and line[0] != "run" for line in of) == 20
    assert [name.split()[0] for name in heads] == [name.split()[0] for name in list(ROWS[0])[1:]]
    assert (len(tables) > 1) == (columns < 200)


def test_rows_are_told_apart_by_as_many_columns_as_that_takes(monkeypatch, capsys) -> None:
    rows = [{"rho": rho, "step": step, "words": "word " * 9, "more": "word " * 9} for rho in "12" for step in "34"]
    lines = shown(capsys, 30, monkeypatch, output.show_table, rows)
    heads = [line for line in cells(lines) if line[0] == "rho"]
    assert heads == [["rho", "step", "words"], ["rho", "step", "more"]]


@pytest.mark.parametrize("columns", [36, 60, 80, 140])
def test_pairs_keep_every_word_and_number(columns: int, monkeypatch, capsys) -> None:
    lines = shown(capsys, columns, monkeypatch, output.show_pairs, TOLD)
    assert max(map(len, lines)) <= columns
    found = cells(lines)
    names, values = (" ".join(filter(None, (line[n] for line in found))) for n in (0, 1))
    assert names == " ".join(TOLD)
    assert values == " ".join(TOLD.values())


def test_long_words_break_behind_marks_and_numbers_not_at_all(monkeypatch, capsys) -> None:
    number = "0.12345678901234567890"
    rows = [{"name": "x" * 200, "n": number}, {"name": OWN, "n": "1"}]
    monkeypatch.setenv("COLUMNS", "40")
    output.show_table(output.make_console(), "", rows)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) == 40
    assert sum(line.count("x") for line in lines) == 200
    assert any(number in line for line in lines)
    assert wrapped(OWN, 24) == ["mine@my_methods.py:", "Damped:part=0.5,step=", "1e-3,solver=lbfgs:", "history=20"]
    monkeypatch.setenv("COLUMNS", "10")
    output.show_table(output.make_console(), "", rows)
    assert number in capsys.readouterr().out  # rather are lines longer than the console is wide


@pytest.mark.parametrize("width", range(1, 60))
def test_lines_of_a_text_hold_all_of_it(width: int) -> None:
    text = " ".join([OWN, *TOLD.values()])
    lines = wrapped(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(len(line) <= width or is_number(line) for line in lines)


def test_markup_and_wide_characters_are_text(monkeypatch, capsys) -> None:
    lines = shown(capsys, 40, monkeypatch, output.show_table, [{"[red]": "[bold]x[/bold]", "名前": "方法 " * 12}])
    assert "[red]" in "".join(lines)
    assert "[bold]x[/bold]" in "".join(lines)
    assert "my:key:file" in "".join(shown(capsys, 40, monkeypatch, output.show_pairs, {"file": "my:key:file"}))
    output.alarm("my:key:file is wrong")
    assert capsys.readouterr().err == "dualopt: my:key:file is wrong\n"
    assert "".join(lines).count("方法") == 12


def test_sentences_are_broken_on_a_screen_alone(capsys) -> None:
    text = TOLD["certified relative error"]
    output.say(Console(width=30, force_terminal=False), text)
    assert capsys.readouterr().out == f"{text}\n"
    output.say(Console(width=30, force_terminal=True), text)
    assert capsys.readouterr().out.splitlines() == wrapped(text, 30)


@pytest.mark.parametrize(
    ("columns", "width"), [("77", 77), ("", tables.WIDTH), ("0", tables.WIDTH), ("x", tables.WIDTH)]
)
def test_a_file_is_as_wide_as_columns_says(columns: str, width: int, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert output.make_console().width == width


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


def lines_of(console: Console, rounds: int, tol: float, rows, clock: list[float]) -> list[str]:
    """Return what is shown of a run before it begins, and after each of its rows."""
    with make_progress(console, *RunProgress.FIELDS) as shown:
        run = RunProgress(shown, "a-method:with=parameters", rounds, tol)
        (line, *_), found = shown.columns, []
        assert isinstance(line, ProgressColumn)
        for of in (None, *rows):
            if of is not None:
                clock[0] += 2.0
                run.advance(None, of)
            found.append(str(line.render(shown.tasks[0])))
    return found


def certified(errors) -> list[dict[str, float]]:
    return [{"round": float(n), "energy": 1.0 / 3.0 + e, "certified_error": e} for n, e in enumerate(errors, start=1)]


def test_a_run_begins_with_what_is_known_of_it(clock: list[float]) -> None:
    rows = [{"round": 1, "energy": math.nan, "certified_error": None}, {"round": 2, "energy": 2.5}]
    rows += [{"round": 3, "certified_error": math.inf}, *certified([0.25])]
    before, unmeasured, energy, infinite, last = lines_of(Console(force_terminal=False), 30, 1e-3, rows, clock)
    assert before == "a-method:with=parameters  0/30  0:00:00"
    assert unmeasured.split()[:2] == ["a-method:with=parameters", "1/30"]
    assert "E 2.5" in energy
    assert "E 2.5" in infinite
    assert "certified 2.5e-01" in last
    assert "nan" not in "".join((before, unmeasured, energy, infinite, last))
    assert "inf" not in "".join((before, unmeasured, energy, infinite, last))


def test_a_tolerance_has_an_estimate_where_errors_fall_at_one_rate(clock: list[float]) -> None:
    console = Console(force_terminal=False)
    linear = certified(0.5**n for n in range(1, 21))
    shown = lines_of(console, 40, 0.5**30, linear, clock)
    assert not any("rounds," in line for line in shown[:8])
    assert "9.31323e-10 in about 10 rounds, 20 s" in shown[-1]
    assert "in about 1 round, " in lines_of(console, 40, 0.5**21, linear, clock)[-1]
    assert "in about 80 rounds, 0:02:40" in lines_of(console, 140, 0.5**100, linear, clock)[-1]
    assert f"{0.5**16:g} not by round 15 at this rate" in lines_of(console, 15, 0.5**16, linear[:10], clock)[-1]
    assert "about" not in lines_of(console, 40, 0.0, linear, clock)[-1]  # no tolerance
    assert "about" not in lines_of(console, 40, 0.5**19, linear, clock)[-1]  # it is reached


@pytest.mark.parametrize(
    "errors",
    [
        [0.5 ** min(n, 8) for n in range(1, 21)],  # it has come to rest
        [0.5 ** min(n, 13) * 0.99**n for n in range(1, 21)],  # fast once, slow now
        [1.0 + 0.01 * n for n in range(20)],
    ],
)
def test_nothing_is_estimated_where_the_rate_is_unknown(errors: list[float]) -> None:
    measured = [Measured(n, error, n) for n, error in enumerate(errors)]
    assert rounds_left(measured, 1e-9) is None


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_a_line_has_room_and_keeps_what_counts(width: int, clock: list[float]) -> None:
    (*_, line) = lines_of(
        Console(width=width, force_terminal=True), 4000, 1e-6, certified(0.99**n for n in range(300)), clock
    )
    assert len(line) < width
    assert "  300/4000  " in line
    assert re.search(r"\d:\d\d:\d\d$", line)
    assert ("certified 5.0e-02" in line) == (width > 40)
    assert ("E 0.3" in line) == (width == 140)
