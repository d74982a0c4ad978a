"""One scale for each client: parameters of the clients in units of a common one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, array_namespace, asarray_like, to_numpy
from dualopt.methods._pivotal import inclusion_probabilities
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import per_client

__all__ = ["cohort_weights", "constants", "multiplied", "of_clients", "require_scales", "same", "weights"]

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
    >>> from dualopt.methods.participation import first_round
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
    >>> from dualopt.methods.participation import first_round
    >>> weights((3.0, 1.0), first_round(2), np.zeros((2, 1)))
    array([[1.5],
           [0.5]])
    """
    mean = sum(numbers) / len(numbers)
    found = asarray_like([numbers[j] / mean for j in round.clients], like)
    return array_namespace(like).reshape(found, (-1,) + (1,) * (like.ndim - 1))


def same(some: Sequence[float], others: Sequence[float]) -> bool:
    """Tell whether probabilities are the same, up to the rounding of the weights that they come from."""
    return all(math.isclose(p, q, rel_tol=1e-9) for p, q in zip(some, others, strict=True))


def multiplied(factor: float | Array, array: Array) -> Array:
    """Return an array of clients, shape ``(P, *shape)``, times a number, or times one number for each of them.

    Examples
    --------
    >>> import numpy as np
    >>> multiplied(np.array([1.0, 2.0]), np.ones((2, 3)))
    array([[1., 1., 1.],
           [2., 2., 2.]])
    """
    return per_client(factor, array) * array


def cohort_weights(numbers: Scales, inclusion: Scales | None, round: Round, like: Array) -> Array:
    r"""Return P times the weights of the clients of a round in its mean, :math:`a_j/\pi_j` up to a common factor.

    The plain mean of arrays times these is :math:`\sum_Sc_jy_j` with :math:`c_j \ge 0` and :math:`\sum_Sc_j = 1`. For
    cohorts of fixed size with :math:`\pi_j = \min(1, Ka_j)`, those of ``inclusion`` when not given, :math:`c_j =
    \omega_j/\pi_j` with :math:`\omega_j = a_j/\sum_ia_i`: the k clients with :math:`\pi_j = 1` are in every cohort, and
    each of the P - k other places adds :math:`1/(K\sum_ia_i)`, together what the other :math:`\omega_j` add up to. So
    the mean of the sum over all cohorts is :math:`\sum_j\omega_jy_j`.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.methods.participation import Round
    >>> r = Round(n=0, n_clients=3, clients=(1, 2), communicate=True, seed=0)
    >>> cohort_weights((1.0, 1.0, 6.0), None, r, np.zeros(1)) / 2  # pi = (1/2, 1/2, 1)
    array([0.25, 0.75])
    """
    chances = inclusion_probabilities(numbers, round.n_active) if inclusion is None else inclusion
    found = [numbers[j] / chances[j] for j in round.clients]
    return asarray_like([len(found) * c / sum(found) for c in found], like)
