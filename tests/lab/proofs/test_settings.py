"""What is asked about, and the quadratic clients that are slowest: laws, limits, classes, and factors by hand."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from dualopt.lab.chance import Event
from dualopt.lab.proofs import _quadratics, _setting
from dualopt.lab.proofs._forms import Class
from dualopt.lab.proofs._quadratics import lower_bound, mean_square_factor
from dualopt.lab.proofs._rational import Rational
from dualopt.lab.proofs._setting import Setting, numbers
from dualopt.methods import FedDR, FedSplit, GradientDescent
from dualopt.methods.participation import (
    Bernoulli,
    CommunicateWithProbability,
    UniformSubset,
    WeightedSubset,
    first_round,
)
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import GradientReduction, Steps

INF = math.inf
DESCENT = GradientDescent(step=0.1)


# What is asked about


def test_constants_are_those_of_each_client() -> None:
    weights: Any = np.array([1, 3])
    setting = Setting.of(DESCENT, (0, 2.5), 10, None, weights=weights)
    assert (setting.mu, setting.L, setting.weights) == ((0.0, 2.5), (10.0, 10.0), (1.0, 3.0))
    assert (setting.n_clients, setting.literal, setting.inexact, setting.exact) == (2, False, False, False)
    assert Setting.of(DESCENT, 1, 10, None).n_clients == 2
    assert Setting.of(DESCENT, 1, (4, 5, 6), None).n_clients == 3
    assert Setting.of(DESCENT, 1, 10, 1).n_clients == 1
    assert Setting.of(DESCENT, 1, 10, None, weights=(1, 1, 1, 1)).n_clients == 4
    bounded = [
        Setting.of("dualfl: rho=0.0, nu=1", mu, L, 2).bounded
        for mu, L in ((1, 2), (0, 2), ((1, 0), 2), (1, INF), (1, (2, INF)))
    ]
    assert bounded == [True, False, False, False, False]
    assert numbers("L", 3, 2) == (3.0, 3.0)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"clients": 0}, "clients must be at least 1, not 0."),
        ({"mu": INF, "L": INF}, "mu must be finite numbers of at least 0, not inf."),
        ({"mu": (0, -1)}, "mu must be finite numbers of at least 0, not (0, -1)."),
        ({"L": (10, 1)}, "L must be greater than mu, for every client, not (10, 1)."),
        ({"weights": (1, 2, 3)}, "weights must be a number, or 2, one for each client, not 3."),
        ({"weights": (1, INF)}, "weights must be positive finite numbers, not (1, inf)."),
        ({"algorithm": FedDR(eta=0.3), "regulariser": -0.1}, "regulariser must be a finite number of at least 0"),
        ({"algorithm": FedDR(eta=0.3), "regulariser": INF}, "regulariser must be a finite number of at least 0"),
    ],
)
def test_numbers_out_of_range_are_refused(given: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        Setting.of(**{"algorithm": DESCENT, "mu": 1, "L": 10, "clients": 2, **given})


def test_cohorts_are_drawn_by_the_weights_of_the_clients() -> None:
    weights = (1.0, 1.0, 2.0)
    setting = Setting.of("feddyn: alpha=8", 1, 10, 3, WeightedSubset(size=2), weights)
    assert setting.participation.weights == weights
    own = WeightedSubset(size=2, weights=(2.0, 1.0, 1.0))
    assert Setting.of("feddyn: alpha=8", 1, 10, 3, own, weights).participation == own


def test_the_method_is_that_of_these_clients() -> None:
    """With their regulariser, and with any answer that its stopping rule allows."""
    plain = Setting.of("feddr: eta=0.3", 1, 10, 3)
    f = plain.world(24)
    assert plain.on(f) == plain.algorithm
    setting = Setting.of("feddr: eta=0.3", 1, 10, 3, regulariser=0.5, inexact=True)
    f = setting.world(24)
    method: Any = setting.on(f)
    assert method.regulariser is f.regulariser
    assert not isinstance(method.solver, Exact)
    assert f.convexity == 0.5
    for wrong, sentence in (
        (FedDR(eta=0.3, solver=Gradient(step=0.1)), "algorithm must solve local problems, and have no solver given"),
        (FedDR(eta=0.3, stop=Steps(steps=3)), "stop must be the rule 'reduction'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Setting.of(wrong, 1, 10, 3, inexact=True)
    assert isinstance(method.stop, GradientReduction)


def test_a_regulariser_is_one_more_client() -> None:
    what: Any = {"algorithm": "feddr: eta=0.3", "mu": 1, "L": 10, "clients": 3, "regulariser": 0.5}
    everybody, some = Setting.of(**what), Setting.of(**what, participation=UniformSubset(size=2))
    assert [own.clients for own in everybody.classes] == [(0, 1, 2)]
    assert [own.clients for own in some.classes] == [(0,), (1,), (2,)]
    assert [own.clients for own in some.equals] == [(0, 1, 2)]
    assert everybody.others == [Class((3,), 0.5, INF, 3.0)]
    weighted = Setting.of(**what, weights=(1, 2, 2))
    assert weighted.others == [Class((3,), 0.5, INF, 5.0)]
    assert [own.clients for own in weighted.classes] == [(0,), (1, 2)]
    assert Setting.of("feddr: eta=0.3", 1, 10, 3).others == []
    assert Setting.of("feddr: eta=0.3", 1, 10, 3, regulariser=0.0).others == [Class((3,), 0.0, INF, 3.0)]
    assert [own.clients for own in Setting.of(**what, literal=True).classes] == [(0,), (1,), (2,)]


@dataclass(frozen=True, kw_only=True)
class FirstAlone(FedDR):
    """The regulariser is asked at the answer of the first client, who is like the others."""

    def server(self, server, mean, round):
        state, _ = super().server(server, mean, round)
        return state, state.theta

    def local(self, clients, message, oracle, round):
        state, upload = super().local(clients, message, oracle, round)
        alone = np.array([[3.0 if j == 0 else 0.0] for j in round.clients])
        return state, alone * upload


def test_a_regulariser_that_is_asked_about_one_client_keeps_clients_apart() -> None:
    setting = Setting.of(FirstAlone(eta=0.3), 1, 10, 3, regulariser=0.5)
    assert [own.clients for own in setting.classes] == [(0,), (1,), (2,)]


@dataclass(frozen=True, kw_only=True)
class LaterBent(FedSplit):
    """From the second round on the states of clients are bent."""

    def local(self, clients, message, oracle, round):
        z = np.maximum(clients.z, 0.0) if round.n else clients.z
        return super().local(clients._replace(z=z), message, oracle, round)


def test_states_of_clients_that_rested_are_vectors_again() -> None:
    for method, who in (
        ("feddyn: alpha=5", UniformSubset(size=2)),
        ("a-fedpd", Bernoulli(probability=0.3)),
        ("scaffnew", CommunicateWithProbability(probability=0.5)),
        ("dualfl", None),
    ):
        Setting.of(method, 1, 10, 3, who).require_linear(dimension=256)
    for who in (None, UniformSubset(size=2)):
        bent = Setting.of(LaterBent(step=0.3), 1, 10, 3, who)
        bent.require_linear(1, dimension=256)
        with pytest.raises(ValueError, match="algorithm must be linear algebra"):
            bent.require_linear(2, dimension=256)


def test_everything_that_may_happen_is_played() -> None:
    """Two of three in the first round, and two of three in the second."""
    setting = Setting.of("feddyn: alpha=5", (1, 2, 3), 10, 3, UniformSubset(size=2))
    assert setting.branched
    f = setting.world(64)
    f.set_minimiser(f.ledger.vector())
    runs = setting.play(f, 2)
    assert [p for p, _ in runs] == pytest.approx([1 / 9] * 9)
    assert [len(states) for _, states in runs] == [3] * 9
    assert len({tuple(states[-1].server.theta.tolist()) for _, states in runs}) == 9
    alone = Setting.of("feddyn: alpha=5", (1, 2, 3), 10, 3)
    assert not alone.branched
    f = alone.world(64)
    f.set_minimiser(f.ledger.vector())
    ((chance, states),) = alone.play(f, 3)
    assert (chance, len(states)) == (1.0, 4)
    assert len({tuple(state.server.theta.tolist()) for state in states}) == 4


def test_rational_laws_have_probabilities_of_sum_one() -> None:
    exact = Setting.of("feddyn: alpha=5", 1, 10, 3, Bernoulli(probability=0.3)).in_rationals()
    events = exact.events()
    chances = {round.clients: p for p, round in events}
    assert sum(chances.values()) == 1
    assert chances[0, 2] == Fraction(9 * 7, 1000)
    assert {type(round.turnout) for _, round in events} == {Rational}
    assert {round.clients: round.turnout for _, round in events}[0, 2] == Fraction(2, 3)
    third = Setting.of("feddyn: alpha=5", 1, 10, 3, UniformSubset(size=1)).in_rationals()
    assert [p for p, _ in third.events()] == [Fraction(1, 3)] * 3


@pytest.mark.parametrize("weights", [(1.0, 2.0, 2.0), (0.3, 0.3, 0.4), (1.0, 1.0, 1.1), (1.0, 3.0, 2.0, 4.0)])
def test_rational_cohorts_by_weight_are_those_of_a_run(weights: tuple[float, ...]) -> None:
    """Also where inclusion probabilities add up to 1 before the last client: nobody is left out."""
    setting = Setting.of("feddyn: alpha=5", 1, 10, None, WeightedSubset(size=2), weights)
    exact = {round.clients: p for p, round in setting.in_rationals().events()}
    assert sum(exact.values()) == 1
    assert {clients: float(p) for clients, p in exact.items()} == pytest.approx(
        {round.clients: p for p, round in setting.events()}
    )
    inclusion = [sum(p for clients, p in exact.items() if j in clients) for j in range(len(weights))]
    assert inclusion == [Fraction(2 * w / sum(weights)).limit_denominator(100) for w in weights]


def test_probabilities_that_are_no_simple_fractions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(*_: Any, n: int) -> list[Event]:
        return [Event(p, first_round(2)) for p in (1 / math.pi, 1 / math.e, 1 - 1 / math.pi - 1 / math.e)]

    monkeypatch.setattr(_setting, "events_of", listed)
    setting = Setting.of(DESCENT, 1, 10, 2)
    assert len(setting.events()) == 3
    with pytest.raises(ValueError, match="participation must have probabilities that are simple fractions"):
        setting.in_rationals().events()


def test_rounds_of_large_federations_are_counted_not_listed() -> None:
    """Of 60 clients no cohorts of 30 can be listed."""
    setting = Setting.of("feddyn: alpha=5", (1,) * 20 + (2,) * 40, 10, 60, UniformSubset(size=30))
    found = setting.orbits
    assert len(found) == 21
    assert sum(p for p, _ in found) == pytest.approx(1.0)
    chance = {len(set(range(20)) & set(round.clients)): p for p, round in found}
    assert chance[7] == pytest.approx(math.comb(20, 7) * math.comb(40, 23) / math.comb(60, 30))
    assert all(len(round.clients) == 30 and round.n == 0 and round.communicate for _, round in found)
    assert all(round.clients == tuple(sorted(round.clients)) for _, round in found)
    exact = setting.in_rationals().orbits
    assert sum(p for p, _ in exact) == 1
    assert [float(p) for p, _ in exact] == pytest.approx([p for p, _ in found])
    assert [round.clients for _, round in exact] == [round.clients for _, round in found]
    assert {type(round.turnout) for _, round in exact} == {Rational}


def test_rounds_of_inexact_solutions_are_later_ones() -> None:
    for who in (None, UniformSubset(size=2), CommunicateWithProbability(probability=0.5)):
        for inexact in (False, True):
            method = "scaffnew" if isinstance(who, CommunicateWithProbability) else "feddyn: alpha=5"
            if method == "scaffnew" and inexact:
                continue
            setting = Setting.of(method, 1, 10, 4, who, inexact=inexact)
            assert {round.n for _, round in setting.orbits} == {int(inexact)}
    apart = Setting.of("feddyn: alpha=5", 1, 10, 2, UniformSubset(size=2), inexact=True)
    assert {round.n for _, round in apart.orbits} == {1}


def test_members_stand_for_clients_that_are_alike() -> None:
    setting = Setting.of(DESCENT, (1, 2, 2, 1, 2), 10, 5)
    assert setting.alike() == [{0: 2}, {1: 3}]
    assert setting.alike((1, 3)) == [{0: 1, 3: 1}, {1: 1, 2: 2}]
    assert setting.alike(()) == [{0: 2}, {1: 3}]


def test_numbers_in_states_have_limits() -> None:
    """DualFL's momentum from rho: t tends to 1/sqrt(rho), beta to (t - 1)/(t + 1)."""
    setting = Setting.of("dualfl: rho=0.01, nu=1", 1, 100, 2)
    limits = setting.limits
    assert limits.late
    assert limits.numbers == pytest.approx([10.0, 9 / 11], rel=1e-9)
    assert setting.in_rationals().limits.numbers == [10, Fraction(9, 11)]
    assert setting.in_rationals().limits.late
    assert Setting.of("fedsplit", 1, 10, 2).limits == ([], False)


