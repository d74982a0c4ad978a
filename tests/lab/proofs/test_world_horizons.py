"""Many rounds: the program is solved in coordinates in which late answers are as large as early ones."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import dualopt.lab.proofs._worst_case as program
from dualopt.lab.proofs import worst_case
from dualopt.lab.proofs._forms import Form, Space, points_of
from dualopt.lab.proofs._scaling import Heights, _values, coordinates, in_units
from dualopt.lab.proofs._setting import Setting

STEP = 1.0 / math.sqrt(10.0)
WHAT = {"mu": 1, "L": 10, "clients": 3, "start": (1.0, STEP**2 / 3)}


@pytest.mark.parametrize(
    ("method", "factor", "rounds"),
    [
        (f"fedsplit: step={STEP}", ((math.sqrt(10) - 1) / (math.sqrt(10) + 1)) ** 2, (4, 16)),
        (f"feddyn: alpha={1 / STEP}", (math.sqrt(10) / (math.sqrt(10) + 1)) ** 2, (8, 20)),
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


def test_what_is_left_of_values_has_the_size_of_squared_distances() -> None:
    """A form of values is the same number after the change: of quadratic functions h/2 |x - theta*|^2 is left."""
    setting = Setting.of(f"fedsplit: step={STEP}", 1, 10, 3)
    f = setting.world(256)
    star = f.ledger.vector()
    f.set_minimiser(star)
    setting.play(f, 3)
    space = Space(f.ledger, setting.classes)
    points = points_of(f.ledger, space.functions, star)
    heights = Heights(space, points)
    for own in points[0]:
        if own.number:
            form = Form(space.zero.blocks, space.value(0, own.number))
            first = space.product(points[0][0].gradient, own.x - star)
            for B, C in zip(heights.of(form).blocks, first.blocks, strict=True):
                np.testing.assert_allclose(B, C, atol=1e-15)
    maps = coordinates(setting, f, space, (1.0, STEP**2 / 3), (0.2, 0.0))
    units = heights.units(maps, len(space.no_values))
    in_order = [units[np.flatnonzero(space.value(0, a.number))[0]] for a in points[0] if a.number]
    assert all(late < early for early, late in pairwise(in_order))
    assert in_order[-1] < 0.1 * in_order[0]
    one = Form(space.zero.blocks, np.ones(len(units)))
    np.testing.assert_array_equal(in_units(one, units).values, units)


def test_one_infinite_value_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that calls one program unbounded is asked in other coordinates; one that always does is believed."""
    largest, wrong = program._largest, [True]

    def sometimes(*of):
        infinite = program.WorstCase(math.inf, math.inf, np.zeros(0), 0, ())
        return infinite if not wrong or wrong.pop() else largest(*of)

    monkeypatch.setattr(program, "_largest", sometimes)
    wrong[:] = [False] * 20 + [True]
    assert worst_case("fedsplit", mu=1, L=4, clients=2, start=(1, 1)).value < 2.0
    wrong.clear()
    assert worst_case("fedsplit", mu=1, L=4, clients=2, start=(1, 1)).value == math.inf


def test_an_example_that_breaks_inequalities_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As loose solutions of late rounds did: the values agreed, and both were four times too large."""
    asked = program.solved

    def loose(problem, tolerances):
        status = asked(problem, tolerances)
        for variable in problem.variables():
            if variable.ndim == 1 and variable.value is not None:
                variable.save_value(variable.value + 0.1 * np.arange(variable.size))
        return status

    monkeypatch.setattr(program, "solved", loose)
    with pytest.raises(RuntimeError, match="too inexact"):
        worst_case("fedsplit", mu=1, L=4, clients=2, rounds=2, start=(1, 1))
