r"""Steps of an estimate sequence: points, and whether a lower bound of the energy has the weight it was made for."""

from __future__ import annotations

import math
from typing import NamedTuple

from dualopt.arrays.xp import Array

__all__ = ["Bound", "Step", "advanced", "extrapolated", "growth"]


class Bound(NamedTuple):
    r"""A lower bound :math:`\ell \le E` of curvature :math:`\mu`, seen from the new point :math:`\bar x`."""

    height: float  # l(v) - E(xbar)
    square: float  # |grad l(v)|^2
    fall: float  # E(x) - E(xbar)
    rounding: float  # differences that are not larger say nothing


class Step(NamedTuple):
    """What the server does with a lower bound."""

    share: float  # alpha', of the bound in the estimate
    b: float  # the curvature after that
    accepted: bool | None  # whether the weight was enough; None where rounding hides it
    taken: bool  # whether xbar is the new model


def growth(b: float, weight: float, mu: float) -> tuple[float, float]:
    r"""Return :math:`\alpha` with :math:`w\alpha^2 = b(1 - \alpha)`, and :math:`b^+ = w\alpha^2 + \mu\alpha`.

    Examples
    --------
    >>> growth(math.inf, 2.0, 1.0)
    (1.0, 3.0)
    """
    alpha = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 * weight / b))
    return alpha, weight * alpha * alpha + mu * alpha


def extrapolated(x: Array, v: Array, b: float, weight: float, mu: float) -> Array:
    r"""Return the next point :math:`y = (1 - \alpha)\,x + \alpha v`.

    Examples
    --------
    >>> import numpy as np
    >>> extrapolated(np.zeros(1), np.ones(1), math.inf, 2.0, 1.0).tolist()
    [1.0]
    """
    alpha, _ = growth(b, weight, mu)
    return (1.0 - alpha) * x + alpha * v


def advanced(b: float, bound: Bound, weight: float, mu: float) -> Step:
    r"""Return how much of a lower bound the estimate :math:`E(x) + \frac b2|\cdot - v|^2` can take.

    With the share :math:`\alpha'` of :math:`\ell` it has the curvature :math:`b' = (1 - \alpha')b + \alpha'\mu` and the
    least value

    .. math:: m(\alpha') = (1 - \alpha')E(x) + \alpha'\ell(v) - \frac{\alpha'^2}{2b'}|\nabla\ell(v)|^2

    at :math:`v - \frac{\alpha'}{b'}\nabla\ell(v)`. Where :math:`m(\alpha) \ge E(\bar x)`, or rounding hides it, the
    share is :math:`\alpha`. Otherwise it is the largest one up to :math:`\alpha` with :math:`m(\alpha') \ge \min(E(x),
    E(\bar x))`: m is concave, and the end of the interval is the root of a quadratic equation.

    Examples
    --------
    >>> advanced(1.0, Bound(height=0.0, square=1.0, fall=0.5, rounding=0.0), 0.5, 0.0)
    Step(share=0.5, b=0.5, accepted=False, taken=True)
    """
    alpha, after = growth(b, weight, mu)
    stays = (1.0 - alpha) * bound.fall if alpha < 1 else 0.0
    least = stays + alpha * bound.height - 0.5 * alpha**2 * bound.square / after
    if not math.isfinite(least):
        return Step(0.0, b, False, False)
    if least >= -bound.rounding:
        return Step(alpha, after, None if least <= bound.rounding else True, True)
    share, taken = 0.0, False
    if math.isfinite(b):
        taken, room, slope = bound.fall >= 0, max(bound.fall, 0.0), bound.height - bound.fall
        c1, c2 = slope * b - room * (b - mu), slope * (b - mu) + 0.5 * bound.square
        share = min(_root(room * b, c1, c2), alpha)
    return Step(share, (1.0 - share) * b + share * mu, False, taken)


def _root(c0: float, c1: float, c2: float) -> float:
    """Return where ``c0 + c1 t - c2 t^2``, not negative at 0, becomes negative; 1 where it is not negative at 1."""
    if c0 + c1 - c2 >= 0:
        return 1.0
    middle = math.sqrt(max(0.0, c1 * c1 + 4.0 * c0 * c2))
    if c1 > 0:
        return (c1 + middle) / (2.0 * c2)
    return 2.0 * c0 / (middle - c1) if c0 > 0 else 0.0
