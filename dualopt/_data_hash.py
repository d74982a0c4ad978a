"""The data of a problem as a hash: of the rows that the clients have, their labels and weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from dualopt.xp import Array, array_namespace, is_sparse, to_numpy

__all__ = ["data_hash"]


def data_hash(problem: Any) -> str:
    """Return a hash of features, labels, row weights and who has which row, and of the test part where it is loaded.

    Scaling, the choice of rows, the encoding of labels and the partition have their effect on all of these, so that
    they need no place in it. The storage counts: sparse and dense features of the same values differ.

    Parameters
    ----------
    problem : Problem
        A problem.

    Examples
    --------
    >>> from dualopt.problem import ProblemOptions, build_problem
    >>> a, b, c = (build_problem(ProblemOptions(rows=50, clients=n)) for n in (2, 2, 5))
    >>> data_hash(a) == data_hash(b), data_hash(a) == data_hash(c), len(data_hash(a))
    (True, False, 64)
    """
    rows, digest = problem.rows.rows, hashlib.sha256()
    for group in rows.groups:
        _add(digest, *_arrays(group.X), group.y, group.w)
        if hasattr(group, "columns"):
            _add(digest, group.columns)
    _add(digest, rows.group, rows.position)
    if problem.test is not None:
        X, y = problem.test
        _add(digest, *_arrays(X), y)
    return digest.hexdigest()


def _arrays(X: Any) -> Iterator[Array]:
    return iter((X.data, X.indices, X.indptr)) if is_sparse(X) else iter((X,))


def _add(digest: Any, *arrays: Array) -> None:
    for x in arrays:
        host = to_numpy(x)
        digest.update(f"{host.dtype} {host.shape} ".encode())
        digest.update(memoryview(array_namespace(host).ascontiguousarray(host)).cast("B"))
