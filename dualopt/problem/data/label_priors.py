"""The partition of FedDyn's experiments: Dirichlet proportions of labels for each client."""

from __future__ import annotations

import numpy as np

from dualopt.arrays.streams import PARTITION_STREAM, generator
from dualopt.problem.data._parts import as_clients, check_clients, concentration, cut, fill_empty, lognormal_shares

__all__ = ["dirichlet_clients"]


def dirichlet_clients(
    y: np.ndarray, n_clients: int, alpha: float, seed: int, *, sigma: float = 0.0
) -> list[np.ndarray]:
    r"""Give each client a share of the rows that is fixed first, with labels in proportions of its own.

    Client j draws proportions :math:`p_j \sim \mathrm{Dir}(\alpha, \dots, \alpha)` over the classes. Then, one
    row at a time, a client chosen uniformly among those that still lack rows draws a class from its
    :math:`p_j`, again when no row of that class is left, and takes a random remaining row of the class.
    Rejected draws are not made: the class is drawn from :math:`p_j` restricted to the classes that are left,
    or, where these have no mass in floating point, in proportion to the rows that are left.

    With ``sigma = 0`` the clients have equal sizes up to one row, else the log-normal sizes of
    `lognormal_sizes`. In `dirichlet` the sizes follow from the shares of the classes; here they do not depend
    on them, at the price that the rows taken last have the labels that no client's proportions favour.

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
    sigma : float
        Spread of the sizes.

    Returns
    -------
    list of N arrays of int64, each sorted

    Raises
    ------
    ValueError
        If ``n_clients``, ``alpha`` or ``sigma`` is out of its range.

    References
    ----------
    Acar et al., Federated Learning Based on Dynamic Regularization, ICLR 2021, Appendix A.2. The authors' code
    drops the m mod N rows that equal sizes leave over and gives the rows that rounding of log-normal sizes leaves
    over to one client; here every row is dealt out and sizes are within one row of their exact values.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.problem.data import dirichlet_clients
    >>> clients = dirichlet_clients(np.arange(100) % 10, 4, alpha=0.3, seed=0)
    >>> [len(rows) for rows in clients]
    [25, 25, 25, 25]
    """
    y = np.asarray(y)
    n_clients = check_clients(len(y), n_clients)
    parameter = concentration(alpha)
    rng = generator(seed, PARTITION_STREAM)
    sizes = [part.size for part in fill_empty(cut(np.arange(len(y)), lognormal_shares(n_clients, sigma, rng)))]
    _, left = np.unique(y, return_counts=True)
    order = np.argsort(y, kind="stable")
    stacks = [rng.permutation(rows).tolist() for rows in np.split(order, np.cumsum(left)[:-1])]
    priors = rng.dirichlet(np.full(left.size, parameter), size=n_clients)
    turns = _turns(sizes, rng)
    taken = np.empty(len(y), np.int64)
    distribution = _distribution(priors, left)
    for i, (client, u) in enumerate(zip(turns.tolist(), rng.random(len(y)).tolist(), strict=True)):
        label = distribution[client].searchsorted(u, side="right")  # the first class above u: never an empty one
        taken[i] = stacks[label].pop()
        left[label] -= 1
        if left[label] == 0 and i + 1 < len(y):
            distribution = _distribution(priors, left)
    return as_clients([taken[turns == client] for client in range(n_clients)])


def _turns(sizes: list[int], rng: np.random.Generator) -> np.ndarray:
    """Return which client draws each row, uniformly at random among the clients that still lack rows.

    Independent Poisson processes of equal rates, each stopped at its last row, have just this law, because they
    have no memory.
    """
    times = np.concatenate([np.cumsum(rng.standard_exponential(size)) for size in sizes])
    return np.repeat(np.arange(len(sizes)), sizes)[np.argsort(times, kind="stable")]


def _distribution(priors: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return the distribution function over the classes that are left, one row for each client."""
    possible = priors * (left > 0)
    possible = np.where(possible.sum(axis=1, keepdims=True) > 0, possible, left)
    sums = np.cumsum(possible, axis=1)
    return sums / sums[:, -1:]


PARTITIONS = {"dirichlet-clients": dirichlet_clients}
