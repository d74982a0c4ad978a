"""Partitions of the rows of a data set among clients.

A partition is a list of N arrays of row numbers (int64): disjoint, together all rows 0..m-1, none of them
empty.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

import numpy as np

from dualopt.data._random import PARTITION_STREAM, SAMPLE_STREAM, at_least, generator

__all__ = [
    "by_label",
    "check_partition",
    "consecutive",
    "dirichlet",
    "iid",
    "lognormal_sizes",
    "partition",
    "subsample",
]


def iid(m: int, n_clients: int, seed: int) -> list[np.ndarray]:
    """Deal the rows out at random, in parts that differ by at most one row.

    Parameters
    ----------
    m : int
        Number of rows.
    n_clients : int
        Number N of clients, 1 <= N <= m; the first m mod N clients get one row more.
    seed : int
        Seed of the shuffle.

    Returns
    -------
    list of N arrays of int64, each sorted

    Raises
    ------
    ValueError
        If ``n_clients`` is out of its range.

    Examples
    --------
    >>> from dualopt.data import iid
    >>> [len(rows) for rows in iid(10, 3, seed=0)]
    [4, 3, 3]
    """
    n_clients = _check_clients(m, n_clients)
    order = generator(seed, PARTITION_STREAM).permutation(m)
    return _as_clients(np.array_split(order, n_clients))


def consecutive(m: int, n_clients: int) -> list[np.ndarray]:
    """Cut the rows, in their order, into parts that differ by at most one row.

    Parameters
    ----------
    m : int
        Number of rows.
    n_clients : int
        Number N of clients, 1 <= N <= m; the first m mod N clients get one row more.

    Returns
    -------
    list of N arrays of int64, each sorted

    Raises
    ------
    ValueError
        If ``n_clients`` is out of its range.

    Examples
    --------
    >>> from dualopt.data import consecutive
    >>> consecutive(5, 2)
    [array([0, 1, 2]), array([3, 4])]
    """
    return np.array_split(np.arange(m, dtype=np.int64), _check_clients(m, n_clients))


def by_label(y: np.ndarray, n_clients: int) -> list[np.ndarray]:
    """Sort the rows by label and cut them into parts that differ by at most one row.

    Equal labels stay in their order.
    Each client then sees only a few labels: the most heterogeneous of the partitions with equal sizes.

    Parameters
    ----------
    y : array, shape (m,)
        Labels.
    n_clients : int
        Number N of clients, 1 <= N <= m; the first m mod N clients get one row more.

    Returns
    -------
    list of N arrays of int64, each sorted by label

    Raises
    ------
    ValueError
        If ``n_clients`` is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.data import by_label
    >>> by_label(np.array([1, 0, 1, 0]), 2)
    [array([1, 3]), array([0, 2])]
    """
    n_clients = _check_clients(len(y), n_clients)
    return np.array_split(np.argsort(y, kind="stable").astype(np.int64), n_clients)


def dirichlet(y: np.ndarray, n_clients: int, alpha: float, seed: int) -> list[np.ndarray]:
    r"""Share out each class in proportions drawn from a symmetric Dirichlet distribution.

    The rows of each class are shuffled and cut at :math:`n_c (p_1 + \dots + p_j)`, rounded, where :math:`p
    \sim \mathrm{Dir}(\alpha, \dots, \alpha)` over the N clients, drawn anew for each class. Small alpha gives
    most of a class to one client, large alpha the same share to all. A client left without rows (in order of
    its number) takes one from the client that has most rows then, the first of them in case of ties: the last
    row of its highest class. So the sizes are random, the result depends on the arguments alone, and no draw
    is repeated.

    Parameters
    ----------
    y : array, shape (m,)
        Labels.
    n_clients : int
        Number N of clients, 1 <= N <= m.
    alpha : float
        Concentration, positive.
    seed : int
        Seed of the draws.

    Returns
    -------
    list of N arrays of int64, each sorted

    Raises
    ------
    ValueError
        If ``n_clients`` or ``alpha`` is out of its range.

    References ---------- Hsu, Qi and Brown, arXiv:1909.06335, who draw a distribution over classes for each
    client; Yurochkin et al., ICML 2019, draw proportions over clients for each class, as here.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.data import dirichlet
    >>> clients = dirichlet(np.arange(100) % 10, 4, alpha=0.3, seed=0)
    >>> sum(len(rows) for rows in clients)
    100
    """
    y = np.asarray(y)
    n_clients = _check_clients(len(y), n_clients)
    if not 0 < alpha < np.inf:
        raise ValueError(f"alpha must be positive and finite, got {alpha!r}.")
    rng = generator(seed, PARTITION_STREAM)
    _, sizes = np.unique(y, return_counts=True)
    classes = np.split(np.argsort(y, kind="stable"), np.cumsum(sizes)[:-1])
    # Beyond 1e100 the proportions are equal to rounding, but the sum of the gamma variates behind them
    # overflows.
    concentration = np.full(n_clients, min(float(alpha), 1e100))
    parts = [_cut(rng.permutation(rows), rng.dirichlet(concentration)) for rows in classes]
    return _as_clients(_fill_empty([np.concatenate(shares) for shares in zip(*parts, strict=True)]))


def lognormal_sizes(m: int, n_clients: int, sigma: float, seed: int) -> list[np.ndarray]:
    r"""Deal the rows out at random, in parts whose sizes are log-normal.

    The sizes are :math:`m\, w_j / \sum_i w_i` with :math:`w_j = \exp(\sigma\, e_j)`, :math:`e_j \sim N(0,
    1)`, up to rounding. A client left without rows takes one from the client that has most rows then, as in
    `dirichlet`.

    Parameters
    ----------
    m : int
        Number of rows.
    n_clients : int
        Number N of clients, 1 <= N <= m.
    sigma : float
        Spread of the sizes; 0 makes them equal up to one row.
    seed : int
        Seed of sizes and shuffle.

    Returns
    -------
    list of N arrays of int64, each sorted

    Raises
    ------
    ValueError
        If ``n_clients`` or ``sigma`` is out of its range.

    Examples
    --------
    >>> from dualopt.data import lognormal_sizes
    >>> sorted(len(rows) for rows in lognormal_sizes(10, 4, sigma=0.0, seed=0))
    [2, 2, 3, 3]
    """
    n_clients = _check_clients(m, n_clients)
    if not 0 <= sigma < np.inf:
        raise ValueError(f"sigma must be nonnegative and finite, got {sigma!r}.")
    rng = generator(seed, PARTITION_STREAM)
    exponents = sigma * rng.standard_normal(n_clients)
    weights = np.exp(exponents - exponents.max())  # at most 1: no overflow, and the ratios are the same
    return _as_clients(_fill_empty(_cut(rng.permutation(m), weights / weights.sum())))


def partition(
    kind: str, y: np.ndarray, n_clients: int, *, alpha: float = 0.3, sigma: float = 1.0, seed: int = 0
) -> list[np.ndarray]:
    """Partition the rows of a data set among clients by the name of a rule.

    Parameters
    ----------
    kind : str
        "iid", "consecutive", "by-label", "dirichlet" or "lognormal".
    y : array, shape (m,)
        Labels.
    n_clients : int
        Number N of clients, 1 <= N <= m.
    alpha : float
        Concentration of "dirichlet".
    sigma : float
        Spread of "lognormal".
    seed : int
        Seed of the random rules.

    Returns
    -------
    list of N arrays of int64, disjoint, nonempty, together all rows

    Raises
    ------
    ValueError
        If ``kind`` is unknown, or an argument that it uses is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.data import partition
    >>> partition("by-label", np.array([1, 0, 1, 0]), 2)
    [array([1, 3]), array([0, 2])]
    """
    rules: dict[str, Callable[[], list[np.ndarray]]] = {
        "iid": lambda: iid(len(y), n_clients, seed),
        "consecutive": lambda: consecutive(len(y), n_clients),
        "by-label": lambda: by_label(y, n_clients),
        "dirichlet": lambda: dirichlet(y, n_clients, alpha, seed),
        "lognormal": lambda: lognormal_sizes(len(y), n_clients, sigma, seed),
    }
    if kind not in rules:
        close = difflib.get_close_matches(str(kind), rules, 1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ValueError(f"partition must be one of {', '.join(rules)}, got {kind!r}{hint}")
    return rules[kind]()


def subsample(y: np.ndarray, rows: int, seed: int) -> np.ndarray:
    """Draw a simple random subset of the rows, every subset of this size being equally likely.

    Parameters
    ----------
    y : array, shape (m,)
        Labels; only their number matters.
    rows : int
        Size of the subset, between 1 and m.
    seed : int
        Seed of the draw.

    Returns
    -------
    array of int64, shape (rows,), sorted

    Raises
    ------
    ValueError
        If ``rows`` is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.data import subsample
    >>> subsample(np.zeros(3), 3, seed=0)
    array([0, 1, 2])
    """
    if at_least(1, "rows", rows) > len(y):
        raise ValueError(f"rows must be at most the {len(y)} rows of the data, got {rows}.")
    return np.sort(generator(seed, SAMPLE_STREAM).choice(len(y), size=rows, replace=False)).astype(np.int64)


def check_partition(clients: Sequence[np.ndarray], m: int) -> list[np.ndarray]:
    """Check that a partition of the user's is one, and return it as arrays of int64.

    Parameters
    ----------
    clients : sequence of N arrays of integers
        The rows of each client, counted from 0.
    m : int
        Number of rows.

    Returns
    -------
    list of N arrays of int64

    Raises
    ------
    ValueError
        If there is no client, a client has no rows, rows that are not integers or out of range, or a row that
        it or another client has already, or if a row belongs to no client; the sentence names the client or
        the row.

    Examples
    --------
    >>> from dualopt.data import check_partition
    >>> check_partition([[0, 2], [1]], 3)
    [array([0, 2]), array([1])]
    """
    checked = [_client_rows(number, rows, m) for number, rows in enumerate(clients)]
    if not checked:
        raise ValueError("clients must hold at least one client, got none.")
    owner = np.full(m, -1)
    for number, rows in enumerate(checked):
        taken = owner[rows] >= 0
        if taken.any():
            row = rows[taken][0]
            raise ValueError(f"clients overlap: client {number} has row {row}, which client {owner[row]} has already.")
        owner[rows] = number
    if (owner < 0).any():
        raise ValueError(f"clients must cover all {m} rows, but row {np.argmin(owner)} belongs to no client.")
    return checked


def _client_rows(number: int, rows: np.ndarray, m: int) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.size == 0:
        raise ValueError(f"clients must have rows, but client {number} has none.")
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(
            f"clients must be vectors of integers, but client {number} is an array of {rows.dtype} with "
            f"shape {rows.shape}."
        )
    outside = rows[(rows < 0) | (rows >= m)]
    if outside.size:
        raise ValueError(f"clients must have rows between 0 and {m - 1}, but client {number} has row {outside[0]}.")
    values, counts = np.unique(rows, return_counts=True)
    if counts.max() > 1:
        raise ValueError(
            f"clients must have each row once, but client {number} has row {values[np.argmax(counts)]} "
            f"{counts.max()} times."
        )
    return rows.astype(np.int64)


def _check_clients(m: int, n_clients: int) -> int:
    n_clients = at_least(1, "n_clients", n_clients)
    if n_clients > m:
        raise ValueError(
            f"n_clients must be at most the number of rows, {m}, so that no client is empty, got {n_clients}."
        )
    return n_clients


def _cut(rows: np.ndarray, proportions: np.ndarray) -> list[np.ndarray]:
    """Cut rows into parts of given proportions, each within one row of its exact share."""
    cuts = np.rint(np.cumsum(proportions)[:-1] * rows.size).astype(np.int64)
    return np.split(rows, cuts)


def _fill_empty(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Give each empty part, in order, the last row of the part that is largest then (the first of equals)."""
    parts = list(parts)
    sizes = np.array([part.size for part in parts])
    for empty in np.flatnonzero(sizes == 0):
        largest = int(np.argmax(sizes))
        parts[empty], parts[largest] = parts[largest][-1:], parts[largest][:-1]
        sizes[empty], sizes[largest] = 1, sizes[largest] - 1
    return parts


def _as_clients(parts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sort the rows of each client: reading a matrix in its order is faster, and the order means nothing."""
    return [np.sort(part).astype(np.int64) for part in parts]
