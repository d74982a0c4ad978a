"""Who takes part in a round, and when to communicate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, cycle
from typing import Any, Protocol

from dualopt.arrays._checks import Typed
from dualopt.arrays.streams import PARTICIPATION_STREAM, Round, first_round, generator, preparation_rng
from dualopt.arrays.xp import indices
from dualopt.methods._pivotal import Cohort, cohorts, drawn, inclusion_probabilities
from dualopt.spec import built

__all__ = [
    "COHORTS",
    "EVERYBODY",
    "GIVEN",
    "INDEPENDENT",
    "RULES",
    "SKIPPED",
    "UNIFORM",
    "UNSTATED",
    "Bernoulli",
    "CommunicateWithProbability",
    "Full",
    "Law",
    "Participation",
    "Round",
    "Schedule",
    "UniformSubset",
    "WeightedSubset",
    "as_participation",
    "first_round",
    "law_of",
    "preparation_rng",
]


EVERYBODY = "everybody in every round"
UNIFORM = "uniform cohorts of one size"
COHORTS = "cohorts of one size"
INDEPENDENT = "independent activity"
SKIPPED = "rounds that skip communication"
GIVEN = "given cohorts"
UNSTATED = "a law that is not stated"

SELDOM = 1e-4  # active clients on average: with fewer it takes too many draws until there is one


@dataclass(frozen=True, kw_only=True)
class Law:
    """How chance chooses who is active in a round: independently of all others, the same in every round.

    Attributes
    ----------
    name : str
        Which law it is, as narrow as it is: one of EVERYBODY, UNIFORM (every subset of a size is equally likely),
        COHORTS (any other law of subsets of one size), INDEPENDENT (of one another), SKIPPED (everybody works, a coin
        decides whether a round communicates), GIVEN (no chance at all) and UNSTATED.
    n_clients : int
        Number ``N`` of clients.
    fraction : float
        The expected fraction of active clients.
    chances : tuple of float, optional
        The probabilities with which the clients are active, where these are not all ``fraction``.
    communication : float, default 1
        The probability with which a round communicates.

    Examples
    --------
    >>> UniformSubset(size=1).law(4).inclusion, Bernoulli(probability=0.5).law(2).name
    ((0.25, 0.25, 0.25, 0.25), 'independent activity')
    """

    name: str
    n_clients: int
    fraction: float = 1.0
    chances: tuple[float, ...] | None = None
    communication: float = 1.0

    @property
    def inclusion(self) -> tuple[float, ...]:
        """The probabilities with which the clients are active."""
        return self.chances or (self.fraction,) * self.n_clients


class Participation(Protocol):
    """A rule that says who is active in each round and whether the round ends with communication."""

    def needs(self, n_clients: int | None = None) -> frozenset[str]:
        """Return what a method must support.

        "partial" (some clients inactive), "skip" (no communication in a round), "unequal" (some clients active more
        often than others). Where the number of clients is not known, what it may need.
        """
        ...

    def law(self, n_clients: int) -> Law:
        """Return how chance chooses; what theorems say of a run depends on it."""
        ...

    def rounds(self, n_clients: int, seed: int) -> Iterator[Round]:
        """Yield the rounds of a run, without end."""
        ...


@dataclass(frozen=True, kw_only=True)
class Full:
    """Every client takes part in every round, and every round communicates.

    Examples
    --------
    >>> rounds = Full().rounds(3, seed=0)
    >>> next(rounds).clients, next(rounds).n
    ((0, 1, 2), 1)
    """

    def needs(self, n_clients: int | None = None) -> frozenset[str]:
        """Return the empty set."""
        return frozenset()

    def law(self, n_clients: int) -> Law:
        """Return EVERYBODY."""
        return Law(name=EVERYBODY, n_clients=n_clients)

    def rounds(self, n_clients: int, seed: int) -> Iterator[Round]:
        """Yield rounds in which all ``n_clients`` clients are active."""
        everybody = tuple(range(n_clients))
        for n in count():
            yield Round(n=n, n_clients=n_clients, clients=everybody, communicate=True, seed=seed)


@dataclass(frozen=True, kw_only=True)
class UniformSubset(Typed):
    """In each round ``size`` clients take part; every subset of that size is equally likely.

    Parameters
    ----------
    size : int
        Number ``P`` of active clients.

    Raises
    ------
    ValueError
        If ``size`` is less than 1; from ``rounds`` if it exceeds the number of clients.

    Examples
    --------
    >>> rounds = UniformSubset(size=2).rounds(5, seed=0)
    >>> [next(rounds).clients for _ in range(3)]
    [(3, 4), (1, 3), (0, 4)]
    """

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size must be at least 1, not {self.size}.")

    def needs(self, n_clients: int | None = None) -> frozenset[str]:
        """Return "partial", unless the subset is everybody.

        >>> sorted(UniformSubset(size=2).needs(5)), sorted(UniformSubset(size=5).needs(5))
        (['partial'], [])
        """
        return frozenset() if self.size == n_clients else frozenset({"partial"})

    def law(self, n_clients: int) -> Law:
        """Return UNIFORM, or EVERYBODY if the subset is.

        >>> UniformSubset(size=2).law(5).fraction, UniformSubset(size=5).law(5).name
        (0.4, 'everybody in every round')
        """
        name = EVERYBODY if self.size == n_clients else UNIFORM
        return Law(name=name, n_clients=n_clients, fraction=self.size / n_clients)

    def rounds(self, n_clients: int, seed: int) -> Iterator[Round]:
        """Yield rounds with ``size`` active clients each."""
        if self.size > n_clients:
            raise ValueError(f"size must not exceed the number of clients, {n_clients}, but it is {self.size}.")
        rng = generator(seed, PARTICIPATION_STREAM)
        for n in count():
            chosen = rng.choice(n_clients, self.size, replace=False)
            yield Round(n=n, n_clients=n_clients, clients=_sorted(chosen), communicate=True, seed=seed)


@dataclass(frozen=True, kw_only=True)
class WeightedSubset(Typed):
    r"""In each round ``size`` clients take part, some more often than others: importance sampling.

    Client j is active with probability :math:`\pi_j = \min(1, Ka_j)`, K such that the sum is ``size``. Cohorts are
    those of the sequential pivotal design (Deville and Tillé 1998; ``dualopt/methods/_pivotal.py``): the size is fixed,
    the
    :math:`\pi_j` are exact. Means over such cohorts are biased, so that only methods support it whose fixed point does
    not depend on who is active.

    Parameters
    ----------
    size : int
        Number ``P`` of active clients.
    weights : tuple of float, optional
        The :math:`a_j`; in a run, when not given, the weights of the clients, with scales those of the reweighted ones.

    Raises
    ------
    ValueError
        If ``size`` is less than 1 or a weight is not positive; from ``rounds`` if ``size`` exceeds the number of
        clients, or there is not one weight for each of them.

    Examples
    --------
    >>> chance = WeightedSubset(size=2, weights=(1.0, 1.0, 2.0))
    >>> chance.inclusion(3), chance.cohorts(3)
    ((0.5, 0.5, 1.0), {(0, 2): 0.5, (1, 2): 0.5})
    >>> rounds = chance.rounds(3, seed=0)
    >>> [next(rounds).clients for _ in range(3)]
    [(0, 2), (0, 2), (1, 2)]
    """

    size: int
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size must be at least 1, not {self.size}.")
        if self.weights is not None and not all(0 < a < math.inf for a in self.weights):
            raise ValueError(f"weights must be positive finite numbers, not {self.weights}.")

    def needs(self, n_clients: int | None = None) -> frozenset[str]:
        """Return "partial" and "unequal", or nothing if the subset is everybody.

        >>> sorted(WeightedSubset(size=2).needs(5)), sorted(WeightedSubset(size=5).needs(5))
        (['partial', 'unequal'], [])
        """
        return frozenset() if self.size == n_clients else frozenset({"partial", "unequal"})

    def law(self, n_clients: int) -> Law:
        """Return COHORTS, or EVERYBODY if the subset is.

        >>> WeightedSubset(size=2, weights=(1.0, 1.0, 2.0)).law(3).inclusion
        (0.5, 0.5, 1.0)
        """
        if self.size == n_clients:
            return Law(name=EVERYBODY, n_clients=n_clients)
        fraction, chances = self.size / n_clients, self.inclusion(n_clients)
        return Law(name=COHORTS, n_clients=n_clients, fraction=fraction, chances=chances)

    def inclusion(self, n_clients: int) -> tuple[float, ...]:
        """Return the probabilities with which the clients are active."""
        if self.size > n_clients:
            raise ValueError(f"size must not exceed the number of clients, {n_clients}, but it is {self.size}.")
        weights = self.weights or (1.0,) * n_clients
        if len(weights) != n_clients:
            raise ValueError(f"weights must be {n_clients} numbers, one for each client, not {len(weights)}.")
        return inclusion_probabilities(weights, self.size)

    def cohorts(self, n_clients: int) -> dict[Cohort, float]:
        """Return all cohorts with their probabilities."""
        return cohorts(self.inclusion(n_clients))

    def rounds(self, n_clients: int, seed: int) -> Iterator[Round]:
        """Yield rounds with ``size`` active clients each."""
        rng, probabilities = generator(seed, PARTICIPATION_STREAM), self.inclusion(n_clients)
        common = {
            "communicate": True,
            "seed": seed,
            "inclusion": None if len(set(probabilities)) == 1 else probabilities,
        }
        for n in count():
            yield Round(n=n, n_clients=n_clients, clients=drawn(probabilities, rng.random), **common)


@dataclass(frozen=True, kw_only=True)
class Bernoulli(Typed):
    """Each client takes part with the same probability, independently of the others; perhaps nobody does.

    Parameters
    ----------
    probability : float
        In (0, 1].
    nonempty : bool, default False
        Whether a cohort is drawn again as long as nobody is in it, so that a client is active with the probability
        :math:`p/(1 - (1 - p)^N)`, and no longer independently of the others: of 100 clients with 1 percent each 1.58
        are active on average.

    Raises
    ------
    ValueError
        If ``probability`` is out of range; from ``rounds`` if it is below 1e-4/N and ``nonempty``.

    Examples
    --------
    >>> rounds = Bernoulli(probability=0.5).rounds(5, seed=0)
    >>> [next(rounds).clients for _ in range(3)]
    [(1, 3, 4), (1, 3), (1, 4)]
    >>> round(100 * Bernoulli(probability=0.01, nonempty=True).law(100).fraction, 2)
    1.58
    """

    probability: float
    nonempty: bool = False

    def __post_init__(self) -> None:
        _check_probability(self.probability)

    def needs(self, n_clients: int | None = None) -> frozenset[str]:
        """Return "partial", unless the probability is 1."""
        return frozenset() if self.probability == 1 else frozenset({"partial"})

    def law(self, n_clients: int) -> Law:
        """Return INDEPENDENT, UNSTATED where nonempty, or EVERYBODY if the probability is 1."""
        if self.probability == 1:
            return Law(name=EVERYBODY, n_clients=n_clients)
        if not self.nonempty:
            return Law(name=INDEPENDENT, n_clients=n_clients, fraction=self.probability)
        somebody = -math.expm1(n_clients * math.log1p(-self.probability))
        return Law(name=UNSTATED, n_clients=n_clients, fraction=self.probability / somebody)

    def rounds(self, n_clients: int, seed: int) -> Iterator[Round]:
        """Yield rounds with a random number of active clients."""
        if self.nonempty and self.probability * n_clients < SELDOM:
            raise ValueError(
                f"probability must be at least {SELDOM / n_clients:g} where cohorts of {n_clients} clients are drawn "
                f"until somebody is active, not {self.probability:g}."
            )
        rng = generator(seed, PARTICIPATION_STREAM)
        for n in count():
            active = rng.random(n_clients) < self.probability
            while self.nonempty and not active.any():
                active = rng.random(n_clients) < self.probability
            yield Round(n=n, n_clients=n_clients, clients=_sorted(active.nonzero()[0]), communicate=True, seed=seed)


@dataclass(frozen=True, kw_only=True)
class CommunicateWithProbability(Typed):
    """Every client works in every round; one coin for all decides whether the round ends with communication.

    Parameters
    ----------
    probability : float
        In (0, 1]; ``1 - p`` of the FedPD paper, ``p`` of Scaffnew.

    Raises
    ------
    ValueError
        If ``probability`` is out of range.

    Examples
    --------
    >>> rounds = CommunicateWithProbability(probability=0.5).rounds(3, seed=0)
    >>> [next(rounds).communicate for _ in range(5)]
    [False, True, False, True, True]
    """

    probability: float

    def __post_init__(self) -> None:
        _check_probability(self.probability)

    def needs(self, n_clients: int | None = None) -> frozenset[str]:
        """Return "skip", unless the probability is 1."""
        return frozenset() if self.probability == 1 else frozenset({"skip"})

    def law(self, n_clients: int) -> Law:
        """Return SKIPPED, or EVERYBODY if the probability is 1."""
        name = EVERYBODY if self.probability == 1 else SKIPPED
        return Law(name=name, n_clients=n_clients, communication=self.probability)

    def rounds(self, n_clients: int, seed: int) -> Iterator[Round]:
        """Yield rounds with all clients, of which a random part communicates."""
        rng, everybody = generator(seed, PARTICIPATION_STREAM), tuple(range(n_clients))
        for n in count():
            coin = bool(rng.random() < self.probability)
            yield Round(n=n, n_clients=n_clients, clients=everybody, communicate=coin, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Given clients in given rounds, over and over: to replay a run, or to enumerate what chance may do.

    Parameters
    ----------
    clients : tuple of tuple of int
        The active clients of each round.
    communicate : tuple of bool, optional
        Whether each round communicates; all do when not given.

    Raises
    ------
    ValueError
        If there are no rounds, a round names a client twice, or the two lengths differ; from ``rounds`` if there is no
        such client.

    Examples
    --------
    >>> rounds = Schedule(clients=((0, 1), (2,))).rounds(3, seed=0)
    >>> [next(rounds).clients for _ in range(3)]
    [(0, 1), (2,), (0, 1)]
    """

    clients: tuple[tuple[int, ...], ...]
    communicate: tuple[bool, ...] | None = None

    def __post_init__(self) -> None:
        if not self.clients:
            raise ValueError("clients must hold at least one round.")
        if any(len(set(chosen)) < len(chosen) for chosen in self.clients):
            raise ValueError("clients must not name a client twice in one round.")
        if self.communicate is not None and len(self.communicate) != len(self.clients):
            raise ValueError(
                f"communicate must have one entry for each of the {len(self.clients)} rounds of clients, "
                f"not {len(self.communicate)}."
            )

    def needs(self, n_clients: int | None = None) -> frozenset[str]:
        """Return "partial" unless everybody is active in every round, and "skip" if a round does not communicate.

        >>> sorted(Schedule(clients=((0, 1), (0, 1)), communicate=(True, False)).needs(2))
        ['skip']
        """
        everybody = all(len(chosen) == n_clients for chosen in self.clients)
        skips = not all(self.communicate or ())
        return frozenset({"partial"} if not everybody else ()) | frozenset({"skip"} if skips else ())

    def law(self, n_clients: int) -> Law:
        """Return GIVEN with the mean fraction of the rounds, or EVERYBODY if all rounds have all clients.

        >>> Schedule(clients=((0, 1), (2,))).law(3).fraction
        0.5
        """
        if not self.needs(n_clients):
            return Law(name=EVERYBODY, n_clients=n_clients)
        fraction = sum(len(chosen) for chosen in self.clients) / (len(self.clients) * n_clients)
        return Law(name=GIVEN, n_clients=n_clients, fraction=fraction)

    def rounds(self, n_clients: int, seed: int) -> Iterator[Round]:
        """Yield the rounds of the schedule, again and again."""
        known = range(n_clients)
        for j in (j for chosen in self.clients for j in chosen if j not in known):
            raise ValueError(f"clients must lie between 0 and {n_clients - 1}, but one is {j}.")
        communicates = self.communicate or (True,) * len(self.clients)
        for n, (chosen, coin) in enumerate(cycle(zip(self.clients, communicates, strict=True))):
            yield Round(n=n, n_clients=n_clients, clients=_sorted(chosen), communicate=coin, seed=seed)


