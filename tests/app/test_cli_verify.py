"""``dualopt verify``: the table, the files, the sentences and the exit codes."""

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
    code, out, _ = program("verify", "--algorithm", "fivegcs", "--rate", "1/n")
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
