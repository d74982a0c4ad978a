"""A row at several clients: the label heterogeneity of the A-FedPD paper, which samples with replacement."""

from __future__ import annotations

import numpy as np

from dualopt.arrays.streams import PARTITION_STREAM, generator
from dualopt.problem.data._parts import as_clients, check_clients, concentration

__all__ = ["dirichlet_replacement"]


def dirichlet_replacement(y: np.ndarray, n_clients: int, alpha: float, seed: int) -> list[np.ndarray]:
    r"""Draw every client's rows with replacement, by label proportions of its own from a Dirichlet distribution.

    "We first generate a distribution matrix and then generate a random number to sample each data. To further enhance
    the local heterogeneity, we also adopt the sampling with replacement, which means one data sample may exist on
    several clients simultaneously" (Sun et al. 2024, Appendix A.3). Client ``j`` has proportions :math:`p_j \sim
    \text{Dirichlet}(\alpha, \dots, \alpha)` over the labels; for each of its rows a label is drawn from
    :math:`p_j`, and then one of all rows of this label, uniformly, whoever has it already: a row may be at several
    clients, at one client several times, and at none.

    Parameters
    ----------
    y : array, shape (m,)
        Labels.
    n_clients : int
        Number N of clients, 1 <= N <= m; the first m mod N clients get one row more.
    alpha : float
        Concentration, positive.
    seed : int
        Seed of the draws.

    Returns
    -------
    list of N arrays of int64, each sorted, with repetitions

    Raises
    ------
    ValueError
        If ``n_clients`` or ``alpha`` is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> clients = dirichlet_replacement(np.arange(100) % 10, 4, alpha=0.3, seed=0)
    >>> [len(rows) for rows in clients], len(np.unique(np.concatenate(clients))) < 100
    ([25, 25, 25, 25], True)
    """
    n_clients = check_clients(len(y), n_clients)
    parameter = concentration(alpha)
    rng = generator(seed, PARTITION_STREAM)
    _, counts = np.unique(y, return_counts=True)
    order, starts = np.argsort(y, kind="stable"), np.cumsum(counts) - counts
    priors = rng.dirichlet(np.full(counts.size, parameter), size=n_clients)
    clients = []
    for prior, share in zip(priors, np.array_split(np.arange(len(y)), n_clients), strict=True):
        labels = rng.choice(counts.size, size=len(share), p=prior)
        clients.append(order[starts[labels] + rng.integers(0, counts[labels])])
    return as_clients(clients)


dirichlet_replacement.replacement = True  # pyright: ignore[reportFunctionMemberAccess]

PARTITIONS = {"dirichlet-replacement": dirichlet_replacement}
