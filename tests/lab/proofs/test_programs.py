"""Programs for Lyapunov functions and worst cases: what they return is checked by hand, and what is said of it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualopt.lab.proofs import Rate, _exact, _lyapunov, _rates, _round, _worst_case, check_proof, prove, worst_case
from dualopt.lab.proofs._forms import Form
from dualopt.lab.proofs._lyapunov import Lyapunov, LyapunovProgram
from dualopt.lab.proofs._round import OneRound, one_round
from dualopt.lab.proofs._setting import Setting
from dualopt.lab.proofs.checker import RefusedError
from dualopt.methods import GradientDescent
from dualopt.methods.participation import Bernoulli, CommunicateWithProbability, UniformSubset

pytest.importorskip("cvxpy")
DESCENT = Setting.of("gradient-descent: step=0.1", 1, 10, 2)
LOPSIDED: dict[str, Any] = {"mu": (1, 1, 2), "L": (10, 10, 5), "clients": 3, "weights": (1, 1, 3)}
SYSTEMS = [  # method, clients, who takes part, memory, and a factor below which nothing is proved
    ("gradient-descent: step=0.1", {"mu": 1, "L": 10, "clients": 2}, None, False, 0.81),
    ("feddyn: alpha=3", LOPSIDED, None, False, None),
    ("feddyn: alpha=3", {"mu": 1, "L": 10, "clients": 3}, UniformSubset(size=2), True, None),
    ("fedsplit: step=0.3", {"mu": 1, "L": 10, "clients": 3}, None, False, (7 / 13) ** 2),
    ("dualfl: rho=0.1, nu=1", {"mu": 1, "L": 10, "clients": 2}, None, True, None),
    (
        "scaffnew: probability=0.5",
        {"mu": 1, "L": 10, "clients": 2},
        CommunicateWithProbability(probability=0.5),
        False,
        None,
    ),
]


def left(system: OneRound, found: Lyapunov, factor: float) -> tuple[list[np.ndarray], np.ndarray]:
    """Return rho V - E V_after - sum of multipliers times inequalities: blocks, and coefficients of values."""
    blocks = [np.zeros((n, n)) for n in system.sizes]
    values = np.zeros(len(system.inequalities[0].values))
    for k, P in enumerate(found.weights):
        for b, n in enumerate(system.sizes):
            blocks[b] += (factor * system.before[k][b] @ P.ravel() - system.after[k][b] @ P.ravel()).reshape(n, n)
    for h, (now, then) in zip(found.heights, system.heights, strict=True):
        values += h * (factor * now.values - then.values)
        for b, B in enumerate(blocks):
            B += h * (factor * now.blocks[b] - then.blocks[b])
    for m, form in zip(found.multipliers, system.inequalities, strict=True):
        values -= m * form.values
        for b, B in enumerate(blocks):
            B -= m * form.blocks[b]
    return blocks, values


def positive(system: OneRound, found: Lyapunov) -> tuple[list[np.ndarray], np.ndarray]:
    """Return V - sum of multipliers times inequalities - the sum of squares of what V weighs."""
    blocks = [np.zeros((n, n)) for n in system.sizes]
    values = np.zeros(len(system.inequalities[0].values))
    for k, P in enumerate(found.weights):
        for b, n in enumerate(system.sizes):
            blocks[b] += (system.before[k][b] @ (P - np.eye(len(P))).ravel()).reshape(n, n)
    for h, (now, _) in zip(found.heights, system.heights, strict=True):
        values += h * now.values
        for b, B in enumerate(blocks):
            B += h * now.blocks[b]
    for m, form in zip(found.positive, system.of_latest, strict=True):
        values -= m * form.values
        for b, B in enumerate(blocks):
            B -= m * form.blocks[b]
    return blocks, values


@pytest.mark.parametrize(("method", "clients", "who", "memory", "least"), SYSTEMS, ids=[s[0][:10] for s in SYSTEMS])
def test_a_lyapunov_function_is_one(method: str, clients: Any, who, memory: bool, least: float | None) -> None:
    system = one_round(Setting.of(method, participation=who, **clients), memory=memory)
    program = LyapunovProgram(system)
    for factor in (0.95, 0.97):
        found = program.at(factor)
        assert found is not None
        assert [P.shape for P in found.weights] == [(n, n) for n in system.weights]
        assert all((P == P.T).all() for P in found.weights)
        scale = max(float(np.abs(P).max()) for P in found.weights if P.size)
        blocks, values = left(system, found, factor)
        assert all(np.linalg.eigvalsh((B + B.T) / 2)[0] > -1e-6 * scale for B in blocks if B.size)
        assert np.abs(values).max() < 1e-6 * scale
        assert (found.multipliers > -1e-7 * scale).all()
        blocks, values = positive(system, found)
        assert all(np.linalg.eigvalsh((B + B.T) / 2)[0] > -1e-6 * scale for B in blocks if B.size)
        assert np.abs(values).max(initial=0.0) < 1e-6 * scale
        assert (found.positive > -1e-7 * scale).all()
        if not memory:
            total = sum(float(np.trace(P)) for P in found.weights)
            assert total == pytest.approx(1.0 / found.least, rel=1e-5)
            assert min(np.linalg.eigvalsh(P)[0] for P in found.weights if P.size) == pytest.approx(1.0, rel=1e-5)
    if least is not None:
        assert program.at(least + 1e-3) is not None
        assert program.at(least - 1e-3) is None


def test_a_function_of_a_given_condition_leaves_the_most_room() -> None:
    system = one_round(Setting.of("feddyn: alpha=3", **LOPSIDED))
    best = LyapunovProgram(system).at(0.9)
    assert best is not None
    roomy = LyapunovProgram(system, best.least / 2).at(0.9)
    assert roomy is not None
    assert roomy.least == best.least / 2

    def room(found: Lyapunov) -> float:
        blocks = left(system, found, 0.9)[0]
        return min(
            np.linalg.eigvalsh(K.T @ (B + B.T) @ K / 2)[0]
            for b, B in enumerate(blocks)
            if B.size and (K := _lyapunov._directions(system, b)).size
        )

    assert room(roomy) * roomy.least > 1e-4
    assert room(best) * best.least < 1e-6
    assert min(np.linalg.eigvalsh(P)[0] for P in roomy.weights if P.size) >= 1.0 - 1e-6


def test_what_the_solver_calls_inaccurate_must_hold_nearly(monkeypatch: pytest.MonkeyPatch) -> None:
    program = LyapunovProgram(one_round(DESCENT))
    solved = _lyapunov.solved
    assert program.at(0.9) is not None
    for status, found in (("optimal_inaccurate", True), ("infeasible", False), ("unbounded", False)):
        monkeypatch.setattr(_lyapunov, "solved", lambda *given, status=status: (solved(*given), status)[1])
        assert (program.at(0.9) is not None) == found

    def spoiled(problem: Any, tolerances: Any) -> str:
        assert tolerances == (1e-9, 1e-8)
        solved(problem, tolerances)
        program._x.value = program._x.value + 1e-3 * np.arange(len(program._x.value))
        return "optimal_inaccurate"

    monkeypatch.setattr(_lyapunov, "solved", spoiled)
    assert program.at(0.9) is None


def test_symmetric_matrices_by_half_of_their_entries() -> None:
    P = (_lyapunov._symmetric(3) @ np.arange(1.0, 7.0)).reshape(3, 3)
    assert P.tolist() == [[1, 2, 4], [2, 3, 5], [4, 5, 6]]
    K, A = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, -1.0]]), np.arange(18.0).reshape(9, 2)
    found = _lyapunov._within(K, A)
    for k in range(2):
        M = K.T @ A[:, k].reshape(3, 3) @ K
        np.testing.assert_allclose(found[:, k].reshape(2, 2), (M + M.T) / 2)


def test_what_v_weighs_is_said_in_words() -> None:
    system = one_round(Setting.of("feddyn: alpha=3", **LOPSIDED))
    means = ("message", "class 1, mean client.gradient", "class 2, mean client.gradient")
    assert system.names == (means, ("class 1, client.gradient - mean",), ())
    assert system.sizes == (6, 3, 0)
    system = one_round(Setting.of("feddyn: alpha=3", 1, 10, 3, UniformSubset(size=2)), memory=True)
    assert system.names == (
        ("message", "mean client.gradient", "mean latest x", "mean latest gradient"),
        ("client.gradient - mean", "latest x - mean", "latest gradient - mean"),
    )
    assert system.sizes == (5, 5)
    system = one_round(Setting.of("dualfl: rho=0.1, nu=1", 1, 10, 2), memory=True)  # its model is the mean of answers
    deviations = ("client.zeta - mean", "latest x - mean", "latest gradient - mean")
    assert (system.names, system.sizes) == ((("mean latest x",), deviations), (2, 5))
    combination = _round._combination(np.array([-1.0, 0.25, 1e-12, 1.0 / 3.0]), ["a", "b", "c", "d"])
    assert combination == "- a + 0.25 b + 0.3333 d"


@pytest.mark.parametrize("who", [UniformSubset(size=2), Bernoulli(probability=0.3), None])
def test_means_over_rounds_are_those_of_all_clients_apart(who) -> None:
    """With a class for each client V has the entries of all; the mean of V after a round is the same number."""
    counts = []
    for literal in (False, True):
        system = one_round(Setting.of("feddyn: alpha=3", 1, 10, 3, who, literal=literal), memory=who is not None)
        counts.append((sum(system.weights[:1]), len(system.heights), len(system.of_latest)))
        assert system.before[0][0].shape == (system.sizes[0] ** 2, system.weights[0] ** 2)
        share = 0.3 if isinstance(who, Bernoulli) else 2 / 3
        for now, then in system.heights:  # of values at the point before, and at that of the round
            assert now.values[now.values != 0].tolist() == [1.0]
            np.testing.assert_allclose(np.sort(then.values[then.values != 0]), sorted([1 - share, share]))
    assert counts[0][1:] == ((1, 2) if who is not None else (0, 0))
    assert counts[1][1:] == ((3, 6) if who is not None else (0, 0))


# Rates


RATE = Rate(
    factor=0.5,
    lower_bound=0.25,
    slowest=(1.0, 10.0),
    claimed=0.75,
    asymptotic=False,
    lyapunov=((("a", "b"), np.array([[1.0, 0.5], [0.5, 2.0]])),),
    heights=(),
    multipliers=np.array([0.0, 3.0]),
    setting=DESCENT,
)
STEEP = replace(RATE, setting=Setting.of("dualfl: rho=0.0, nu=1", 1, math.inf, 2), factor=math.inf)
NONE = "not provable with a quadratic Lyapunov function of this kind"


@pytest.mark.parametrize(
    ("rate", "sentence"),
    [
        (RATE, "proved: the mean of V falls by a factor of 0.500000 per round"),
        (
            replace(RATE, asymptotic=True),
            "proved: the mean of V falls by a factor of 0.500000 per round, in late rounds",
        ),
        (replace(RATE, factor=math.inf), NONE),
        (replace(RATE, factor=math.inf, lower_bound=None), NONE),
        (replace(RATE, factor=math.inf, lower_bound=0.9999), NONE),
        (replace(RATE, factor=math.inf, lower_bound=1.0), "does not converge on quadratic clients of curvatures 1, 10"),
        (
            replace(RATE, factor=math.inf, lower_bound=1.0 + 1e-10, slowest=(1.0, 2.5, 3.0)),
            "does not converge on quadratic clients of curvatures 1, 2.5 and a regulariser of 3",
        ),
        (replace(RATE, factor=math.inf, lower_bound=1.0 + 1e-8), "diverges on quadratic clients of curvatures 1, 10"),
        (replace(STEEP, lower_bound=1.01), "diverges on quadratic clients of curvatures 1, 10"),
        (replace(STEEP, lower_bound=0.998), NONE),
        (replace(STEEP, lower_bound=None), NONE),
        *(
            (
                replace(STEEP, lower_bound=bound),
                f"no factor below {least} is provable: such are quadratic clients of curvatures 1, 10, "
                "and curvatures are not bounded here",
            )
            for bound, least in ((0.99955, 0.9995), (0.99999999, 0.9999), (1.0005, 0.9999))
        ),
    ],
)
def test_what_is_said_of_a_rate(rate: Rate, sentence: str) -> None:
    assert str(rate) == sentence
    assert rate.proved == sentence.startswith("proved")


def test_a_rate_in_terms_of_json() -> None:
    found = RATE.to_json()
    assert found.pop("method")["gradient-descent"]["step"] == 0.1
    assert found == {
        "mu": [1.0, 1.0],
        "L": [10.0, 10.0],
        "weights": None,
        "regulariser": None,
        "inexact": False,
        "participation": None,
        "sentence": str(RATE),
        "factor": 0.5,
        "lower_bound": 0.25,
        "slowest": [1.0, 10.0],
        "claimed": 0.75,
        "asymptotic": False,
        "lyapunov": [{"vectors": ["a", "b"], "weights": [[1.0, 0.5], [0.5, 2.0]]}],
        "heights": [],
        "multipliers": [0.0, 3.0],
    }
    other = replace(STEEP, setting=replace(STEEP.setting, weights=(1.0, 2.0), participation=UniformSubset(size=1)))
    found = other.to_json()
    assert (found["factor"], found["L"], found["weights"]) == (None, ["inf", "inf"], [1.0, 2.0])
    assert found["participation"] == {"subset": {"size": 1}}


def from_a(least: float, asked: list[float]) -> Any:
    """Return a program that finds functions for factors of at least this one."""

    def at(factor: float) -> float | None:
        asked.append(factor)
        return factor if factor >= least else None

    return lambda system: SimpleNamespace(at=at)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_the_least_factor_is_found_by_halving(tolerance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    system: Any = None
    for least, bound in ((0.637, None), (0.637, 0.25), (0.99, 0.95), (0.0, None), (1e-3, 0.0)):
        asked: list[float] = []
        monkeypatch.setattr(_rates, "LyapunovProgram", from_a(least, asked))
        found, factor = _rates._least(system, tolerance, bound)
        assert found == factor  # that of this factor
        assert least <= factor <= least + (1.0 + 2e-6) * tolerance
        assert len(asked) <= math.log2(1.0 / tolerance) + 4
        assert all(x > (bound or 0.0) for x in asked)
    asked = []
    monkeypatch.setattr(_rates, "LyapunovProgram", from_a(0.637, asked))
    assert _rates._least(system, tolerance, 0.637) == (0.637 + tolerance, 0.637 + tolerance)
    assert asked == [0.637 + tolerance, 0.637 * (1 - 1e-6) - tolerance]
    monkeypatch.setattr(_rates, "LyapunovProgram", from_a(0.5, asked))
    found, factor = _rates._least(system, tolerance, 0.637)  # below what happens: a caller must see that
    assert factor == 0.637 * (1 - 1e-6) - tolerance
    for bound in (None, 0.5, 0.999999999, 1.0, 1.5):
        monkeypatch.setattr(_rates, "LyapunovProgram", from_a(1.0 - 1e-7, asked))
        assert _rates._least(system, tolerance, bound) == (None, math.inf)


def test_memory_is_used_where_it_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    some = LyapunovProgram(one_round(DESCENT)).at(0.9)

    def proved(without: float, with_: float, **what: Any) -> tuple[float, int]:
        seen = []

        def least(system: OneRound, tolerance: float, bound: float | None) -> tuple[Any, float]:
            assert bound == pytest.approx(0.81)
            seen.append(bool(system.heights))
            return some, with_ if system.heights else without

        monkeypatch.setattr(_rates, "_least", least)
        return prove(DESCENT.algorithm, mu=1, L=10, clients=2, **what).factor, len(seen)

    assert proved(0.9, 0.85) == (0.85, 2)
    assert proved(0.9, 0.9 - 1e-5) == (0.9, 2)  # within twice the tolerance
    assert proved(0.9, 0.9 - 3e-5) == (0.9 - 3e-5, 2)
    assert proved(0.81 + 0.9e-5, 0.81) == (0.81 + 0.9e-5, 1)  # some clients are as slow
    assert proved(0.81 + 1.1e-5, 0.85) == (0.81 + 1.1e-5, 2)
    assert proved(0.7, 0.85) == (0.85, 2)  # 0.7 is wrong
    assert proved(0.9, 0.85, memory=False) == (0.9, 1)
    assert proved(0.9, 0.85, memory=True) == (0.85, 1)
    assert proved(math.inf, 0.85) == (0.85, 2)
    assert proved(0.81 * (1 - 0.5e-6), 0.85) == (0.81 * (1 - 0.5e-6), 1)  # rounding
    with pytest.raises(RuntimeError, match=re.escape("found 0.7, and a run is as slow as 0.81.")):
        proved(0.75, 0.7)
    for tolerance in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match=r"tolerance must lie between 0 and 1"):
            prove("gradient-descent: step=0.1", mu=1, L=10, tolerance=tolerance)


def test_proofs_that_cannot_be_written_are_refused() -> None:
    for slack in (0.0, 1.0):
        with pytest.raises(ValueError, match=r"slack must lie between 0 and 1"):
            RATE.proof(slack=slack)
    with pytest.raises(ValueError, match="proof must be of a rate that was found"):
        STEEP.proof()
    with pytest.raises(RuntimeError, match="the solver leaves no room for rounding; try a larger slack"):
        RATE.proof()
    assert replace(RATE, factor=0.81).proof(slack=2e-4)["factor"] == "4051/5000"
    assert replace(RATE, factor=0.810004).proof()["factor"] == str(Fraction(81002, 100000))


# Exact proofs


def form(*values: int) -> Form:
    return Form((), np.array([Fraction(x) for x in values], dtype=object))


def test_multipliers_are_balanced() -> None:
    """What is missing is added to the largest; values of functions are then as they should be."""
    forms = [form(1, -1), form(-1, 1), form(0, 1), form(1, 0)]
    given = np.array([Fraction(x) for x in (1, 2, 3, 4)], dtype=object)
    right = np.array([Fraction(3), Fraction(9, 2)], dtype=object)
    found = _exact._balanced(forms, given, right)
    assert found is not None
    assert (found @ np.stack([f.values for f in forms]) == right).all()
    assert found.tolist() == [1, 2, Fraction(7, 2), 4]
    assert given.tolist() == [1, 2, 3, 4]
    assert _exact._balanced(forms[2:], given[2:], np.array([Fraction(-1), Fraction(1)], dtype=object)) is None
    assert _exact._balanced(forms[:2], given[:2], right) is None  # the sum of the values must be zero
    zero = _exact._balanced(forms[2:], given[2:], np.array([Fraction(0), Fraction(1)], dtype=object))
    assert zero is not None
    assert zero.tolist() == [1, 0]
    assert _exact._balanced([], given, 0) is given


def test_a_rounding_that_is_no_proof_is_followed_by_a_finer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rate, balanced = prove("gradient-descent: step=0.1", mu=1, L=10, clients=2, memory=False), _exact._balanced
    for failed in ((0,), (1,), (0, 3), range(8)):
        asked = []

        def some(*given: Any, asked: list = asked, failed: Any = failed) -> Any:
            asked.append(given)
            return None if len(asked) - 1 in failed else balanced(*given)

        monkeypatch.setattr(_exact, "_balanced", some)
        if len(failed) < 8:
            assert check_proof(rate.proof()) < rate.factor + 3e-5
            assert len(asked) == 2 * len(failed) + 2
        else:
            with pytest.raises(RuntimeError, match="leaves no room for rounding; try a larger slack"):
                rate.proof()


def test_a_model_by_what_v_weighs() -> None:
    parts = {"before": [[[["2", "0", "0"], ["0", "1/2", "1/2"]]]], "model": ["1", "1/4", "1/4"]}
    assert _exact._square_of_model(parts) == pytest.approx(0.5)


@dataclass(frozen=True, kw_only=True)
class Mine(GradientDescent):
    """A method of somebody's."""


