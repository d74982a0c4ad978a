"""Trees of arrays: states of clients and servers are NamedTuples (or tuples) whose leaves are arrays.

Client states carry the client axis first. Taking some clients out of such a tree and putting them back are the
only two things the engine does with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualopt.xp import Array, array_namespace, device

__all__ = ["leaves", "merge_clients", "take_clients", "tree_map"]


def tree_map(function: Callable[..., Any], *trees: Any) -> Any:
    """Apply ``function`` to corresponding leaves of trees of one structure.

    Tuples and NamedTuples are nodes, ``None`` is an empty node, everything else is a leaf.

    Examples
    --------
    >>> tree_map(lambda x, y: x + y, (1, (2, None)), (10, (20, None)))
    (11, (22, None))
    """
    first = trees[0]
    if first is None:
        return None
    if isinstance(first, tuple):
        parts = [tree_map(function, *children) for children in zip(*trees, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return function(*trees)


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a tree in order.

    Examples
    --------
    >>> leaves((1, (2, None), ()))
    [1, 2]
    """
    found: list[Any] = []
    tree_map(found.append, tree)
    return found


def take_clients(tree: Any, ids: Sequence[int]) -> Any:
    """Return the rows ``ids`` (positions on the client axis) of every leaf; the tree itself if that is everybody."""
    return tree if _is_everybody(ids, tree) else tree_map(lambda x: _take(x, ids), tree)


def merge_clients(old: Any, new: Any, ids: Sequence[int]) -> Any:
    """Return ``old`` with its rows ``ids`` replaced by the rows of ``new``, in that order; nothing is overwritten."""
    if _is_everybody(ids, old):
        return new

    def merge(before: Array, after: Array) -> Array:
        n = before.shape[0]
        index = list(range(n))
        for position, client in enumerate(ids):
            index[client] = n + position
        return _take(array_namespace(before, after).concat([before, after], axis=0), index)

    return tree_map(merge, old, new)


def _is_everybody(ids: Sequence[int], tree: Any) -> bool:
    """Tell whether ``ids`` are all clients of a tree with leaves, in order."""
    leaf = _first_leaf(tree)
    return leaf is not None and len(ids) == leaf.shape[0] and all(i == j for i, j in enumerate(ids))


def _first_leaf(tree: Any) -> Any:
    if not isinstance(tree, tuple):
        return tree
    return next((leaf for child in tree if (leaf := _first_leaf(child)) is not None), None)


def _take(x: Array, ids: Sequence[int]) -> Array:
    xp = array_namespace(x)
    return xp.take(x, xp.asarray(list(ids), dtype=xp.int64, device=device(x)), axis=0)
