"""Who takes part in a round, when to communicate, and every random stream of a run.

All streams are derived from one seed by ``numpy.random.SeedSequence`` spawn keys, so that a run is the same on
every backend, in any order of the clients, and with one process per client:

========================  ==========================================
spawn key                 stream
========================  ==========================================
``(0,)``                  participation
``(1, n, j)``             client ``j`` in round ``n``
``(2, n)``                common to all in round ``n``
``(3,)``                  data (partitions, synthetic sets)
========================  ==========================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from numpy.random import Generator, SeedSequence, default_rng

__all__ = ["Full", "Participation", "Round"]


@dataclass(frozen=True, kw_only=True)
class Round:
    """One communication round as a client or the server sees it.

    Attributes
    ----------
    n : int
        Index of the round, from 0.
    n_clients : int
        Number ``N`` of clients of the federation.
    clients : tuple of int
        Identities of the clients that this call concerns (the active ones).
    communicate : bool
        Whether uploads are averaged at the end of the round.
    seed : int
        Seed of the run.

    Examples
    --------
    >>> r = Round(n=3, n_clients=10, clients=(2, 5), communicate=True, seed=0)
    >>> r.n_active, r.fraction
    (2, 0.2)
    >>> bool(r.rngs()[0].random() == r.rngs()[0].random())
    True
    """

    n: int
    n_clients: int
    clients: tuple[int, ...]
    communicate: bool
    seed: int

    @property
    def n_active(self) -> int:
        """Number ``P`` of active clients."""
        return len(self.clients)

    @property
    def fraction(self) -> float:
        """The share ``P/N`` of active clients."""
        return self.n_active / self.n_clients

    def rngs(self) -> list[Generator]:
        """Return one random generator for each client of the call, the same whoever else takes part."""
        return [default_rng(SeedSequence(self.seed, spawn_key=(1, self.n, j))) for j in self.clients]

    def rng(self) -> Generator:
        """Return the random generator that all participants of the round share."""
        return default_rng(SeedSequence(self.seed, spawn_key=(2, self.n)))


class Participation(Protocol):
    """A rule that says who is active in each round and whether the round ends with communication."""

    needs: ClassVar[frozenset[str]]
    """What an algorithm must support: "partial" (some clients idle), "skip" (rounds without communication)."""

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

    needs: ClassVar[frozenset[str]] = frozenset()

    def rounds(self, n_clients: int, seed: int) -> Iterator[Round]:
        """Yield rounds in which all ``n_clients`` clients are active."""
        clients = tuple(range(n_clients))
        n = 0
        while True:
            yield Round(n=n, n_clients=n_clients, clients=clients, communicate=True, seed=seed)
            n += 1
