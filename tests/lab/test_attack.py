"""Attacks on toy claims, whose worst ratios are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count

import numpy as np
import pytest

import dualopt.lab.attack
from dualopt.lab.attack import POINTS_PER_PARAMETER, RANDOM_POINTS, Attack, Parameters, attack
from dualopt.lab.claims import Claim, Inequality, check


def nothing(case) -> list[str]:
    return []


def unknown(case) -> float:
    return math.inf


def compare(case) -> list[Inequality]:
    """A hill of height 2 at (1, -2), steep on its sides, in a plain."""
    x, y = case
    return [
        Inequality(0, 1e-9, 1.0),
        Inequality(3, 2.0 * math.exp(-4.0 * ((x - 1) ** 2 + (y + 2) ** 2)), 1.0, "height"),
    ]


def plane(parameters: Parameters) -> tuple[float, float]:
    return parameters.real(), parameters.real()


def claim(compare: Callable = compare, assumptions: Callable = nothing, name: str = "toy") -> Claim:
    return Claim(
        name=name, source="a test", statement="$h \\le 1$", compare=compare, assumptions=assumptions, trivial=unknown
    )


def line(measured: Callable[[float], float], bound: float = 1.0) -> Claim:
    """A claim about one number."""
    return claim(compare=lambda x: [Inequality(0, measured(x), bound)])


def one(parameters: Parameters) -> float:
    return parameters.real()


# What is found.


@pytest.mark.parametrize("seed", range(3))
def test_a_violation_is_found_and_its_witness_is_plain(seed: int) -> None:
    found = attack(claim(), plane, evaluations=500, seed=seed)
    assert found.violated
    assert found.verdict is not None
    assert found.verdict.verdict == "violated"
    assert found.verdict.witness is not None
    assert found.verdict.witness.n == 3
    assert found.point == (1.0, -2.0)
    assert found.ratio == 2.0
    assert str(found) == "violated: ratio 2 at (1.0, -2.0): at n = 3, height: lhs = 2 > rhs = 1"
    assert check(claim(), plane(Parameters(found.point))) == found.verdict


def test_the_top_is_found_without_a_violation() -> None:
    lower = line(lambda x: 0.75 * math.exp(-((x - 1) ** 2)))
    found = attack(lower, one, evaluations=200)
    assert not found.violated
    assert found.ratio == pytest.approx(0.75, rel=1e-6)
    assert str(found) == f"no violation found in {found.evaluations} evaluations, largest ratio {found.ratio:.6g}"


def test_random_cases_alone_do_not_find_it(monkeypatch) -> None:
    """The hill is so narrow that local searches are needed."""
    narrow = claim(compare=lambda p: [Inequality(0, 2 / (1 + 1e4 * ((p[0] - 1) ** 2 + (p[1] + 2) ** 2)), 1.0)])
    assert attack(narrow, plane, evaluations=500).violated
    monkeypatch.setattr(dualopt.lab.attack, "RANDOM_POINTS", 500)
    assert not attack(narrow, plane, evaluations=500).violated


def test_what_diverges_is_a_violation() -> None:
    for value in (math.inf, math.nan):
        found = attack(line(lambda x, value=value: value if x > 0 else 0.5), one, evaluations=100)
        assert found.violated
        assert found.ratio == math.inf


# What does not count.


def test_cases_outside_the_assumptions_never_count() -> None:
    left = claim(assumptions=lambda case: ["x < 0"] if case[0] >= 0 else [])
    found = attack(left, plane, evaluations=2000)
    assert not found.violated
    assert found.rejected > 0
    assert plane(Parameters(found.point))[0] < 0
    assert found.ratio < 2 * math.exp(-4)  # there the hill is highest where x = 0
    nowhere = attack(claim(assumptions=lambda case: ["never"]), plane, evaluations=100)
    assert nowhere == Attack(claim="toy", evaluations=100, rejected=100, starts=5, seconds=nowhere.seconds)


def test_an_excess_of_rounding_is_no_violation() -> None:
    assert not attack(line(lambda x: 1.0 + 0.9e-6), one, evaluations=50).violated
    assert attack(line(lambda x: 1.0 + 1.1e-6), one, evaluations=50).violated


def test_a_violation_must_stand_nearby() -> None:
    """Noise of the kind that rounding makes: it has another sign at the next number."""
    noise = attack(line(lambda x: 1.5 if math.sin(1e14 * x) > 0 else 0.5), one, evaluations=500)
    assert not noise.violated
    assert noise.ratio == 0.5
    assert noise.rejected > 10


def test_cases_that_cannot_be_made_or_solved_are_left_out() -> None:
    def singular(parameters: Parameters) -> float:
        x = parameters.real()
        return float(np.linalg.solve(np.full((2, 2), 0.0 if x < 0.5 else np.nan), np.ones(2))[0]) if x < 0.5 else x

    def absent(parameters: Parameters) -> float | None:
        x = parameters.real()
        return None if x < 0.5 else x

    below = line(lambda x: 1 - math.exp(-x))
    for generator in (singular, absent):
        found = attack(below, generator, evaluations=200)
        assert not found.violated
        assert 0 < found.rejected < found.evaluations
        assert found.ratio == pytest.approx(1 - math.exp(-4), rel=1e-6)


# Budgets.


def test_the_result_depends_on_the_seed_alone() -> None:
    lower = line(lambda x: 0.75 * math.exp(-((x - 1) ** 2)))
    first, again, other = (attack(lower, one, evaluations=15, seed=seed) for seed in (1, 1, 2))
    assert (first.point, first.ratio, first.evaluations) == (again.point, again.ratio, again.evaluations)
    assert first.point != other.point


@pytest.mark.parametrize(
    "evaluations", [1, RANDOM_POINTS, RANDOM_POINTS + 3, 5 * (RANDOM_POINTS + POINTS_PER_PARAMETER)]
)
def test_no_more_cases_are_looked_at_than_allowed(evaluations: int) -> None:
    looked = []

    def flat(x: float) -> list[Inequality]:
        looked.append(x)
        return [Inequality(0, 0.25 + 0.1 * math.sin(5 * x), 1.0)]

    found = attack(claim(compare=flat), one, evaluations=evaluations)
    assert found.evaluations == evaluations
    assert len(looked) <= evaluations + 3 * found.starts  # the best ones are looked at again


def test_time_ends_a_local_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that a comparison moves on by a quarter of a second."""
    now = [0.0]
    monkeypatch.setattr(dualopt.lab.attack.time, "monotonic", lambda: now[0])

    def slow(x: float) -> list[Inequality]:
        now[0] += 0.25
        return [Inequality(0, 0.5, 1.0)]

    assert attack(claim(compare=slow), one, seconds=2.5).evaluations == 11


