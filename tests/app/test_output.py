"""Tables on narrow and wide consoles."""

from __future__ import annotations

import pytest

from dualopt.app.cli import output

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


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    output.show_table(output.make_console(), "a title", ROWS)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("columns", ["30", "80", "90", "200"])
def test_a_table_breaks_no_number_and_no_word(columns: str, monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = shown(capsys)
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
