"""Bounds of what rounding does to sums and products (Higham 2002, "Accuracy and Stability of Numerical Algorithms").

A sum of ``n`` products, added in whatever order, differs from the exact one by at most ``gamma_n`` times the sum of the
sizes of its terms (Section 3.1), as long as nothing underflows; a product that does is off by less than the smallest
normal number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dualopt.arrays.xp import Array, array_namespace, epsilon, is_host, is_numpy, limits, reshape, silent

FEW = 64  # numbers that are faster compared one by one

__all__ = ["Rounding", "client_norm", "gamma", "tiny"]


class Rounding(NamedTuple):
    r"""Upper bounds of the errors of computed values and gradients, one number for each client.

    With the exact functions, the computed :math:`\hat f_j, \hat g_j` at :math:`\theta_j`, and all :math:`x`,

    .. math:: |\hat f_j - f_j(\theta_j)| \le \text{value}_j, \qquad
              f_j(x) \ge \hat f_j + \langle \hat g_j, x - \theta_j\rangle + \tfrac{\mu_j}2 |x - \theta_j|^2
              - \text{value}_j - \text{gradient}_j |x - \theta_j|.

    The second line is all that certificates need, and holds at kinks too, where the subgradient may be the one of the
    other side.
    """

    value: Array  # (N,)
    gradient: Array  # (N,)


def gamma(n: int, like: Array) -> float:
    r"""Return :math:`\gamma_n = n\epsilon/(1 - n\epsilon)` for the type of ``like``; infinite where nothing is known.

    ``epsilon`` is the spacing of numbers at 1, twice the unit roundoff. The factor of two pays for the rounding of the
    bounds themselves, whose terms are of second order.

    Examples
    --------
    >>> import numpy as np
    >>> gamma(3, np.zeros(1)) == 3 * 2.0**-52 / (1 - 3 * 2.0**-52), gamma(10**8, np.zeros(1, dtype=np.float32))
    (True, inf)
    """
    share = n * epsilon(like)
    return share / (1.0 - share) if share < 1.0 else math.inf


def tiny(like: Array) -> float:
    """Return the smallest normal number of the type of ``like``: what a product loses at most that underflows."""
    return limits(like)[1]


def client_norm(x: Array) -> Array:
    """Return ``|x_j|`` for ``(N, *shape)``, shape ``(N,)``, without overflow and underflow of the squares.

    Examples
    --------
    >>> import numpy as np
    >>> [f"{x:.6g}" for x in client_norm(np.array([[3e-200, 4e-200], [3e200, 4e200], [0.0, 0.0]]))]
    ['5e-200', '5e+200', '0']
    """
    xp, eps = array_namespace(x), epsilon(x)
    flat = reshape(x, (x.shape[0], -1))
    with silent():
        squares = xp.vecdot(flat, flat)
        least = flat.shape[1] * tiny(x) / eps  # a square that underflows loses less than the smallest normal number
        if is_numpy(x) and x.shape[0] <= FEW and all([least <= square < math.inf for square in squares.tolist()]):
            return xp.sqrt(squares)
        known = (squares >= least) & (squares < math.inf)
        if is_host(x) and bool(xp.all(known)):  # one reading, and no array of the size of x
            return xp.sqrt(squares)
        return xp.where(known, xp.sqrt(squares), _scaled_norm(flat))


def _scaled_norm(x: Array) -> Array:
    """Return the norms of rows, each divided by its largest entry before it is squared."""
    xp = array_namespace(x)
    largest = xp.max(xp.abs(x), axis=-1)
    unit = xp.where((largest > 0) & xp.isfinite(largest), largest, xp.ones_like(largest))
    scaled = x / unit[:, None]
    return unit * xp.sqrt(xp.sum(scaled * scaled, axis=-1))