class Server(NamedTuple):
    """State of a server that counts."""

    theta: Any
    number: Any


@dataclass(frozen=True, kw_only=True)
class Counting(GradientDescent):
    """Gradient descent with a number that changes from round to round, or rests."""

    by: float = 1.0
    until: float = INF
    rest: int = 0

    def init(self, theta0, copies):
        return Server(theta0, 0.25), theta0, ()

    def server(self, server: Any, mean, round):
        theta = server.theta - self.step * mean
        count = min(server.number + self.by, self.until) if round.n >= self.rest else server.number
        return Server(theta, count), theta


def test_numbers_that_do_not_settle_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _setting.SETTLED < _setting.SETTLING
    monkeypatch.setattr(_setting, "SETTLED", 10)
    monkeypatch.setattr(_setting, "SETTLING", 60)
    assert Setting.of(Counting(step=0.1, by=0.0), 1, 10, 2).limits == ([0.25], False)
    assert Setting.of(Counting(step=0.1, until=7.0), 1, 10, 2).limits == ([7.0], True)
    assert Setting.of(Counting(step=0.1, until=40.0), 1, 10, 2).limits == ([40.0], True)
    assert Setting.of(Counting(step=0.1, until=7.0, rest=8), 1, 10, 2).limits == ([7.0], True)
    exact = Setting.of(Counting(step=0.1, by=0.0), 1, 10, 2).in_rationals().limits
    assert (exact.numbers, type(exact.numbers[0])) == ([Fraction(1, 4)], Rational)
    with pytest.raises(ValueError, match=r"^algorithm must have numbers in its states that settle"):
        _ = Setting.of(Counting(step=0.1), 1, 10, 2).limits


