"""The trials of the line search on functions of one variable, point by point."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualopt.objectives import LocalProblem
from dualopt.objectives.objective import Objective
from dualopt.solvers._line_search import MAX_TRIALS, LineSearch, backtrack

EPS = 2.0**-52


class Curves(Objective):
    """Functions of one variable, one per client, given by values and slopes; it writes down where it is asked."""

    shape = property(lambda self: (1,))

    def __init__(self, *curves: tuple[Callable, Callable], mu: float = 0.0, asked: Any = None) -> None:
        self.curves, self.least = curves, mu
        self.asked = [[] for _ in curves] if asked is None else asked

    n_clients = property(lambda self: len(self.curves))
    mu = property(lambda self: np.full(len(self.curves), self.least))
    L = property(lambda self: np.full(len(self.curves), np.inf))

    def zeros(self):
        return np.zeros(1)

    def value(self, theta):
        return np.array([value(x) for (value, _), x in zip(self.curves, theta[:, 0].tolist(), strict=True)])

    def gradient(self, theta):
        for points, x in zip(self.asked, theta[:, 0].tolist(), strict=True):
            points.append(x)
        return np.array([[slope(x)] for (_, slope), x in zip(self.curves, theta[:, 0].tolist(), strict=True)])

    def select(self, ids):
        return type(self)(*(self.curves[j] for j in ids), mu=self.least, asked=[self.asked[j] for j in ids])


def search(
    curve: tuple[Callable, Callable], start: float, direction: float, **options: Any
) -> tuple[list[float], LineSearch]:
    """Return the points that were tried, and what was found."""
    f = Curves(curve, **options)
    problem, theta = LocalProblem(objective=f), np.array([[start]])
    here = problem.evaluate(theta)
    found = backtrack(problem, theta, here, np.array([[direction]]))
    return f.asked[0][1:], found


PARABOLA = (lambda x: 0.5 * x * x, lambda x: x)


@pytest.mark.parametrize(
    ("direction", "tried"),
    [
        (-1.0, [0.0]),  # the whole step
        (-1.9, [1.0 - 1.9]),  # a decrease, if a small one
        (-4.0, [-3.0, 0.0]),  # the minimum of the parabola through both values with the first slope
        (-1.9999, [1.0 - 1.9999, 1.0 - 0.5 * 1.9999]),  # t is halved at least
        (-1000.0, [-999.0, -99.0, -9.0, 0.0]),  # and divided by ten at most
        (-(2.0**-30), [1.0 - 2.0**-30]),
    ],
)
def test_trials_on_a_parabola(direction, tried):
    points, found = search(PARABOLA, 1.0, direction)
    np.testing.assert_allclose(points, tried, rtol=1e-14, atol=1e-14)
    assert found.trials.tolist() == [len(tried)]
    assert not found.failed
    assert found.theta[0, 0] == points[-1]
    assert found.step[0, 0] == pytest.approx(points[-1] - 1.0, rel=1e-7)
    assert found.change[0, 0] == points[-1] - 1.0  # the gradient is the point
    assert found.curvature[0] == pytest.approx(found.step[0, 0] * found.change[0, 0], rel=1e-12)
    assert found.curved[0]
    assert found.value[0] == 0.5 * points[-1] ** 2
    assert found.norm[0] == abs(points[-1])


def table(values: dict[float, float], slopes: dict[float, float]) -> tuple[Callable, Callable]:
    return values.__getitem__, slopes.__getitem__


ARMIJO = 1.0 - 1e-4


@pytest.mark.parametrize(
    ("value", "slope", "mu", "accepted"),
    [
        (ARMIJO - 1e-8, 5.0, 0.0, True),  # Armijo's rule does not ask for the slope
        (ARMIJO, 5.0, 0.0, True),
        (ARMIJO + 1e-8, 5.0, 0.0, False),
        (1.0 + 9 * EPS, 0.9997, 0.0, True),  # values differ by rounding only, and the slope is smaller
        (1.0 + 10 * EPS, 0.9997, 0.0, True),
        (1.0 + 9 * EPS, 0.99979, 0.0, True),
        (1.0 + 9 * EPS, 1.0 - 2e-4, 0.0, True),
        (1.0 + 9 * EPS, 0.99981, 0.0, False),
        (1.0 + 11 * EPS, 0.9997, 0.0, False),
        (1.0 - 1e-9, -0.9, -1.0, True),  # the same rule for slopes that still point down
        (1.5, -1.1e-4, 0.0, True),  # convexity proves what the values do not show
        (1.5, -0.9e-4, 0.0, False),
        (1.5, -1.1e-4, 1.0, True),
        (1.5, -1.1e-4, -1e-9, False),
        (math.nan, -1.0, -1.0, False),
    ],
)
def test_what_is_accepted(value, slope, mu, accepted):
    """From 0 with value 1 and slope -1 to 1; a second trial ends at a point with a much lower value."""
    low = dict.fromkeys([0.1, 0.5], -9.0)
    curve = (lambda x: {0.0: 1.0, 1.0: value}.get(x, -9.0), lambda x: {0.0: -1.0, 1.0: slope}.get(x, -0.5))
    points, found = search(curve, 0.0, 1.0, mu=mu)
    assert len(points) == (1 if accepted else 2)
    assert not found.failed
    assert found.value[0] == (value if accepted else low[0.1])


@pytest.mark.parametrize(("slope", "points"), [(-1.0, 1), (-0.99, 2)])
def test_a_slope_of_a_ten_thousandth_is_small_enough(slope, points):
    """Where the sum of slopes is exact."""
    curve = (lambda x: {0.0: 1.0, 1.0: 1.5}.get(x, -9e9), lambda x: {0.0: -1e4, 1.0: slope}.get(x, 0.0))
    assert len(search(curve, 0.0, 1.0)[0]) == points


def test_a_step_of_nothing_is_accepted():
    points, found = search(PARABOLA, 0.0, 0.0)
    assert points == [0.0]
    assert not found.failed


@pytest.mark.parametrize(("value", "slope", "mu"), [(1.0 + 9 * EPS, 0.9997, -1.0), (1.5, -1.1e-4, 0.0)])
def test_whoever_decreases_delays_no_rule_for_the_others(value, slope, mu):
    curve = (lambda x: {0.0: 1.0, 1.0: value}.get(x, -9.0), lambda x: {0.0: -1.0, 1.0: slope}.get(x, 0.0))
    f = Curves((lambda x: -x, lambda x: -1.0), curve, mu=mu)
    problem, theta = LocalProblem(objective=f), np.zeros((2, 1))
    assert backtrack(problem, theta, problem.evaluate(theta), np.ones((2, 1))).trials.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("decrease", "points"), [(2e-5, 2), (0.5e-5, 3)])
def test_a_shorter_step_must_decrease_less(decrease, points):
    """At ``t = 0.1``, by a ten-thousandth of a tenth of the first slope."""
    curve = (lambda x: {0.0: 1.0, 1.0: 100.0, 0.1: 1.0 - decrease}.get(x, -9.0), lambda x: {0.0: -1.0}.get(x, 5.0))
    assert len(search(curve, 0.0, 1.0)[0]) == points


def test_rounding_of_negative_values():
    curve = (lambda x: {0.0: -1.0, 1.0: -1.0 + 4 * EPS}.get(x, -9.0), lambda x: {0.0: -1.0}.get(x, 0.5))
    assert len(search(curve, 0.0, 1.0)[0]) == 1


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_without_a_usable_value_a_tenth_is_tried(value):
    curve = (lambda x: 0.5 * x * x if x > -1 else value, lambda x: x)
    with np.errstate(invalid="ignore"):
        points, _ = search(curve, 1.0, -8.0)
    np.testing.assert_allclose(points, [-7.0, 0.2], rtol=1e-14)


def test_uphill_nothing_is_accepted():
    points, found = search(PARABOLA, 1.0, 1e-3)
    assert len(points) == MAX_TRIALS == found.trials[0] == 30
    assert found.failed[0]
    assert not found.curved[0]
    assert found.theta[0, 0] == 1.0
    assert (found.step[0, 0], found.change[0, 0]) == (0.0, 0.0)
    assert (found.value[0], found.norm[0]) == (0.5, 1.0)
    assert found.evaluation.gradient[0, 0] == 1.0
    assert backtrack(
        LocalProblem(objective=Curves(PARABOLA)),
        np.zeros((1, 1)),
        LocalProblem(objective=Curves(PARABOLA)).evaluate(np.zeros((1, 1))),
        np.ones((1, 1)),
    ).failed[0]  # nor where the slope is zero and the value rises


@pytest.mark.parametrize(
    ("rise", "curved"), [(9 * EPS, False), (10 * EPS, False), (11 * EPS, True), (0.0, False), (-0.5, False)]
)
def test_curvature_counts_beyond_rounding(rise, curved):
    curve = table({0.0: 1.0, 1.0: 0.0}, {0.0: -1.0, 1.0: -1.0 + rise})
    _, found = search(curve, 0.0, 1.0)
    assert bool(found.curved[0]) == curved


def test_clients_try_by_themselves():
    directions = np.array([[-4.0], [-1.0], [-1000.0], [2.0], [-4.0]])
    f = Curves(*(5 * [PARABOLA]))
    problem, theta = LocalProblem(objective=f), np.ones((5, 1))
    here = problem.evaluate(theta)
    found = backtrack(problem, theta, here, directions)
    assert found.trials.tolist() == [2.0, 1.0, 4.0, 30.0, 2.0]
    assert [len(points) - 1 for points in f.asked] == [2, 1, 4, 30, 2]
    assert found.failed.tolist() == [False, False, False, True, False]
    np.testing.assert_allclose(found.theta[:, 0], [0.0, 0.0, 0.0, 1.0, 0.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.value, [0.0, 0.0, 0.0, 0.5, 0.0], rtol=0, atol=1e-12)


def test_resting_clients_cost_nothing_and_delay_nobody():
    f = Curves(PARABOLA, PARABOLA)
    problem, theta = LocalProblem(objective=f), np.ones((2, 1))
    here = problem.evaluate(theta)
    found = backtrack(problem, theta, here, np.array([[2.0], [-1.0]]), np.array([True, False]))
    assert found.trials.tolist() == [0.0, 1.0]
    assert found.failed.tolist() == [False, False]
    assert len(f.asked[0]) == 2
