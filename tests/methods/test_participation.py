"""Who takes part: exact laws, and what must hold whatever chance does."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import combinations, islice
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dualopt.engine.rounds import advance, initial_state, iterate, resolve
from dualopt.methods import (
    AFedPD,
    FedADMM,
    FedDR,
    FedDyn,
    FedPD,
    FedSplit,
    FiveGCS,
    OldDualFedPD,
    Scaffnew,
    Scaffold,
)
from dualopt.methods.participation import (
    Bernoulli,
    CommunicateWithProbability,
    Full,
    Round,
    Schedule,
    UniformSubset,
    WeightedSubset,
    as_participation,
)
from tests.problems import quadratic
from theory.identities._virtual_updates import VirtualUpdates

RULES = [
    Full(),
    UniformSubset(size=2),
    Bernoulli(probability=0.3),
    Bernoulli(probability=0.1, nonempty=True),
    CommunicateWithProbability(probability=0.7),
    WeightedSubset(size=2),
]


def first(participation, n_clients: int, rounds: int, seed: int = 0) -> list[Round]:
    return list(islice(participation.rounds(n_clients, seed), rounds))


@pytest.mark.parametrize("participation", RULES, ids=str)
def test_rounds_are_well_formed_and_follow_from_the_seed(participation) -> None:
    rounds = first(participation, 5, 50, seed=3)
    assert rounds == first(participation, 5, 50, seed=3)
    if participation.needs():
        assert rounds != first(participation, 5, 50, seed=4)
    for n, r in enumerate(rounds):
        assert (r.n, r.n_clients, r.seed) == (n, 5, 3)
        assert list(r.clients) == sorted(set(r.clients))
        assert set(r.clients) <= set(range(5))
        assert r.communicate or "skip" in participation.needs()
        assert len(r.clients) == 5 or "partial" in participation.needs()


def within_five_deviations(count: int, trials: int, probability: float) -> bool:
    deviation = (trials * probability * (1.0 - probability)) ** 0.5
    return abs(count - trials * probability) <= 5.0 * deviation


def test_every_subset_is_equally_likely() -> None:
    """Ten subsets of 2 of 5, 4000 rounds: each within five standard deviations (chance of a false alarm 6e-6)."""
    rounds = first(UniformSubset(size=2), 5, 4000)
    for chosen in combinations(range(5), 2):
        assert within_five_deviations(sum(r.clients == chosen for r in rounds), 4000, 0.1)


def test_bernoulli_clients_are_independent() -> None:
    rounds = first(Bernoulli(probability=0.3), 3, 4000)
    active = np.array([[j in r.clients for j in range(3)] for r in rounds])
    for pattern in range(8):
        bits = np.array([pattern >> j & 1 for j in range(3)], dtype=bool)
        chance = float(np.prod(np.where(bits, 0.3, 0.7)))
        assert within_five_deviations(int((active == bits).all(axis=1).sum()), 4000, chance)


def test_cohorts_that_are_not_empty_have_the_law_of_those_that_are_not() -> None:
    chance = Bernoulli(probability=0.3, nonempty=True)
    rounds = first(chance, 3, 4000)
    active = np.array([[j in r.clients for j in range(3)] for r in rounds])
    somebody = 1.0 - 0.7**3
    for pattern in range(8):
        bits = np.array([pattern >> j & 1 for j in range(3)], dtype=bool)
        among = float(np.prod(np.where(bits, 0.3, 0.7))) / somebody if pattern else 0.0
        assert within_five_deviations(int((active == bits).all(axis=1).sum()), 4000, among)
    law = chance.law(3)
    assert law.name == "a law that is not stated"
    assert law.fraction == pytest.approx(0.3 / somebody, rel=1e-15)
    assert Bernoulli(probability=1.0, nonempty=True).law(3) == Full().law(3)


def test_the_coin_is_fair_and_common() -> None:
    rounds = first(CommunicateWithProbability(probability=0.7), 3, 4000)
    assert within_five_deviations(sum(r.communicate for r in rounds), 4000, 0.7)
    assert {r.clients for r in rounds} == {(0, 1, 2)}


def test_a_schedule_is_replayed() -> None:
    schedule = Schedule(clients=((1,), (0, 2)), communicate=(True, False))
    assert [(r.clients, r.communicate) for r in first(schedule, 3, 3)] == [((1,), True), ((0, 2), False), ((1,), True)]


def test_a_schedule_replays_a_random_run() -> None:
    f, method = quadratic(), FedDyn()
    chance = UniformSubset(size=2)
    replay = Schedule(clients=tuple(r.clients for r in first(chance, 5, 9)))
    for a, b in zip(
        islice(iterate(method, f, participation=chance), 9), iterate(method, f, participation=replay), strict=False
    ):
        np.testing.assert_array_equal(a.server.theta, b.server.theta)


@pytest.mark.parametrize("method", [FedPD(), Scaffnew(probability=0.5)], ids=lambda method: type(method).__name__)
def test_prescribed_coins_are_replayed_with_methods_that_need_everybody(method) -> None:
    f, chance = quadratic(), CommunicateWithProbability(probability=0.5)
    coins = tuple(r.communicate for r in first(chance, f.n_clients, 9))
    assert True in coins
    assert False in coins
    everybody = tuple(range(f.n_clients))
    replay = Schedule(clients=(everybody,) * 9, communicate=coins)
    for a, b in zip(
        islice(iterate(method, f, participation=chance), 9), iterate(method, f, participation=replay), strict=False
    ):
        np.testing.assert_array_equal(a.server.theta, b.server.theta)
    missing = Schedule(clients=(everybody, everybody[1:]))
    with pytest.raises(ValueError, match="does not support partial participation"):
        next(iterate(method, f, participation=missing))


def test_what_is_needed_depends_on_the_number_of_clients() -> None:
    """A rule under which everybody takes part and communicates suits every method."""
    assert UniformSubset(size=5).needs(5) == Bernoulli(probability=1.0).needs() == frozenset()
    assert UniformSubset(size=5).needs(6) == UniformSubset(size=5).needs() == {"partial"}
    assert CommunicateWithProbability(probability=1.0).needs() == frozenset()
    assert Schedule(clients=((0, 1),)).needs(2) == frozenset()
    assert Schedule(clients=((0, 1), (0,)), communicate=(True, False)).needs(2) == {"partial", "skip"}
    assert Schedule(clients=((0, 1),)).needs() == Schedule(clients=((0, 1),)).needs(3) == {"partial"}


@pytest.mark.parametrize("participation", [*RULES, Schedule(clients=((0, 1), (2,), ()))], ids=str)
def test_the_fraction_is_what_takes_part_on_average(participation) -> None:
    """3000 rounds of 5 clients: within five standard deviations of independent clients, which is never less."""
    rounds = first(participation, 5, 3000)
    p = participation.law(5).fraction
    assert abs(np.mean([r.fraction for r in rounds]) - p) <= 5.0 * (p * (1.0 - p) / 15000) ** 0.5


def test_a_run_tells_its_fraction_to_the_methods_that_ask() -> None:
    f = quadratic()
    for method in (FedDyn(), FiveGCS()):
        for given, chance, found in (
            (None, UniformSubset(size=2), 0.4),
            (0.7, UniformSubset(size=2), 0.7),
            (None, Schedule(clients=((),)), None),
        ):
            assert vars(resolve(replace(method, fraction=given), f, chance))["fraction"] == found
    assert resolve(FedSplit(), f, UniformSubset(size=2)) == FedSplit().suggested(f)
    informed, given = resolve(FedDyn(), f, UniformSubset(size=2)), FedDyn(fraction=0.4).suggested(f)
    assert informed == given != FedDyn().suggested(f)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: UniformSubset(size=0), "size must be at least 1, not 0"),
        (lambda: next(UniformSubset(size=6).rounds(5, 0)), "size must not exceed the number of clients, 5"),
        (lambda: Bernoulli(probability=0.0), r"probability must lie in \(0, 1\], not 0"),
        (
            lambda: next(Bernoulli(probability=1e-5, nonempty=True).rounds(5, 0)),
            "at least 2e-05 where cohorts of 5 clients are drawn until somebody is active, not 1e-05",
        ),
        (lambda: CommunicateWithProbability(probability=1.5), r"probability must lie in \(0, 1\], not 1\.5"),
        (lambda: Schedule(clients=()), "clients must hold at least one round"),
        (lambda: Schedule(clients=((0, 0),)), "clients must not name a client twice"),
        (lambda: Schedule(clients=((0,),), communicate=(True, False)), "communicate must have one entry"),
        (lambda: next(Schedule(clients=((7,),)).rounds(5, 0)), "clients must lie between 0 and 4, but one is 7"),
        (lambda: as_participation("some"), "participation must be one of full, subset"),
        (lambda: as_participation("subset=half"), "participation subset: size must be a whole number"),
        (lambda: as_participation("subset=2.5"), r"size must be a whole number, not '2\.5'"),
        (lambda: as_participation("bernoulli=2"), "probability must lie in"),
        (lambda: as_participation(0.3), "participation must be a Participation or text such as 'subset=10', not 0.3"),
        (lambda: WeightedSubset(size=1, weights=(1.0, float("inf"))), "weights must be positive finite numbers"),
    ],
)
def test_bad_arguments_are_named(wrong, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        wrong()


def test_cohorts_of_which_few_are_not_empty_are_drawn() -> None:
    rounds = first(Bernoulli(probability=1e-4 / 3, nonempty=True), 3, 2)
    assert [len(r.clients) for r in rounds] == [1, 1]
    next(Bernoulli(probability=1e-300).rounds(3, 0))  # an empty cohort is no error


def test_a_coin_that_never_fails_is_everybody() -> None:
    assert CommunicateWithProbability(probability=1.0).law(3) == Full().law(3)
    assert CommunicateWithProbability(probability=0.9).law(3).name == "rounds that skip communication"


def test_rounds_tell_probabilities_that_differ() -> None:
    alike, other = (next(WeightedSubset(size=1, weights=a).rounds(2, 0)).inclusion for a in ((2.0, 2.0), (1.0, 3.0)))
    assert alike is None
    assert other == (0.25, 0.75)


def test_participation_from_text() -> None:
    again = "bernoulli: probability=0.1, nonempty=true"
    texts = ("full", "subset=3", "bernoulli=0.3", again, "communicate=0.7", "importance=2")
    found = [as_participation(text) for text in texts]
    assert found == [Full(), UniformSubset(size=3), *RULES[2:]]


# 15 sequences of rounds in the ordinary tests, 100 with --hypothesis-profile=deep.
SEQUENCES = max(15, settings.default.max_examples // 10) if settings.default else 15


class AnyParticipation(RuleBasedStateMachine):
    """Hypothesis decides who takes part; what the methods promise for every choice is checked after each round.

    The methods run side by side on one problem, with exact local solutions and one weight.
    """

    @initialize(seed=st.integers(0, 3), weight=st.sampled_from([1.0, 4.0, 20.0]))
    def start(self, seed: int, weight: float) -> None:
        self.f = quadratic(n=4, d=2, seed=seed)
        self.theta0 = np.array([1.0, -2.0])
        self.weight = weight
        methods: dict[str, Any] = {
            "feddyn": FedDyn(alpha=weight),
            "fedadmm": FedADMM(rho=weight),
            "drifting": FedADMM(rho=weight, server_step=0.7),
            "feddr": FedDR(eta=1.0 / weight, relaxation=1.0),
            "fedsplit": FedSplit(step=1.0 / weight),
            "a-fedpd": AFedPD(rho=weight),
            "virtual updates": VirtualUpdates(rho=weight),
            "scaffold": Scaffold(server_step=0.5),
        }
        self.methods = {name: method.suggested(self.f) for name, method in methods.items()}
        self.states = {name: initial_state(m, self.f, self.theta0) for name, m in self.methods.items()}
        self.before = dict(self.states)
        self.n = 0
        self.near: Any = {"rtol": 1e-9, "atol": 1e-9 * (1 + max(weight, 20.0))}
        self.chosen: tuple[int, ...] = ()

    @rule(chosen=st.sets(st.integers(0, 3)))
    def round(self, chosen: set[int]) -> None:
        self.chosen = tuple(sorted(chosen))
        r = Round(n=self.n, n_clients=4, clients=self.chosen, communicate=True, seed=0)
        self.before = dict(self.states)
        self.states = {name: advance(m, self.f, self.before[name], r)[0] for name, m in self.methods.items()}
        self.n += 1

    @precondition(lambda self: self.n > 0)
    @invariant()
    def sleeping_clients_keep_their_state(self) -> None:
        idle = [j for j in range(4) if j not in self.chosen]
        for name in ("feddyn", "fedadmm", "feddr", "fedsplit", "a-fedpd", "scaffold"):
            for old, new in zip(self.before[name].clients, self.states[name].clients, strict=True):
                if not isinstance(old, tuple):
                    np.testing.assert_array_equal(old[idle], new[idle])

    @precondition(lambda self: self.n > 0)
    @invariant()
    def nobody_active_changes_nothing(self) -> None:
        if not self.chosen:
            assert all(self.states[name] is self.before[name] for name in self.methods)

    @precondition(lambda self: self.n > 0)
    @invariant()
    def servers_know_the_means_of_all_clients(self) -> None:
        s = self.states
        np.testing.assert_allclose(s["feddyn"].server.h, s["feddyn"].clients.gradient.mean(axis=0), **self.near)
        np.testing.assert_allclose(s["a-fedpd"].clients.dual.mean(axis=0), 0.0, **self.near)
        np.testing.assert_allclose(s["feddr"].server.mean, s["feddr"].clients.reflected.mean(axis=0), **self.near)
        np.testing.assert_allclose(s["fedsplit"].server.consensus, s["fedsplit"].clients.z.mean(axis=0), **self.near)
        np.testing.assert_allclose(
            s["scaffold"].server.control, s["scaffold"].clients.control.mean(axis=0), **self.near
        )
        augmented = (s["fedadmm"].clients.theta + s["fedadmm"].clients.dual / self.weight).mean(axis=0)
        np.testing.assert_allclose(s["fedadmm"].server.theta, augmented, **self.near)

    @precondition(lambda self: self.n > 0)
    @invariant()
    def fedadmm_moves_by_the_active_share_of_its_step(self) -> None:
        """The model moves N/P times ``server_step`` as far as the mean of all augmented models: dual drift."""
        if self.chosen:
            old, new = self.before["drifting"], self.states["drifting"]
            mean = [(s.clients.theta + s.clients.dual / self.weight).mean(axis=0) for s in (old, new)]
            moved = 0.7 * 4 / len(self.chosen) * (mean[1] - mean[0])
            np.testing.assert_allclose(new.server.theta - old.server.theta, moved, **self.near)

    @precondition(lambda self: self.n > 0)
    @invariant()
    def duals_are_those_of_virtual_updates(self) -> None:
        own, paper = self.states["a-fedpd"], self.states["virtual updates"]
        np.testing.assert_allclose(own.server.theta, paper.server.theta, **self.near)
        np.testing.assert_allclose(own.clients.dual + own.server.dual, paper.clients.dual, **self.near)


AnyParticipation.TestCase.settings = settings(max_examples=SEQUENCES, stateful_step_count=15, deadline=None)
TestAnyParticipation = AnyParticipation.TestCase


class AnyCoin(RuleBasedStateMachine):
    """FedPD with communication at arbitrary times: the mean of the copies is what a communicating round would give."""

    @initialize(eta=st.sampled_from([0.01, 0.1]), old=st.booleans())
    def start(self, eta: float, old: bool) -> None:
        self.f = quadratic(n=3, d=2)
        self.method = (OldDualFedPD if old else FedPD)(eta=eta).suggested(self.f)
        self.state = initial_state(self.method, self.f, np.array([1.0, -2.0]))
        self.n = 0

    @rule(communicate=st.booleans())
    def round(self, communicate: bool) -> None:
        told: Any = {"n": self.n, "n_clients": 3, "clients": (0, 1, 2), "seed": 0}
        spoken, upload, _ = advance(self.method, self.f, self.state, Round(communicate=True, **told))
        silent, nothing, _ = advance(self.method, self.f, self.state, Round(communicate=False, **told))
        assert nothing is None
        assert silent.server is self.state.server
        np.testing.assert_array_equal(silent.clients.dual, spoken.clients.dual)
        np.testing.assert_array_equal(silent.clients.x0, upload)
        np.testing.assert_allclose(spoken.clients.x0, np.broadcast_to(upload.mean(axis=0), (3, 2)), rtol=1e-14)
        self.state = spoken if communicate else silent
        self.n += 1


AnyCoin.TestCase.settings = settings(max_examples=SEQUENCES, stateful_step_count=15, deadline=None)
TestAnyCoin = AnyCoin.TestCase


# ---- cohorts with unequal probabilities ----


@hypothesis.given(weights=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8), share=st.floats(0.0, 0.999))
def test_inclusion_probabilities_are_exact(weights: list[float], share: float) -> None:
    N, size = len(weights), 1 + int(share * len(weights))
    chance = WeightedSubset(size=size, weights=tuple(weights))
    probabilities, cohorts = np.array(chance.inclusion(N)), chance.cohorts(N)
    assert all(len(cohort) == size for cohort in cohorts)
    marginals = [sum(p for cohort, p in cohorts.items() if j in cohort) for j in range(N)]
    np.testing.assert_allclose(marginals, probabilities, rtol=0, atol=1e-11)
    free = probabilities < 1
    if np.any(free):  # proportional to the weights, and the others have at least their share
        K = probabilities[free] / np.array(weights)[free]
        np.testing.assert_allclose(K, K[0], rtol=1e-11)
        assert np.all(np.array(weights)[~free] * K[0] >= 1 - 1e-11)


def test_drawn_cohorts_have_their_probabilities() -> None:
    chance = WeightedSubset(size=2, weights=(1.0, 2.0, 3.0, 4.0, 5.0))
    expected, n = chance.cohorts(5), 20000
    found = Counter(r.clients for r in islice(chance.rounds(5, seed=1), n))
    assert set(found) <= set(expected)
    for cohort, p in expected.items():
        assert abs(found[cohort] / n - p) < 4.5 * np.sqrt(p * (1 - p) / n)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"size": 0}, "size must be at least 1, not 0."),
        ({"size": 2, "weights": (1.0, 0.0)}, "weights must be positive finite numbers, not (1.0, 0.0)."),
        ({"size": 5}, "size must not exceed the number of clients, 4, but it is 5."),
        ({"size": 2, "weights": (1.0, 2.0)}, "weights must be 4 numbers, one for each client, not 2."),
    ],
)
def test_weighted_subsets_refuse(arguments, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        next(WeightedSubset(**arguments).rounds(4, seed=0))


# Ends of the ranges of the rules of participation, what they need, and the streams of a round.


def test_all_clients_are_a_subset() -> None:
    assert next(UniformSubset(size=3).rounds(3, seed=0)).clients == (0, 1, 2)
    with pytest.raises(ValueError, match="size must not exceed"):
        next(UniformSubset(size=4).rounds(3, seed=0))


def test_probability_one_is_certainty() -> None:
    assert all(r.clients == (0, 1, 2) for r in islice(Bernoulli(probability=1.0).rounds(3, seed=0), 20))
    assert all(r.communicate for r in islice(CommunicateWithProbability(probability=1.0).rounds(3, seed=0), 20))


def test_a_client_twice_in_one_round_of_several_is_refused() -> None:
    with pytest.raises(ValueError, match="clients"):
        Schedule(clients=((0, 1), (1, 1)))


@pytest.mark.parametrize(
    ("communicate", "skips"), [(None, False), ((True, True), False), ((True, False), True), ((False, False), True)]
)
def test_a_schedule_skips_where_some_round_does(communicate: tuple[bool, ...] | None, skips: bool) -> None:
    assert ("skip" in Schedule(clients=((0, 1), (0, 1)), communicate=communicate).needs()) == skips


def test_streams_of_a_round_have_keys_of_their_own() -> None:
    """Keys (1, n, j) for client j and (2, n) for what is common: runs elsewhere draw the same numbers."""
    round = Round(n=3, n_clients=4, clients=(0, 2), communicate=True, seed=7)
    keys = [(1, 3, 0), (1, 3, 2), (2, 3)]
    streams = [np.random.default_rng(np.random.SeedSequence(7, spawn_key=key)) for key in keys]
    assert [r.random() for r in (*round.rngs(), round.rng())] == [r.random() for r in streams]