def test_a_proof_says_what_it_is_of() -> None:
    what: Any = {"mu": (1, 1, 2), "L": (10, 10, 20), "weights": (1, 1, 2), "memory": False}
    rate = prove("feddyn: alpha=8, stop=reduction:0.25", participation="importance=2", tolerance=1e-4, **what)
    statement = rate.proof()["statement"]
    assert statement["code"] == "dualopt.methods.feddyn:FedDyn"
    assert statement["parameters"]["alpha"] == "8"
    assert statement["parameters"]["stop.factor"] == "1/4"
    assert statement["clients"] == [
        {"mu": "1", "L": "10", "weight": "1"},
        {"mu": "1", "L": "10", "weight": "1"},
        {"mu": "2", "L": "20", "weight": "2"},
    ]
    assert statement["participation"] == {"importance": {"size": 2, "weights": [1.0, 1.0, 2.0]}}
    assert (statement["literal"], statement["late"], statement["numbers"]) == (False, False, [])


def test_a_method_of_somebody_is_checked_with_its_class() -> None:
    proof = prove(Mine(step=0.1), mu=1, L=10, clients=2, memory=False, tolerance=1e-3).proof()
    assert ":" in proof["statement"]["code"]
    factor = check_proof(proof, Mine)
    assert 0.81 < factor < 0.8111
    with pytest.raises(RefusedError, match="is none of this package"):
        check_proof(proof)
    proof["statement"]["code"] = "elsewhere.py:Mine"
    assert check_proof(proof, Mine) == factor
    proof["statement"]["parameters"]["step"] = "1/5"
    with pytest.raises(RefusedError, match="the code of the method gives another 'statement' than the proof has"):
        check_proof(proof, Mine)


