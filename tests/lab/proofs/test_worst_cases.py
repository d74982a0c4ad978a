"""Worst cases from the code of the methods: known values, runs that come below them, and what is refused."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt.engine.rounds import advance, initial_state
from dualopt.lab.proofs import _worst_case, worst_case
from dualopt.lab.proofs._linear import echelon, null_space, solve_in
from dualopt.lab.proofs._rational import Rational, rational
from dualopt.lab.proofs._setting import Setting
from dualopt.methods import DualFL, GradientDescent, OptimizedDualFL
from dualopt.methods.participation import UniformSubset, first_round
from dualopt.objectives import Quadratic
from dualopt.spec.discover import discover
from theory import mutations

INF = math.inf
REFUSED = {
    "a-fedpdsam",
    "adaptive-acc-s-dane",
    "adaptive-dualfl",
    "anderson-dane",
    "anderson-fedsplit",
    "apda-inexact",  # many local steps
    "distributed-lbfgs",
    "distributed-newton-cg",
    "dual-lbfgs",
    "fedavg",  # many local steps
    "fedcm",  # many local steps
    "feddualavg",  # many local steps
    "feddynsam",
    "fedsam",
    "fedspeed",
    "gap-restarted-dualfl",
    "giant",
    "restarted-dualfl",
    "restarted-optimized-dualfl",
    "scaffold",  # many local steps
    "scaffold-i",  # many local steps
}
ANY_LOSS, OPTIMIZED = DualFL(rho=0.0, nu=1.0), partial(OptimizedDualFL, nu=1.0)
XI: dict[str, Any] = {"start": (2, 1)}
ZETA: dict[str, Any] = {"start": (0, 1)}
KNOWN = [  # by the formulas of gradient descent, and by two programs for DualFL, one of them PEPit's
    (GradientDescent(step=2 / 11), {"L": 10, "clients": 3, "rounds": 3}, (9 / 11) ** 6),
    (GradientDescent(step=1.0), {"mu": 0, "L": 1, "clients": 3, "rounds": 3, "measure": "value"}, 1 / 14),
    (ANY_LOSS, {"L": INF, "rounds": 1, **XI}, 0.125),
    (ANY_LOSS, {"L": INF, "rounds": 2, **XI}, 0.0625),
    (ANY_LOSS, {"L": INF, "rounds": 5, **XI}, 0.0200703),
    (ANY_LOSS, {"L": INF, "rounds": 8, **XI}, 0.010391),
    (ANY_LOSS, {"L": INF, "clients": 3, "rounds": 3, "start": (3, 1)}, 0.0257922),
    (ANY_LOSS, {"L": INF, "clients": 3, "rounds": 8, "start": (3, 1)}, 0.0069271),
    (DualFL(rho=0.1, nu=1.0), {"L": 10, "rounds": 5, **XI}, 0.00657307),
    (DualFL(rho=0.1, nu=1.0), {"L": 10, "rounds": 8, **XI}, 0.0012200),
    (DualFL(rho=0.01, nu=1.0), {"L": 100, "rounds": 8, **XI}, 0.0083507),
    (OPTIMIZED(rho=0.1), {"L": 10, "rounds": 8, **ZETA}, 0.00027195),
    (OPTIMIZED(rho=0.01), {"L": 100, "rounds": 3, **ZETA}, 0.0282105),
    (OPTIMIZED(rho=0.0), {"L": INF, "rounds": 3, "measure": "dual", **ZETA}, 0.5 / 19.2462443),  # |zeta*|^2/(N A_3)
]


@pytest.mark.parametrize(("method", "what", "expected"), KNOWN, ids=[type(m).__name__ for m, *_ in KNOWN])
def test_known_values(method, what: dict, expected: float) -> None:
    found = worst_case(method, **{"mu": 1, **what})
    assert found.value == pytest.approx(expected, rel=5e-5)  # half of the last digit
    assert found.example == pytest.approx(found.value, rel=1e-6)
    assert (found.multipliers >= -1e-9).all()


MOMENTA = [  # of the bound of Theorem 3.2: no beta, that of the next round, and that of the last
    (mutations.dualfl.MUTATIONS["momentum dropped"], 14, 1.02876),
    (mutations.dualfl.MUTATIONS["beta early"], 10, 0.41468),
    (mutations.dualfl.MUTATIONS["beta late"], 10, 0.49216),
]


@pytest.mark.parametrize(("variant", "rounds", "expected"), MOMENTA, ids=["none", "early", "late"])
def test_momenta_beside_theorem_3_2(variant, rounds: int, expected: float) -> None:
    """Without momentum it is broken in round 14; one that is a round early or late shows in no bound."""
    wrong = variant.wrong()(rho=0.0, nu=1.0)
    found = worst_case(wrong, mu=1, L=INF, rounds=rounds, **XI).value
    assert found * (rounds + 1) ** 2 / 2 == pytest.approx(expected, rel=5e-5)


def test_how_clients_differ_is_all_that_counts() -> None:
    """|xi*|^2 <= 1 and |zeta*|^2 <= 1 have the same worst case: a translation moves theta* to 0."""
    one, other = (worst_case(ANY_LOSS, mu=1, L=INF, rounds=4, **start).value for start in (XI, ZETA))
    assert one == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize(
    ("method", "L", "measure"),
    [(ANY_LOSS, INF, "distance"), (DualFL(rho=0.1, nu=1.0), 10, "dual"), ("fedsplit: step=0.3", 10, "value")],
)
def test_multipliers_are_a_proof(method, L: float, measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """value * start - error - sum of multipliers * inequalities is a sum of squares."""
    forms, program = [], _worst_case._largest

    def kept(*given):
        forms[:] = given[:3]
        return program(*given)

    monkeypatch.setattr(_worst_case, "_largest", kept)
    found = worst_case(method, mu=1, L=L, rounds=3, measure=measure, **XI)
    error, begin, slacks = forms
    left = found.value * begin - error
    for multiplier, slack in zip(found.multipliers, slacks, strict=True):
        left = left - multiplier * slack
    assert np.abs(left.values).max() <= 1e-6 * found.value
    for block in left.blocks:
        assert np.linalg.eigvalsh(block)[0] >= -1e-6 * found.value


def test_what_is_not_certified_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value is refused whose primal and dual value differ."""
    program = _worst_case._largest

    def lies(*given):
        found = program(*given)
        return replace(found, value=1.001 * found.value)

    monkeypatch.setattr(_worst_case, "_largest", lies)
    with pytest.raises(RuntimeError, match="the solver certifies no worst case: it lies between"):
        worst_case("fedsplit: step=0.3", mu=1, L=10, rounds=2, **XI)


