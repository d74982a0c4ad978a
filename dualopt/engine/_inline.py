"""Hosts that are objects of this process, and blocks of clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from dualopt.arrays._checks import Typed, require
from dualopt.engine._host import Host, answered
from dualopt.engine._remote import RemoteClients
from dualopt.objectives import Objective
from dualopt.objectives.composite import Composite, without_regulariser

__all__ = ["Blocks", "Inline"]


class Inline:
    """An engine whose hosts are objects of this process.

    Parameters
    ----------
    hosts : sequence of Host
        They are called 0, 1, ...
    together : bool, default True
        Whether the hosts live and die with the server (``Engine``).
    summed : bool, default False
        Whether hosts return sums over their clients.
    """

    def __init__(self, hosts: Sequence[Host], *, together: bool = True, summed: bool = False) -> None:
        self.objects = list(hosts)
        self.hosts: Sequence[Any] = tuple(range(len(hosts)))
        self.together, self.summed = together, summed

    def learn(self, types: Iterable[type]) -> None:
        """Tell the hosts the classes of a method."""
        for host in self.objects:
            host.types = (*host.types, *types)

    def call(self, requests: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """Call one host after the other."""
        return {h: answered(self.objects[h], batch) for h, batch in requests.items()}


@dataclass(frozen=True, kw_only=True)
class Blocks(Typed):
    """Blocks of clients, each a host of its own in this process: what runs elsewhere are compared with.

    Parameters
    ----------
    number : int, optional
        How many blocks of consecutive clients, as equal as can be.
    sizes : tuple of int, optional
        How many clients each block has, in place of their number.
    summed : bool, default False
        Whether blocks return sums of uploads, as ``--reduce fast`` does over MPI: sums of another grouping round
        differently.

    Raises
    ------
    ValueError
        If neither or both of the two are given; from ``clients`` if they do not fit the number of clients.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import DualFL, Quadratic, run
    >>> f = Quadratic(A=np.stack([np.eye(2), 2 * np.eye(2), np.eye(2)]), b=np.ones((3, 2)))
    >>> whole, blocks = run(DualFL(), f, rounds=9), run(DualFL(), f, rounds=9, engine=Blocks(number=2))
    >>> bool((whole.theta == blocks.theta).all()), blocks["gradients"].tolist() == whole["gradients"].tolist()
    (True, True)
    """

    number: int | None = None
    sizes: tuple[int, ...] | None = None
    summed: bool = False

    def __post_init__(self) -> None:
        require((self.number is None) != (self.sizes is None), "either number or sizes must be given")
        require(self.number is None or self.number >= 1, "number must be at least 1", self.number)
        require(self.sizes is None or all(n >= 1 for n in self.sizes), "sizes must be at least 1", self.sizes)

    def clients(self, objective: Objective) -> Objective:
        """Return the objective with its clients in these blocks."""
        f = without_regulariser(objective)
        edges = self.edges(f.n_clients)
        hosts = [Host(f.select(range(a, b)), a) for a, b in pairwise(edges)]
        return elsewhere(objective, RemoteClients(Inline(hosts, summed=self.summed)))

    def edges(self, n_clients: int) -> list[int]:
        """Return where the blocks begin, and the number of clients.

        >>> Blocks(number=3).edges(8), Blocks(sizes=(1, 4)).edges(5)
        ([0, 2, 5, 8], [0, 1, 5])
        """
        if self.sizes is None:
            count = self.number or 1
            require(count <= n_clients, f"number must be at most the {n_clients} clients", count)
            return [k * n_clients // count for k in range(count + 1)]
        require(sum(self.sizes) == n_clients, f"sizes must add up to the {n_clients} clients", self.sizes)
        return [0, *accumulate(self.sizes)]


def elsewhere(objective: Any, clients: RemoteClients) -> Any:
    """Return the clients in place of those of ``objective``, whose regulariser stays with the server."""
    return replace(objective, objective=clients) if isinstance(objective, Composite) else clients
