"""Backtracking at a server, which sees one point per round: its value, and its gradient or its slope."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays.xp import Array, array_namespace, broadcast, device, epsilon
from dualopt.methods._base import Algorithm
from dualopt.objectives import Objective
from dualopt.solvers._line_search import SUFFICIENT_DECREASE
from dualopt.solvers.stopping import Steps, Stop

__all__ = ["AtServer", "LineSearch", "Upload", "accepts", "below", "falls", "infinite", "inner", "shortened"]


class Upload(NamedTuple):
    """What a client sends."""

    value: Array  # (P,)  f_j at the point sent
    gradient: Array  # (P, *shape)


@dataclass(frozen=True, kw_only=True)
class AtServer(Algorithm):
    """Methods whose server does all the steps: the clients evaluate their losses, and solve nothing."""

    needs: ClassVar[frozenset[str]] = frozenset({"smooth"})

    solver: None = field(default=None, init=False)
    stop: Stop = field(default=Steps(steps=1), init=False)


@dataclass(frozen=True, kw_only=True)
class LineSearch(AtServer):
    """Those that judge a point by its value: the server knows that of the model, and its gradient."""

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser, before its evaluation."""
        value, gradient = objective.value_and_gradient(theta)
        server, message, clients = self.init(theta, broadcast(theta, gradient.shape))
        return server._replace(value=objective.mean(value), gradient=objective.mean(gradient)), message, clients


def infinite(like: Array) -> Array:
    """Return infinity as an array without axes: the value of a point that is accepted whatever comes next.

    Examples
    --------
    >>> import numpy as np
    >>> infinite(np.zeros(2)).tolist()
    inf
    """
    return array_namespace(like).full((), math.inf, dtype=like.dtype, device=device(like))


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


def below(highest: float, slope: float, value: float, *, rounding: float) -> bool:
    """Tell whether a value is below the highest of some earlier ones, by Armijo's part of what the slope promises.

    Up to ``rounding``, relative to the highest one. A slope that goes uphill promises nothing.

    Examples
    --------
    >>> [below(2.0, slope, value, rounding=0.0) for slope, value in ((-1.0, 1.9999), (-1.0, 1.99995), (1.0, 2.0))]
    [True, False, True]
    """
    return value <= highest + SUFFICIENT_DECREASE * min(slope, 0.0) + rounding * abs(highest)


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