def test_a_method_that_does_not_run_is_refused_in_a_sentence() -> None:
    proof = prove("gradient-descent: step=0.1", mu=1, L=10, clients=2, memory=False, tolerance=1e-3).proof()
    statement = proof["statement"]
    for change, sentence in (
        ({"method": {"none-such": {}}}, "algorithm names 'none-such', which is not known here"),
        ({"method": {"gradient-descent": {"step": "x"}}}, "algorithm gradient-descent: step must be a number"),
        ({"participation": {"subset": {"size": 1}}}, "algorithm GradientDescent does not support partial"),
        ({"clients": [{"mu": "1", "L": "10"}, {"mu": "1", "L": "10", "weight": "2"}]}, "gives another 'statement'"),
        ({"literal": True}, "the code of the method gives another 'before' than the proof has"),
        ({"method": {"gradient-descent": {"step": 0.2}}}, "the code of the method gives another 'statement'"),
    ):
        with pytest.raises(RefusedError, match=sentence) as error:
            check_proof(proof | {"statement": statement | change})
        assert str(error.value).endswith(".")
    for many in (7, 8):
        given = statement | {"clients": statement["clients"][:1] * many}
        if many == 7:
            assert _exact._setting(given, 6, 1, None).n_clients == 7
            continue
        with pytest.raises(ValueError, match="clients must be no more than the vectors of the proof and one"):
            _exact._setting(given, 6, 1, None)


