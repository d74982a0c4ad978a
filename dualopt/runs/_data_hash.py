"""The data of a problem as a hash: of the rows that the clients have, their labels and weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from dualopt.arrays.communicator import ALONE, Communicator
from dualopt.arrays.xp import Array, is_sparse, to_numpy

__all__ = ["data_hash", "rows_hash"]

PIECE = 2**24  # bytes that one process sends at once


def data_hash(problem: Any, peers: Communicator = ALONE) -> str:
    """Return a hash of features, labels, weights and who has which row, and of the test part where it is loaded.

    Scaling, the choice of rows, the encoding of labels and the partition have their effect on all of these, so that
    they need no place in it. The storage counts: sparse and dense features of the same values differ.

    Parameters
    ----------
    problem : Problem
        A problem.
    peers : Communicator, optional
        The processes that have the other clients, all of which call this; the hash is that of one process with all
        clients, and the first process alone has it.

    Examples
    --------
    >>> from dualopt.problem.build import build_problem
    >>> from dualopt.problem.options import ProblemOptions
    >>> a, b, c = (build_problem(ProblemOptions(rows=50, clients=n)) for n in (2, 2, 5))
    >>> data_hash(a) == data_hash(b), data_hash(a) == data_hash(c), len(data_hash(a))
    (True, False, 64)
    """
    if (known := problem.sha256) is not None:
        return known
    return rows_hash(problem.rows, problem.sizes, problem.objective.weights, problem.test, peers)


def rows_hash(
    objective: Any, sizes: Any, weights: Any, test: tuple[Array, Array] | None = None, peers: Communicator = ALONE
) -> str:
    """Return the hash of `data_hash` for the rows of an objective.

    Parameters
    ----------
    objective : FiniteSum
        The rows of the clients of this process.
    sizes : sequence of int
        How many rows each of all clients has.
    weights : array of shape (N,) or None
        Weights of all clients.
    test : tuple of two arrays, optional
        Rows and labels that no client has.
    peers : Communicator, optional
        The processes that have the other clients.

    Examples
    --------
    >>> from dualopt import linear_model
    >>> f = linear_model([[1.0], [2.0]], [0, 1], loss="logistic", mu=0.1, clients=2)
    >>> len(rows_hash(f, f.sizes, f.weights))
    64
    """
    sizes, digest = np.asarray(sizes, dtype=np.int64), hashlib.sha256()
    own = {group.y.shape[1]: group for group in objective.rows.groups}
    _, first, which = np.unique(sizes, return_index=True, return_inverse=True)
    order = np.argsort(first)  # groups in the order of their first clients, as `ClientRows` has them
    numbers, positions = np.argsort(order)[which], np.zeros_like(sizes)
    for g, size in enumerate(sizes[first[order]].tolist()):
        positions[numbers == g] = np.arange(np.count_nonzero(numbers == g))
        for x, shape in _arrays(own.get(size), objective.rows.groups[0], size, peers):
            _add(digest, x, shape, peers)
    for x in (numbers, positions):
        _add(digest, x if peers.rank == 0 else x[:0], x.shape, peers)
    if weights is not None:
        _add(digest, np.asarray(weights), sizes.shape, peers)
    if test is not None and peers.rank == 0:
        X, y = test
        for x in (*_stored(X), y):
            _add(digest, x, x.shape, ALONE)
    return digest.hexdigest()


def _arrays(group: Any, like: Any, size: int, peers: Communicator) -> Iterator[tuple[Array, tuple[int, ...]]]:
    """Yield what this process has of the arrays of all clients of a size, and the shapes of the whole."""
    c = 0 if group is None else group.y.shape[0]
    before, clients = _before(c, peers)
    labels = [getattr(like, name)[:0, :1] if group is None else getattr(group, name) for name in ("y", "w")]
    if not is_sparse(like.X):
        X = like.X[:0, :1] if group is None else group.X
        yield X, (clients, size, like.X.shape[2])
    else:
        data, indices, indptr = _stored(like.X[:0] if group is None else group.X)
        keys = like.columns[:0] if group is None else group.columns
        (entries, n_entries), (columns, n_columns) = _before(len(data), peers), _before(len(keys), peers)
        kind = np.int32 if max(n_entries, n_columns) < 2**31 else np.int64
        starts = to_numpy(indptr) if before == 0 and c else to_numpy(indptr)[1:]
        yield data, (n_entries,)
        yield (to_numpy(indices) + columns).astype(kind), (n_entries,)
        yield (starts + entries).astype(kind), (clients * size + 1,)
    for x in labels:
        yield x, (clients, size)
    if is_sparse(like.X):
        yield to_numpy(keys) + before * like.n_features, (n_columns,)


def _before(n: int, peers: Communicator) -> tuple[int, int]:
    """Return the sum of a number over the processes before this one, and over all."""
    each = np.zeros(peers.size, dtype=np.int64)
    each[peers.rank] = n
    each = peers.total(each)
    return int(each[: peers.rank].sum()), int(each.sum())


def _stored(X: Any) -> tuple[Array, ...]:
    return (X.data, X.indices, X.indptr) if is_sparse(X) else (X,)


def _add(digest: Any, x: Array, shape: tuple[int, ...], peers: Communicator) -> None:
    """Add the parts of an array, process by process, to the hash of the first one."""
    host = to_numpy(x)
    digest.update(f"{host.dtype} {shape} ".encode())
    content = np.ascontiguousarray(host).reshape(-1).view(np.uint8) if host.size else _NOTHING
    if peers.size == 1:
        digest.update(content)
        return
    for rank in range(peers.size):
        mine = content if rank == peers.rank else _NOTHING
        for start in range(0, peers.total(len(mine)), PIECE):
            for part in peers.collected(mine[start : start + PIECE]) or ():
                digest.update(part)


_NOTHING = np.zeros(0, np.uint8)
