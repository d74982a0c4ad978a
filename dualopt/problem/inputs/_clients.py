"""Clients: how many, the rows of each, or for each row whose it is."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from dualopt.arrays.xp import is_array
from dualopt.problem.inputs._features import host_values
from dualopt.problem.inputs._frames import as_frame
from dualopt.problem.inputs._values import is_missing

__all__ = ["as_clients", "by_owner"]


def as_clients(clients: Any, rows: int) -> tuple[Any, tuple[Any, ...] | None]:
    """Return a number of clients, or the rows of each, and the names of the clients, if they have any.

    Parameters
    ----------
    clients : int, sequence of integer sequences, dict, or vector of shape (m,)
        A number of consecutive clients of equal size; the rows of each client, in a dict with its name; or for each
        row the name of its client, which may be anything hashable. Tuples of integers are rows, all others names.
    rows : int
        Number of rows.

    Returns
    -------
    int or list of integer arrays, tuple or None

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if isinstance(clients, numbers.Integral) and not isinstance(clients, bool):
        return int(clients), None
    if not hasattr(clients, "__len__"):
        raise ValueError(f"clients must be a number, rows or names of clients, not {clients!r}.")
    if isinstance(clients, Mapping):
        return list(clients.values()), tuple(clients)
    if _are_rows(clients):
        return clients, None
    return by_owner(clients, rows)


def by_owner(owners: Any, rows: int) -> tuple[list[np.ndarray], tuple[Any, ...]]:
    """Return the rows of each client and the names of the clients, in order where they have one, else as they occur.

    >>> by_owner(["b", "a", "b"], 3)
    ([array([1]), array([0, 2])], ('a', 'b'))
    """
    values = host_values(owners, "clients")
    if values.shape != (rows,):
        raise ValueError(f"clients must have one name for each of the {rows} rows of X, not shape {values.shape}.")
    if values.dtype.kind in "biuUS":
        found, codes = np.unique(values, return_inverse=True)
        return split(codes, len(found)), tuple(found.tolist())
    listed = list(values) if values.dtype.kind == "M" else values.tolist()  # tolist makes integers of nanoseconds
    numbering: dict[Hashable, int] = {}
    for row, value in enumerate(listed):
        if is_missing(value):
            raise ValueError(f"clients must have no missing name, but row {row} (counted from 0) has none.")
        try:
            numbering.setdefault(value, len(numbering))
        except TypeError:
            raise ValueError(
                f"clients must have hashable names, but row {row} (counted from 0) has a {type(value).__name__}."
            ) from None
    names: list[Any] = list(numbering)
    codes = np.asarray([numbering[value] for value in listed], dtype=np.int64)
    try:
        partial = isinstance(names[0], frozenset)  # to be a subset is no order of all
        order = list(range(len(names))) if partial else sorted(range(len(names)), key=lambda i: names[i])
    except TypeError:  # names of several types
        order = list(range(len(names)))
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    return split(place[codes], len(names)), tuple(names[i] for i in order)


def split(codes: np.ndarray, n: int) -> list[np.ndarray]:
    """Return the rows of each of ``n`` clients, which are numbered from 0."""
    sizes = np.bincount(codes, minlength=n)
    return np.split(np.argsort(codes, kind="stable").astype(np.int64), np.cumsum(sizes)[:-1])


def _are_rows(clients: Any) -> bool:
    """Tell the rows of each client from the name of the client of each row."""
    if as_frame(clients, "clients") is not None:
        return False
    if isinstance(clients, np.ndarray) and clients.dtype == object:
        return all(map(_is_row_numbers, clients.tolist()))
    if is_array(clients):
        return clients.ndim > 1
    return isinstance(clients, Sequence) and all(map(_is_row_numbers, clients))


def _is_row_numbers(part: Any) -> bool:
    if isinstance(part, tuple):
        return all(isinstance(row, numbers.Integral) for row in part)
    return isinstance(part, list | range) or (is_array(part) and part.ndim > 0)