# Worst cases


def test_a_program_without_a_bound_is_infinite() -> None:
    found = worst_case("gradient-descent: step=0.1", mu=1, L=10, clients=2, start=(0.0, 1.0))
    assert (found.value, found.example, found.inequalities, len(found.multipliers)) == (math.inf, math.inf, 2, 0)
    assert found.sizes == (2, 2)


def test_worst_cases_have_the_units_of_their_start() -> None:
    one, other = (worst_case("feddyn: alpha=3", start=start, **LOPSIDED) for start in ((1.0, 0.1), (1e4, 1e3)))
    assert other.value == pytest.approx(1e-4 * one.value, rel=1e-5)
    assert one.example is not None
    assert other.example == pytest.approx(1e-4 * one.example, rel=1e-5)
    assert one.claimed is None
    values = [worst_case("fedsplit: step=0.3", mu=1, L=10, rounds=n, start=(1, 0.045)).value for n in (1, 2, 3)]
    assert values == sorted(values, reverse=True)


def lying(value: float, example: float, monkeypatch: pytest.MonkeyPatch, typical: float = 1.0) -> list[float]:
    """Return the units in which a program with these values was solved."""
    units = []

    def largest(error: Any, begin: Any, slacks: Any, unit: float, tolerances: Any) -> Any:
        units.append(unit)
        return _worst_case.WorstCase(value, example, np.zeros(0), 0, ())

    monkeypatch.setattr(_worst_case, "_largest", largest)
    error = Form((np.array([[typical]]),), np.zeros(0))
    _worst_case._certified((1e-9,), error, error)
    return units


