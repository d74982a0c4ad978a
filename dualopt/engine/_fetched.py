"""States that hosts hold, for those who look at them and for checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualopt.arrays.tree import take_rows, tree_map
from dualopt.arrays.xp import Array, array_namespace
from dualopt.engine import _protocol as ask
from dualopt.engine._calls import Calls
from dualopt.methods.participation import Round
from dualopt.solvers import LocalSolution

__all__ = ["Fetched", "RemoteLatest"]


class RemoteLatest:
    """Stands for the latest local solutions of all clients, which hosts keep; it has them for checkpoints alone."""

    solution = None  # hosts make dual points of their own

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._kept: Any = None

    def update(self, clients: Sequence[int], solution: LocalSolution | None) -> None:
        """Do nothing: hosts do it when a round is settled."""

    @property
    def kept(self) -> Any:
        """All of them, as a checkpoint of one process has them; None where hosts have files of their own."""
        calls = self._calls
        if not calls.engine.together:
            return None
        found = [x.latest for x in calls.ask_all(ask.States(calls.run, calls.rounds))]
        parts = [(*latest, own) for latest, own in zip(found, calls.clients, strict=True) if latest is not None]
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

    def restore(self, kept: Any) -> None:
        """Take them from a checkpoint, for the hosts that are about to be told."""
        self._kept = kept

    def rows_of(self, clients: Sequence[int]) -> Any:
        """Return those of some clients, as `LatestSolutions.kept` has them."""
        if self._kept is None:
            return None
        rows, ids, exact = self._kept
        if ids is None:
            return take_rows(rows, clients), None, exact
        place = {j: k for k, j in enumerate(ids.tolist())}
        own = [k for k, j in enumerate(clients) if j in place]
        return (take_rows(rows, [place[clients[k]] for k in own]), np.array(own), exact) if own else None


class Fetched:
    """States of all clients after a round, asked for when somebody looks at them."""

    def __init__(self, calls: Calls, round: Round, part: str) -> None:
        self._calls, self._round, self._part = calls, round, part
        self._tree: Any = None

    @property
    def tree(self) -> Any:
        """The states, client axis first.

        Raises
        ------
        ValueError
            If a later round has begun.
        """
        if self._tree is None:
            ids = [j for own in self._calls.clients for j in own]
            self._tree = _in_order([getattr(x, self._part) for x in self._found()], ids)
        return self._tree

    @property
    def local_models(self) -> Array:
        """Where the clients that counted ended, in their order."""
        asked = self._calls.asked
        rows = [x.local_models for h, x in enumerate(self._found()) if h in asked]
        ids = [j for h in sorted(asked) for j in asked[h]]
        place = {j: k for k, j in enumerate(ids)}
        return take_rows(array_namespace(*rows).concat(rows, axis=0), [place[j] for j in self._round.clients])

    def _found(self) -> list[ask.StatesFound]:
        n = self._round.n + 1
        if self._calls.rounds != n:
            raise ValueError(f"states after round {n} are gone: clients elsewhere have only the latest ones.")
        return self._calls.ask_all(ask.States(self._calls.run, n))


def _in_order(parts: list[Any], ids: list[int]) -> Any:
    """Return rows of clients in the order of their numbers."""
    rows = parts[0] if len(parts) == 1 else tree_map(lambda *x: array_namespace(*x).concat(list(x), axis=0), *parts)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    return rows if order == list(range(len(ids))) else take_rows(rows, order)
