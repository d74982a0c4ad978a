"""Backtracking at a server, which sees one point per round: its value, and its gradient or its slope."""

from __future__ import annotations

import math
from typing import NamedTuple

from dualopt.arrays.xp import Array, array_namespace, epsilon
from dualopt.solvers._line_search import SUFFICIENT_DECREASE

__all__ = ["Upload", "accepts", "falls", "inner", "shortened"]


class Upload(NamedTuple):
    """What a client sends."""

    value: Array  # (P,)  f_j at the point sent
    gradient: Array  # (P, *shape)


def inner(x: Array, y: Array) -> Array:
    """Return the inner product of two models, an array without axes."""
    return array_namespace(x, y).sum(x * y)


def accepts(value: Array, gradient: Array, step: Array, new: Upload) -> bool:
    """Tell whether the values and gradients at both ends of a step admit it.

    Armijo's rule; or, where the values are close, a slope at the new end of at most 1e-4 times the first one, which
    proves the decrease of a convex function; or, where they differ by rounding only, Hager and Zhang's approximate
    Wolfe condition.

    Examples
    --------
    >>> import numpy as np
    >>> new = Upload(np.asarray(4.0), np.array([4.0]))  # of x^2/2 + ... at the other side
    >>> accepts(np.asarray(1.0), np.array([-1.0]), np.array([5.0]), new)
    False
    """
    slope, new_slope = inner(gradient, step), inner(new.gradient, step)
    fall = -SUFFICIENT_DECREASE * slope
    return bool(slope <= 0) and falls(value, slope, new.value, new_slope, fall)


def falls(value: Array, slope: Array, new_value: Array, new_slope: Array, fall: Array) -> bool:
    """Tell whether a convex function falls by at least ``fall`` along a step, from values and slopes at both ends.

    By the values; or, where these are close, by the slope at the new end, minus which is a lower bound of the fall; or,
    where they differ by rounding only, by the mean of both slopes, as if the function were quadratic.

    Examples
    --------
    >>> import numpy as np
    >>> value, slope, new_value, new_slope = map(np.asarray, (0.5, -0.5, 0.125, -0.25))  # x^2/2 from 1 to 1/2
    >>> falls(value, slope, new_value, new_slope, np.asarray(0.375)), falls(value, slope, new_value, new_slope, 0.376)
    (True, False)
    """
    xp, eps, rise = array_namespace(value), epsilon(value), new_value - value
    close, rounding = rise <= math.sqrt(eps) * xp.abs(value), rise <= 10.0 * eps * xp.abs(value)
    proved = close & (new_slope <= -fall)
    level = rounding & (0.5 * (slope + new_slope) <= -fall)
    return bool((new_value <= value - fall) | proved | level)


def shortened(value: Array, gradient: Array, step: Array, new_value: Array) -> Array:
    """Return a refused step, 0.1 to 0.5 times as long: to the minimum of the parabola through what is known.

    Examples
    --------
    >>> import numpy as np
    >>> shortened(np.asarray(0.0), np.array([-1.0]), np.array([4.0]), np.asarray(12.0)).tolist()
    [0.5]
    """
    xp = array_namespace(step)
    slope = inner(gradient, step)
    curvature = new_value - value - slope
    usable = xp.isfinite(curvature) & (curvature > 0)
    minimiser = -0.5 * slope / xp.where(usable, curvature, xp.ones_like(curvature))
    one = xp.ones_like(slope)
    return step * xp.where(usable, xp.minimum(xp.maximum(minimiser, 0.1 * one), 0.5 * one), 0.1 * one)
