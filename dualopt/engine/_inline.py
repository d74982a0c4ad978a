"""Hosts that are objects of this process, and blocks of clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from dualopt.arrays._checks import Typed, require, require_at_least
from dualopt.engine._host import Host, answered
from dualopt.engine._remote import RemoteClients
from dualopt.objectives import Objective
from dualopt.objectives.composite import Composite, without_regulariser

if TYPE_CHECKING:
    from dualopt.methods.preparation import Prepared

__all__ = ["Blocks", "Clustered", "Inline", "LocalHost"]


class Clustered(Protocol):
    """What has the clients of an objective on hosts."""

    def clients(self, objective: Objective, prepared: Prepared | None = None) -> Objective:
        """Return the objective with its clients there; ``prepared`` is given where rounds work on something else."""
        ...


class LocalHost:
    """An engine with one host, which is an object of this process; what fails in it is not caught.

    Parameters
    ----------
    host : Host
        It is called 0.
    """

    hosts: Sequence[int] = (0,)
    in_process = True
    partial_sums = False

    def __init__(self, host: Host) -> None:
        self.host = host

    def call(self, requests: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """Call the host."""
        return {0: self.host.answer(requests[0])}


class Inline:
    """An engine whose hosts are objects of this process.

    Parameters
    ----------
    hosts : sequence of Host
        They are called 0, 1, ...
    in_process : bool, default True
        Whether the hosts live and die with the server (``Engine``).
    partial_sums : bool, default False
        Whether hosts return sums over their clients.
    """

    def __init__(self, hosts: Sequence[Host], *, in_process: bool = True, partial_sums: bool = False) -> None:
        self.objects = list(hosts)
        self.hosts: Sequence[Any] = tuple(range(len(hosts)))
        self.in_process, self.partial_sums = in_process, partial_sums

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
    number : int
        How many blocks of consecutive clients, as equal as can be.
    partial_sums : bool, default False
        Whether blocks return sums of uploads, as ``--reduce fast`` does over MPI: sums of another grouping round
        differently.

    Raises
    ------
    ValueError
        If ``number`` is less than 1; from ``clients`` if there are fewer clients.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import DualFL, Quadratic, run
    >>> f = Quadratic(A=np.stack([np.eye(2), 2 * np.eye(2), np.eye(2)]), b=np.ones((3, 2)))
    >>> whole, blocks = run(DualFL(), f, rounds=9), run(DualFL(), f, rounds=9, engine=Blocks(number=2))
    >>> bool((whole.theta == blocks.theta).all()), blocks["gradients"].tolist() == whole["gradients"].tolist()
    (True, True)
    """

    number: int
    partial_sums: bool = False

    def __post_init__(self) -> None:
        require_at_least(1, number=self.number)

    def clients(self, objective: Objective, prepared: Prepared | None = None) -> Objective:
        """Return the objective with its clients in these blocks, whose rounds work on what a preparation made of it."""
        hosts = self.hosts(objective, prepared)
        return elsewhere(objective, RemoteClients(Inline(hosts, partial_sums=self.partial_sums)))

    def hosts(self, objective: Objective, prepared: Prepared | None = None) -> list[Host]:
        """Return a host for each block."""
        f = without_regulariser(objective)
        blocks = [range(a, b) for a, b in pairwise(self.edges(f.n_clients))]
        of = [None if prepared is None else prepared.select(block) for block in blocks]
        return [Host(f.select(block), block[0], prepared=own) for block, own in zip(blocks, of, strict=True)]

    def edges(self, n_clients: int) -> list[int]:
        """Return where the blocks begin, and the number of clients.

        >>> Blocks(number=3).edges(8)
        [0, 2, 5, 8]
        """
        require(self.number <= n_clients, f"number must be at most the {n_clients} clients", self.number)
        return [k * n_clients // self.number for k in range(self.number + 1)]


def elsewhere(objective: Any, clients: RemoteClients) -> Any:
    """Return the clients in place of those of ``objective``, whose regulariser stays with the server."""
    return replace(objective, objective=clients) if isinstance(objective, Composite) else clients
