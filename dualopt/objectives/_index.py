"""Positions on a client axis: of clients in a call, and of clients in the group that stores them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from dualopt.arrays.xp import (
    Array,
    array_namespace,
    asarray_like,
    indices,
    is_host,
    is_numpy,
    is_traced,
    set_rows,
    take,
)

__all__ = ["Index"]


class Index(Sequence[int]):
    """Positions on an axis, in some order: taken as a view where they are neighbours, and else by an index.

    The index is moved to a device once: all arrays that it meets live there.

    Attributes
    ----------
    ids : host integer array, shape (c,)
        The positions.
    run : slice or None
        The same where they are neighbours in increasing order.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(4.0)
    >>> Index([1, 2]).take(x).base is x, Index([3, 0]).take(x).tolist()
    (True, [3.0, 0.0])
    """

    __slots__ = ("_index", "_length", "ids", "run")

    def __init__(self, ids: Any) -> None:
        self.ids = indices(ids)
        self._index: Array = None
        neighbours = (self.ids[1:] - self.ids[:-1] == 1).all()
        self.run = slice(int(self.ids[0]), int(self.ids[-1]) + 1) if neighbours else None
        self._length = self.run.stop if self.run is not None and not self.run.start else -1  # of 0, 1, ...

    def __len__(self) -> int:
        return self.ids.shape[0]

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Index: ...
    def __getitem__(self, index: Any) -> Any:
        return Index(self.ids[index]) if isinstance(index, slice) else int(self.ids[index])

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids.tolist())

    def are_all(self, n: int) -> bool:
        """Tell whether they are ``0, ..., n - 1``, in this order."""
        return self._length == n

    def take(self, x: Array) -> Array:
        """Return these rows of ``x``: ``x`` itself or a view if they are neighbours."""
        if self.run is None:
            return take(x, self.index(x))
        return x if self._length == x.shape[0] else x[self.run, ...]

    def put(self, x: Array, rows: Array) -> None:
        """Write ``rows`` into these rows of ``x``, an array in host memory, or of neighbours on any device."""
        if self.run is not None:
            x[self.run, ...] = rows
        else:
            set_rows(x, self.ids, rows)

    def index(self, like: Array) -> Array:
        """Return the positions as an array of the library and on the device of ``like``."""
        if is_numpy(like):
            return self.ids
        if self._index is not None:
            return self._index
        index = asarray_like(self.ids, like, dtype=array_namespace(like).int64)
        if not is_host(like) and not is_traced(index):
            self._index = index
        return index