LOPSIDED = {"mu": (1.0, 1.0, 2.0), "L": (10.0, 10.0, 5.0), "weights": (1.0, 1.0, 3.0), "start": (1.0, 0.1)}


@pytest.mark.parametrize("participation", [None, UniformSubset(size=2)])
def test_classes_of_clients_are_as_good_as_all_of_them(participation) -> None:
    rounds = 2 if participation is None else 1
    one, all_ = (
        worst_case("feddyn: alpha=3", rounds=rounds, participation=participation, literal=literal, **LOPSIDED)
        for literal in (False, True)
    )
    assert one.value == pytest.approx(all_.value, rel=1e-5)
    assert one.sizes != all_.sizes
    assert one.inequalities < all_.inequalities


def slowest_run(method, rounds: int) -> float:
    """Return the largest error of runs on quadratic clients in the corners of the class, from the worst start of each.

    The error is linear in the minimiser s and the gradients g there: a s + <b, g>, largest where the start is
    proportional to (a, b/0.1) on the plane of gradients whose mean is zero.
    """
    w, worst = np.array(LOPSIDED["weights"]), 0.0
    plane = np.linalg.svd(w[None])[2][1:]  # orthonormal

    def error(h: np.ndarray, star: float, g: np.ndarray) -> float:
        f = Quadratic(A=h[:, None, None], b=(h * star - g)[:, None], weights=LOPSIDED["weights"])
        state = initial_state(method, f, np.zeros(1))
        for n in range(rounds):
            state = advance(method, f, state, replace(first_round(3), n=n))[0]
        return float(state.server.theta[0] - star)

    for h in product(*zip(LOPSIDED["mu"], LOPSIDED["L"], strict=True)):
        of_star = error(np.array(h), 1.0, np.zeros(3))
        of_gradients = np.array([error(np.array(h), 0.0, g) for g in plane])
        worst = max(worst, of_star**2 + of_gradients @ of_gradients / LOPSIDED["start"][1])
    return worst


