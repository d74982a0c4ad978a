"""Partitions of the rows of a data set among clients.

A partition is a list of N arrays of row numbers (int64): disjoint, together all rows 0..m-1, none of them
empty.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Sequence

import numpy as np

from dualopt.arrays._checks import at_least
from dualopt.arrays.streams import PARTITION_STREAM, SAMPLE_STREAM, generator
from dualopt.problem.data._modules import modules
from dualopt.problem.data._parts import as_clients, check_clients, concentration, cut, fill_empty, lognormal_shares
from dualopt.spec.plugins import entry_points, find, is_spelled

__all__ = [
    "by_label",
    "check_partition",
    "consecutive",
    "dirichlet",
    "iid",
    "lognormal_sizes",
    "natural",
    "partition",
    "partition_rule",
    "partition_rules",
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
    >>> from dualopt.problem.data import iid
    >>> [len(rows) for rows in iid(10, 3, seed=0)]
    [4, 3, 3]
    """
    n_clients = check_clients(m, n_clients)
    order = generator(seed, PARTITION_STREAM).permutation(m)
    return as_clients(np.array_split(order, n_clients))


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
    >>> from dualopt.problem.data import consecutive
    >>> consecutive(5, 2)
    [array([0, 1, 2]), array([3, 4])]
    """
    return np.array_split(np.arange(m, dtype=np.int64), check_clients(m, n_clients))


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
    >>> from dualopt.problem.data import by_label
    >>> by_label(np.array([1, 0, 1, 0]), 2)
    [array([1, 3]), array([0, 2])]
    """
    n_clients = check_clients(len(y), n_clients)
    return np.array_split(np.argsort(y, kind="stable").astype(np.int64), n_clients)


def dirichlet(y: np.ndarray, n_clients: int, alpha: float, seed: int) -> list[np.ndarray]:
    r"""Share out each class in proportions drawn from a symmetric Dirichlet distribution.

    The rows of each class are shuffled and cut at :math:`n_c (p_1 + \dots + p_j)`, rounded, where
    :math:`p \sim \mathrm{Dir}(\alpha, \dots, \alpha)` over the N clients, drawn anew for each class. Small alpha gives
    most of a class to one client, large alpha the same share to all. A client left without rows (in order of its
    number) takes one from the client that has most rows then, the first of them in case of ties: the last row of its
    highest class. So the sizes are random, the result depends on the arguments alone, and no draw is repeated.

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

    References
    ----------
    Yurochkin et al., ICML 2019, draw proportions over clients for each class, as here; Hsu, Qi and Brown,
    arXiv:1909.06335, draw a distribution over classes for each client, as `dirichlet_clients` does.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.problem.data import dirichlet
    >>> clients = dirichlet(np.arange(100) % 10, 4, alpha=0.3, seed=0)
    >>> sum(len(rows) for rows in clients)
    100
    """
    y = np.asarray(y)
    n_clients = check_clients(len(y), n_clients)
    proportions = np.full(n_clients, concentration(alpha))
    rng = generator(seed, PARTITION_STREAM)
    _, sizes = np.unique(y, return_counts=True)
    classes = np.split(np.argsort(y, kind="stable"), np.cumsum(sizes)[:-1])
    parts = [cut(rng.permutation(rows), rng.dirichlet(proportions)) for rows in classes]
    return as_clients(fill_empty([np.concatenate(shares) for shares in zip(*parts, strict=True)]))


def lognormal_sizes(m: int, n_clients: int, sigma: float = 1.0, seed: int = 0) -> list[np.ndarray]:
    r"""Deal the rows out at random, in parts whose sizes are log-normal.

    The sizes are :math:`m\, w_j / \sum_i w_i` with :math:`w_j = \exp(\sigma\, e_j)`, :math:`e_j \sim N(0, 1)`, up to
    rounding. A client left without rows takes one from the client that has most rows then, as in `dirichlet`.

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
    >>> from dualopt.problem.data import lognormal_sizes
    >>> sorted(len(rows) for rows in lognormal_sizes(10, 4, sigma=0.0, seed=0))
    [2, 2, 3, 3]
    """
    n_clients = check_clients(m, n_clients)
    rng = generator(seed, PARTITION_STREAM)
    shares = lognormal_shares(n_clients, sigma, rng)
    return as_clients(fill_empty(cut(rng.permutation(m), shares)))