def test_generators_take_turns() -> None:
    read: list[int] = []

    def generator(number: int) -> Callable[[Parameters], float]:
        def make(parameters: Parameters) -> float:
            read.append(number)
            return parameters.real() if number < 2 else 9.0 + 0.0 * parameters.real()

        return make

    found = attack(line(lambda x: abs(x) / 10), [generator(n) for n in range(3)], evaluations=300)
    assert set(read) == {0, 1, 2}
    assert (found.generator, found.ratio) == (2, 0.9)


def test_a_report_after_every_local_search() -> None:
    reports: list[Attack] = []
    found = attack(line(lambda x: 0.5), one, evaluations=100, report=reports.append)
    assert reports[-1] == found
    assert [a.starts for a in reports] == list(range(1, found.starts + 1))


def test_ctrl_c_gives_what_was_found() -> None:
    calls = count()

    def interrupted(x: float) -> list[Inequality]:
        if next(calls) == 30:
            raise KeyboardInterrupt
        return [Inequality(0, 0.5, 1.0)]

    found = attack(claim(compare=interrupted), one, evaluations=1000)
    assert found.interrupted
    assert not found.violated
    assert found.ratio == 0.5
    assert 25 <= found.evaluations <= 31


def test_two_processes_find_it_too() -> None:
    found = attack(claim(), plane, evaluations=1000, jobs=2)
    assert found.violated
    assert found.ratio == 2.0


# Mistakes.


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "evaluations or seconds must be given"),
        ({"evaluations": 0}, "evaluations must be at least 1, not 0"),
        ({"seconds": 0.0}, "seconds must be positive, not 0.0"),
        ({"evaluations": 1, "jobs": 0}, "jobs must be at least 1, not 0"),
        ({"evaluations": 1, "seed": -1}, "seed must be at least 0, not -1"),
    ],
)
def test_wrong_arguments_are_named(options: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        attack(claim(), plane, **options)


def test_there_must_be_a_generator() -> None:
    with pytest.raises(ValueError, match="generators must hold at least one"):
        attack(claim(), [], evaluations=1)


def test_a_generator_must_always_read_alike() -> None:
    def longer(parameters: Parameters) -> float:
        x = parameters.real()
        return x + (parameters.real() if x > 3 else 0.0)

    with pytest.raises(ValueError, match="generator must read as many numbers for every case, not more than 1"):
        attack(line(lambda x: math.exp(x - 5)), longer, evaluations=500)


# Parameters.


def test_both_ends_are_reached() -> None:
    parameters = Parameters([-math.pi / 2, math.pi / 2, -math.pi / 2, math.pi / 2])
    assert [parameters.between(-1, 3), parameters.between(-1, 3)] == [-1, 3]
    assert [parameters.magnitude(0.01, 10), parameters.magnitude(0.01, 10)] == pytest.approx([0.01, 10], rel=1e-15)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_eigenvalues_are_kept_and_directions_vary(d: int) -> None:
    rng = np.random.default_rng(d)
    eigenvalues = rng.standard_normal(d)
    parameters = Parameters(rng.standard_normal(d * (d - 1) // 2))
    A = parameters.symmetric(eigenvalues.tolist())
    assert len(parameters.taken) == d * (d - 1) // 2
    np.testing.assert_array_equal(A, A.T)
    np.testing.assert_allclose(np.linalg.eigvalsh(A), np.sort(eigenvalues), atol=1e-13)
    assert d == 1 or np.abs(A[~np.eye(d, dtype=bool)]).min() > 1e-3


def test_an_infinite_ratio_has_a_plain_witness() -> None:
    """A bound of zero, or what diverges: the point is rounded to the fewest digits there, too."""
    found = attack(line(lambda x: 1.0, bound=0.0), one, evaluations=50)
    assert found.ratio == math.inf
    assert found.point == (round(found.point[0]),)
