"""Data sets whose labels are read first, and of whose features only the rows that are wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dualopt.arrays.xp import is_sparse
from dualopt.problem.data._dataset import RawData
from dualopt.problem.preprocessing import Columns

__all__ = ["Source", "all_rows", "in_memory"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A data set before its features are read.

    Parameters
    ----------
    y, scale, description, clients, client_names, feature_names, sample_weight, offset, reading, columns
        As in `RawData`, for all rows.
    shape : tuple of int
        Of the features: ``(m, d)``.
    read : callable
        ``read(rows)`` returns the features of these rows (increasing numbers, int64), in that order; it is called once.
    contents : callable
        ``contents()``, called before ``read``, returns by name what two sources of the same data have in common: a hash
        of the file, or the features where they are in memory.
    room : callable
        ``room(rows)`` returns how many bytes ``read(rows)`` takes; 0 where the reader itself refuses too many, or what
        it returns is in memory already or stays in a file.
    name : str
        The name or path of the data set.
    """

    y: np.ndarray
    scale: str | float
    description: str
    shape: tuple[int, ...]
    read: Callable[[np.ndarray], Any]
    contents: Callable[[], dict[str, Any]]
    clients: np.ndarray | None = None
    client_names: tuple[Any, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    sample_weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    columns: Columns | None = None
    room: Callable[[np.ndarray], int] = lambda rows: 0
    name: str = ""


def all_rows(source: Source) -> np.ndarray:
    """Return the numbers of all rows."""
    return np.arange(source.shape[0], dtype=np.int64)


def in_memory(raw: RawData) -> Source:
    """Return the source of a data set that is in memory as a whole, which it leaves when rows have been read.

    So are the data sets that are embedded in packages, images of single bytes, what is drawn from a generator, and what
    plug-ins load.

    >>> raw = RawData(X=np.eye(3), y=np.arange(3), scale="none", description="unit vectors")
    >>> in_memory(raw).read(np.array([0, 2])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    held = [raw.X]

    def read(rows: np.ndarray) -> Any:
        X = held.pop()
        return X if len(rows) == X.shape[0] else X[rows]

    def contents() -> dict[str, Any]:
        X = held[0]
        return {"features": (X.data, X.indices, X.indptr) if is_sparse(X) else X}

    return Source(
        y=raw.y,
        scale=raw.scale,
        description=raw.description,
        shape=tuple(raw.X.shape),
        read=read,
        contents=contents,
        clients=raw.clients,
        client_names=raw.client_names,
        feature_names=raw.feature_names,
        sample_weight=raw.sample_weight,
        offset=raw.offset,
        reading=raw.reading,
        columns=raw.columns,
    )
