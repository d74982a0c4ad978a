"""Everything that chance may do in one round, and exact expectations over it.

An event is a round with its probability: a cohort, a side of a coin, what clients draw. :func:`events_of` lists those
of a participation; one of a claim's own lists them itself, in a method ``events(n_clients, n=, seed=)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import comb, prod
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance
from dualopt.methods.participation import (
    Bernoulli,
    CommunicateWithProbability,
    Full,
    Participation,
    Round,
    UniformSubset,
    WeightedSubset,
)

__all__ = [
    "Branch",
    "Event",
    "Expect",
    "Law",
    "branches",
    "coin",
    "coins",
    "do_round",
    "equally_likely",
    "events_of",
    "groups",
    "subsets",
    "worst_growth",
]


class Event(NamedTuple):
    """One thing that may happen in a round."""

    probability: float
    round: Round


def subsets(n_clients: int, size: int, *, n: int = 0, seed: int = 0) -> list[Event]:
    """Return all subsets of ``size`` clients, equally likely.

    Examples
    --------
    >>> [(event.probability, event.round.clients) for event in subsets(3, 1)]
    [(0.3333333333333333, (0,)), (0.3333333333333333, (1,)), (0.3333333333333333, (2,))]
    """
    probability = 1.0 / comb(n_clients, size)
    return [
        Event(probability, Round(n=n, n_clients=n_clients, clients=chosen, communicate=True, seed=seed))
        for chosen in combinations(range(n_clients), size)
    ]


def coin(n_clients: int, probability: float, *, n: int = 0, seed: int = 0) -> list[Event]:
    """Return the round that communicates, with the given probability, and the one that does not.

    Examples
    --------
    >>> [(event.probability, event.round.communicate) for event in coin(2, 0.25)]
    [(0.25, True), (0.75, False)]
    """
    clients = tuple(range(n_clients))
    return [
        Event(chance, Round(n=n, n_clients=n_clients, clients=clients, communicate=communicate, seed=seed))
        for chance, communicate in ((probability, True), (1.0 - probability, False))
        if chance > 0
    ]


@dataclass(frozen=True)
class Law:
    """Rounds with their probabilities, the same in every round but for its number.

    Attributes
    ----------
    listed : tuple of Event
        What may happen; probabilities add up to one.
    """

    listed: tuple[Event, ...]

    def events(self, n_clients: int, *, n: int, seed: int) -> list[Event]:
        """Return what may happen in round ``n``."""
        return [Event(chance, replace(round, n=n, seed=seed)) for chance, round in self.listed]

    def inclusion(self, n_clients: int) -> Array:
        """Return the probabilities with which the clients are active, shape (N,)."""
        return np.array([sum(chance for chance, round in self.listed if j in round.clients) for j in range(n_clients)])

    def rounds(self, n_clients: int, seed: int = 0) -> Iterator[Round]:
        """Yield rounds that are drawn by the law."""
        rng, n = np.random.default_rng(seed), 0
        chances = [event.probability for event in self.listed]
        while True:
            yield self.events(n_clients, n=n, seed=seed)[rng.choice(len(chances), p=chances)].round
            n += 1


def coins(*probabilities: float) -> Law:
    """Return independent coins, one for each client.

    Examples
    --------
    >>> [(event.probability, event.round.clients) for event in coins(0.25, 1.0).listed]
    [(0.25, (0, 1)), (0.75, (1,))]
    """
    found = []
    for heads in product((True, False), repeat=len(probabilities)):
        chance = prod(p if head else 1.0 - p for p, head in zip(probabilities, heads, strict=True))
        if chance > 0:
            found.append(Event(chance, _cohort(len(heads), tuple(j for j, head in enumerate(heads) if head))))
    return Law(tuple(found))


def groups(n_clients: int, *cohorts: tuple[int, ...]) -> Law:
    """Return cohorts that are equally likely.

    Examples
    --------
    >>> [(event.probability, event.round.clients) for event in groups(4, (0, 1), (2, 3)).listed]
    [(0.5, (0, 1)), (0.5, (2, 3))]
    """
    return equally_likely(_cohort(n_clients, cohort) for cohort in cohorts)


def equally_likely(rounds: Iterable[Round]) -> Law:
    """Return the law of rounds that are equally likely."""
    listed = tuple(rounds)
    return Law(tuple(Event(1.0 / len(listed), round) for round in listed))


def _cohort(n_clients: int, clients: tuple[int, ...]) -> Round:
    return Round(n=0, n_clients=n_clients, clients=clients, communicate=True, seed=0)


def events_of(participation: Participation, n_clients: int, *, n: int = 0, seed: int = 0) -> list[Event]:
    """Return everything that may happen in a round of a participation.

    Raises
    ------
    TypeError
        If the rounds of the participation are not subsets of a given size, a coin for each client, or one for all, and
        it does not list them.

    Examples
    --------
    >>> [event.round.clients for event in events_of(UniformSubset(size=2), 3)]
    [(0, 1), (0, 2), (1, 2)]
    """
    common = {"n": n, "seed": seed}
    listed: Any = getattr(participation, "events", None)
    if listed is not None:
        return listed(n_clients, **common)
    if isinstance(participation, Full):
        return subsets(n_clients, n_clients, **common)
    if isinstance(participation, UniformSubset):
        return subsets(n_clients, participation.size, **common)
    if isinstance(participation, WeightedSubset):
        chances = participation.inclusion(n_clients)
        inclusion = None if len(set(chances)) == 1 else chances
        rounds = Round(n_clients=n_clients, clients=(), communicate=True, inclusion=inclusion, **common)
        found = participation.cohorts(n_clients).items()
        return [Event(chance, replace(rounds, clients=clients)) for clients, chance in found]
    if isinstance(participation, Bernoulli):
        return coins(*(participation.probability,) * n_clients).events(n_clients, **common)
    if isinstance(participation, CommunicateWithProbability):
        return coin(n_clients, participation.probability, **common)
    raise TypeError(f"the events of {type(participation).__name__} are not listed.")


class Branch(NamedTuple):
    """One way in which a round may go."""

    probability: float
    round: Round
    state: State  # after the round
    upload: Any  # of the active clients; None if nothing is sent
    solution: Any  # the local solutions of the active clients


def do_round(algorithm: Any, objective: Any, state: State, round: Round) -> tuple[State, Any, Any]:
    """Do one round with what chance gives to it.

    A round may put it into the method, by ``given(algorithm)``, and into what uploads go through, ``packs``: clients
    may be elsewhere, and learn of a round who takes part, and nothing that a subclass adds.
    """
    given: Any = getattr(round, "given", None)
    method = algorithm if given is None else given(algorithm)
    return advance(method, objective, state, round, getattr(round, "packs", None))


def branches(algorithm: Any, objective: Any, state: State, events: Iterable[Event]) -> tuple[Branch, ...]:
    """Do a round from ``state`` in every way in which it may go."""
    return tuple(Branch(p, round, *do_round(algorithm, objective, state, round)) for p, round in events)


class Expect:
    """An exact expectation: ``E[quantity]`` is the mean of a quantity of what may happen, with its probabilities.

    Parameters
    ----------
    found : sequence
        What may happen: branches, or what a proof makes of each of them.
    chances : sequence of float, optional
        Their probabilities; those of the branches when not given.

    Examples
    --------
    >>> E = Expect([1.0, 5.0], [0.75, 0.25])
    >>> E[lambda x: x], E[lambda x: x**2]
    (2.0, 7.0)
    """

    def __init__(self, found: Sequence[Any], chances: Sequence[float] | None = None) -> None:
        self.found = tuple(found)
        self.chances = tuple(point.probability for point in found) if chances is None else tuple(chances)

    __iter__ = None  # what may happen is in ``found``

    def __getitem__(self, quantity: Callable[[Any], Any]) -> Any:
        """Return the expectation of a quantity."""
        terms = [chance * quantity(point) for chance, point in zip(self.chances, self.found, strict=True)]
        return sum(terms[1:], start=terms[0])


def worst_growth(
    algorithm: Any,
    objective: Any,
    events: Sequence[Event],
    state: Callable[[Array], State],
    errors: Callable[[State], Array],
    size: int,
) -> float:
    """Return the largest ``E Psi+ / Psi`` over all states of quadratic clients, ``Psi`` the squared norm of ``errors``.

    ``state`` makes the state whose errors are given. Rounds act linearly on errors, so that the unit vectors tell all.
    """
    states = [state(unit) for unit in np.eye(size)]

    def form(event: Event) -> Array:
        rows = np.stack([errors(do_round(algorithm, objective, s, event.round)[0]) for s in states])
        return rows @ rows.T

    return float(np.linalg.eigvalsh(Expect(events)[form])[-1])
