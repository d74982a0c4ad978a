"""Bounds of one parameter, all of whose matrices are 1: where one of two bounds ends, and at no distance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualopt.runs._covariances import FAR, Covariances

ONE, ROW = np.ones(1), np.ones((1, 1))
AT = Covariances(
    theta=ONE,
    root=ROW,
    pulled=ROW,
    scores=ROW,
    inverse=ROW,
    gradient=ONE,
    ridge_shift=0.0 * ONE,
    newton_step=ONE,
    ridge=0.0,
)


@pytest.mark.parametrize(
    ("s", "largest"),
    [
        (0.0, 1.0),
        (0.1, math.exp(0.05)),
        (math.log(2.0), math.sqrt(2.0)),  # where 2 - e^s is 0
        (1.0, math.exp(0.5)),
        (29.0, math.exp(14.5)),
    ],
)
def test_one_parameter(s: float, largest: float) -> None:
    """|d|_A <= s / (1 - e^-s), from which the Newton step is at most ((e^s - 1)/s - 1) times as far."""
    moved, errors = AT.bounds(4.0, 0.25, s)
    assert moved is not None
    assert errors is not None
    assert moved[0] == pytest.approx(s / (1 - math.exp(-s)) if s else 1.0, rel=1e-14)
    assert errors[0][0] == pytest.approx(math.exp(-1.5 * s), rel=1e-14)
    assert errors[1][0] == pytest.approx(largest, rel=1e-14)


def test_too_far() -> None:
    assert AT.bounds(1.0, 1.0, FAR) == AT.bounds(math.inf, 1.0, 0.1) == (None, None)
    assert AT.bounds(1.0, 1.0, None) == (None, None)  # q = 1
    moved, errors = AT.bounds(0.25, 2.0, None)  # q = 1/2, s = log 2
    assert moved is not None
    assert errors is not None
    assert moved[0] == pytest.approx(2 * math.log(2.0), rel=1e-14)
