"""Tails and quantiles of Student's t and the normal distribution, in plain numbers."""

from __future__ import annotations

import math
from statistics import NormalDist

__all__ = ["half_width", "two_sided"]

MANY = 100.0  # degrees of freedom over 2 from which the quotient of two gamma functions is expanded
LEAST = 1e-300


def two_sided(t: float, degrees: float = math.inf) -> float:
    """Return the probability that ``|T|`` is at least ``|t|``; normal for infinite degrees of freedom.

    With ``x = nu / (nu + t^2)`` it is the regularised incomplete beta function ``I_x(nu/2, 1/2)`` (DLMF 8.17).

    Examples
    --------
    >>> round(two_sided(1.959963984540054), 12), round(two_sided(-12.706204736174707, 1.0), 12)
    (0.05, 0.05)
    """
    t = abs(t)
    if math.isnan(t) or math.isinf(degrees):
        return math.erfc(t / math.sqrt(2.0))
    if math.isinf(t):
        return 0.0
    a, b = 0.5 * degrees, 0.5
    x, rest = degrees / (degrees + t * t), t * t / (degrees + t * t)
    if rest == 0.0:
        return 1.0
    log_front = a * -math.log1p(t * t / degrees) + b * math.log(rest) + _log_gamma_quotient(a) - 0.5 * math.log(math.pi)
    front = math.exp(log_front)
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(rest, b, a) / b


def half_width(level: float, degrees: float = math.inf) -> float:
    """Return the ``t`` for which ``|T| <= t`` has the probability ``level``.

    Examples
    --------
    >>> round(half_width(0.95), 9), round(half_width(0.95, 4.0), 9)
    (1.959963985, 2.776445105)
    """
    normal = NormalDist().inv_cdf(0.5 + 0.5 * level)
    if math.isinf(degrees):
        return normal
    low, high = 0.0, max(normal, 1.0)
    while two_sided(high, degrees) > 1.0 - level:
        low, high = high, 2.0 * high
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if two_sided(middle, degrees) > 1.0 - level else (low, middle)
    return high


def _log_gamma_quotient(a: float) -> float:
    """Return ``log(Gamma(a + 1/2) / Gamma(a))``; for large ``a`` by its asymptotic series (DLMF 5.11.13)."""
    if a < MANY:
        return math.lgamma(a + 0.5) - math.lgamma(a)
    r = 1.0 / a
    return 0.5 * math.log(a) + math.log1p(r * (-1 / 8 + r * (1 / 128 + r * (5 / 1024 - r * 21 / 32768))))


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of ``I_x(a, b)`` (DLMF 8.17.22), evaluated from the front (Lentz 1976)."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0) or LEAST)
    value = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / (1.0 + term * d or LEAST)
            c = 1.0 + term / c or LEAST
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value
