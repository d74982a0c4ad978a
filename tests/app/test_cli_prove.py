"""``dualopt prove``: the table, the files, the sentences and the exit codes."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from matplotlib import image

from tests.app import test_cli
from tests.app.test_cli import refusal

program = test_cli.program
PLUG_IN = '''
from dataclasses import dataclass
from dualopt.methods import GradientDescent

@dataclass(frozen=True, kw_only=True)
class Doubled(GradientDescent):
    """Gradient descent with twice the step."""

    def server(self, server, mean, round):
        return super().server(server, 2.0 * mean, round)
'''


@pytest.fixture(autouse=True)
def _one_condition_number(monkeypatch):
    monkeypatch.setattr("dualopt.app.cli.prove._grid", lambda kappa: [kappa])


def test_a_method_of_ones_own_is_proved(program):
    """With the step 0.1 it takes steps of 0.2 = 2/L, at which curvature L does not converge, and of 2/(mu + L)."""
    Path("doubled.py").write_text(PLUG_IN)
    step = 1 / 11
    common = ("prove", "--algorithm", "doubled.py:Doubled", "--kappa", "10", "--clients", "3")
    code, out, err = program(*common, "-p", f"step={step}", "--rounds", "2")
    assert (code, err) == (0, "")
    assert f"After 2 rounds E|theta - theta*|^2 is at most {(9 / 11) ** 4:.4f}" in out
    record = json.loads(Path("out/prove.json").read_text())
    (rate,) = record["rates"]
    assert rate["factor"] == pytest.approx((9 / 11) ** 2, abs=2e-5)
    assert rate["lower_bound"] == pytest.approx((9 / 11) ** 2)
    assert rate["claimed"] is None
    assert f"kappa = 10: proved: the mean of V falls by a factor of {rate['factor']:.6f} per round." in out
    assert "V weighs message, less its value at the fixed point." in out
    assert list(record["plug_ins"]) == ["doubled.py:Doubled"]
    assert image.imread("out/prove.png").shape[1] > 400
    code, out, _ = program(*common, "-p", "step=0.11", "--out", "too_long")
    assert code == 1
    assert "kappa = 10: diverges on quadratic clients of curvatures 10, 10, 10." in out
    assert json.loads(Path("too_long/prove.json").read_text())["rates"][0]["factor"] is None


ADMM = '''
from dataclasses import dataclass
from typing import NamedTuple
from dualopt import Algorithm

class Server(NamedTuple):
    theta: object

class Client(NamedTuple):
    dual: object
    relaxed: object

@dataclass(frozen=True, kw_only=True)
class ADMM(Algorithm):
    """Consensus ADMM in which models are relaxed by a factor."""

    rho: float
    relaxation: float

    def init(self, theta0, copies):
        return Server(theta0), theta0, Client(0.0 * copies, copies)

    def local(self, c, message, oracle, round):
        x = oracle.solve(start=message, linear=c.dual, weight=self.rho, center=message).theta
        relaxed = self.relaxation * x + (1.0 - self.relaxation) * message
        return c._replace(relaxed=relaxed), relaxed + c.dual / self.rho

    def server(self, server, mean, round):
        return Server(mean), mean

    def receive(self, c, message):
        return c._replace(dual=c.dual + self.rho * (c.relaxed - message))

    def fixed_point(self, objective, theta):
        return self.start_with(theta, dual=-objective.gradient(theta))
'''


def test_a_proof_is_written_and_checked_with_its_code(program):
    """ADMM with relaxation r and rho = sqrt(mu L) has the factor (1 - r/(sqrt(kappa) + 1))^2, r at most 2."""
    Path("admm.py").write_text(ADMM)
    what = ("--kappa", "9", "--clients", "3", "-p", "rho=3", "-p", "relaxation=1.5", "--exact")
    code, out, err = program("prove", "--algorithm", "admm.py:ADMM", *what)
    assert (code, err) == (0, "")
    exact = re.search(r"Proved in rational numbers: the factor (\d+/\d+)\.", out)
    assert exact
    assert (1 - 1.5 / 4) ** 2 < Fraction(exact[1]) < (1 - 1.5 / 4) ** 2 + 4e-5
    check = ("prove", "--check", "out/proof.json")
    code, out, err = program(*check, "--algorithm", "admm.py:ADMM")
    assert (code, err) == (0, "")
    assert re.match(r"out/proof\.json: proved of the code of admm\.py:ADMM: the mean of V falls by a factor of \d", out)
    Path("edited.py").write_text(ADMM.replace("(1.0 - self", "(1.001 - self"))
    for arguments, sentence in (
        ((), "algorithm must be given, for 'admm.py:ADMM' is none of this package."),
        (("--algorithm", "edited.py:ADMM"), "the code of the method gives another"),
    ):
        code, out, err = program(*check, *arguments)
        assert (code, err) == (1, "")
        assert out.startswith(f"out/proof.json: refused: {sentence}")


def test_worst_cases_of_clients_without_bounds(program):
    """One client and FedProx are the proximal point method, whose worst case is w/(4n)."""
    common = ("prove", "--algorithm", "fedprox", "-p", "mu_prox=2", "--clients", "1", "--rounds", "3")
    code, out, err = program(*common, "--kappa", "inf", "--mu", "0")
    assert (code, err) == (0, "")
    assert "The size of the start is (|theta0 - theta*|^2 + the mean of |grad f_j(theta*)|^2)." in out
    record = json.loads(Path("out/prove.json").read_text())
    assert [round(row["value"], 6) for row in record["worst_cases"]] == [0.5, 0.25, 0.166667]
    assert (record["measure"], record["start"]) == ("value", [1.0, 1.0])
    assert image.imread("out/prove.png").shape[1] > 400
    dual = ("prove", "--algorithm", "dual-ascent", "--kappa", "inf", "--clients", "2")
    code, out, err = program(*dual, "--rounds", "2")
    assert (code, err) == (0, "")
    assert "/ mu^2)." in out
    rows = json.loads(Path("out/prove.json").read_text())["worst_cases"]
    assert [row["claimed"] for row in rows] == pytest.approx([1.0, 1.0 / 3.0])
    assert [row["value"] for row in rows] == pytest.approx([0.25, 0.125], rel=1e-5)
    code, out, _ = program(*dual)
    assert code == 3
    assert "kappa = inf: no factor below 0.9999 is provable" in out


def test_any_regulariser(program):
    common = ("prove", "--algorithm", "feddr", "-p", "eta=0.3", "-p", "relaxation=1", "--clients", "2")
    code, _, err = program(*common, "--kappa", "10", "--regulariser", "0")
    assert (code, err) == (0, "")
    (rate,) = json.loads(Path("out/prove.json").read_text())["rates"]
    assert rate["regulariser"] == 0.0
    assert rate["factor"] == pytest.approx((10 / 13) ** 2, abs=2e-5)
    assert "feddyn" in refusal(program, *common[:2], "feddyn", "--regulariser", "0").lower()


def test_inexact_local_solutions(program):
    common = ("prove", "--algorithm", "feddyn", "-p", "alpha=3", "--clients", "2", "--kappa", "9", "--inexact")
    code, _, err = program(*common, "--stop", "reduction=0.05")
    assert (code, err) == (0, "")
    (rate,) = json.loads(Path("out/prove.json").read_text())["rates"]
    assert 0.5625 < rate["factor"] < 0.65
    assert (rate["inexact"], rate["claimed"]) == (True, None)
    assert "stop must be the rule 'reduction'" in refusal(program, *common, "--stop", "steps=3")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "algorithm must be given, or a proof to --check"),
        (("--algorithm", "fedsam"), "algorithm must be linear algebra on models and answers of clients"),
        (("--algorithm", "feddyn", "--kappa", "1"), "kappa must be greater than 1, not 1"),
        (("--algorithm", "feddyn", "--mu", "-1"), "mu must be a finite number of at least 0, not -1"),
        (("--algorithm", "feddyn", "--clients", "0"), "clients must be at least 1, not 0"),
    ],
)
def test_bad_arguments(program, arguments: tuple, sentence: str):
    assert sentence in refusal(program, "prove", *arguments)


def test_compressed_uploads(program):
    """Theorem D of FedSplit with omega = 3: 1 - (1 - delta^2)/4, here with 2 of 8 coordinates, drawn."""
    common = ("prove", "--algorithm", "fedsplit", "--clients", "2", "--kappa", "9")
    given = ("--compressor", "rand-k=2", "--dimension", "8")
    code, out, err = program(*common, *given, "--exact", "--rounds", "1")
    assert (code, err) == (0, "")
    assert "fedsplit, 2 clients, full, rand-k=2" in out.replace("\n", " ")
    assert ", and no less in the worst case." in out
    (rate,) = json.loads(Path("out/prove.json").read_text())["rates"]
    assert rate["factor"] == pytest.approx(1 - (1 - 0.25) / 4, abs=2e-5)
    assert rate["claimed"] == pytest.approx(1 - (1 - 0.25) / 4)
    assert rate["compressor"] == {"unbiased": {"omega": 3.0, "independent": True}}
    code, out, err = program("prove", "--check", "out/proof.json")
    assert (code, err) == (0, "")
    code, out, err = program(*common, "--compressor", "unbiased=3", "--rounds", "2")
    assert "After 2 rounds E|theta - theta*|^2 is at most" in out
    assert "and no less in the worst case" not in out
    assert json.loads(Path("out/prove.json").read_text())["rates"][0]["factor"] == pytest.approx(
        rate["factor"], abs=2e-5
    )
    refused = refusal(program, *common, "--compressor", "rand-k=2")
    assert "dimension must be given: what is known of the compressor depends on it." in refused


def test_accuracies_in_units_of_the_problem(program):
    common = ("prove", "--algorithm", "feddyn", "-p", "alpha=3", "--clients", "2", "--kappa", "10", "--inexact")
    code, out, err = program(*common, "--stop", "gradient=0.01", "--rounds", "2")
    assert (code, err) == (0, "")
    assert "It is at most 1: in other units the rule is another one." in out
    rows = json.loads(Path("out/prove.json").read_text())["worst_cases"]
    assert [row["value"] for row in rows] == pytest.approx([0.306764, 0.147093], rel=1e-4)
    said = "stop must be the rule 'reduction', relative to where solvers start, for a factor per round"
    assert said in refusal(program, *common, "--stop", "gradient=0.01")
    assert "says how long a solver works" in refusal(program, *common, "--stop", "steps=2")
