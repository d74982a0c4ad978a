"""States that hosts hold, for those who look at them and for checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dualopt.arrays.client_states import ClientStates
from dualopt.arrays.tree import take_rows, tree_map
from dualopt.arrays.xp import Array, array_namespace
from dualopt.engine import _protocol as protocol
from dualopt.methods.participation import Round

__all__ = ["LazyStates", "joined_solutions", "solutions_of"]


class LazyStates:
    """States of all clients after a round, asked for when somebody looks at them.

    Parameters
    ----------
    round : Round
        That round, with the clients that counted.
    clients : sequence of tuple of int
        The clients of each host.
    asked : dict of int to tuple of int
        Those who worked, by host.
    ask : callable
        Asks all hosts for what they hold after so many rounds.
    kept : RemoteState, optional
        What the server knows of hosts that keep their states in files.

    Raises
    ------
    ValueError
        Where they are asked for, if a later round has begun.
    """

    def __init__(
        self,
        round: Round,
        clients: Sequence[tuple[int, ...]],
        asked: Mapping[int, tuple[int, ...]],
        ask: Callable[[int], list[protocol.StatesFound]],
        kept: Any = None,
    ) -> None:
        self._round, self._clients, self._asked, self._ask, self._kept = round, clients, asked, ask, kept

    @property
    def clients(self) -> ClientStates:
        """Those of the clients."""
        return self._joined("clients")

    @property
    def solver(self) -> ClientStates:
        """Those of their solvers."""
        return self._joined("solver")

    @property
    def memory(self) -> ClientStates:
        """What the clients remember of compressed uploads."""
        return self._joined("memory")

    @property
    def resumed_from(self) -> tuple[Any, Any, Any]:
        """What later rounds start from: the states, or what the server knows of hosts that keep them in files."""
        if self._kept is not None:
            return self._kept, (), ()
        return self.clients.tree, self.solver.tree, self.memory.tree

    @property
    def local_models(self) -> Array:
        """Where the clients that counted ended, in their order."""
        rows = [x.local_models for h, x in enumerate(self._found) if h in self._asked]
        ids = [j for h in sorted(self._asked) for j in self._asked[h]]
        place = {j: k for k, j in enumerate(ids)}
        return take_rows(array_namespace(*rows).concat(rows, axis=0), [place[j] for j in self._round.clients])

    @cached_property
    def _found(self) -> list[protocol.StatesFound]:
        """What the hosts answer."""
        return self._ask(self._round.n + 1)

    def _joined(self, part: str) -> ClientStates:
        """Return one part of the states of all clients, in their order."""
        ids = [j for own in self._clients for j in own]
        return ClientStates(_in_order([getattr(x, part) for x in self._found], ids), len(ids))


def joined_solutions(found: Sequence[Any], clients: Sequence[tuple[int, ...]]) -> Any:
    """Return the latest local solutions that several hosts hold, as a checkpoint of one process has them."""
    parts = [(*latest, own) for latest, own in zip(found, clients, strict=True) if latest is not None]
    if not parts:
        return None
    whole = len(parts) == len(found) and all(places is None for _, places, _, _ in parts)
    exact = all(one for _, _, one, _ in parts)
    ids = [j for _, places, _, own in parts for j in (own if places is None else [own[k] for k in places])]
    rows = [x for x, *_ in parts]
    if not (whole and exact):
        rows = [(*x[:3], array_namespace(x[1]).zeros_like(x[1]) if x[3] is None else x[3]) for x in rows]
    joined = _in_order(rows, ids)
    return joined, None if whole else np.array(sorted(ids)), exact


def solutions_of(kept: Any, clients: Sequence[int]) -> Any:
    """Return those of some clients, as `LatestSolutions.kept` has them."""
    if kept is None:
        return None
    rows, ids, exact = kept
    if ids is None:
        return take_rows(rows, clients), None, exact
    place = {j: k for k, j in enumerate(ids.tolist())}
    own = [k for k, j in enumerate(clients) if j in place]
    return (take_rows(rows, [place[clients[k]] for k in own]), np.array(own), exact) if own else None


def _in_order(parts: list[Any], ids: list[int]) -> Any:
    """Return rows of clients in the order of their numbers."""
    rows = parts[0] if len(parts) == 1 else tree_map(lambda *x: array_namespace(*x).concat(list(x), axis=0), *parts)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    return rows if order == list(range(len(ids))) else take_rows(rows, order)
