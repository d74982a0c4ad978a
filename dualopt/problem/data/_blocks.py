"""The rows that a process reads: those of its block of clients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dualopt.arrays.communicator import Communicator, block
from dualopt.problem.data._registry import read_rows
from dualopt.problem.data._scaling import Scaling
from dualopt.problem.data._source import Source
from dualopt.problem.data.scaling import OF_ALL_ROWS, Part

__all__ = ["rows_of_block"]

LARGE = 2**22  # numbers of a data set from which on a copy of it is worth avoiding
COLUMNS = 32  # that are moved at a time


def rows_of_block(
    source: Source,
    of_rows: Sequence[np.ndarray | None],
    chosen: np.ndarray | None,
    parts: Sequence[np.ndarray],
    scale: str | float,
    dtype: str,
    peers: Communicator,
    *,
    ones: bool = False,
) -> tuple[Any, list[Any], list[np.ndarray], Scaling]:
    """Read the rows of the clients of this process.

    Large dense features may be followed by a column of ``ones``. They are in the order of the clients then, those of
    one size after the other, so that a model needs no copy of them: memory holds them once.

    Parameters
    ----------
    source : Source
        The data set.
    of_rows : sequence of arrays, shape (m,), or None
        What is known of all its rows: encoded labels, and what rows count.
    chosen : array of int64, optional
        The rows that take part, increasing; None for all.
    parts : sequence of arrays
        For each client of all processes, the places of its rows in ``chosen``.
    scale, dtype
        As in `dualopt.problem.data.load`.
    peers : Communicator
        The processes.
    ones : bool, default False
        Whether a column of ones is wanted.

    Returns
    -------
    array or sparse matrix, list, list of arrays, Scaling
        Features of the rows that are here, what is known of these, the rows of each client among them, and the scaling
        of all.

    Raises
    ------
    ValueError
        If there are fewer clients than processes, or a row is not what `load` takes.
    """
    if len(parts) < peers.size:
        raise ValueError(f"clients must be at least the {peers.size} processes, not {len(parts)}.")
    mine = block(len(parts), peers)
    own = [parts[j] for j in mine]
    places = np.unique(np.concatenate(own))  # a row may be at several clients
    numbers = places if chosen is None else chosen[places]
    rows = numbers
    if chosen is not None and (source.scale if scale == "auto" else scale) in OF_ALL_ROWS:
        others = np.setdiff1d(np.arange(source.shape[0]), chosen, assume_unique=True)  # each is read by one process
        rows = np.union1d(numbers, others[peers.rank :: peers.size])
    once = sum(map(len, own)) == len(places)  # rows at several clients are no permutation of those that are read
    ones = ones and once and rows is numbers and math.prod(source.shape) >= LARGE
    X, scaling = read_rows(source, Part(rows, peers), scale, dtype, ones=ones)
    X = X if rows is numbers else X[np.searchsorted(rows, numbers)]
    own = [np.searchsorted(places, part) for part in own]
    if X.shape[1] > source.shape[1]:
        order, own = _by_size(own)
        _reorder(X, order)
        numbers = numbers[order]
    known = [x if x is None else x[numbers] for x in of_rows]
    return X, known, own, scaling


def _by_size(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the rows of the clients one after the other, those of one size together, and where each then has its own.

    >>> _by_size([np.array([4, 0]), np.array([2]), np.array([1, 3])])
    (array([4, 0, 1, 3, 2]), [array([0, 1]), array([4]), array([2, 3])])
    """
    first = {size: j for j, size in reversed([*enumerate(map(len, parts))])}
    clients = sorted(range(len(parts)), key=lambda j: (first[len(parts[j])], j))
    found, start = [np.empty(0, dtype=np.int64)] * len(parts), 0
    for j in clients:
        found[j] = np.arange(start, start + len(parts[j]))
        start += len(parts[j])
    return np.concatenate([parts[j] for j in clients]), found


def _reorder(X: np.ndarray, order: np.ndarray) -> None:
    """Put the rows of a matrix into an order in its own memory, some columns at a time."""
    for start in range(0, X.shape[1], COLUMNS):
        some = X[:, start : start + COLUMNS]
        some[...] = some[order]