def test_a_value_far_from_the_units_of_the_error_is_found_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lying(0.5, 0.5, monkeypatch, typical=0.25) == [0.25]
    assert lying(0.5, 0.5, monkeypatch, typical=0.0) == [1.0, 0.5]
    assert lying(99.0, 99.0, monkeypatch) == [1.0]
    assert lying(101.0, 101.0, monkeypatch) == [1.0, 101.0]
    assert lying(0.0101, 0.0101, monkeypatch) == [1.0]
    assert lying(0.0099, 0.0099, monkeypatch) == [1.0, 0.0099]
    assert lying(math.inf, math.inf, monkeypatch) == [1.0]
    assert lying(-1.0, -2.0, monkeypatch) == [1.0]
    assert lying(1.0, 1.0 - 0.9e-4, monkeypatch) == [1.0]
    for example in (1.0 - 1.1e-4, 1.0 + 1.1e-4):
        with pytest.raises(RuntimeError, match="certifies no worst case: it lies between") as error:
            lying(1.0, example, monkeypatch)
        low, high = map(float, re.findall(r"between ([0-9.]+) and ([0-9.]+)\.", str(error.value))[0])
        assert low < high


def test_by_how_much_multipliers_fail_to_be_a_proof() -> None:
    def one(*entries: float) -> Form:
        return Form((np.diag(entries), np.zeros((0, 0))), np.zeros(0))

    error, begin, slacks = one(2.0, 1.0), one(1.0, 1.0), [one(1.0, 0.0), one(0.0, 1.0)]
    grams = [SimpleNamespace(value=np.diag([3.0, 4.0])), None]
    missing = [
        _worst_case._missing(error, begin, slacks, dual, np.array(m), grams, np.zeros(0))
        for dual, m in ((2.0, (0.0, 1.0)), (2.0, (0.5, 0.0)), (1.0, (0.0, 0.0)), (1.5, (0.0, 1.5)))
    ]
    assert missing == pytest.approx([0.0, 3.5, 7.0, 7.0])
    of_values = [Form(form.blocks, np.array([0.0, -0.5])) for form in slacks]  # of which half is left at the value 3
    values = Form(error.blocks, np.array([1.0, 0.0]))
    left = _worst_case._missing(values, begin, of_values, 2.0, np.array([0.0, 1.0]), grams, np.array([-4.0, 3.0]))
    assert left == pytest.approx(4.0 + 1.5)


