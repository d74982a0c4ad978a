"""Many rounds: the program is solved in coordinates in which late answers are as large as early ones."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from dualopt.lab.proofs import worst_case
from dualopt.lab.proofs._forms import Space
from dualopt.lab.proofs._scaling import _values, coordinates
from dualopt.lab.proofs._setting import Setting

STEP = 1.0 / math.sqrt(10.0)
WHAT = {"mu": 1, "L": 10, "clients": 3, "start": (1.0, STEP**2 / 3)}


@pytest.mark.parametrize(
    ("method", "factor", "rounds"),
    [
        (f"fedsplit: step={STEP}", ((math.sqrt(10) - 1) / (math.sqrt(10) + 1)) ** 2, (4, 8)),
        (f"feddyn: alpha={1 / STEP}", (math.sqrt(10) / (math.sqrt(10) + 1)) ** 2, (8, 12)),
    ],
)
def test_late_rounds_have_the_known_factor(method: str, factor: float, rounds: tuple[int, int]) -> None:
    """Theorem B is attained: from some round on the worst case falls by its factor, to the digits of the solver."""
    early, late = (worst_case(method, rounds=n, **WHAT) for n in rounds)
    assert late.value / early.value == pytest.approx(factor ** (rounds[1] - rounds[0]), rel=1e-3)
    assert late.example == pytest.approx(late.value, rel=1e-4)


@pytest.mark.parametrize(
    "own", [{}, {"participation": "subset=1"}, {"regulariser": 0.0}, {"inexact": True}, {"weights": (1, 2, 3)}]
)
def test_the_values_of_a_sample_are_those_of_a_federation(own: dict) -> None:
    """All inequalities between points hold of them."""
    setting = Setting.of("feddr: eta=0.3", 1, 10, 3, **own)
    f = setting.world(256)
    star = f.ledger.vector()
    f.set_minimiser(star)
    setting.play(f, 2)
    for seed in range(5):
        v = _values(setting, f, (1.0, 1.0), np.random.default_rng(seed))
        for own_class in (*setting.classes, *setting.others):
            for j in own_class.clients:
                points = [(a.x @ v, a.gradient @ v) for a in f.ledger.known(j)]
                for (x, g), (y, h) in pairwise(points):
                    slope = (g - h) * (x - y)
                    assert slope >= own_class.mu * (x - y) ** 2 - 1e-9
                    assert math.isinf(own_class.L) or slope <= own_class.L * (x - y) ** 2 + 1e-9
        weights = setting.weights or (1.0,) * 3
        total = sum(w * (f.ledger.at(j, star).gradient @ v) for j, w in enumerate(weights))
        total += sum(own_class.weight * (f.ledger.at(3, star).gradient @ v) for own_class in setting.others)
        assert abs(total) < 1e-9
        for a in f.ledger.accuracies:
            assert abs(a.residual @ v) <= a.factor * abs(a.first @ v) + 1e-9


def test_coordinates_can_be_inverted() -> None:
    setting = Setting.of(f"feddyn: alpha={1 / STEP}", 1, 10, 3)
    f = setting.world(256)
    f.set_minimiser(f.ledger.vector())
    setting.play(f, 12)
    space = Space(f.ledger, setting.classes)
    for C in coordinates(setting, f, space, (1.0, 1.0), (0.5, 1e-4)):
        assert np.allclose(C, np.tril(C))
        assert np.linalg.cond(C) < 1e8
