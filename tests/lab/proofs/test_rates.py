"""Rates that are proved from the code of the methods, between what happens and what theorems promise."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from dualopt.lab.proofs import Rate, prove
from dualopt.lab.proofs._quadratics import mean_square_factor
from dualopt.lab.proofs._round import one_round
from dualopt.lab.proofs._setting import Setting
from dualopt.methods import Algorithm, FedDyn, FedSplit, GradientDescent, Scaffnew
from dualopt.methods.feddyn import Server as FedDynServer
from dualopt.methods.fedsplit import Client as FedSplitClient
from dualopt.methods.participation import Bernoulli, CommunicateWithProbability, Schedule, UniformSubset
from dualopt.solvers import Gradient

COIN = 1.0 / math.sqrt(10.0)
SCAFFNEW = Scaffnew(solver=Gradient(step=0.1), probability=COIN)
COHORT = [UniformSubset(size=k) for k in (1, 2)]
TABLE = [  # method, L, N, who takes part, proved, what happens on some clients: an earlier program found the same
    ("feddyn", 10, 4, COHORT[0], 0.83884, 0.83871),
    ("feddyn", 10, 4, None, 0.57722, 0.57722),
    ("fivegcs: gamma=0.04192627457812106, tau=2.9814239699997196", 10, 4, COHORT[1], 0.92114, 0.92114),  # of the paper
    ("fivegcs", 10, 4, COHORT[1], 0.71021, 0.71021),
    (SCAFFNEW, 10, 4, CommunicateWithProbability(probability=COIN), 0.85017, 0.84629),
    ("sampled-dualfl", 10, 4, COHORT[1], 0.70360, 0.70250),
    ("fedadmm", 10, 4, COHORT[1], 0.78553, 0.78553),
    ("a-fedpd", 10, 4, COHORT[1], 0.86118, 0.85907),
    ("dualfl", 100, 3, None, 0.86106, 0.81001),
    ("fedsplit", 10, 4, None, ((math.sqrt(10) - 1) / (math.sqrt(10) + 1)) ** 2, 0.26987),
    ("dual-ascent", 10, 4, None, 0.81, 0.81),
    ("gradient-descent", 10, 3, None, 0.81, 0.81),
]


@pytest.mark.parametrize(
    ("method", "L", "N", "who", "proved", "happens"), TABLE, ids=[str(row[0])[:14] for row in TABLE]
)
def test_rates_lie_between_what_happens_and_what_is_promised(method, L, N, who, proved: float, happens: float) -> None:
    memory = method in ("dualfl", "fedadmm")
    found = prove(method, mu=1, L=L, clients=N, participation=who, memory=memory, tolerance=3e-5)
    assert found.factor == pytest.approx(proved, abs=6e-5)
    assert found.lower_bound == pytest.approx(happens, abs=1e-5)
    assert found.lower_bound is not None
    assert found.lower_bound <= found.factor + 1e-9
    assert found.claimed is None or found.factor <= found.claimed + 6e-5
    assert all(np.linalg.eigvalsh(P)[0] > 0 for _, P in found.lyapunov if P.size and not found.heights)


def test_clients_of_several_classes_are_as_good_as_each_by_itself() -> None:
    what = {"mu": (1, 1, 2), "L": (10, 10, 5), "weights": (1, 1, 3), "memory": False, "tolerance": 1e-4}
    one, all_ = (prove("feddyn: alpha=3", literal=literal, **what) for literal in (False, True))
    assert one.factor == pytest.approx(all_.factor, abs=2e-4)
    assert one.lower_bound is not None
    assert one.lower_bound - 1e-9 <= one.factor < 0.8


def test_a_hundred_clients_cost_no_more_than_ten() -> None:
    sizes = [one_round(Setting.of("fedsplit", 1.0, 10.0, N)).sizes for N in (10, 100)]
    assert sizes[0] == sizes[1]
    factors = [prove("fedsplit", mu=1, L=10, clients=N, memory=False, tolerance=1e-3).factor for N in (30, 100)]
    assert factors[0] == factors[1]


LAWS = [UniformSubset(size=2), Bernoulli(probability=0.3), CommunicateWithProbability(probability=0.4)]


@pytest.mark.parametrize("who", LAWS)
def test_what_may_happen_is_counted_as_it_is_listed(who) -> None:
    setting = Setting.of("feddyn" if "partial" in who.needs() else "scaffnew", 1.0, 10.0, 5, who)
    groups = [(0, 3), (1, 2, 4)]
    chances: dict = {}
    for chance, round in setting.events():
        kind = (*(len(set(own) & set(round.clients)) for own in groups), round.communicate)
        chances[kind] = chances.get(kind, 0.0) + chance
    found = setting.orbits_of(groups)
    counts = [tuple(len(set(own) & set(round.clients)) for own in groups) for _, round in found]
    kinds = [(*own, round.communicate) for own, (_, round) in zip(counts, found, strict=True)]
    assert dict(zip(kinds, [p for p, _ in found], strict=True)) == pytest.approx(chances)
    exact = setting.in_rationals().orbits_of(groups)
    assert sum(p for p, _ in exact) == 1


@pytest.mark.parametrize(
    ("method", "who"),
    [("feddyn", LAWS[0]), ("a-fedpd", LAWS[1]), ("scaffnew", LAWS[2]), ("fedsplit", LAWS[1]), ("scaffold", LAWS[0])],
)
def test_clients_that_can_be_exchanged_are_as_slow_as_all_of_them(method: str, who) -> None:
    """With no exchange there is one block, of the whole state."""
    for curvatures in ((1.0, 10.0, 10.0, 1.0), (10.0, 10.0, 10.0, 10.0), (1.0, 10.0, 10.0, 10.0)):
        alike, apart = (
            mean_square_factor(Setting.of(method, 1.0, 10.0, 4, who, literal=literal), curvatures)
            for literal in (False, True)
        )
        assert alike == pytest.approx(apart, abs=1e-10)


def test_independent_clients_are_proved_alike_and_apart() -> None:
    what = {"mu": 1, "L": 10, "clients": 3, "participation": LAWS[1], "memory": False, "tolerance": 1e-4}
    one, all_ = (prove("feddyn", literal=literal, **what) for literal in (False, True))
    assert one.factor == pytest.approx(all_.factor, abs=2e-4)
    assert one.lower_bound == pytest.approx(all_.lower_bound, abs=1e-8)
    assert one.lower_bound is not None
    assert one.lower_bound < one.factor < 0.9


def test_numbers_that_settle_late_have_their_limits() -> None:
    found = prove("dualfl", mu=1, L=1000, clients=2, memory=True, tolerance=1e-3)
    assert found.asymptotic
    assert 0.9377 < found.factor < 1.0 - 1.0 / math.sqrt(1000.0)  # of Theorem 3.3


@dataclass(frozen=True, kw_only=True)
class WithoutFraction(FedDyn):
    """The memory of the server moves as if all clients were active."""

    def server(self, server, means, round):
        h = server.h - self.alpha * (means.mean - server.theta)
        theta = means.draw - h / self.alpha
        return FedDynServer(theta, h), theta


@dataclass(frozen=True, kw_only=True)
class ThreeTimes(FedSplit):
    """Reflected by three times the step."""

    def local(self, clients, message, oracle, round):
        x = oracle.solve(start=clients.x, weight=1 / self.step, center=2 * message - clients.z).theta
        change = 3.0 * (x - message)
        return FedSplitClient(clients.z + change, x), change


@pytest.mark.parametrize(
    ("right", "wrong", "who"),
    [
        (FedDyn(alpha=5.0), WithoutFraction(alpha=5.0), COHORT[1]),
        (FedSplit(step=0.3), ThreeTimes(step=0.3), None),
    ],
    ids=["fraction", "reflection"],
)
def test_an_error_in_the_code_costs_the_rate(right: Algorithm, wrong: Algorithm, who) -> None:
    what = {"mu": 1, "L": 10, "clients": 4, "participation": who, "memory": False, "tolerance": 1e-3}
    good, bad = (prove(method, **what) for method in (right, wrong))
    assert good.factor < 0.95
    assert not bad.proved or bad.factor > good.factor + 0.01


def test_what_does_not_converge_is_said_so() -> None:
    found = prove("a-fedpd", mu=1, L=10, clients=3, participation=COHORT[0], memory=False)
    assert not found.proved
    assert re.fullmatch(r"does not converge on quadratic clients of curvatures [0-9., ]+", str(found))
    assert found.to_json()["factor"] is None


def test_what_is_late_is_said_so() -> None:
    found = prove("dualfl", mu=1, L=10, clients=2, memory=True, tolerance=1e-2)
    assert found.asymptotic
    assert str(found).endswith("per round, in late rounds")
    assert isinstance(found, Rate)
    assert found.heights


def test_exact_numbers_have_the_same_matrices() -> None:
    setting = Setting.of("feddyn: alpha=3.0", 1.0, 10.0, 3, COHORT[1])
    rounded, exact = one_round(setting), one_round(setting.in_rationals())
    for a, b in zip([*rounded.before, *rounded.after], [*exact.before, *exact.after], strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y.astype(float), atol=1e-14)
    assert all(x.dtype == object for x in exact.inequalities[0].blocks)


@dataclass(frozen=True, kw_only=True)
class Shorter(GradientDescent):
    """Steps that become shorter from round to round."""

    def server(self, server, mean, round):
        return super().server(server, mean / (1.0 + round.n), round)


@dataclass(frozen=True, kw_only=True)
class Drawn(GradientDescent):
    """Steps of a random length."""

    def server(self, server, mean, round):
        return super().server(server, float(round.rng().random()) * mean, round)


@pytest.mark.parametrize("method", [Shorter, Drawn])
def test_a_method_with_other_rounds_later_is_refused(method) -> None:
    with pytest.raises(ValueError, match="algorithm must do the same in every round"):
        prove(method(step=0.1), mu=1, L=10, clients=2)


class Server(NamedTuple):
    """State of the server."""

    theta: object


@dataclass(frozen=True, kw_only=True)
class Restless(Algorithm):
    """The models of clients are averaged after a proximal step: a bias, and no fixed point is named."""

    def init(self, theta0, copies):
        return Server(theta0), theta0, ()

    def local(self, clients, message, oracle, round):
        return clients, oracle.solve(start=message, weight=1.0, center=message).theta

    def server(self, server, mean, round):
        return Server(mean), mean


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ("fedsam", "algorithm must be linear algebra on models and answers of clients"),
        ("anderson-fedsplit", "algorithm must be linear algebra on models and answers of clients"),
        ("growing-feddyn", "algorithm must do the same in every round; worst_case takes it round by round."),
        ("dualfl: rho=0.0", "algorithm must have numbers in its states that settle"),
        (Restless(), "algorithm must have the minimiser as a fixed point, and say so by fixed_point."),
    ],
)
def test_what_cannot_be_proved_is_refused(method, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        prove(method, mu=1, L=10, clients=3)


def test_given_rounds_are_no_law() -> None:
    with pytest.raises(ValueError, match="participation must have rounds that can be listed"):
        prove("feddyn", mu=1, L=10, clients=3, participation=Schedule(clients=((0, 1), (2,))))


def test_a_round_that_moves_the_fixed_point_is_refused() -> None:
    """FedPD's clients go elsewhere in rounds without communication; then no mean square goes to zero."""
    who = CommunicateWithProbability(probability=0.5)
    with pytest.raises(ValueError, match="algorithm must keep its fixed point in everything that may happen"):
        prove("fedpd", mu=1, L=10, clients=3, participation=who)