def test_the_convex_hull_of_points_is_where_steep_clients_are_bounded() -> None:
    setting = Setting.of("dualfl: rho=0.0, nu=1", 1, (math.inf, 10.0), 2)
    f = setting.world(24)
    star = f.ledger.vector()
    f.set_minimiser(star)
    x, y = f.ledger.vector(), f.ledger.vector()
    f.gradient(x)
    assert _worst_case._bounded(f, 0.25 * star + 0.75 * x, setting)
    assert not _worst_case._bounded(f, 0.25 * star + 0.5 * x, setting)
    assert not _worst_case._bounded(f, 1.5 * star - 0.5 * x, setting)
    assert not _worst_case._bounded(f, y, setting)
    f.select([1]).gradient(y)
    assert not _worst_case._bounded(f, y, setting)
    f.select([0]).gradient(y)
    assert _worst_case._bounded(f, y, setting)
    assert _worst_case._bounded(f, y + x, Setting.of("dualfl: rho=0.0, nu=1", 1, 10.0, 2))


def test_an_error_is_made_of_the_shares_of_the_clients() -> None:
    """The energy of two clients, one of them three times as heavy, by values of the functions.

    With three clients in its place first-order terms cancel to 1e-34, which must not be taken for unbounded.
    """
    what: Any = {"mu": (1, 2), "L": (10, 5), "clients": 2, "measure": "value", "start": (1.0, 0.1)}
    heavy = worst_case("gradient-descent: step=0.1", weights=(1, 3), **what)
    thrice = worst_case(
        "gradient-descent: step=0.1",
        mu=(1, 2, 2, 2),
        L=(10, 5, 5, 5),
        clients=4,
        measure="value",
        start=(1.0, 0.0),
    )
    alone = worst_case("gradient-descent: step=0.1", weights=(1, 3), **what | {"start": (1.0, 0.0)})
    assert alone.value == pytest.approx(thrice.value, rel=1e-4)
    assert heavy.value == pytest.approx(alone.value, rel=1e-4)  # the worst clients agree on the minimiser


