"""Bad input, in short: some cases of every family; and the checks of `tests.fuzz_inputs` find what is planted."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from tests import fuzz_inputs
from tests.fuzz_inputs import FAMILIES, draw, examine
from tests.fuzz_inputs._case import Case, Expected, typed
from tests.fuzz_inputs._libsvm import rows_of_text

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are limited by what Linux offers")

SLOW = {"bomb", "theorem", "figure", "full_disk", "extreme"}  # seconds each
QUICK = [number for number in range(len(FAMILIES)) if FAMILIES[number].__name__ not in SLOW]
NAN = float("nan")


@pytest.fixture(scope="module", autouse=True)
def _programs():
    fuzz_inputs._load_programs()


@pytest.mark.parametrize("number", QUICK, ids=[f"{FAMILIES[n].__name__}-{n}" for n in QUICK])
def test_bad_input_gives_one_sentence_and_good_input_the_numbers_of_a_clean_case(number: int) -> None:
    case = draw(0, number)
    if case.needs is not None:
        pytest.importorskip(case.needs)
    wrong, ending = examine(case)
    assert not wrong, (case.what, wrong, ending.err)


def test_a_case_is_drawn_again_from_its_seed():
    assert draw(5, 3).words == draw(5, 3).words
    assert len({draw(5, n).words for n in range(0, 10 * len(FAMILIES), len(FAMILIES))}) > 3


# What is planted is found.

GOOD = Case(what="a good run", words=typed("run", {}), expected=Expected.SAME)


def complaints(case: Case) -> str:
    return "; ".join(examine(case)[0])


def broken(monkeypatch: pytest.MonkeyPatch, function) -> None:
    """Put a mistake into the program: cases are forks of this process, and have it too."""
    monkeypatch.setattr("dualopt.app.cli.engine.build_problem", function)


def test_a_traceback_is_found(monkeypatch):
    def crash(*_, **__):
        raise IndexError("list index out of range")

    broken(monkeypatch, crash)
    assert complaints(replace(GOOD, expected=Expected.REFUSED)) == "traceback"


def test_a_silent_acceptance_is_found():
    assert complaints(replace(GOOD, expected=Expected.REFUSED)).startswith("silent: taken")


def test_other_numbers_than_those_of_the_clean_case_are_found():
    other = Case(what="another penalty", words=typed("run", {"mu": "0.02"}))
    assert complaints(replace(GOOD, clean=replace(GOOD))) == ""
    assert complaints(replace(GOOD, clean=other)).startswith("silent: ")


def test_energies_that_are_no_numbers_are_found(monkeypatch):
    import dualopt.runs._recorder

    quality = dualopt.runs._recorder.Recorder._quality

    def lost(self, theta, bound):
        return quality(self, theta, bound) | {"certificate": -1.0}

    monkeypatch.setattr(dualopt.runs._recorder.Recorder, "_quality", lost)
    assert "below the true gap" in complaints(replace(GOOD, expected=Expected.EITHER))


@pytest.mark.parametrize(
    ("sentence", "complaint"),
    [
        ("invalid literal for int() with base 10: 'a'", "the sentence is not ours"),
        ("rounds must be one\nor two.", ""),  # the program writes it on one line
        ("something is wrong.", "the sentence names none of rounds"),
        ("rounds must be a whole number.", ""),
    ],
)
def test_sentences_are_judged(monkeypatch, sentence, complaint):
    from dualopt.arrays import _checks

    def refuse(*_, **__):
        _checks.require(False, sentence.rstrip("."))

    broken(monkeypatch, refuse)
    found = complaints(replace(GOOD, expected=Expected.REFUSED, naming=("rounds",)))
    assert complaint in found
    assert bool(found) == bool(complaint)


def test_what_is_left_behind_is_found(monkeypatch):
    from dualopt.arrays import _checks

    def litter(*_, **__):
        Path("out").mkdir()
        Path("out", ".trace.csv.x1").write_text("")
        _checks.require(False, "rounds must be less")

    broken(monkeypatch, litter)
    assert "left 'out'" in complaints(replace(GOOD, expected=Expected.REFUSED))


@pytest.mark.parametrize(
    ("slip", "complaint"),
    [
        (lambda path: Path(path).with_name(".trace.csv.x1").write_text(""), "leaves 'out/.trace.csv.x1'"),
        (lambda path: print("RuntimeWarning: overflow", file=sys.stderr), "warned"),
    ],
)
def test_temporary_files_beside_results_and_warnings_are_found(monkeypatch, slip, complaint):
    from dualopt.runs.trace import Trace

    write = Trace.to_csv
    monkeypatch.setattr(Trace, "to_csv", lambda self, path: (slip(path), write(self, path)))
    assert complaint in complaints(GOOD)


def test_memory_and_time_are_limited(monkeypatch):
    def eat(*_, **__):
        np.ones(10**11)

    broken(monkeypatch, eat)
    assert "traceback" not in complaints(replace(GOOD, expected=Expected.REFUSED, naming=("memory",)))
    monkeypatch.setattr("tests.fuzz_inputs._child.MOST_SECONDS", 0.3)
    monkeypatch.setattr("tests.fuzz_inputs._judge.MOST_SECONDS", 0.3)
    broken(monkeypatch, lambda *_, **__: time.sleep(30))
    assert "ran for more than" in complaints(GOOD)


def test_calls_of_the_library_are_judged():
    call = Case(what="a call", program="python", naming=("rounds",), call=lambda: 1.0)
    assert complaints(call).startswith("silent: taken")
    assert complaints(replace(call, call=lambda: {}["x"])) == "traceback"
    assert complaints(replace(call, call=lambda: float("x"))) == "traceback"  # Python's own sentence
    clean = replace(call, call=lambda: 2.0)
    assert complaints(replace(call, expected=Expected.SAME, clean=clean)).startswith("silent: ")


def test_the_plain_reader_reads_the_format_and_nothing_more():
    found = rows_of_text(b"1 1:2 3:4 # note\n\n-1 qid:3 2:1e1\n")
    assert found is not None
    X, y = found
    assert (X.tolist(), y.tolist()) == ([[2.0, 0.0, 4.0], [0.0, 10.0, 0.0]], [1.0, -1.0])
    for bad in (b"1 2:1 1:1\n", b"1 1:nan\n", b"x 1:1\n", b"1 1:1_0\n", b"1 -1:1\n", b"", b"1 1:1 1:2\n"):
        assert rows_of_text(bad) is None


def test_the_program_reports_and_repeats(capsys, monkeypatch):
    assert fuzz_inputs.main(["--cases", "2", "--seed", "1"]) == 0
    assert "2 cases" in capsys.readouterr().out
    monkeypatch.setattr(fuzz_inputs, "draw", lambda *_: replace(GOOD, expected=Expected.REFUSED))
    assert fuzz_inputs.main(["--seed", "1", "--only", "7"]) == 1
    assert "--seed 1 --only 7" in capsys.readouterr().out


def test_cases_that_need_what_is_missing_are_counted_and_left_out(capsys, monkeypatch):
    monkeypatch.setattr(fuzz_inputs, "find_spec", lambda name: None)
    monkeypatch.setattr(fuzz_inputs, "draw", lambda *_: replace(GOOD, expected=Expected.REFUSED, needs="pyarrow"))
    assert fuzz_inputs.main(["--cases", "2"]) == 0
    assert "2 cases ({'left out without pyarrow': 2})" in capsys.readouterr().out
