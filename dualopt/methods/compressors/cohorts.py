"""Each coordinate from some of the clients: a cohort for every coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualopt.arrays._checks import Typed, require_at_least
from dualopt.arrays.xp import Array, array_namespace, asarray_like, device
from dualopt.methods.compressors._protocol import require_within, size_of
from dualopt.methods.participation import Round

__all__ = ["CoordinateCohorts"]


@dataclass(frozen=True, kw_only=True)
class CoordinateCohorts(Typed):
    r"""Each coordinate from exactly c of the N clients, scaled by N/c.

    One permutation :math:`\pi` of the clients is drawn for a round, and client j sends coordinate i if
    :math:`(\pi_j + i) \bmod N < c`. So every coordinate has a cohort of c clients, all such cohorts are equally likely,
    and clients send the same number of coordinates up to one. Different coordinates are dependent. To every single
    client it is an unbiased compressor with :math:`\omega = \frac Nc - 1`; beyond that the mean over all clients is the
    mean over c of them in every coordinate, which FedDyn needs.

    **What is sent** are numbers in full width, c d by all clients together. The permutation comes from the stream that
    all share: no positions travel.

    Parameters
    ----------
    size : int
        c.

    Raises
    ------
    ValueError
        If ``size`` is less than 1; in use if it exceeds the number of clients.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.participation import first_round
    >>> CoordinateCohorts(size=1).compress(np.ones((2, 5)), first_round(2)).tolist()
    [[2.0, 0.0, 2.0, 0.0, 2.0], [0.0, 2.0, 0.0, 2.0, 0.0]]
    >>> CoordinateCohorts(size=1).omega((5,), 2), CoordinateCohorts(size=1).numbers((5,), first_round(2))
    (1.0, 5)
    """

    example: ClassVar[dict[str, Any]] = {"size": 2}
    unbiased: ClassVar[bool] = True
    independent: ClassVar[bool] = False

    size: int

    def __post_init__(self) -> None:
        require_at_least(1, size=self.size)

    def omega(self, shape: tuple[int, ...], n_clients: int) -> float:
        """Return ``N/c - 1``."""
        require_within(self.size, n_clients, "clients")
        return n_clients / self.size - 1.0

    def compress(self, x: Array, round: Round) -> Array:
        """Return the coordinates whose cohorts the clients are in, scaled, and zeros."""
        xp = array_namespace(x)
        scale = 1.0 + self.omega(tuple(x.shape[1:]), round.n_clients)
        places = asarray_like(self._places(round), x, dtype=xp.int64)
        coordinates = xp.arange(size_of(tuple(x.shape[1:])), dtype=xp.int64, device=device(x))
        chosen = xp.reshape((places[:, None] + coordinates) % round.n_clients < self.size, x.shape)
        return xp.where(chosen, scale * x, xp.zeros_like(x))

    def numbers(self, shape: tuple[int, ...], round: Round) -> int:
        """Return how many numbers the active clients send: ``c d`` if they are all."""
        N, c = round.n_clients, self.size
        turns, rest = divmod(size_of(shape), N)
        # Beyond whole turns, client j sends those of the places p, ..., p + rest - 1 (mod N) that are below c.
        partly = sum(max(0, min(c, p + rest) - p) + max(0, min(c, p + rest - N)) for p in self._places(round))
        return c * turns * round.n_active + partly

    def bits(self, shape: tuple[int, ...], width: int, round: Round) -> int:
        """Return their number times the width."""
        return width * self.numbers(shape, round)

    def _places(self, round: Round) -> list[int]:
        """Return the places of the active clients in the permutation."""
        places = round.compression_rng().permutation(round.n_clients)
        return [int(places[j]) for j in round.clients]
