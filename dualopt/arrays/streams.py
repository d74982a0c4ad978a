"""The rounds of a run as clients and the server see them, and every random stream of a run and of its data.

All streams are derived from one seed by ``numpy.random.SeedSequence`` spawn keys, so that a run is the same on
every backend, in any order of the clients, and with one process per client:

========================  ==========================================
spawn key                 stream
========================  ==========================================
``(0,)``                  participation
``(1, n, j)``             client ``j`` in round ``n``
``(2, n)``                common to all in round ``n``
``(3,)``, ``(3, 1)``      data: partitions, subsamples
``(3, 2, j)``             how the images of client ``j`` are changed
``(4,)``                  synthetic data
``(5,)``                  the first model of a network
``(6,)``, ``(6, id)``     common to all, or of a client, before the first round
``(6, n, j)``             what client ``j`` sends in round ``n``, if compressed
``(7, n)``                the same, common to all
``(8, n)``                what the server sends at the end of round ``n``, if compressed
========================  ==========================================
"""

from __future__ import annotations

from dataclasses import dataclass, field

from numpy.random import Generator, SeedSequence, default_rng

from dualopt.arrays._checks import at_least

__all__ = [
    "BRIGHTNESS_STREAM",
    "PARTICIPATION_STREAM",
    "PARTITION_STREAM",
    "SAMPLE_STREAM",
    "SYNTHETIC_STREAM",
    "Round",
    "first_round",
    "generator",
    "preparation_rng",
]

PARTICIPATION_STREAM = (0,)
PARTITION_STREAM = (3,)
SAMPLE_STREAM = (3, 1)
BRIGHTNESS_STREAM = (3, 2)
SYNTHETIC_STREAM = (4,)


def generator(seed: int, stream: tuple[int, ...]) -> Generator:
    """Return the generator of one stream of ``seed``."""
    return default_rng(SeedSequence(at_least(0, "seed", seed), spawn_key=stream))


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
    inclusion : tuple of float, optional
        The probabilities with which all clients are active; None where they are equal.
    weight : float, optional
        The weight of the active clients over that of all; None where all weights are equal. For the server alone.
    kept : float, default 1
        Which part of a compressed step both ends take, ``1/(1 + omega)``: 1 without a compressor.

    Examples
    --------
    >>> r = Round(n=3, n_clients=10, clients=(2, 5), communicate=True, seed=0)
    >>> r.n_active, r.turnout, r.fraction
    (2, 0.2, 0.2)
    >>> bool(r.rngs()[0].random() == r.rngs()[0].random())
    True
    """

    n: int
    n_clients: int
    clients: tuple[int, ...]
    communicate: bool
    seed: int
    inclusion: tuple[float, ...] | None = field(default=None, repr=False)
    weight: float | None = field(default=None, repr=False)
    kept: float = field(default=1.0, repr=False)

    @property
    def n_active(self) -> int:
        """Number ``P`` of active clients."""
        return len(self.clients)

    @property
    def turnout(self) -> float:
        """The number of the active clients over that of all, ``P/N``."""
        return self.n_active / self.n_clients

    @property
    def fraction(self) -> float:
        """The weight of the active clients over that of all, with equal weights ``P/N``.

        It times the mean of the active clients is their part of the mean of all.
        """
        return self.turnout if self.weight is None else self.weight

    def rngs(self) -> list[Generator]:
        """Return one random generator for each client of the call, the same whoever else takes part."""
        return [generator(self.seed, (1, self.n, j)) for j in self.clients]

    def rng(self) -> Generator:
        """Return the random generator that all participants of the round share."""
        return generator(self.seed, (2, self.n))

    def compression_rngs(self) -> list[Generator]:
        """Return one random generator for what each client of the call sends, the same whoever else takes part."""
        return [generator(self.seed, (6, self.n, j)) for j in self.clients]

    def compression_rng(self) -> Generator:
        """Return the random generator that decides for all participants together what each of them sends."""
        return generator(self.seed, (7, self.n))


def first_round(n_clients: int) -> Round:
    """Return round 0 of a run with seed 0 in which everybody is active: the round of a solver called on its own.

    Examples
    --------
    >>> first_round(2)
    Round(n=0, n_clients=2, clients=(0, 1), communicate=True, seed=0)
    """
    return Round(n=0, n_clients=n_clients, clients=tuple(range(n_clients)), communicate=True, seed=0)


def preparation_rng(seed: int, client: int | None = None) -> Generator:
    """Return the generator for what happens before the first round: common to all, or of one client.

    Examples
    --------
    >>> bool(preparation_rng(0).random() == preparation_rng(0).random() != preparation_rng(0, 0).random())
    True
    """
    return generator(seed, (6,) if client is None else (6, client))