def test_a_point_is_a_function_of_the_states_around_all_rounds() -> None:
    seen = []

    def mean(states: Any) -> Any:
        seen.append(len(states))
        return (states[1].server.theta + states[2].server.theta) / 2

    what: Any = {"mu": 1, "L": 10, "clients": 2, "rounds": 2}
    found = worst_case("gradient-descent: step=0.1", point=mean, **what)
    assert set(seen) == {3}
    assert found.value == pytest.approx(((0.9 + 0.81) / 2) ** 2, rel=1e-5)  # of curvature 1
    assert found.claimed is None


def test_bounds_are_of_the_distance_of_the_model() -> None:
    what: Any = {"mu": 1, "L": math.inf, "clients": 2, "start": (1.0, 0.5)}
    assert worst_case("dual-ascent: nu=1", **what).claimed == 1.0
    assert worst_case("dual-ascent: nu=1", measure="dual", **what).claimed is None
    assert worst_case("dual-ascent: nu=1", point=lambda states: states[-1].server.theta, **what).claimed is None
    others: list[dict[str, Any]] = [{"regulariser": 0.0}, {"inexact": True}]
    for given in others:
        with pytest.raises(ValueError, match="measure must be distance or value with a regulariser or inexact"):
            worst_case("feddr: eta=0.3", mu=1, L=10, clients=2, measure="dual", **given)


def test_too_many_ways_and_inequalities_are_refused() -> None:
    what: Any = {"mu": 1, "L": 10, "clients": 4, "participation": Bernoulli(probability=0.5)}
    with pytest.raises(ValueError, match="at most 4096 ways, not 65536"):
        worst_case("feddyn: alpha=3", rounds=4, **what)
    with pytest.raises(ValueError, match="at most 800 inequalities are solved, not 812"):
        worst_case("gradient-descent: step=0.1", mu=1, L=10, clients=2, rounds=28)
