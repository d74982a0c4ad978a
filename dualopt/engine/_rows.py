"""Rows that come from several hosts, put under each other, and sums, added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualopt.arrays.tree import tree_map
from dualopt.arrays.xp import Array, array_namespace

__all__ = ["added", "under_each_other"]


def under_each_other(parts: Sequence[Array]) -> Array:
    """Return the rows of all parts; nothing is copied where an engine has received them into one array.

    Examples
    --------
    >>> whole = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> found = under_each_other([whole[:1], whole[1:]])
    >>> found.tolist(), bool(np.shares_memory(found, whole))
    ([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], True)
    >>> under_each_other([whole[1:], whole[:1]]).tolist()
    [[2.0, 3.0], [4.0, 5.0], [0.0, 1.0]]
    """
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if all(isinstance(x, np.ndarray) and x.flags.c_contiguous and x.ndim for x in parts):
        whole, start = first.base, first.ctypes.data
        ends = [start := start + x.nbytes for x in parts]
        beside = all(x.ctypes.data == end for x, end in zip(parts[1:], ends, strict=False))
        same = isinstance(whole, np.ndarray) and all(x.base is whole and x.dtype == whole.dtype for x in parts)
        if beside and same and whole.flags.c_contiguous and whole.shape[1:] == first.shape[1:] and first[:1].nbytes:
            row = (first.ctypes.data - whole.ctypes.data) // first[:1].nbytes
            return whole[row : row + sum(map(len, parts))]
    return array_namespace(*parts).concat(list(parts), axis=0)


def added(trees: Sequence[Any]) -> Any:
    """Return the sums of the leaves of several trees, in their order.

    Examples
    --------
    >>> added([(1.0, None), (2.0, None), (3.0, None)])
    (6.0, None)
    """
    return tree_map(lambda *parts: sum(parts[1:], start=parts[0]), *trees)
