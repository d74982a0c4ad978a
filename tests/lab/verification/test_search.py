"""The search for problems that contradict a claimed rate: what is found, what is not, and what is kept of it."""

from __future__ import annotations

import inspect
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from dualopt import FedProx, GradientDescent
from dualopt.lab.attack import Parameters
from dualopt.lab.verification import search as module
from dualopt.lab.verification.claimed_rate import Speed, parse_rate
from dualopt.lab.verification.instances import flat
from dualopt.lab.verification.search import flat_quadratics, search, two_kinds
from dualopt.lab.verification.verdict import Finding, verify
from dualopt.methods.participation import UniformSubset
from dualopt.solvers import Exact
from tests.app import test_cli
from tests.app.test_cli import refusal

program = test_cli.program


@pytest.mark.parametrize(
    ("method", "rate", "evaluations", "reason"),
    [
        (GradientDescent(), "(1-1/kappa^0.2)^n", 2, "slower than claimed"),
        (GradientDescent(), "1/n^1.2", 2, "slower than claimed"),
        (FedProx(solver=Exact()), "0.5^n", 2, "stalls at a floor of"),
    ],
)
def test_a_false_rate_is_contradicted_by_a_problem_that_can_be_made_again(method, rate, evaluations, reason) -> None:
    claimed = parse_rate(rate)
    found, finding = search(method, claimed, evaluations=evaluations, rounds=100)
    assert found.violated
    assert finding is not None
    assert finding.verdict == "contradicted"
    assert finding.reason.startswith(reason)
    assert found.verdict is not None
    assert found.verdict.witness is not None
    assert found.verdict.witness.n == len(finding.errors) - 1
    again = (two_kinds if claimed.is_linear() else flat_quadratics)(Parameters(found.point))
    assert again is not None
    (judged,) = verify(method, claimed, instances=[], own=[again], rounds=100).findings
    assert (judged.verdict, judged.reason) == (finding.verdict, finding.reason)
    assert all(x == round(x, 1) for x in found.point)  # in few digits


@pytest.mark.parametrize(
    ("rate", "evaluations", "least"),
    [("(1-1/kappa)^(2*n)", 10, 0.3), ("1/n", 2, 0.85), ("1/n^1.05", 2, 0.9)],
)
def test_a_true_rate_and_one_within_a_tenth_are_not(rate, evaluations, least) -> None:
    """Gradient descent is in 1/n on flat quadratics, no better: a tenth is allowed, and the search comes as near."""
    found, finding = search(GradientDescent(), parse_rate(rate), evaluations=evaluations)
    assert (found.violated, finding) == (False, None)
    assert least < found.ratio < 1.0


def test_problems_are_what_they_are_said_to_be() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        steep = two_kinds(Parameters(rng.standard_normal(10)))
        assert steep is not None
        assert steep.values()["kappa"] <= 30.0
        np.testing.assert_allclose(steep.objective.mean(steep.objective.gradient(steep.theta)), 0.0, atol=1e-12)
        gentle = flat_quadratics(Parameters(rng.standard_normal(4)))
        assert gentle is not None
        mean = np.diag(gentle.objective.mean(gentle.objective.A))
        np.testing.assert_allclose(mean, [*np.geomspace(1.0, 1e-8, 48), 0.0], rtol=1e-9)
        np.testing.assert_allclose(gentle.objective.mean(gentle.objective.gradient(gentle.theta)), 0.0, atol=1e-12)
    assert two_kinds(Parameters([1.0, 1.0, 1.0, 0.0, 0.0] * 2)) is None  # its solution is the start
    ends = [-math.pi / 2.0, math.pi / 2.0]  # numbers that choose the least and the largest of a range
    widest = two_kinds(Parameters([*ends, 0.3, 1.0, 2.0] * 2))
    assert widest is not None
    np.testing.assert_allclose(np.linalg.eigvalsh(widest.objective.A), [[1.0, 30.0]] * 4)


def test_flat_quadratics_differ_up_to_what_is_said(monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(module, "flat", lambda spread, **given: seen.append((spread, *given.values())) or flat(spread))
    for end in (-math.pi / 2.0, math.pi / 2.0):
        flat_quadratics(Parameters([end] * 4))
    least, largest = seen
    np.testing.assert_allclose((least[:2], largest[:2]), [(0.0, 0.01), (0.95, 100.0)])
    np.testing.assert_allclose((least[2], largest[2]), [(0.0, 0.0), (math.pi, math.pi)])


def test_a_search_judges_as_verify_does() -> None:
    given, own = (inspect.signature(function).parameters for function in (verify, search))
    assert {own[name].default == given[name].default for name in ("seeds", "rounds", "confidence")} == {True}


def test_what_is_found_is_judged_by_seeds_that_the_search_has_not_seen(monkeypatch) -> None:
    seen = []

    def judged(build, rate, instance, participation, seeds, *others) -> Finding:
        seen.append(tuple(seeds))
        return Finding(instance=instance, verdict="contradicted", claimed=Speed("linear", 0.5))

    monkeypatch.setattr(module, "examine", judged)
    found, _ = search(FedProx(), parse_rate("0.5^n"), evaluations=1, participation=UniformSubset(size=2), seeds=3)
    assert found.ratio == math.inf
    assert set(seen[:-1]) == {(0, 1, 2)}
    assert seen[-1] == (3, 4, 5)


GENTLE = ["--algorithm", "gradient-descent", "--rounds", "100"]


@pytest.mark.usefixtures("undrawn")
def test_the_command_keeps_the_problem_in_a_file_of_its_own(program) -> None:
    code, out, _ = program("verify", *GENTLE, "--rate", "1/n^2", "--attack", "2")
    assert code == 1
    looked_at = json.loads(Path("out/verify.json").read_text())["attack"]["evaluations"]
    assert f"The worst of {looked_at} problems that the search has looked at is the last row." in out
    record = json.loads(Path("out/verify.json").read_text())["instances"][-1]
    own = ["--instance", "out/counterexample.py:counterexample", "--out", "again"]
    assert program("verify", *GENTLE, "--rate", "1/n^2", *own)[0] == 1
    assert json.loads(Path("again/verify.json").read_text())["instances"][-1] == record


@pytest.mark.usefixtures("undrawn")
def test_the_command_says_how_near_a_search_came(program) -> None:
    code, out, _ = program("verify", *GENTLE, "--rate", "1/n", "--attack", "2")
    assert code == 0
    (share,) = re.findall(r"None of 2 problems .* is at most (\S+) of the measured one\.", " ".join(out.split()))
    assert math.isclose(float(share), 1.0, abs_tol=0.03)
    assert not Path("out/counterexample.py").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--claim", "a.py:b", "--attack", "5"],
            "attack must be given with a rate: dualopt attack a.py:b attacks a claim.",
        ),
        ([*GENTLE, "--rate", "1/n", "--attack", "-1"], "attack must be at least 0"),
    ],
)
def test_mistakes_are_one_sentence(program, arguments, sentence) -> None:
    assert refusal(program, "verify", *arguments).startswith(sentence)
