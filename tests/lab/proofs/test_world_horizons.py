"""Many rounds: the program is solved in coordinates in which late answers are as large as early ones."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import dualopt.lab.proofs._worst_case as program
from dualopt.lab.proofs import worst_case
from dualopt.lab.proofs._forms import Form, Space, points_of
from dualopt.lab.proofs._scaling import SAMPLES, STEEP, Heights, _ends, _values, coordinates, in_units, sizes_of
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


def test_samples_start_at_size_one() -> None:
    """In the mean a|theta*|^2 = 1 and b|grad f_j(theta*)|^2 = 1/N, but for the last one, made of the others."""
    setting, start = Setting.of("feddyn: alpha=3", 1, 10, 4), (2.0, 0.25)
    f = setting.world(24)
    star = f.ledger.vector()
    gradients = f.set_minimiser(star)
    rng, found = np.random.default_rng(0), []
    for _ in range(4000):
        v = _values(setting, f, start, rng)
        found.append([start[0] * (star @ v) ** 2, start[1] * np.sum((gradients[:-1] @ v) ** 2)])
    np.testing.assert_allclose(np.mean(found, axis=0), [1.0, 0.75], atol=0.1)  # four standard errors


@pytest.mark.parametrize("parts", [(0.0, 0.0), (0.0, 0.5), (1.0, 0.0)])
def test_coordinates_are_factors_of_mean_gram_matrices(parts: tuple[float, float]) -> None:
    """But for diagonal entries, which are at least as large as is asked for."""
    setting = Setting.of("feddyn: alpha=3", (1, 1, 1, 2), 10, 4)
    f = setting.world(64)
    f.set_minimiser(f.ledger.vector())
    setting.play(f, 2)
    space = Space(f.ledger, setting.classes)
    rng = np.random.default_rng(0)
    samples = [_values(setting, f, (1.0, 0.5), rng) for _ in range(SAMPLES * max(space.sizes))]
    values = zip(*map(space.values_of, samples), strict=True)
    grams = [np.sum([X.T @ X for X in own], axis=0) / len(samples) for own in values]
    found = coordinates(setting, f, space, (1.0, 0.5), parts)
    assert [len(C) for C in found] == [*space.sizes] == [len(found[0]), len(f.ledger.families), 0]
    known = [[i for i, (k, _) in enumerate(space.places) if k <= 0], [0]]
    for C, G, of_start in zip(found, grams, known, strict=False):
        sizes = np.sqrt(np.diag(G))
        assert (np.abs(np.diag(C)) >= parts[1] * sizes * (1 - 1e-9)).all()
        s = np.ix_(of_start, of_start)
        apart = np.diag(G) - np.sum(G[of_start] * np.linalg.solve(G[s], G[of_start]), axis=0)  # from the start
        apart[of_start] = np.diag(G)[of_start]
        if parts[0]:  # the least size is that of what is new in a vector, which is not less than in all before it
            np.testing.assert_allclose(np.abs(np.diag(C)), np.sqrt(apart), rtol=1e-6)
        if parts == (0.0, 0.0):
            np.testing.assert_allclose(C @ C.T, G, rtol=1e-6, atol=1e-9 * sizes.max() ** 2)


def test_sizes_of_forms_and_ends_of_curvatures() -> None:
    forms = [Form((np.array([[0.5, -0.25]]), np.zeros((0, 0))), np.ones(3)), Form((np.zeros((1, 2)),), np.ones(3))]
    nothing = Form((np.zeros((1, 2)),), np.zeros(3))
    np.testing.assert_allclose(sizes_of([*forms, nothing]), [math.sqrt(3.3125), math.sqrt(3.0), 1.0], rtol=1e-15)
    ends = {(2.0, 10.0): (2.0, 10.0), (0.0, 10.0): (10.0 / STEEP, 10.0), (2.0, math.inf): (2.0, 2.0 * STEEP)}
    ends[0.0, math.inf] = 1.0 / STEEP, STEEP
    assert {given: _ends(*given) for given in ends} == ends


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
