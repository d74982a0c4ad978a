"""Trees of arrays: states of clients and servers are NamedTuples (or tuples) whose leaves are arrays.

Client states carry the client axis first. Taking some clients out of such a tree and putting them back are the
only two things that are done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array, array_namespace, asarray_like

__all__ = [
    "everybody",
    "is_everybody",
    "join_clients",
    "leaves",
    "merge_clients",
    "take_clients",
    "take_rows",
    "tree_map",
]


def tree_map(function: Callable[..., Any], *trees: Any) -> Any:
    """Apply ``function`` to corresponding leaves of trees of one structure.

    Tuples and NamedTuples are nodes, ``None`` is an empty node, everything else is a leaf.

    Examples
    --------
    >>> tree_map(lambda x, y: x + y, (1, (2, None)), (10, (20, None)))
    (11, (22, None))
    """
    first = trees[0]
    if isinstance(first, tuple):
        parts = [
            tree_map(function, *children)
            if isinstance(children[0], tuple)
            else None
            if children[0] is None
            else function(*children)
            for children in zip(*trees, strict=True)
        ]
        return tuple(parts) if type(first) is tuple else type(first)(*parts)  # pyright: ignore[reportArgumentType]
    return None if first is None else function(*trees)


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a tree in order.

    Examples
    --------
    >>> leaves((1, (2, None), ()))
    [1, 2]
    """
    if not isinstance(tree, tuple):
        return [] if tree is None else [tree]
    found: list[Any] = []
    for child in tree:
        if isinstance(child, tuple):
            found += leaves(child)
        elif child is not None:
            found.append(child)
    return found


def is_everybody(ids: Sequence[int] | np.ndarray, n_clients: int) -> bool:
    """Tell whether ``ids`` are all ``n_clients`` clients in order.

    Examples
    --------
    >>> is_everybody((0, 1, 2), 3), is_everybody((0, 2), 3), is_everybody((1, 0), 2)
    (True, False, False)
    """
    if len(ids) != n_clients:
        return False
    if ids is everybody(n_clients):
        return True
    if isinstance(ids, np.ndarray):
        return bool((ids == np.arange(n_clients)).all())
    return ids == range(n_clients) if isinstance(ids, range) else tuple(ids) == everybody(n_clients)


@lru_cache(maxsize=8)
def everybody(n_clients: int) -> tuple[int, ...]:
    """Return all ``n_clients`` clients in order: the same tuple again, which `is_everybody` tells at once.

    Examples
    --------
    >>> everybody(3) is everybody(3), everybody(3)
    (True, (0, 1, 2))
    """
    return tuple(range(n_clients))


def take_clients(tree: Any, ids: Sequence[int] | np.ndarray) -> Any:
    """Return the rows ``ids`` (positions on the client axis) of every leaf; the tree itself if that is everybody."""
    leaf = _first_leaf(tree)
    return tree if leaf is None or is_everybody(ids, leaf.shape[0]) else take_rows(tree, ids)


def take_rows(tree: Any, ids: Sequence[int] | np.ndarray) -> Any:
    """Return copies of the rows ``ids`` of every leaf."""
    index = np.asarray(ids, dtype=np.int64)

    def rows(x: Array) -> Array:
        if type(x) is np.ndarray:  # take would first make a whole array of one row that stands for all
            return x.take(index, axis=0) if x.flags.c_contiguous else x[index]
        xp = array_namespace(x)
        return xp.take(x, asarray_like(index, x, dtype=xp.int64), axis=0)

    return tree_map(rows, tree)


def merge_clients(old: Any, new: Any, ids: Sequence[int] | np.ndarray) -> Any:
    """Return ``old`` with its rows ``ids`` replaced by the rows of ``new``, in that order; nothing is overwritten."""
    leaf = _first_leaf(old)
    if leaf is None or is_everybody(ids, leaf.shape[0]):
        return new
    n = leaf.shape[0]
    index = np.arange(n)
    index[np.asarray(ids, dtype=np.int64)] = n + np.arange(len(ids))

    def merge(before: Array, after: Array) -> Array:
        return take_rows(array_namespace(before, after).concat([before, after], axis=0), index)

    return tree_map(merge, old, new)


def join_clients(groups: Sequence[Sequence[int]], trees: Sequence[Any]) -> Any:
    """Return one tree of the clients 0, 1, ... from those of groups that have each of them once.

    Examples
    --------
    >>> join_clients(([2], [0, 1]), (np.array([5.0]), np.array([3.0, 4.0]))).tolist()
    [3.0, 4.0, 5.0]
    """
    places = [np.asarray(group, dtype=np.int64) for group in groups]
    order = np.argsort(np.concatenate(places))

    def join(*parts: Array) -> Array:
        if type(parts[0]) is not np.ndarray:
            return take_rows(array_namespace(*parts).concat(list(parts), axis=0), order)
        whole = np.empty((len(order), *parts[0].shape[1:]), dtype=parts[0].dtype)  # each row is copied once
        for own, rows in zip(places, parts, strict=True):
            whole[own] = rows
        return whole

    return tree_map(join, *trees)


def _first_leaf(tree: Any) -> Any:
    if not isinstance(tree, tuple):
        return tree
    return next((leaf for child in tree if (leaf := _first_leaf(child)) is not None), None)
