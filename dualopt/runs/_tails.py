"""Tails and quantiles of Student's t and the normal distribution, in plain numbers."""

from __future__ import annotations

import math
from statistics import NormalDist

__all__ = ["half_width", "two_sided"]

MANY = 20.0  # degrees of freedom over 2 from which the quotient of two gamma functions is expanded
ENOUGH = 200  # terms of the continued fraction: 80 suffice


def two_sided(t: float, degrees: float = math.inf) -> float:
    """Return the probability that ``|T|`` is at least ``|t|``; normal for infinite degrees of freedom.

    With ``x = nu / (nu + t^2)`` it is the regularised incomplete beta function ``I_x(nu/2, 1/2)`` (DLMF 8.17).

    Examples
    --------
    >>> round(two_sided(1.959963984540054), 12), round(two_sided(-12.706204736174707, 1.0), 12)
    (0.05, 0.05)
    """
    t = abs(t)
    if math.isinf(degrees):
        return math.erfc(t / math.sqrt(2.0))
    a, b, square = 0.5 * degrees, 0.5, t * t / degrees
    x = 1.0 / (1.0 + square)
    rest = square * x if x > 0.5 else 1.0 - x
    if rest == 0.0:
        return 1.0
    log = math.log1p(square) if square < math.inf else 2.0 * math.log(t) - math.log(degrees)
    front = math.exp(_log_gamma_quotient(a) - a * log + b * math.log(rest) - 0.5 * math.log(math.pi))
    if rest > 1.0 / (a + b + 2.0):  # both sides converge fast there, and no denominator is near 0
        return front * _fraction(x, rest, a, b)
    return 1.0 - front * _fraction(rest, x, b, a)


def half_width(level: float, degrees: float = math.inf) -> float:
    """Return the ``t`` for which ``|T| <= t`` has the probability ``level``.

    Examples
    --------
    >>> round(half_width(0.95), 9), round(half_width(0.95, 4.0), 9)
    (1.959963985, 2.776445105)
    """
    outside = 1.0 - level
    if math.isinf(degrees):
        return -NormalDist().inv_cdf(0.5 * outside)
    low, high = 0.0, 1.0
    while two_sided(high, degrees) > outside:
        high *= 2.0
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if two_sided(middle, degrees) > outside else (low, middle)
    return high


def _log_gamma_quotient(a: float) -> float:
    """Return ``log(Gamma(a + 1/2) / Gamma(a))``; for large ``a`` by its asymptotic series (DLMF 5.11.8)."""
    if a < MANY:
        return math.lgamma(a + 0.5) - math.lgamma(a)
    r = 1.0 / (a * a)
    return 0.5 * math.log(a) - (1 / 8 - r * (1 / 192 - r * (1 / 640 - r * 17 / 14336))) / a


def _fraction(x: float, y: float, a: float, b: float) -> float:
    """Return ``I_x(a, b)`` over ``x^a y^b Gamma(a + b) / (Gamma(a) Gamma(b))`` for ``y = 1 - x``.

    It is one over the even part of the continued fraction DLMF 8.17.22, written so that nothing cancels for large
    ``a`` or ``b`` (Didonato and Morris 1992, "Algorithm 708", equation 9), and evaluated from the front (Lentz 1976).
    """
    rest = (a - (a + b) * x if x < y else (a + b) * y - b) + 1.0
    value = c = a / (a + 1.0) * rest
    d = 0.0
    for m in range(1, ENOUGH):
        above = (a + (m - 1)) * (a + b + (m - 1)) * m * (b - m) * (x / (a + (2 * m - 1))) ** 2
        below = m + m * (b - m) * x / (a + (2 * m - 1)) + (a + m) * (rest + m * (1.0 + y)) / (a + (2 * m + 1))
        d = 1.0 / (below + above * d)
        c = below + above / c
        value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return 1.0 / value
