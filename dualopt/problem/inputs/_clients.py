"""Clients: how many, the rows of each by number or by a mask, or for each row whose it is."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dualopt.arrays.xp import indices, is_array
from dualopt.problem.inputs._features import host_values
from dualopt.problem.inputs._frames import as_frame
from dualopt.problem.inputs._values import as_numbers, is_missing

__all__ = ["as_clients", "by_owner", "row_numbers"]


def as_clients(clients: Any, rows: int) -> tuple[Any, tuple[Any, ...] | None]:
    """Return a number of clients, or the rows of each, and the names of the clients, if they have any.

    Parameters
    ----------
    clients : int, sequence of integer sequences or of masks, dict, or vector of shape (m,)
        A number of consecutive clients of equal size; the rows of each client (`row_numbers`), in a dict with its name;
        or for each row the name of its client, which may be anything hashable, also as a column of shape (m, 1). Tuples
        of integers are rows, those of m truth values are masks, all others names.
    rows : int
        Number m of rows.

    Returns
    -------
    int or sequence of rows, tuple or None

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if isinstance(clients, numbers.Integral) and not isinstance(clients, bool):
        return int(clients), None
    if not (hasattr(clients, "__len__") or is_array(clients)):
        raise ValueError(f"clients must be a number, rows or names of clients, not {clients!r}.")
    if isinstance(clients, Mapping):
        return list(clients.values()), tuple(clients)
    if not _are_rows(clients, rows):
        return by_owner(clients, rows)
    parts = host_values(clients, "clients") if is_array(clients) else clients
    if len(parts) == rows:
        found = [row_numbers(part, client, rows) for client, part in enumerate(parts)]
        if all(len(own) == 1 for own in found) and len({int(own[0]) for own in found}) < rows:
            raise ValueError(f"clients must not be {rows} lists of one row that is in two of them: names are a vector.")
    return parts, None


def row_numbers(part: Any, client: int, rows: int) -> np.ndarray:
    """Return the rows of a client, which are given by their numbers, or by a mask: one truth value for each row.

    Raises
    ------
    ValueError
        If ``part`` is neither; the sentence names the client.

    Examples
    --------
    >>> row_numbers([2, 0], 0, 3), row_numbers([True, False, True], 1, 3)
    (array([2, 0]), array([0, 2]))
    """
    if type(part) is np.ndarray and part.ndim == 1 and part.dtype.kind in "iu":
        return part.astype(np.int64, copy=False)
    if isinstance(part, range) or (isinstance(part, list | tuple) and {*map(type, part)} <= {int}):
        with suppress(OverflowError):
            return indices(part)
    what = f"clients: client {client}"
    values = host_values(part, what)
    if values.ndim != 1:
        raise ValueError(f"{what} must be a vector of row numbers or a mask, not of shape {values.shape}.")
    truths = sum(isinstance(value, bool | np.bool) for value in values.tolist()) if values.dtype == object else 0
    if 0 < truths < len(values):
        raise ValueError(f"{what} must have row numbers or truth values, not both, and none missing.")
    if truths or values.dtype == bool:
        if len(values) != rows:
            raise ValueError(f"{what} must have a truth value for each of the {rows} rows of X, not {len(values)}.")
        return np.flatnonzero(values.astype(bool))
    found = as_numbers(values, what)
    if not (np.isfinite(found) & (found == np.floor(found))).all():
        raise ValueError(f"{what} must have whole numbers of rows, or a truth value for each row.")
    return np.clip(found, -1, rows).astype(np.int64)  # what is outside stays outside


def by_owner(owners: Any, rows: int) -> tuple[list[np.ndarray], tuple[Any, ...]]:
    """Return the rows of each client and the names of the clients, in order where they have one, else as they occur.

    >>> by_owner(["b", "a", "b"], 3)
    ([array([1]), array([0, 2])], ('a', 'b'))
    """
    values = host_values(owners, "clients")
    if values.shape == (rows, 1):
        values = values[:, 0]
    if values.shape != (rows,):
        raise ValueError(f"clients must have one name for each of the {rows} rows of X, not shape {values.shape}.")
    if values.dtype.kind in "biuUS":
        found, codes = np.unique(values, return_inverse=True)
        return split(codes, len(found)), tuple(found.tolist())
    if not rows:
        return [], ()
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


def _are_rows(clients: Any, rows: int) -> bool:
    """Tell the rows of each client from the name of the client of each row."""
    if as_frame(clients, "clients") is not None or getattr(clients, "shape", None) == (rows, 1):
        return False
    if isinstance(clients, np.ndarray) and clients.dtype == object:
        return all(_is_part(part, rows) for part in clients.tolist())
    if is_array(clients):
        return clients.ndim > 1
    return isinstance(clients, Sequence) and all(_is_part(part, rows) for part in clients)


def _is_part(part: Any, rows: int) -> bool:
    """Tell the rows of a client from a name."""
    if isinstance(part, tuple):
        truths = sum(isinstance(value, bool | np.bool) for value in part)
        return truths == len(part) == rows or (not truths and all(isinstance(row, numbers.Integral) for row in part))
    if isinstance(part, list | range) or (is_array(part) and part.ndim > 0) or isinstance(part, np.ma.MaskedArray):
        return True
    return hasattr(part, "__len__") and as_frame(part, "clients") is not None
