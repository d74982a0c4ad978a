"""The exponential function as losses with a logarithmic link need it: finite, and accurate where it is near 1 + t."""

from __future__ import annotations

import math

from dualopt.arrays.xp import Array, array_namespace, epsilon, limits

__all__ = ["errors_of_exponential", "exp_minus_tangent", "exponential", "floor_of_labels", "logarithm"]

LARGEST = 0.4
"""Part of the largest exponent of the type from which on the tangent takes the place of the exponential function."""


def exponential(t: Array) -> tuple[Array, Array]:
    r"""Return :math:`e^t` and its derivative; beyond :math:`T = 0.4 \log(\text{largest number})` those of its tangent.

    The tangent at ``T``, 283 in double and 35 in single precision, lies below the function, and squares of slopes are
    finite.

    Examples
    --------
    >>> import numpy as np
    >>> value, slope = exponential(np.asarray([0.0, 1e4]))
    >>> value[0], bool(np.isfinite(value[1])), bool(value[1] > slope[1])
    (np.float64(1.0), True, True)
    """
    xp = array_namespace(t)
    inside = xp.minimum(t, _end(t))
    slope = xp.exp(inside)
    return slope * (1.0 + (t - inside)), slope


def _end(t: Array) -> float:
    """Return where the tangent takes over."""
    return LARGEST * math.log(limits(t)[2])


def exp_minus_tangent(t: Array) -> Array:
    r"""Return :math:`e^t - 1 - t` for ``|t| <= 1``, that of the nearest end elsewhere.

    It is what ``t`` as given has up to a change of ``t`` by a few units in its last place.

    Examples
    --------
    >>> import numpy as np
    >>> exp_minus_tangent(np.asarray([0.0, 0.5, 1.0])).round(12).tolist()
    [0.0, 0.1487212707, 0.718281828459]
    """
    xp = array_namespace(t)
    near = xp.clip(t, -1.0, 1.0)
    return xp.maximum(xp.expm1(near) - near, 0.0)


def floor_of_labels(like: Array) -> float:
    """Return the fourth root of the smallest normal number: what a label below adds beside ``e^t`` is rounding."""
    return limits(like)[1] ** 0.25


def logarithm(y: Array, like: Array, least: float = 0.0) -> Array:
    """Return the logarithm of labels, not below ``least``, in the type of ``like``.

    Certificates of data in single precision are computed in double.
    """
    xp = array_namespace(like)
    y = y if y.dtype == like.dtype else xp.astype(y, like.dtype)
    return xp.log(xp.maximum(y, least) if least else y)


def errors_of_exponential(value: Array, slope: Array, growth: Array, size: Array, t: Array) -> tuple[Array, Array]:
    r"""Bound the errors of values and slopes that are those of a predictor moved by a few units of ``size``.

    With :math:`\delta = 4\epsilon\,\text{size}` and the second derivative ``growth``, values are off by
    :math:`16\epsilon\phi + (|\phi'| + \text{growth}\,\delta)\delta` and slopes by
    :math:`16\epsilon|\phi'| + \text{growth}\,\delta` at most. Where the tangent has taken the place of
    :math:`e^t` nothing is known: the bounds are infinite.
    """
    xp, eps = array_namespace(value), epsilon(value)
    delta = 4.0 * eps * size
    moved = xp.where(t > _end(t), math.inf, growth * delta)
    return 16.0 * eps * value + (xp.abs(slope) + moved) * delta, 16.0 * eps * xp.abs(slope) + moved
