"""What is recommended, from which facts, and what the program shows of it."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

import dualopt.methods
from dualopt import Composite, NonconvexPenalty, Quadratic, iterate, linear_model, run
from dualopt.losses import AbsoluteDeviation, Hinge
from dualopt.methods import AndersonDANE, FedSplit
from dualopt.methods.participation import Bernoulli, CommunicateWithProbability, Full, UniformSubset
from dualopt.objectives import mlp
from dualopt.regularisers import L1
from dualopt.runs.costs import SENT, Link
from dualopt.runs.recommendation import facts_of, gradient_seconds, recommend, similarity
from dualopt.runs.rules import RULES, Facts, choose
from dualopt.spec.discover import discover
from tests.app import test_cli
from tests.problems import magnitudes

PLAIN = Facts(n_clients=8, size=650, mu=1e-3, L=6.0, least_L=5.0, similarity=0.5, dane_step=0.5)
FEW = {"needs": frozenset({"partial"})}


def quadratic(*A: np.ndarray, seed: int = 0, size: int = 40) -> Quadratic:
    b = np.random.default_rng(seed).standard_normal((len(A), size))
    return Quadratic(A=np.stack(A), b=b, c=np.full(len(A), 1e3))


def scaled(*factors: float, size: int = 40) -> Quadratic:
    """Quadratics whose Hessians are multiples of one another."""
    H = np.diag(np.linspace(1.0, 10.0, size))
    return quadratic(*(factor * H for factor in factors), size=size)


# The rules.


@pytest.mark.parametrize(
    ("changes", "method"),
    [
        ({}, "anderson-fedsplit"),
        ({"similarity": 0.1}, "anderson-dane"),
        ({"similarity": 0.1, "minimise": "gradients"}, "distributed-lbfgs"),
        ({"smooth": False}, "optimized-dualfl"),
        ({"smooth": False, **FEW, "fraction": 0.5}, "sampled-dualfl"),
        ({**FEW, "fraction": 0.24}, "sampled-dualfl"),
        ({**FEW, "fraction": 0.25}, "fedsplit"),
        ({"mu": 0.0}, "distributed-lbfgs"),
        ({"mu": 0.0, **FEW, "fraction": 0.5}, "feddyn"),
        ({"mu": 0.0, "smooth": False, **FEW, "fraction": 0.5}, "sampled-dualfl"),
        ({"mu": -1.0, **FEW, "fraction": 0.1}, "feddyn"),
        ({"mu": -1.0}, "fedpd"),
        ({"regularised": True}, "feddr"),
        ({"regularised": True, **FEW, "fraction": 0.1}, "feddr"),
        ({"needs": frozenset({"skip"})}, "scaffnew"),
    ],
)
def test_the_first_rule_that_applies_decides(changes, method):
    assert choose(replace(PLAIN, **changes)).method == method


def test_what_follows_from_the_facts():
    flat = replace(PLAIN, mu=0.0)
    assert (PLAIN.kappa, flat.kappa, replace(PLAIN, mu=-1.0).kappa) == (6000.0, math.inf, math.inf)
    asked = [PLAIN, flat, *(replace(PLAIN, **other) for other in ({"smooth": False}, FEW, {"regularised": True}))]
    assert [facts.similarity_matters for facts in asked] == [True, False, False, False, False]
    assert not replace(PLAIN, minimise="gradients").similarity_matters
    labels = {rule.label for rule in RULES}
    assert {"fedsplit, scales=suggested", "feddr"} <= labels
    assert not any("none" in label for label in labels)


def test_the_rules_name_methods_that_admit_what_they_are_recommended_for():
    known = discover(dualopt.methods)
    for rule in RULES:
        assert rule.method in known
        assert rule.runner_up is None or rule.runner_up in known
        for name in filter(None, (rule.method, rule.runner_up)):
            supports = known[name].supports
            assert "few clients" not in rule.when or "partial" in supports
            assert "regulariser" not in rule.when or "regulariser" in supports
            assert "skip" not in rule.when or "skip" in supports
    assert not any(rule.applies(PLAIN) for rule in RULES)  # the least expected cost decides
    for method in SENT:
        assert method in known


# The similarity.


def test_the_similarity_is_the_gradient_at_the_mean_of_the_minimisers():
    rng = np.random.default_rng(1)
    A = [M @ M.T + np.eye(40) for M in rng.standard_normal((3, 40, 40))]
    f = quadratic(*A)
    b = np.asarray(f.b)
    mean = np.mean([np.linalg.solve(H, x) for H, x in zip(A, b, strict=True)], axis=0)
    expected = np.linalg.norm(np.mean(A, axis=0) @ mean - b.mean(axis=0)) / np.linalg.norm(b.mean(axis=0))
    assert similarity(f).factor == pytest.approx(expected, rel=1e-8)


def test_clients_of_one_hessian_are_alike_whatever_their_gradients():
    assert similarity(scaled(1.0, 1.0, 1.0)).factor < 1e-12
    assert similarity(scaled(1.0, 4.0, 9.0)).factor > 0.1


def test_one_odd_client_among_many_is_seen_by_the_step_of_dane():
    alike = quadratic(*[np.diag(np.linspace(1.0, 10.0, 40))] * 19, 0.1 * np.eye(40), seed=3)
    b = np.array(alike.b)
    b[-1] *= 1e-3  # whose minimiser is near the start
    odd = replace(alike, b=b)
    found = similarity(odd)
    A = np.asarray(odd.A)
    mean = np.mean([np.linalg.solve(M, x) for M, x in zip(A, b, strict=True)], axis=0)
    gradient = A.mean(axis=0) @ mean - b.mean(axis=0)
    after = mean - np.mean([np.linalg.solve(M, gradient) for M in A], axis=0)
    expected = np.linalg.norm(A.mean(axis=0) @ after - b.mean(axis=0)) / np.linalg.norm(gradient)
    assert found.dane_step == pytest.approx(expected, rel=1e-6)
    assert found.factor < 0.1 < 3 < found.dane_step
    assert recommend(odd).measured == found
    assert not recommend(odd).facts.alike
    assert similarity(scaled(1.0, 1.0, 1.0)).dane_step == 0.0


def test_the_similarity_is_measured_without_the_regulariser_and_without_moving_the_start():
    f = scaled(1.0, 2.0)
    assert similarity(Composite(objective=f, regulariser=L1(weight=1.0))).factor == similarity(f).factor
    assert similarity(Quadratic(A=np.stack([np.eye(2)] * 2), b=np.zeros((2, 2)))).factor == 0.0


class Dear(Quadratic):
    """Quadratics of which a gradient costs as much as four."""

    @property
    def gradient_cost(self) -> float:
        return 4.0


@pytest.mark.parametrize("kind", [Quadratic, Dear])
def test_the_cost_of_the_similarity_is_what_it_takes(kind):
    cheap = scaled(1.0, 2.0)
    f = kind(A=cheap.A, b=cheap.b)
    rounds = list(islice(iterate(AndersonDANE(), f), 3))
    found = similarity(f)
    assert found.vectors == 5  # two minimisers and three gradients
    assert (found.vectors_down, found.communications) == (3, 4)  # the average, its gradient, the step of DANE
    taken = sum(sum(s.solution.gradients) for s in rounds if s.solution is not None) / 2
    assert found.gradients == taken + 2.0 * f.gradient_cost


def test_facts_are_the_extreme_constants_of_the_clients():
    """Of curvatures 1 and 30, 4 and 7: mu = 1, L = 30, the least L = 7, kappa = 30."""
    facts = facts_of(quadratic(np.diag([1.0, 30.0]), np.diag([4.0, 7.0]), size=2), Full())
    assert (facts.mu, facts.L, facts.least_L, facts.kappa) == pytest.approx((1.0, 30.0, 7.0, 30.0))
    found = recommend(quadratic(np.diag([1.0, 30.0]), np.diag([4.0, 7.0]), size=2))
    assert found.reasons.endswith("The condition number is 30.")


@pytest.mark.parametrize(("minimise", "link"), [("seconds", None), ("vectors", "1Mbit,1ms")])
def test_a_link_is_for_seconds_and_for_them_alone(minimise, link):
    with pytest.raises(ValueError, match="link must be given for minimise seconds, and only there"):
        recommend(scaled(1.0, 2.0), minimise=minimise, link=link)


def test_the_similarity_runs_on_every_array_library(backend):
    f = scaled(1.0, 2.0)
    other = Quadratic(A=backend(np.asarray(f.A)), b=backend(np.asarray(f.b)), c=backend(np.asarray(f.c)))
    assert similarity(other).factor == pytest.approx(similarity(f).factor, rel=1e-9)
    assert recommend(other).method == recommend(f).method


# What comes back.


def test_the_method_is_ready_for_run():
    f = scaled(1.0, 1.1, 1.2)
    found = recommend(f)
    assert found.method == "anderson-dane"
    assert run(found.algorithm, f, rounds=60, tol=1e-8).status == "converged"
    assert "they are alike" in found.reasons
    different = recommend(scaled(1.0, 30.0))
    assert different.facts.kind.startswith("not alike")
    assert "they are not alike" in different.reasons


def test_who_takes_part_is_passed_on():
    f = scaled(*([1.0] * 8))
    few = recommend(f, UniformSubset(size=1))
    assert few.method == "sampled-dualfl"
    assert few.measured is None
    half = recommend(f, Bernoulli(probability=0.5))
    assert isinstance(half.algorithm, FedSplit)
    assert half.scales == "suggested"
    assert half.facts.fraction == pytest.approx(0.5, abs=0.01)
    assert recommend(f, CommunicateWithProbability(probability=0.5)).method == "scaffnew"
    assert recommend(f, minimise="gradients").method == "distributed-lbfgs"


def test_losses_with_kinks_and_concave_penalties():
    X, y = np.random.default_rng(0).standard_normal((20, 3)), np.array([-1.0, 1.0] * 10)
    parts = [list(range(10)), list(range(10, 20))]
    f = linear_model(X, y, loss=Hinge(), mu=0.1, clients=parts)
    assert recommend(f).method == "optimized-dualfl"
    assert recommend(f, UniformSubset(size=1)).method == "sampled-dualfl"
    assert recommend(NonconvexPenalty(objective=scaled(1.0, 2.0), lam=5.0)).method == "fedpd"


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("minimise", "minimise must be one of vectors, gradients, bits, seconds; not 'money'."),
        ("network", "objective must have a known mu for a recommendation: compare methods on networks instead."),
        ("flat", "nu cannot be suggested because mu is 0: give mu > 0 (Section 4 adds a ridge)."),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_sentence(case, sentence):
    X, y = np.ones((4, 2)), np.array([0, 1, 0, 1])
    objective = {
        "minimise": scaled(1.0, 2.0),
        "network": mlp(X, y, layers=(3,), classes=2, ridge=0.1, clients=[[0, 1], [2, 3]]),
        "flat": linear_model(X, y.astype(float), loss=AbsoluteDeviation(), mu=0.0, clients=[[0, 1], [2, 3]]),
    }[case]
    with pytest.raises(ValueError, match=re.escape(sentence)):
        recommend(objective, minimise="money" if case == "minimise" else "vectors")


def test_seconds_depend_on_the_link_and_on_what_a_gradient_takes():
    f = scaled(1.0, 1.1, 1.2)
    slow = recommend(f, minimise="seconds", link="1kbit,10s")
    assert slow.facts.gradient_seconds is not None
    assert 0 < slow.facts.gradient_seconds < 1
    assert "least time" in slow.reasons
    assert slow.method != recommend(f, minimise="seconds", link=Link(bandwidth=1e18, latency=0.0)).method
    assert gradient_seconds(f) > 0


# The program.


program = test_cli.program


def test_the_program_says_what_to_use_and_why(program, tmp_path):
    options = ["--rows", "300", "--clients", "4", "--partition", "by-label", "--intercept", "none"]
    code, out, err = program("recommend", *options)
    assert (code, err) == (0, "")
    for words in ("kappa", "L_j", "similarity", "5 vectors", "step of DANE", "runner-up"):
        assert words in out
    last = out.strip().splitlines()[-1]
    method = re.search(r"use +│? *([a-z-]+)", out)
    assert method is not None
    assert last == f"dualopt run --algorithm {method[1]} {shlex.join(options)} --rounds 1000"
    assert list(tmp_path.iterdir()) == []
    code, out, err = program(*shlex.split(last)[1:])
    assert (code, err) == (0, "")
    assert "converged" in out


def test_the_command_passes_participation_and_parameters_on(program):
    code, out, _ = program("recommend", "--rows", "200", "--clients", "4", "--participation", "subset=2")
    assert code == 0
    last = out.strip().splitlines()[-1]
    assert last == (
        "dualopt run --algorithm fedsplit --scales suggested --rows 200 --clients 4 --participation subset=2 "
        "--rounds 1000"
    )
    code, out, _ = program(*shlex.split(last)[1:-1], "3")
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--minimise", "time"], "minimise must be one of vectors, gradients, bits, seconds; not 'time'."),
        (["--minimise", "seconds"], "link must be given for minimise seconds, and only there, such as 10Mbit,50ms"),
        (["--link", "10Mbit,50ms"], "link must be given for minimise seconds, and only there"),
        (["--minimise", "seconds", "--link", "fast"], "link must be a positive bandwidth"),
        (["--participation", "subset=9"], "size must not exceed the number of clients, 8, but it is 9."),
        (["--participation", "most"], "participation must be"),
        (["--partition", "odd"], "partition must be one of"),
        (["--model", "mlp=3"], "objective must have a known mu"),
    ],
)
def test_mistakes_give_one_sentence(program, arguments, sentence):
    code, out, err = program("recommend", "--rows", "200", *arguments)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"dualopt: [^\n]+[.?]\n", err)
    assert sentence in err


def test_an_average_that_raises_the_energy_is_said() -> None:
    """Units of columns up to 3e4: no step of DANE is taken from there, and none is spoken of."""
    found = recommend(magnitudes(seed=1))
    assert found.measured is not None
    assert found.measured.dane_step == math.inf
    assert found.measured.factor < 1
    assert "by the factor 0.79, and raises E: they are not alike." in found.reasons
