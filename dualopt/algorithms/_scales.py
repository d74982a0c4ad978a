"""One scale for each client: parameters of the clients in units of a common one."""

from __future__ import annotations

import math

from dualopt._checks import require
from dualopt.objectives import Objective
from dualopt.participation import Round
from dualopt.xp import Array, array_namespace, asarray_like, to_numpy

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


def weights(numbers: Scales, round: Round, like: Array) -> Array:
    r"""Return :math:`a_j / \frac1N\sum_ia_i` for the numbers :math:`a_j` of the clients: weights whose mean is 1.

    They multiply arrays like ``like``, shape ``(P, *shape)``, so that plain means over the clients are weighted ones.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.participation import first_round
    >>> weights((3.0, 1.0), first_round(2), np.zeros((2, 1)))
    array([[1.5],
           [0.5]])
    """
    mean = sum(numbers) / len(numbers)
    found = asarray_like([numbers[j] / mean for j in round.clients], like)
    return array_namespace(like).reshape(found, (-1,) + (1,) * (like.ndim - 1))