# The slowest quadratic clients


def test_gradient_descent_falls_by_its_mean_curvature() -> None:
    setting = Setting.of(DESCENT, (1, 2), (5, 20), 2, weights=(1, 3))
    for h in ((1.0, 2.0), (5.0, 2.0), (3.0, 20.0)):
        assert mean_square_factor(setting, h) == pytest.approx((1 - 0.1 * (h[0] + 3 * h[1]) / 4) ** 2, rel=1e-9)
    assert lower_bound(setting) == (pytest.approx((1 - 0.1 * 7 / 4) ** 2, abs=1e-9), (1.0, 2.0))


def test_fedsplit_on_one_curvature_has_the_factor_of_its_reflections() -> None:
    """Peaceman-Rachford: ((1 - eta h)/(1 + eta h))^2 where all h are equal, and both models and duals move."""
    setting = Setting.of(FedSplit(step=0.3), 1, 10, 3)
    for h in (1.0, 4.0, 10.0):
        assert mean_square_factor(setting, (h,) * 3) == pytest.approx(((1 - 0.3 * h) / (1 + 0.3 * h)) ** 2, rel=1e-9)


@pytest.mark.parametrize(
    ("method", "L", "N", "who", "happens"),
    [
        ("feddyn", 10, 4, UniformSubset(size=1), 0.83871),
        ("feddyn", 10, 4, None, 0.57722),
        ("sampled-dualfl", 10, 4, UniformSubset(size=2), 0.70250),
        ("fedadmm", 10, 4, UniformSubset(size=2), 0.78553),
        ("a-fedpd", 10, 4, UniformSubset(size=2), 0.85907),
        ("dualfl", 100, 3, None, 0.81001),
    ],
)
def test_the_slowest_corners_are_known(method: str, L: float, N: int, who, happens: float) -> None:
    """As in the table of rates, without its programs."""
    found, slowest = lower_bound(Setting.of(method, 1, L, N, who))
    assert found == pytest.approx(happens, abs=1e-5)
    assert mean_square_factor(Setting.of(method, 1, L, N, who), slowest) == pytest.approx(found, abs=1e-9)


