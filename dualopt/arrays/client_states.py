"""The states of all clients, of which a round reads and writes those of the active clients alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualopt.arrays.tree import is_everybody, leaves, take_clients, take_rows, tree_map
from dualopt.arrays.xp import Array, array_namespace, device, is_host, set_rows

__all__ = ["ClientStates"]

LAZY = 2**33  # bytes of host memory that a system promises at once, and hands out page by page as they are written


class ClientStates:
    """States of ``N`` clients, a tree of arrays with the client axis first; it never changes as seen from outside.

    ``put`` costs what the rows that it is given cost, in time and in memory, and returns new states. All states that
    come from one another share their arrays: the latest `put` has written into them, and every older version
    remembers the rows that it had there (a persistent array, after Baker 1991, "Shallow binding makes functional
    arrays fast"). Reading an older version exchanges these rows, so it is slower, and never wrong. Clients that were
    not written to have their row in the tree that was given at the start, and no other memory.

    Parameters
    ----------
    tree : tree of arrays, or None
        The states at the start, client axis first; they are neither copied nor changed. With None there are none:
        only clients that were put can be taken.
    n_clients : int
        ``N``.

    Examples
    --------
    >>> before = ClientStates(np.zeros(4), 4)
    >>> after = before.put([1, 3], np.array([5.0, 7.0]))
    >>> after.take([3, 0]).tolist(), before.take([3, 0]).tolist(), after.tree.tolist()
    ([7.0, 0.0], [0.0, 0.0], [0.0, 5.0, 0.0, 7.0])
    """

    __slots__ = ("_n_clients", "_rows", "_taken", "_tree", "_undo")

    def __init__(self, tree: Any, n_clients: int) -> None:
        self._n_clients = n_clients
        self._tree = tree
        self._rows: _Rows | None = None  # shared with the versions that came from this one
        self._taken: tuple[Any, Any] | None = None  # what was read last: it is what the next `put` replaces
        self._undo: tuple[Array, Any, ClientStates] | None = None  # rows of this version, and the version without them

    @property
    def is_complete(self) -> bool:
        """Whether every client has a state, in the latest version; always, if there was a tree at the start."""
        return self._tree is not None or (self._rows is not None and self._rows.is_complete)

    @property
    def known(self) -> Array:
        """The clients that have a state, in the latest version."""
        if self._rows is not None:
            return self._rows.known
        return np.arange(self._n_clients if self.is_complete else 0)

    @property
    def tree(self) -> Any:
        """The states of all clients, not to be written to; put together when it is first asked for."""
        if self._tree is None:
            self._tree = self._latest_rows().whole()
        return self._tree

    def take(self, ids: Any) -> Any:
        """Return the states of the clients ``ids``, in this order; of everybody it is the tree itself."""
        if is_everybody(ids, self._n_clients):
            return self.tree
        if self._tree is not None:
            return take_clients(self._tree, ids)
        if self._taken is None or self._taken[0] is not ids:
            self._taken = ids, self._latest_rows().take(ids)
        return self._taken[1]

    def put(self, ids: Any, tree: Any) -> ClientStates:
        """Return the states with those of the clients ``ids`` replaced; arrays of everybody are kept, not copied."""
        if not len(ids):
            return self
        if is_everybody(ids, self._n_clients):
            return ClientStates(tree, self._n_clients)
        after = ClientStates(None, self._n_clients)
        after._rows = rows = self._latest_rows()
        before = self.take(ids) if self.is_complete else None
        places = rows.places(ids, like=tree)
        self._undo = places, rows.read(places) if before is None else before, after
        rows.write(places, tree)
        return after

    def _latest_rows(self) -> _Rows:
        """Return the shared arrays after an exchange of rows that makes this version the one they hold."""
        if self._rows is None:
            self._rows = _Rows(self._tree, self._n_clients)
        path, version = [], self
        while version._undo is not None:
            path.append(version)
            version = version._undo[2]
        for older in reversed(path):
            places, rows, newer = older._undo  # pyright: ignore[reportGeneralTypeIssues]
            newer._undo = places, self._rows.read(places), older
            self._rows.write(places, rows)
            older._undo = None
        return self._rows


class _Rows:
    """The arrays that versions share: a place for every client that was written to."""

    def __init__(self, base: Any, n_clients: int) -> None:
        self._base = base  # whoever has no place has its row here
        self._place = np.full(n_clients, -1)  # of every client, -1 for none
        self._count = 0  # places that are taken
        self._capacity = 0
        self._arrays: Any = None

    @property
    def is_complete(self) -> bool:
        return self._base is not None or self._count == len(self._place)

    @property
    def known(self) -> Array:
        """The clients that have a row."""
        return np.flatnonzero((self._place >= 0) | (self._base is not None))

    def places(self, ids: Any, like: Any) -> Array:
        """Return the places of the clients ``ids``, which are about to be written; a client without one gets it."""
        ids = np.asarray(ids, dtype=np.int64)
        new = ids[self._place[ids] < 0]
        if len(new):
            self._reserve(self._count + len(new), like if self._base is None else take_rows(self._base, new[:1]))
            self._place[new] = np.arange(self._count, self._count + len(new))
            self._count += len(new)
        return self._place[ids]

    def take(self, ids: Any) -> Any:
        """Return copies of the rows of the clients ``ids``, those of the base where they have no place."""
        ids = np.asarray(ids, dtype=np.int64)
        places = self._place[ids]
        written = np.flatnonzero(places >= 0)
        if len(written) == len(ids):
            return self.read(places)
        rows, found = take_rows(self._base, ids), self.read(places[written])
        return tree_map(lambda x, new: set_rows(x, written, new), rows, found)

    def read(self, places: Array) -> Any:
        """Return copies of the rows at these places."""
        return take_rows(self._arrays, places)

    def write(self, places: Array, tree: Any) -> None:
        """Write rows in place, where the library can."""
        self._arrays = tree_map(lambda x, rows: set_rows(x, places, rows), self._arrays, tree)

    def whole(self) -> Any:
        """Return new arrays of all clients."""
        return self.take(np.arange(len(self._place)))

    def _reserve(self, needed: int, like: Any) -> None:
        if needed > self._capacity:
            everybody, arrays = len(self._place), like if self._arrays is None else self._arrays
            lazy = all(is_host(x) and _row_bytes(x) * everybody <= LAZY for x in leaves(arrays))
            self._capacity = everybody if lazy else min(max(needed, 2 * self._capacity), everybody)
            self._arrays = tree_map(lambda x: _resized(x, self._capacity), arrays)


def _resized(x: Array, n: int) -> Array:
    """Return a new array of ``n`` rows that begins with those of ``x``; the others are zero, and not yet in memory."""
    xp, kept = array_namespace(x), min(n, x.shape[0])
    rows = xp.zeros((n, *x.shape[1:]), dtype=x.dtype, device=device(x))
    return set_rows(rows, np.arange(kept), x[:kept, ...])


def _row_bytes(x: Array) -> int:
    return 8 * math.prod(x.shape[1:])
