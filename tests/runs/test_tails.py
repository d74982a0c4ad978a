"""Tails of Student's t against mpmath, to the rounding of logarithms: sides of every switch, and the ends."""

from __future__ import annotations

import math

import mpmath
import pytest
from scipy import stats

from dualopt.runs._tails import MANY, half_width, two_sided

FEW = (1e-6, 0.3, 1.0, 2.0, 7.0, 2 * MANY * (1 - 1e-15), 2 * MANY, 60.0, 199.9)
LEVELS = (0.05, 0.5, 0.95, 0.999, 1 - 1e-12)


def exact(t: float, degrees: float) -> float:
    """Return the tail: where mpmath's own fails, one minus a series of positive terms (DLMF 8.17.8)."""
    with mpmath.workdps(300 if degrees > 1e3 else 30):
        nu, square = mpmath.mpf(degrees), mpmath.mpf(t) ** 2
        x, rest = nu / (nu + square), square / (nu + square)
        if degrees <= 1e3:
            return float(mpmath.betainc(nu / 2, 0.5, 0, x, regularized=True))
        total = term = mpmath.mpf(1)
        k = 0
        while term > total * mpmath.eps:
            k += 1
            term *= (nu + 2 * k - 1) / (2 * k + 1) * rest
            total += term
        log_front = mpmath.loggamma((nu + 1) / 2) - mpmath.loggamma(nu / 2) + nu / 2 * mpmath.log(x)
        return float(1 - 2 * mpmath.exp(log_front) * mpmath.sqrt(rest / mpmath.pi) * total)


def rounding(p: float) -> float:
    """At most 80 factors, and the logarithm of the tail, some units in the last place off."""
    return 2.0**-52 * (80.0 + 2.0 * abs(math.log(p)))


@pytest.mark.parametrize("degrees", [*FEW, 1e3, 1e5, 1e8, 1e11, 1e15])
def test_tails(degrees: float) -> None:
    switch = math.sqrt(degrees / (0.5 * degrees + 1.5))
    for t in (1e-3, 0.1, 0.7, switch * (1 - 1e-9), switch * (1 + 1e-9), 1.2, 1.7, 1.8, 2.0, 3.0, 10.0, 30.0):
        expected = exact(t, degrees)
        assert two_sided(-t, degrees) == pytest.approx(expected, rel=rounding(expected), abs=0.0)


@pytest.mark.parametrize("degrees", [0.3, 1.0, 7.0, 199.9, 1e5, 1e11])
@pytest.mark.parametrize("level", LEVELS)
def test_widths(degrees: float, level: float) -> None:
    t = half_width(level, degrees)
    assert exact(t, degrees) == pytest.approx(1 - level, rel=rounding(1 - level), abs=0.0)


def test_the_normal() -> None:
    for t in (0.0, 0.3, 2.0, 30.0):
        assert two_sided(-t) == pytest.approx(2 * stats.norm.sf(t), rel=1e-13)
    for level in LEVELS:
        assert math.erfc(half_width(level) / math.sqrt(2)) == pytest.approx(1 - level, rel=1e-13)


@pytest.mark.parametrize("degrees", [0.01, 1.0, 3.0, 1e6])
def test_the_ends(degrees: float) -> None:
    assert two_sided(0.0, degrees) == two_sided(1e-200, degrees) == 1.0
    assert two_sided(math.inf, degrees) == 0.0
    assert math.isnan(two_sided(math.nan, degrees))


@pytest.mark.parametrize(("t", "degrees"), [(1e20, 0.01), (1e160, 0.01), (1e300, 0.3), (1e200, 1.0), (1e90, 3.0)])
def test_far_out(t: float, degrees: float) -> None:
    """It is x^a / (a B(a, 1/2)) of a = nu/2 and x = nu/t^2, also where t^2 is too large a number."""
    with mpmath.workdps(30):
        a = mpmath.mpf(degrees) / 2
        expected = float((2 * a / mpmath.mpf(t) ** 2) ** a / (a * mpmath.beta(a, 0.5)))
    assert two_sided(t, degrees) == pytest.approx(expected, rel=rounding(expected), abs=0.0)


def test_next_to_no_degrees_of_freedom_an_interval_has_no_end() -> None:
    assert half_width(0.95, 1e-6) == math.inf


def test_one_degree_of_freedom_is_cauchy() -> None:
    for t in (1e-8, 0.4, 1e4, 1e200):
        assert two_sided(t, 1.0) == pytest.approx(2 * math.atan2(1.0, t) / math.pi, rel=1e-13)
