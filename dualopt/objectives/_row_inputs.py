"""What becomes the rows of clients: checks of data, the partition, weights, and copies of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dualopt.arrays.xp import (
    Array,
    array_namespace,
    asarray_like,
    device,
    indices,
    is_mapped,
    is_writable,
    to_numpy,
)
from dualopt.losses import Loss
from dualopt.problem.inputs import row_numbers

__all__ = ["check_data", "gathered", "partition", "row_sums", "weights_at"]

PIECE = 2**20  # numbers that are checked or copied at a time: what is computed of them takes memory too


def _largest_entry(X: Array, like: Array) -> float:
    """Return the largest entry for which the sum of the squares of a row is finite."""
    return math.sqrt(float(array_namespace(like).finfo(like.dtype).max) / X.shape[1])


def check_data(X: Array, like: Array, y: Array, loss: Loss) -> None:
    """Refuse features and labels that no objective with this loss can have, in one sentence; ``like`` are the numbers.

    They are looked at in pieces.
    """
    xp = array_namespace(like)
    if not xp.isdtype(X.dtype, "real floating"):
        raise ValueError(f"X must hold floating-point numbers, not {X.dtype}.")
    largest, bound = 0.0, _largest_entry(X, like)
    step = max(1, PIECE // math.prod(like.shape[1:]))
    for start in range(0, like.shape[0], step):
        piece = like[start : min(start + step, like.shape[0]), ...]
        if not bool(xp.all(xp.isfinite(piece))):
            raise ValueError("X must not contain NaN or infinite features.")
        largest = max(largest, float(xp.max(xp.abs(piece))))
    if largest > bound:
        raise ValueError(
            f"X must have entries up to {bound:.2g}, whose squares can be summed, not {largest:.2g}: scale X."
        )
    if tuple(y.shape) != (X.shape[0],):
        raise ValueError(f"y must have one label for each of the {X.shape[0]} rows of X, not shape {tuple(y.shape)}.")
    if loss.labels == "class":
        if not xp.isdtype(y.dtype, "integral") or bool(xp.any(y < 0)) or bool(xp.any(y >= loss.outputs)):
            raise ValueError(f"y must hold integers 0 to {loss.outputs - 1} for the loss {loss}.")
        return
    if y.dtype != X.dtype or not bool(xp.all(xp.isfinite(y))):
        raise ValueError(f"y must hold finite numbers of the type {X.dtype} of X for the loss {loss}.")
    if loss.labels == "binary" and bool(xp.any(xp.abs(y) != 1)):
        raise ValueError(f"y must hold only -1 and +1 for the loss {loss}.")
    domain = getattr(loss, "label_domain", None)
    if domain is not None and not bool(xp.all(y >= 0 if domain == "nonnegative" else y > 0)):
        raise ValueError(f"y must hold only {domain} numbers for the loss {loss}.")


def gathered(X: Array, rows: Array, intercept: bool, copy: bool) -> Array:
    """Return these rows of ``X``, with a column of ones behind them if asked for.

    Rows are copied in pieces: data may take most of the memory, and are not to be there three times. Rows that lie one
    after the other stay where they are in a mapped file, and where a ``copy`` is not wanted.
    """
    xp = array_namespace(X)
    m, d = rows.shape[0], X.shape[1]
    if not intercept:
        if (is_mapped(X) or not copy) and bool(xp.all(rows == xp.arange(m) + int(rows[0]))):
            return X[int(rows[0]) : int(rows[0]) + m]
        return xp.take(X, rows, axis=0)
    if not is_writable(X):
        return xp.concat([xp.take(X, rows, axis=0), xp.ones((m, 1), dtype=X.dtype, device=device(X))], axis=1)
    features = xp.ones((m, d + 1), dtype=X.dtype, device=device(X))
    step = max(1, PIECE // d)
    for start in range(0, m, step):
        piece = slice(start, min(start + step, m))
        features[piece, :d] = xp.take(X, rows[piece], axis=0)
    return features


def partition(m: int, clients: Sequence[Sequence[int]] | int) -> tuple[Array, Array]:
    """Return the row numbers of all clients, one after the other, and how many each has; host arrays, checked."""
    if isinstance(clients, int):
        if not 1 <= clients <= m:
            raise ValueError(f"clients must be between 1 and the number of rows {m}, not {clients}.")
        small, larger = divmod(m, clients)
        rows, numbers = indices(range(m)), indices(range(clients))
        return rows, small + array_namespace(rows).astype(numbers < larger, rows.dtype)
    parts = [row_numbers(part, client, m) for client, part in enumerate(clients)]
    if not parts:
        raise ValueError("clients must name at least one client.")
    sizes = indices([part.shape[0] for part in parts])
    host = array_namespace(sizes)
    if not sizes.all():
        raise ValueError(f"clients: client {int(host.argmin(sizes))} has no rows.")
    rows = host.concat(parts)
    outside = (rows < 0) | (rows >= m)
    if outside.any():
        owner = host.searchsorted(host.cumulative_sum(sizes), host.argmax(outside), side="right")
        raise ValueError(f"clients: client {int(owner)} has a row index outside 0 to {m - 1}.")
    return rows, sizes


def row_sums(weights: Array, clients: Sequence[Sequence[int]] | int) -> tuple[float, ...]:
    """Return the sums of the weights ``(m,)`` of the rows of each client.

    Raises
    ------
    ValueError
        If those of a client are all 0.
    """
    rows, sizes = partition(weights.shape[0], clients)
    host = array_namespace(sizes)
    starts = (host.cumulative_sum(sizes) - sizes).tolist()
    own = host.astype(to_numpy(weights), host.float64)[rows]
    found = tuple(float(own[a : a + m].sum()) for a, m in zip(starts, sizes.tolist(), strict=True))
    if not min(found) > 0:
        raise ValueError(f"sample_weight must not be 0 for all rows of client {found.index(min(found))}.")
    return found


def weights_at(m: int, like: Array, sizes: Array, rows: Array, weights: Array | None) -> Callable[[Array], Array]:
    """Return the function from places in ``rows`` to the weights of the rows there, arrays like the features."""
    xp, host = array_namespace(like), array_namespace(rows)
    if weights is None:
        values = host.repeat(1.0 / sizes, sizes)
        return lambda places: asarray_like(values[places], like)
    fits = tuple(weights.shape) == (m,) and weights.dtype == like.dtype
    if not fits or not bool(xp.all(xp.isfinite(weights))) or bool(xp.any(weights < 0)):
        raise ValueError(
            f"weights must be {m} finite nonnegative numbers of the type {like.dtype}, one for each row of X."
        )
    return lambda places: xp.take(weights, asarray_like(rows[places], like, dtype=xp.int64), axis=0)
