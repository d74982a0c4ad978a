"""The processes that share one problem: each holds a block of its clients, and some numbers concern them all.

Row weights, classes, scales, the storage of features and the width of padded states are facts of the whole federation.
A process that took them from its own rows would solve another problem, silently. Whoever needs such a fact asks the
:class:`Communicator`; one process has :data:`ALONE`, whose answers are what it was told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from dualopt.arrays.xp import Array

__all__ = ["ALONE", "Alone", "Communicator", "block"]


class Communicator(Protocol):
    """Processes ``0, ..., size - 1`` that call the same methods in the same order.

    Arrays are NumPy's. Sums are of integers, so that their order does not matter.
    """

    @property
    def rank(self) -> int:
        """The number of this process."""
        ...

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    @property
    def share(self) -> float:
        """The part of all processes that shares the memory of this machine."""
        ...

    def total(self, x: Any) -> Any:
        """Return the sums over the processes of a whole number, or of an array of them."""
        ...

    def largest(self, x: Any) -> Any:
        """Return the maxima over the processes of a number or an array."""
        ...

    def collected(self, x: Array) -> list[Array] | None:
        """Return the arrays of all processes, whose first axes may differ, to process 0, and None to the others."""
        ...

    def shared(self, x: Array) -> Array:
        """Return the array of process 0; the others pass one of its shape and type."""
        ...

    def together(self) -> Any:
        """Return a context that ends with an error for all where it does for one; nobody waits for it in vain."""
        ...

    def agree(self, facts: Mapping[str, Any]) -> None:
        """Refuse, in all processes, facts by name that are not the same in all; arrays and bytes are not shown."""
        ...


class Alone:
    """One process: its numbers are those of all.

    Examples
    --------
    >>> ALONE.total(3), ALONE.largest(2.5), block(7, ALONE)
    (3, 2.5, range(0, 7))
    """

    rank, size, share = 0, 1, 1.0

    def total(self, x: Any) -> Any:
        """Return ``x``."""
        return x

    def largest(self, x: Any) -> Any:
        """Return ``x``."""
        return x

    def collected(self, x: Array) -> list[Array] | None:
        """Return ``[x]``."""
        return [x]

    def shared(self, x: Array) -> Array:
        """Return ``x``."""
        return x

    @contextmanager
    def together(self) -> Iterator[None]:
        """Do nothing."""
        yield

    def agree(self, facts: Mapping[str, Any]) -> None:
        """Do nothing."""


ALONE = Alone()


def block(n: int, peers: Communicator) -> range:
    """Return the part of ``range(n)`` that is of this process: consecutive, and as equal as can be.

    >>> class Second(Alone):
    ...     rank, size = 1, 3
    >>> block(8, Second())
    range(2, 5)
    """
    return range(peers.rank * n // peers.size, (peers.rank + 1) * n // peers.size)