@pytest.mark.parametrize("name", sorted(set(discover(dualopt.methods)) - REFUSED))
def test_no_run_is_worse(name: str) -> None:
    found = worst_case(name, rounds=3, **LOPSIDED)
    constants = LOPSIDED["mu"], LOPSIDED["L"], None, None, LOPSIDED["weights"]
    run = slowest_run(Setting.of(name, *constants).algorithm, rounds=3)
    assert 0.4 * found.value < run <= found.value * (1 + 1e-6)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_uses_more_than_vectors_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"linear algebra|must offer Hessian products|or local steps"):
        worst_case(name, rounds=3, **LOPSIDED)


@dataclass(frozen=True, kw_only=True)
class Normalised(GradientDescent):
    """Steps of length one: the direction depends on a norm."""

    def server(self, server, mean, round):
        step = mean / float(np.linalg.norm(mean))
        return super().server(server, step, round)


@dataclass(frozen=True, kw_only=True)
class Shifted(GradientDescent):
    """Each coordinate is pushed: the same vector in no two bases."""

    def server(self, server, mean, round):
        return super().server(server, mean + 1.0, round)


@dataclass(frozen=True, kw_only=True)
class Clipped(GradientDescent):
    """Coordinates are clipped."""

    def server(self, server, mean, round):
        return super().server(server, np.where(mean > 0.5, 0.5, mean), round)


@pytest.mark.parametrize("method", [Normalised, Shifted, Clipped])
def test_what_is_not_linear_is_refused(method) -> None:
    with pytest.raises(ValueError, match="algorithm must be linear algebra on models and answers of clients"):
        worst_case(method(step=0.5), mu=1, L=3)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"mu": -1}, "mu must be finite numbers of at least 0, not -1."),
        ({"L": 1}, "L must be greater than mu, for every client, not 1."),
        ({"mu": (1, 1, 1)}, "mu must be a number, or 2, one for each client, not 3."),
        ({"rounds": 0}, "rounds must be at least 1, not 0."),
        ({"measure": "energy"}, "measure must be one of distance, value, dual, not energy."),
        ({"start": (0, 0)}, "start must be two numbers of at least 0, not both 0, not (0, 0)."),
        ({"measure": "dual", "participation": "subset=1"}, "measure must be distance or value where chance has a part"),
        ({"measure": "dual", "mu": 0}, "mu must be positive for a client, for the dual energy, not 0."),
        ({"weights": (1, 0)}, "weights must be positive finite numbers, not (1, 0)."),
    ],
)
def test_bad_arguments(changed: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        worst_case("feddyn: alpha=3", **{"mu": 1, "L": 10, "clients": 2, **changed})


def test_rational_numbers_do_not_round() -> None:
    third = Rational(1, 3)
    assert 0.1 * third == Fraction(1, 30)
    assert (2 / 3) * third == Fraction(2, 9)
    assert rational(math.pi) == Fraction(math.pi).limit_denominator(10**8)
    assert float(rational(math.pi)) == math.pi
    assert [type(x) for x in (third + 1, 1 - third, -third, third / 2.0, np.float64(2) * third)] == [Rational] * 5


def test_linear_algebra_is_exact_on_rational_numbers() -> None:
    A = np.array([[Rational(2), Rational(1), Rational(0)], [Rational(4), Rational(2), Rational(0)]])
    assert echelon(A)[0].tolist() == [[1, Fraction(1, 2), 0]]
    assert not (A @ null_space(A)).any()
    assert null_space(A).shape == (3, 2)
    X = np.array([[Rational(1, 3)], [Rational(2)]])
    B = np.array([[Rational(1), Rational(0)], [Rational(1), Rational(1)], [Rational(0), Rational(3)]])
    assert (solve_in(B, B @ X) == X).all()
    with pytest.raises(ValueError, match="not in the span"):
        solve_in(B, np.array([[Rational(1)], [Rational(0)], [Rational(0)]]))
