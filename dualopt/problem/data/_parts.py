"""Helpers of the partitions: checks of arguments, sizes, clients without rows, and the form of the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualopt.arrays._checks import at_least, is_number, nonnegative

__all__ = ["as_clients", "check_clients", "concentration", "cut", "fill_empty", "lognormal_shares"]


def check_clients(m: int, n_clients: int) -> int:
    """Return the number of clients as an int, or refuse one that leaves a client without rows."""
    n_clients = at_least(1, "n_clients", n_clients)
    if n_clients > m:
        raise ValueError(
            f"n_clients must be at most the number of rows, {m}, so that no client is empty, got {n_clients}."
        )
    return n_clients


def concentration(alpha: float) -> float:
    """Return the parameter of a symmetric Dirichlet distribution, or refuse one that is not positive."""
    if not (is_number(alpha) and 0 < alpha < np.inf):
        raise ValueError(f"alpha must be positive and finite, got {alpha!r}.")
    # Beyond 1e100 the proportions are equal to rounding, but the sum of the gamma variates behind them
    # overflows.
    return min(float(alpha), 1e100)


def lognormal_shares(n_clients: int, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Return the shares ``w_j / sum_i w_i`` with ``w_j = exp(sigma e_j)`` and standard normal ``e_j``."""
    exponents = min(nonnegative("sigma", sigma), 1e100) * rng.standard_normal(n_clients)  # beyond, one has all
    weights = np.exp(exponents - exponents.max())  # at most 1: no overflow, and the ratios are the same
    return weights / weights.sum()


def cut(rows: np.ndarray, proportions: np.ndarray) -> list[np.ndarray]:
    """Cut rows into parts of given proportions, each within one row of its exact share."""
    cuts = np.rint(np.cumsum(proportions)[:-1] * rows.size).astype(np.int64)
    return np.split(rows, cuts)


def fill_empty(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Give each empty part, in order, the last row of the part that is largest then (the first of equals)."""
    parts = list(parts)
    sizes = np.array([part.size for part in parts])
    for empty in np.flatnonzero(sizes == 0):
        largest = int(np.argmax(sizes))
        parts[empty], parts[largest] = parts[largest][-1:], parts[largest][:-1]
        sizes[empty], sizes[largest] = 1, sizes[largest] - 1
    return parts


def as_clients(parts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sort the rows of each client: reading a matrix in its order is faster, and no method depends on the order."""
    return [np.sort(part).astype(np.int64) for part in parts]
