"""One scale for each client: parameters of the clients in units of a common one."""

from __future__ import annotations

import math

from dualopt._checks import require
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import per_client
from dualopt.participation import Round
from dualopt.xp import Array, asarray_like, to_numpy

__all__ = ["constants", "of_clients", "require_scales", "weights"]

Scales = tuple[float, ...]


def require_scales(scales: Scales | None, n_clients: int | None = None) -> None:
    """Refuse scales that are not positive and finite, or not one for each client; None passes."""
    if scales is None:
        return
    require(all(0 < s < math.inf for s in scales), "scales must be positive finite numbers", scales)
    if n_clients is not None:
        require(len(scales) == n_clients, f"scales must be {n_clients} numbers, one for each client", len(scales))


def constants(objective: Objective) -> list[tuple[float, float]]:
    """Return ``(mu_j, L_j)`` of every client."""
    pairs = zip(to_numpy(objective.mu), to_numpy(objective.L), strict=True)
    return [(float(mu), float(L)) for mu, L in pairs]


def of_clients(scales: Scales | None, round: Round, like: Array) -> float | Array:
    """Return the scales of the clients of a round, shape ``(P,)``; 1 where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.participation import first_round
    >>> of_clients((1.0, 4.0), first_round(2), np.zeros(2)), of_clients(None, first_round(2), np.zeros(2))
    (array([1., 4.]), 1.0)
    """
    return 1.0 if scales is None else asarray_like([scales[j] for j in round.clients], like)


def weights(scales: Scales | None, round: Round, like: Array) -> float | Array:
    r"""Return the weights :math:`\frac1{s_j} / \frac1N\sum_i\frac1{s_i}`, whose mean over all clients is 1.

    They multiply arrays like ``like``, shape ``(P, *shape)``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.participation import first_round
    >>> weights((1.0, 3.0), first_round(2), np.zeros((2, 1)))
    array([[1.5],
           [0.5]])
    """
    if scales is None:
        return 1.0
    mean = sum(1.0 / s for s in scales) / len(scales)
    return per_client(1.0 / (mean * of_clients(scales, round, like)), like)
