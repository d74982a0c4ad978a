"""``dualopt verify`` and ``dualopt prove``: their tables, files and exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from matplotlib import image

from tests.app import test_cli
from tests.app.test_cli import refusal

program = test_cli.program
ROOT = Path(__file__).parents[2]
(DUAL_ASCENT,) = re.findall(
    r"```python\n(# dual_ascent\.py\n.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL
)


def test_a_method_in_a_file_fails_a_claim_that_is_too_good(program):
    Path("dual_ascent.py").write_text(DUAL_ASCENT)
    code, out, err = program("verify", "--algorithm", "dual_ascent.py:DualAscent", "--rate", "1/n^2")
    assert (code, err) == (1, "")
    assert "contradicted by kinked chain." in out
    assert re.search(r"kinked chain +│ n\^-2 +│ n\^-1 \[1, 1\] +│ contradicted", out)
    record = json.loads(Path("out/verify.json").read_text())
    assert record["verdict"] == "contradicted"
    assert list(record["plug_ins"]) == ["dual_ascent.py:DualAscent"]
    first = record["instances"][0]
    assert first["measured"]["value"] == pytest.approx(1.0, abs=0.01)
    assert len(first["errors"]) == 301
    assert image.imread("out/verify.png").shape[1] > 400


@pytest.mark.usefixtures("undrawn")
def test_the_claims_of_dualfl_hold_and_the_words_say_what_that_means(program):
    code, out, _ = program("verify", "--algorithm", "dualfl", "-p", "rho=0", "--rate", "1/n^2")
    assert code == 0
    assert "holds: not contradicted on 1 of 3 instances, while the others could not tell, in these rounds" in out
    code, out, _ = program("verify", "--algorithm", "dualfl", "--rate", "(1-1/sqrt(kappa))^n")
    assert code == 0
    assert re.search(r"grow like kappa\^0\.5\d \[0\.\d+, 0\.\d+\]", out)


@pytest.mark.usefixtures("undrawn")
def test_nothing_that_can_tell_is_a_code_of_its_own(program):
    code, out, _ = program("verify", "--algorithm", "scaffnew", "--rate", "1/n")
    assert code == 3
    assert "undecided: no instance could tell; the table says why." in out


@pytest.mark.usefixtures("undrawn")
def test_participation_is_the_mean_over_seeds(program):
    options = ["--participation", "subset=2", "--seeds", "3"]
    code, _, _ = program("verify", "--algorithm", "feddyn", "--rate", "1/n", *options)
    assert code == 0
    assert json.loads(Path("out/verify.json").read_text())["options"]["seeds"] == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--algorithm", "dualfl", "--rate", "1/k"], r"rate may use .*, not \"k\"\."),
        (["--algorithm", "dualf", "--rate", "1/n"], r"algorithm must be one of .*"),
        (
            ["--algorithm", "dualfl", "--rate", "1/n", "--participation", "subset=2"],
            r".*does not support participation.*",
        ),
        (["--algorithm", "dualfl", "--rate", "1/n", "--confidence", "2"], r"confidence must lie in \(0\.5, 1\).*"),
        (["--algorithm", "dualfl", "--rate", "0.5^n", "--reference", "x"], r"reference must be one of newton, cvxpy.*"),
    ],
)
def test_mistakes_of_verify_are_one_sentence(program, arguments, sentence):
    assert re.fullmatch(sentence, refusal(program, "verify", *arguments))


# ``dualopt prove``.


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
    code, out, err = program(*common, "-p", f"step={step}")
    assert (code, err) == (0, "")
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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--algorithm", "fedsam"), "algorithm must be linear algebra on models and answers of clients"),
        (("--algorithm", "feddyn", "--kappa", "1"), "kappa must be a finite number greater than 1, not 1"),
        (("--algorithm", "feddyn", "--clients", "0"), "clients must be at least 1, not 0"),
        (("--algorithm", "feddyn", "--participation", "bernoulli=0.5"), "participation must be one whose rounds"),
    ],
)
def test_mistakes_of_prove_are_one_sentence(program, arguments: tuple, sentence: str):
    assert sentence in refusal(program, "prove", *arguments)
