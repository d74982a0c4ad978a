"""The Wright omega function, to which the proximal operators of logistic losses reduce."""

from __future__ import annotations

from dualopt.arrays.xp import Array, array_namespace

__all__ = ["wright_omega"]

NEWTON_STEPS = 6


def wright_omega(t: Array) -> Array:
    r"""Compute the positive solution of :math:`\omega + \log\omega = t`, elementwise.

    With :math:`q = \log\omega` this is :math:`f(q) = q + e^q - t = 0`. The start, :math:`\log t` if :math:`t > 1` and
    :math:`t` otherwise, lies above the root by at most 1, and since :math:`0 < f'' < f'` each Newton step takes the
    distance :math:`d` to at most :math:`d^2/2`, staying above. The first step from :math:`d = 1` leaves 0.27, and six
    leave less than rounding. (Corless and Jeffrey 2002, "The Wright omega function".)

    Examples
    --------
    >>> import numpy as np
    >>> wright_omega(np.asarray([1.0, 1.0 + np.e, -1e4])).round(12).tolist()
    [1.0, 2.718281828459, 0.0]
    """
    xp = array_namespace(t)
    large = t > 1.0
    q = xp.where(large, xp.log(xp.maximum(t, 1.0)), t)
    for _ in range(NEWTON_STEPS):
        omega = xp.exp(q)
        q = q - (q + omega - t) / (1.0 + omega)
    # exp(q) loses relative accuracy as |q| grows, and t - q does as omega becomes small against t.
    return xp.where(large, t - q, xp.exp(q))
