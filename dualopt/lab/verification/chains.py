r"""Convex chains with known minimisers, on which no method is faster than the lower bounds.

The proofs are with the claims of ``theory/lower_bounds``.
"""

from __future__ import annotations

import math

import numpy as np

from dualopt.losses import AbsoluteDeviation, Squared
from dualopt.objectives import ConvexChain

__all__ = ["geometric", "kinked", "power"]


def geometric(kappa: float, d: int, *, pairs: int = 1) -> tuple[ConvexChain, np.ndarray]:
    r"""Return squares with strong convexity 1 and smoothness ``kappa`` of every client, and :math:`\theta^*_k = q^k`.

    With :math:`r_0 = \cdots = r_{d-1} = 1` and :math:`w = (\kappa - 1)/2` the gradient of E at the coordinate k is
    :math:`\frac w2 (2x_k - x_{k-1} - x_{k+1}) + x_k`. It vanishes at :math:`q^k` if :math:`q + 1/q = 2 + 2/w`, that is
    :math:`q = \frac{\sqrt\kappa - 1}{\sqrt\kappa + 1}`; at the last one :math:`r_d^2 = 1 - q` takes the place of
    :math:`x_{d+1}`. The condition number of E is less than that of the clients, and tends to it with d.

    Examples
    --------
    >>> f, theta = geometric(9.0, 4)
    >>> theta.tolist(), f.L.tolist(), bool(abs(f.gradient(theta).sum(axis=0)).max() < 1e-15)
    ([0.5, 0.25, 0.125, 0.0625], [9.0, 9.0], True)
    """
    q = (math.sqrt(kappa) - 1.0) / (math.sqrt(kappa) + 1.0)
    ratios = np.append(np.ones(d), math.sqrt(1.0 - q))
    f = ConvexChain(ratios=ratios, weight=0.5 * (kappa - 1.0), ridge=1.0, loss=Squared(), groups=(0, 1) * pairs)
    return f, q ** np.arange(1.0, d + 1.0)


def kinked(theta: np.ndarray, *, pairs: int = 1) -> tuple[ConvexChain, np.ndarray]:
    r"""Return absolute values with strong convexity 1 that have a given minimiser, positive and not increasing.

    The second result is the forces :math:`p_k` of the links at the minimiser. With :math:`r_k = \theta_{k+1}/\theta_k`
    (0 at the end) the minimiser is at the kink of every link but the first, whose kink is far away, so that it has the
    force ``w``. Forces :math:`p_k` against the rows make E stationary if :math:`2\theta_k = p_{k-1} - r_k p_k`, that is
    :math:`p_{k-1} = \frac2{\theta_k} \sum_{i \ge k} \theta_i^2`. They decrease with k, and :math:`w = p_0` is enough.
    Other links cannot do with less: the subgradients of a convex function of the pair :math:`(x_k, x_{k+1})` that is
    least at (0, 0) have with the pair a product of at least 0, by monotonicity, and those of these links have 0.

    Examples
    --------
    >>> f, forces = kinked(np.array([1.0, 0.5]))
    >>> f.weight, forces.tolist()
    (2.5, [2.5, 1.0])
    """
    forces = 2.0 * np.cumsum((theta**2)[::-1])[::-1] / theta
    first = 2.0 * forces[0]  # its clients would stop at half of it without the others
    ratios = np.concatenate([[first], theta[1:] / theta[:-1], [0.0]])
    weight = float(forces[0])
    f = ConvexChain(ratios=ratios, weight=weight, ridge=1.0, loss=AbsoluteDeviation(), groups=(0, 1) * pairs)
    return f, forces


def power(d: int, *, pairs: int = 1) -> tuple[ConvexChain, np.ndarray]:
    r"""Return absolute values and :math:`\theta^*_k = k^{-3/2}`: no method is nearer than :math:`1/n^2` in order.

    After ``n`` rounds the squared distance is at least the tail of :math:`\theta^*`, about :math:`1/(2n^2)`, for every
    ``n`` at once.

    Examples
    --------
    >>> theta = power(1000)[1]
    >>> theta.size, round(10**2 * float(np.sum(theta[10:] ** 2)), 3)
    (1000, 0.452)
    """
    theta = np.arange(1.0, d + 1.0) ** -1.5
    return kinked(theta, pairs=pairs)[0], theta
