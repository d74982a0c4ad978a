"""``-p proved-best``: chosen once, said, recorded, and taken from the record by what continues or repeats a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("cvxpy")

import dualopt.lab.proofs
from dualopt.app.cli.proved_best import given, split
from dualopt.lab.proofs import class_of, proved_best
from dualopt.methods.participation import UniformSubset
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.spec import Spec
from tests.app import test_cli
from tests.app.test_cli import refusal
from tests.app.test_cli_resume import calm, contents, interrupt

program = test_cli.program
pytestmark = pytest.mark.usefixtures("undrawn")
RUN = ["--rows", "200", "--clients", "4", "--rounds", "6", "--tol", "0", "--participation", "subset=2"]
ADMM = ["run", *RUN, "--algorithm", "fedadmm", "-p", "proved-best", "-p", "stop=steps=5"]


def refuse_to_search(monkeypatch) -> None:
    def no(*_, **__):
        raise AssertionError("it must not be searched for again")

    monkeypatch.setattr(dualopt.lab.proofs, "proved_best", no)


def test_a_run_says_and_records_what_was_chosen(program, monkeypatch):
    code, out, err = program(*ADMM, "--out", "whole")
    assert (code, err) == (0, "")
    record = json.loads(Path("whole/run.json").read_text())
    f = build_problem(ProblemOptions(rows=200, clients=4)).objective
    best = proved_best("fedadmm", **class_of(f), participation=UniformSubset(size=2))
    (said,) = record["proved_best"].values()
    assert said == json.loads(json.dumps(best.to_json()))
    assert said["suggested"] > said["factor"]
    assert record["options"]["param"] == ["proved-best", "stop=steps=5"]
    assert record["parameters"]["hyperparameters"]["fedadmm"]["rho"] == best.parameters["rho"]
    words = " ".join(out.replace("│", " ").split())
    assert str(best)[:80] in words
    refuse_to_search(monkeypatch)
    assert program("run", "--from", "whole/run.json", "--out", "again")[0] == 0
    assert contents("whole") == contents("again")


def test_a_continued_run_has_the_numbers_with_which_it_began(program, monkeypatch):
    assert program(*ADMM, "--out", "whole")[0] == 0
    interrupt(monkeypatch, 3)
    assert program(*ADMM)[0] == 130
    calm(monkeypatch)
    refuse_to_search(monkeypatch)
    assert program(*ADMM, "--resume")[0] == 0
    assert contents() == contents("whole")


def test_each_method_of_a_comparison_chooses_for_itself(program):
    methods = ["--algorithm", "best@fedsplit:proved-best", "--algorithm", "fedsplit: step=0.5"]
    assert program("compare", *RUN, *methods)[0] == 0
    record = json.loads(Path("out/compare.json").read_text())
    (label,) = record["proved_best"]
    assert label == "best"
    assert record["proved_best"]["best"]["source"] == "Theorem B"
    steps = {
        name: next(iter(run["parameters"]["hyperparameters"].values()))["step"] for name, run in record["runs"].items()
    }
    assert steps["fedsplit: step=0.5"] == 0.5
    assert steps["best"] == record["proved_best"]["best"]["parameters"]["step"] != 0.5


def test_prove_chooses_for_every_condition_number(program, monkeypatch):
    monkeypatch.setattr("dualopt.app.cli.prove._grid", lambda kappa: [4.0, kappa])
    common = ("prove", "--algorithm", "feddyn", "--kappa", "9", "--clients", "3")
    code, out, err = program(*common, "-p", "proved-best", "--rounds", "1")
    assert (code, err) == (0, "")
    rates = json.loads(Path("out/prove.json").read_text())["rates"]
    chosen = [rate["proved_best"]["parameters"]["alpha"] for rate in rates]
    assert chosen == pytest.approx([2.0, 3.0])
    assert [rate["method"]["feddyn"]["alpha"] for rate in rates] == chosen
    assert (
        "proved best, kappa = 9: alpha = 3: the mean of V falls by a factor of 0.562500 per round (Theorem B; " in out
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", *RUN, "--algorithm", "feddyn:alpha=3", "-p", "proved-best"], "algorithm FedDyn has no number open"),
        (["run", *RUN, "--algorithm", "feddyn", "-p", "proved-best", "--mu", "0"], "mu and L must be positive"),
        (
            ["run", *RUN, "--algorithm", "fedsplit", "-p", "proved-best", "--compressor", "rand-k=5"],
            "compressor must be",
        ),
        (["run", "--rows", "200", "--algorithm", "fedprox", "-p", "proved-best"], "must have the minimiser as a fixed"),
        (["prove", "--algorithm", "feddyn", "-p", "proved-best", "--mu", "0", "--rounds", "2"], "mu must be positive"),
        (["tune", "--rows", "200", "--algorithm", "feddyn", "--grid", "alpha=proved-best"], "alpha must be a number"),
    ],
)
def test_bad_use_is_one_sentence(program, words, sentence):
    assert sentence in refusal(program, *words)
    assert not Path("out").exists()


def test_the_word_is_found_wherever_it_stands():
    for text in ("feddyn:proved-best", "feddyn: proved-best", "feddyn: stop=steps:3, proved-best"):
        spec, best = split(Spec.parse(text))
        assert best
        assert "" not in spec.arguments
    spec, best = split(given(Spec.parse("feddyn: 3"), []))
    assert (str(spec), best) == ("feddyn: 3", False)
    spec, best = split(given(Spec.parse("feddyn"), ["alpha=3", "proved-best"]))
    assert (str(spec), best) == ("feddyn: alpha=3", True)