def law_of(participation: Participation | None, n_clients: int) -> Law:
    """Return the law of a participation; EVERYBODY where there is none, UNSTATED where it does not say.

    Examples
    --------
    >>> law_of(None, 3).name
    'everybody in every round'
    """
    if participation is None:
        return Full().law(n_clients)
    found = getattr(participation, "law", None)
    return Law(name=UNSTATED, n_clients=n_clients) if found is None else found(n_clients)


RULES: dict[str, Any] = {
    "full": Full,
    "subset": UniformSubset,
    "importance": WeightedSubset,
    "bernoulli": Bernoulli,
    "communicate": CommunicateWithProbability,
    "schedule": Schedule,
}
"""The rules by name."""


def as_participation(participation: Any) -> Any:
    """Return who takes part, also where it is text; None, which means everybody, remains.

    ``"full"`` is everybody in every round, ``"subset=10"`` ten clients drawn uniformly, ``"importance=10"`` ten drawn
    with the weights that the method suggests, ``"bernoulli=0.3"`` each client with probability 0.3, and
    ``"communicate=0.5"`` everybody with communication in half of the rounds.

    Raises
    ------
    ValueError
        If the text is wrong, or a class is passed in place of an instance.

    Examples
    --------
    >>> as_participation("bernoulli=0.5")
    Bernoulli(probability=0.5, nonempty=False)
    """
    found = built(participation, "participation")
    if found is not None and not hasattr(found, "needs"):
        raise ValueError(f"participation must be a Participation or text such as 'subset=10', not {found!r}.")
    return found


def _sorted(clients: Any) -> tuple[int, ...]:
    return tuple(sorted(indices(clients).tolist()))


def _check_probability(probability: float) -> None:
    if not 0 < probability <= 1:
        raise ValueError(f"probability must lie in (0, 1], not {probability}.")
