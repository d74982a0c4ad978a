"""What is computed once for each client of a group, and kept: norms, eigenvalues, Gram matrices and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable

from dualopt.arrays.xp import Array, array_namespace, at_once, indices
from dualopt.objectives._index import Index

__all__ = ["ClientCache"]

MANY, SHORT = 64, 8  # stacks; numbers of a row


class ClientCache:
    """Arrays with one row for each client of a group, for the clients that were asked for.

    They are kept as they were computed, in stacks of the clients of one request, and nothing that was handed out is
    written to. Beyond ``limit`` numbers the oldest stacks are forgotten. Many stacks of short rows become one, because
    a request would have to look into all of them.

    Examples
    --------
    >>> import numpy as np
    >>> kept = ClientCache(5)
    >>> kept.get(Index([1, 2, 3]), lambda: (np.array([1.0, 2.0, 3.0]),))
    (array([1., 2., 3.]),)
    >>> kept.get(Index([3, 1]), lambda: print("computed again"))
    (array([3., 1.]),)
    """

    def __init__(self, n_clients: int, *, limit: float = math.inf) -> None:
        unknown = indices([-1])
        self._host = array_namespace(unknown)
        self._stack = self._host.repeat(unknown, n_clients)  # the stack that holds each client
        self._row = self._host.zeros_like(self._stack)  # and its row there
        self._key = self._host.full(n_clients, math.nan)  # and the number that it was computed for
        self._stacks: dict[int, tuple[Index, tuple[Array, ...]]] = {}
        self._limit, self._numbers, self._next = limit, 0, 0

    def fits(self, positions: Index, key: Array | float) -> bool:
        """Tell whether nothing is kept of these clients that was computed for other keys."""
        own = self._key[positions.ids]
        return bool(((own == key) | (own != own)).all())

    def get(
        self, positions: Index, compute: Callable[[], tuple[Array, ...]], key: Array | float = 0.0
    ) -> tuple[Array, ...]:
        """Return arrays with one row for each position; ``compute()`` makes them unless all are there for the key."""
        if (self._key[positions.ids] != key).any():  # NaN where nothing is known
            arrays = at_once(compute)
            self._keep(positions, arrays, key)
            return arrays
        stacks = self._stack[positions.ids]
        latest = self._stacks[int(stacks[0])][1]
        if (stacks == stacks[0]).all():
            where = Index(self._row[positions.ids])
            return tuple(where.take(x) for x in latest)
        if len(self._stacks) > MANY and sum(math.prod(x.shape[1:]) for x in latest) <= SHORT:
            known = Index(self._host.flatnonzero(self._stack >= 0))
            self._keep(known, self._gathered(known), self._key[known.ids])
        return self._gathered(positions)

    def _gathered(self, positions: Index) -> tuple[Array, ...]:
        """Return the rows of clients in several stacks."""
        host, stacks, rows = self._host, self._stack[positions.ids], self._row[positions.ids]
        order = host.argsort(stacks, stable=True)
        ends = [*(host.flatnonzero(host.diff(stacks[order])) + 1).tolist(), len(positions)]
        parts, start = [], 0
        for end in ends:
            own = order[start:end]
            where = Index(rows[own])
            parts.append([where.take(x) for x in self._stacks[int(stacks[own[0]])][1]])
            start = end
        xp = array_namespace(parts[0][0])
        together = [xp.concat(list(columns), axis=0) for columns in zip(*parts, strict=True)]
        back = Index(host.argsort(order))
        return tuple(back.take(x) for x in together)

    def _keep(self, positions: Index, arrays: tuple[Array, ...], key: Array | float) -> None:
        replaced = self._host.unique(self._stack[positions.ids]).tolist()
        self._stack[positions.ids] = self._next
        self._row[positions.ids] = self._host.arange(len(positions))
        self._key[positions.ids] = key
        self._stacks[self._next] = (positions, arrays)
        self._numbers += sum(math.prod(x.shape) for x in arrays)
        self._next += 1
        for stack in replaced:
            if stack >= 0 and not (self._stack[self._stacks[stack][0].ids] == stack).any():
                self._forget(stack)
        while self._numbers > self._limit and len(self._stacks) > 1:
            self._forget(next(iter(self._stacks)))

    def _forget(self, stack: int) -> None:
        positions, arrays = self._stacks.pop(stack)
        self._numbers -= sum(math.prod(x.shape) for x in arrays)
        ids = positions.ids[self._stack[positions.ids] == stack]
        self._stack[ids] = -1
        self._key[ids] = math.nan
