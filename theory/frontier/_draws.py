"""Rounds in which it is said what chance gives to compressors, for exact expectations over all that it may give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import permutations, product
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.methods.participation import Round

__all__ = ["Scripted", "expectation_of_coins", "orders_for_all", "orders_for_each", "scripted"]

BISECTIONS = 54  # of an interval of length 1, down to the spacing of the draws


class Draw:
    """A generator that returns what it was given."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def permutation(self, n: int) -> Array:
        """Return the given order of ``n`` things."""
        order = np.array(self.given)
        if sorted(order) != list(range(n)):
            raise ValueError(f"the order must be one of {n} things.")
        return order

    def random(self, shape: tuple[int, ...], dtype: str) -> Array:
        """Return the given numbers in [0, 1)."""
        return np.array(self.given, dtype=dtype).reshape(shape)


@dataclass(frozen=True, kw_only=True)
class Scripted(Round):
    """A round with given draws: one for each client, or one for all; and the compressor that they are for."""

    draws: Any
    compressor: Any = None

    @property
    def packs(self) -> Any:
        """The compressor with these draws."""
        return None if self.compressor is None else with_draws(self.compressor, self)

    def compression_rngs(self) -> Any:
        """Return the draws of the clients."""
        return [Draw(self.draws[j]) for j in self.clients]

    def compression_rng(self) -> Any:
        """Return the draw for all."""
        return Draw(self.draws)


def with_draws(compressor: Any, drawn: Scripted) -> Any:
    """Return the compressor as it is with the draws of a round, whatever round it is called in."""
    kind = type(compressor)
    compress = {"compress": lambda self, x, round: kind.compress(self, x, drawn)}
    return type(kind.__name__, (kind,), compress)(**{f.name: getattr(compressor, f.name) for f in fields(compressor)})


def scripted(n_clients: int, draws: Any, compressor: Any = None) -> Scripted:
    """Return a round of all clients."""
    everybody, known = tuple(range(n_clients)), {"draws": draws, "compressor": compressor}
    return Scripted(n=0, n_clients=n_clients, clients=everybody, communicate=True, seed=0, **known)


def orders_for_each(n_clients: int, d: int) -> tuple[Scripted, ...]:
    """Return the rounds in which every client has an order of ``d`` things, equally likely.

    Examples
    --------
    >>> len(orders_for_each(3, 2))
    8
    """
    return tuple(scripted(n_clients, draws) for draws in product(permutations(range(d)), repeat=n_clients))


def orders_for_all(n_clients: int) -> tuple[Scripted, ...]:
    """Return the rounds in which all have one order of the clients, equally likely.

    Examples
    --------
    >>> len(orders_for_all(3))
    6
    """
    return tuple(scripted(n_clients, draws) for draws in permutations(range(n_clients)))


def expectation_of_coins(
    outcome: Callable[[Round], Array], quantity: Callable[[Array], Array], shape: tuple, compressor: Any = None
) -> Array:
    """Return the expectation of ``quantity(outcome)``, entry by entry, over one uniform draw for every entry.

    An entry of ``outcome``, shape ``(N, *shape)`` like the draws, depends on its own draw alone, and takes one value
    below a threshold and another one from there on. Bisection finds the threshold, which is the probability.
    """

    def at(draws: Array) -> Array:
        return outcome(scripted(shape[0], draws, compressor))

    low, high = np.zeros(shape), np.full(shape, 1.0 - 2.0**-53)
    first, last = at(low), at(high)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        below = at(middle) == first
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high * quantity(first) + (1.0 - high) * quantity(last)
