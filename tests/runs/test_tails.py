"""Tails of Student's t against SciPy's, and against closed forms where SciPy rounds."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from dualopt.runs._tails import half_width, two_sided

DEGREES = (1.0, 1.5, 2.0, 7.0, 29.3, 100.0, 199.0, 200.5, 1e3, 1e5)


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("t", [1e-3, 0.1, 0.7, 1.0, 1.7, 2.0, 3.0, 10.0, 100.0])
def test_tails_and_quantiles(degrees: float, t: float) -> None:
    expected = 2 * stats.t.sf(t, degrees)
    assert two_sided(-t, degrees) == pytest.approx(expected, rel=1e-11, abs=1e-280)  # SciPy claims no more
    for level in (0.5, 0.9, 0.95, 0.999):
        # of old versions of SciPy, tails are accurate and quantiles are not
        assert 2 * stats.t.sf(half_width(level, degrees), degrees) == pytest.approx(1 - level, rel=1e-11)


def test_the_normal_and_the_ends() -> None:
    for t in (0.0, 0.3, 2.0, 30.0):
        assert two_sided(t) == pytest.approx(2 * stats.norm.sf(t), rel=1e-13)
    assert half_width(0.95) == pytest.approx(stats.norm.ppf(0.975), rel=1e-13)
    assert two_sided(0.0, 3.0) == 1.0
    assert two_sided(math.inf, 3.0) == 0.0
    assert math.isnan(two_sided(math.nan, 3.0))
    for t in (1e-8, 0.4, 1e4):  # Cauchy
        assert two_sided(t, 1.0) == pytest.approx(2 * math.atan2(1.0, t) / math.pi, rel=1e-12)