def test_corners_are_tried_but_for_exchanges() -> None:
    setting = Setting.of(DESCENT, (1, 1, 2), (16, 16, 32), 3)
    found = _quadratics._candidates(setting)
    corners = {(a, b, c) for a, b in ((1.0, 1.0), (1.0, 16.0), (16.0, 16.0)) for c in (2.0, 32.0)}
    same = [(m, m, 2 * m) for m in (1.0, 2.0, 4.0, 8.0, 16.0)]
    np.testing.assert_allclose(sorted(found), sorted({*corners, *same}))
    np.testing.assert_allclose(found[:5], same)
    with_g = _quadratics._candidates(Setting.of("feddr: eta=0.3", 1, 16, 2, regulariser=4.0))
    ends = {h[-1] for h in with_g}
    assert {4.0, 4e5} <= ends
    assert all(len(h) == 3 for h in with_g)
    assert len(with_g) == 5 + 3 * 2 - 2


def test_too_many_clients_are_not_searched() -> None:
    assert lower_bound(Setting.of(DESCENT, 1, 10, 20))[0] == pytest.approx(0.81)
    assert lower_bound(Setting.of(DESCENT, 1, 10, 21)) == (None, ())
    assert lower_bound(Setting.of(DESCENT, (1, 2, 3, 4, 5, 6), 10, 6))[0] is not None  # 64 corners
    assert lower_bound(Setting.of(DESCENT, (1, 2, 3, 4, 5, 6, 7), 10, 7)) == (None, ())
    listed = Setting.of("feddyn: alpha=5", 1, 10, 8, WeightedSubset(size=4, weights=(1.0,) * 8), literal=True)
    assert lower_bound(listed) == (None, ())
    coins = Setting.of("feddyn: alpha=5", (1,) * 7 + (2,) * 7, 10, 14, Bernoulli(probability=0.5))
    assert len(coins.orbits) == 64  # and 400 where three of each seven are steep
    assert lower_bound(coins) == (None, ())


def test_a_regulariser_has_a_curvature_of_its_own() -> None:
    """FedDR with one client of curvature h and g at the server: reflections of both."""
    setting = Setting.of(FedDR(eta=0.3, relaxation=2.0), 1, 10, 1, regulariser=0.5)
    for h, g in ((2.0, 0.5), (5.0, 7.0)):
        x, y = (1 - 0.3 * h) / (1 + 0.3 * h), (1 - 0.3 * g) / (1 + 0.3 * g)
        assert mean_square_factor(setting, (h, g)) == pytest.approx((x * y) ** 2, rel=1e-9)


def test_a_parabola_has_its_proximal_point() -> None:
    prox = _quadratics.Parabola(3.0, np.array([2.0])).prox(np.array([5.0]), 0.5)
    assert prox == pytest.approx([(5.0 - 1.0) / 2.5])
    assert prox + 0.5 * (3.0 * prox + 2.0) == pytest.approx([5.0])
