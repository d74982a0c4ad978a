"""``docs/use_the_model.md``, in an empty folder: its listings in turn."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dualopt import load_model
from dualopt.app.cli import main
from dualopt.spec._kinds import names
from tests.programs import ended

PAGE = (Path(__file__).parents[2] / "docs/use_the_model.md").read_text()


def test_the_listings_run_in_turn(tmp_path, monkeypatch, undrawn, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict = {}
    listings = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert [kind for kind, _ in listings].count("") == 2
    for kind, text in listings:
        if kind == "python":
            exec(text, known)
        else:
            for line in text.splitlines():
                assert ended(main, *shlex.split(line)[1:]) == 0, (line, capsys.readouterr())
    assert "['prediction', 'probability no', 'probability yes']" in capsys.readouterr().out
    for place in ("out", "by_hand", "estimator"):
        assert load_model(place).schema.classes == ("no", "yes")


def test_estimators_and_losses_are_those_that_there_are() -> None:
    estimators = [getattr(names("loss")[name], "sklearn", "") for name in names("loss")]
    assert "linear_model.Ridge" in estimators
    assert [name for name in estimators if name.rpartition(".")[2] not in PAGE] == []
    for name in names("loss"):
        assert f"`{name}`" in PAGE, f"docs/use_the_model.md does not say how models of the loss {name} predict"
