"""The rows that a process reads: those of its block of clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualopt.arrays.communicator import Communicator, block
from dualopt.problem.data._registry import read_rows
from dualopt.problem.data._scaling import Scaling
from dualopt.problem.data._source import Source
from dualopt.problem.data.scaling import OF_ALL_ROWS, Part

__all__ = ["rows_of_block"]


def rows_of_block(
    source: Source,
    of_rows: Sequence[np.ndarray | None],
    chosen: np.ndarray | None,
    parts: Sequence[np.ndarray],
    scale: str | float,
    dtype: str,
    peers: Communicator,
) -> tuple[Any, list[Any], list[np.ndarray], Scaling]:
    """Read the rows of the clients of this process.

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
    X, scaling = read_rows(source, Part(rows, peers), scale, dtype)
    X = X if rows is numbers else X[np.searchsorted(rows, numbers)]
    known = [x if x is None else x[numbers] for x in of_rows]
    return X, known, [np.searchsorted(places, part) for part in own], scaling