def natural(clients: np.ndarray | None) -> list[np.ndarray]:
    """Give each row to the client that the data set says it belongs to.

    Parameters
    ----------
    clients : array of integers, shape (m,)
        The number of the client of each row, such as ``Dataset.clients``; numbers may be missing between them.

    Returns
    -------
    list of N arrays of int64, each sorted, for the N numbers that occur, in increasing order

    Raises
    ------
    ValueError
        If ``clients`` is None, as it is where a data set names no clients.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.problem.data import natural
    >>> natural(np.array([7, 3, 7]))
    [array([1]), array([0, 2])]
    """
    if clients is None:
        raise ValueError('partition must not be "natural", because the data do not say which client a row belongs to.')
    _, sizes = np.unique(clients, return_counts=True)
    return np.split(np.argsort(clients, kind="stable").astype(np.int64), np.cumsum(sizes)[:-1])


def partition(
    kind: str,
    y: np.ndarray,
    n_clients: int,
    *,
    alpha: float = 0.3,
    sigma: float | None = None,
    seed: int = 0,
    clients: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Partition the rows of a data set among clients by the name of a rule.

    Parameters
    ----------
    kind : str
        A name of `partition_rules`: "iid", "consecutive", "by-label", "dirichlet", "dirichlet-clients", "lognormal",
        "dirichlet-replacement", "natural"; or a plug-in, ``FILE.py:name``, a function that takes what they take, whose
        result is checked.
    y : array, shape (m,)
        Labels.
    n_clients : int
        Number N of clients, 1 <= N <= m.
    alpha : float
        Concentration of "dirichlet" and "dirichlet-clients".
    sigma : float, optional
        Spread of the sizes of "lognormal" (1 by default) and of "dirichlet-clients" (0 by default).
    seed : int
        Seed of the random rules.
    clients : array of integers, shape (m,), optional
        The number of the client of each row, which "natural" needs.

    Returns
    -------
    list of N arrays of int64, nonempty, and but for a rule that samples with replacement disjoint, together all rows

    Raises
    ------
    ValueError
        If ``kind`` is unknown, an argument that it uses is out of its range, or "natural" finds no clients or
        another number than N.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.problem.data import partition
    >>> partition("by-label", np.array([1, 0, 1, 0]), 2)
    [array([1, 3]), array([0, 2])]
    """
    rule = partition_rule(kind)
    arguments = {"y": y, "m": len(y), "n_clients": n_clients, "alpha": alpha, "seed": seed, "clients": clients}
    if sigma is not None:
        arguments["sigma"] = sigma
    accepted = inspect.signature(rule).parameters
    parts = rule(**{name: value for name, value in arguments.items() if name in accepted})
    if kind not in partition_rules():
        try:
            parts = check_partition(parts, len(y), replacement=getattr(rule, "replacement", False))
        except ValueError as error:
            raise ValueError(f"partition {kind!r}: {error}") from None
    if len(parts) != n_clients:
        raise ValueError(f"n_clients must be the {len(parts)} clients of the data, got {n_clients}.")
    return parts


def partition_rule(kind: str) -> Callable[..., list[np.ndarray]]:
    """Return the rule of a name, or of a plug-in, as `partition` takes it.

    Raises
    ------
    ValueError
        If there is none; the sentence proposes a close name.

    Examples
    --------
    >>> partition_rule("by-label").__name__
    'by_label'
    """
    rules = partition_rules()
    if isinstance(kind, str) and kind in rules:
        return rules[kind]
    if isinstance(kind, str) and (is_spelled(kind) or kind in entry_points("partitions")):
        return find("partitions", kind, "partition", rules)
    close = difflib.get_close_matches(str(kind), rules, 1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise ValueError(f"partition must be one of {', '.join(rules)}, got {kind!r}{hint}")


def partition_rules() -> dict[str, Callable[..., list[np.ndarray]]]:
    """Return the rules that `partition` takes, by name.

    A module of this package adds rules by defining ``PARTITIONS``, a dictionary of names and functions; no list is
    edited. A rule takes any of ``y``, ``m``, ``n_clients``, ``alpha``, ``sigma``, ``seed`` and ``clients``, by these
    names and with the meaning that they have in `partition`; ``sigma`` needs a default. One that deals a row to several
    clients has the attribute ``replacement = True``.

    Examples
    --------
    >>> from dualopt.problem.data import partition_rules
    >>> sorted(partition_rules())[:4]
    ['by-label', 'consecutive', 'dirichlet', 'dirichlet-clients']
    """
    found = {name: rule for module in modules() for name, rule in getattr(module, "PARTITIONS", {}).items()}
    return PARTITIONS | found  # those of this module first


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
    >>> from dualopt.problem.data import subsample
    >>> subsample(np.zeros(3), 3, seed=0)
    array([0, 1, 2])
    """
    if at_least(1, "rows", rows) > len(y):
        raise ValueError(f"rows must be at most the {len(y)} rows of the data, got {rows}.")
    return np.sort(generator(seed, SAMPLE_STREAM).choice(len(y), size=rows, replace=False)).astype(np.int64)


def check_partition(clients: Sequence[np.ndarray], m: int, *, replacement: bool = False) -> list[np.ndarray]:
    """Check that a partition of the user's is one, and return it as arrays of int64.

    Parameters
    ----------
    clients : sequence of N arrays of integers
        The rows of each client, counted from 0.
    m : int
        Number of rows.
    replacement : bool, default False
        Whether a row may be at several clients, several times at one, and at none.

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
    >>> from dualopt.problem.data import check_partition
    >>> check_partition([[0, 2], [1]], 3)
    [array([0, 2]), array([1])]
    """
    given = [np.asarray(rows) for rows in clients]
    if _covers(given, m):
        return [rows.astype(np.int64) for rows in given]
    checked = [_client_rows(number, rows, m, replacement) for number, rows in enumerate(given)]  # names what is wrong
    if not checked:
        raise ValueError("clients must hold at least one client, got none.")
    if replacement:
        return checked
    owner = np.full(m, -1)
    for number, rows in enumerate(checked):
        taken = owner[rows] >= 0
        if taken.any():
            row = rows[taken][0]
            raise ValueError(f"clients overlap: client {number} has row {row}, which client {owner[row]} has already.")
        owner[rows] = number
    raise ValueError(f"clients must cover all {m} rows, but row {np.argmin(owner)} belongs to no client.")


def _covers(clients: list[np.ndarray], m: int) -> bool:
    """Tell whether every client has rows, vectors of integers, and every row from 0 to ``m - 1`` one client."""
    if not clients or any(rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu" for rows in clients):
        return False
    rows = np.concatenate([rows.astype(np.int64) for rows in clients])
    return len(rows) == m and rows.min() >= 0 and rows.max() < m and bool((np.bincount(rows, minlength=m) == 1).all())


def _client_rows(number: int, rows: np.ndarray, m: int, replacement: bool) -> np.ndarray:
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
    if counts.max() > 1 and not replacement:
        raise ValueError(
            f"clients must have each row once, but client {number} has row {values[np.argmax(counts)]} "
            f"{counts.max()} times."
        )
    return rows.astype(np.int64)


PARTITIONS: dict[str, Callable[..., list[np.ndarray]]] = {
    "iid": iid,
    "consecutive": consecutive,
    "by-label": by_label,
    "dirichlet": dirichlet,
    "lognormal": lognormal_sizes,
    "natural": natural,
}
