"""The loop of the local solvers on scripts of values and gradients: when a client ends, and what its rule is told."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from solver_instances import OBJECTIVES, SOLVERS, first, linear, local_problem, starts

from dualopt.losses import Logistic, Multinomial
from dualopt.objectives import LocalProblem, ObjectiveWrapper, Quadratic
from dualopt.objectives.local_problem import Evaluation
from dualopt.solvers._loop import (
    LocalSolution,
    drive,
    equal_rows,
    evaluated,
    is_smooth,
    nowhere,
    require_smooth,
    sampled_solution,
    solution,
)
from dualopt.solvers.stopping import Steps

EPS = 2.0**-52
LIMIT = 99


class Script(NamedTuple):
    """What a client has after ``k`` steps: the value of F, the norm of its gradient, |grad f|, the size of terms."""

    value: Callable[[int], float] = lambda k: 1.0
    norm: Callable[[int], float] = lambda k: 1.0
    grad_f: Callable[[int], float] = lambda k: 0.0
    size: Callable[[int], float] = lambda k: 0.0


class State(NamedTuple):
    """A place in a script."""

    theta: np.ndarray  # (N,)  the number of the client
    evaluation: Evaluation
    steps: np.ndarray
    stalled: np.ndarray


class Rule:
    """A rule that writes down what it is told, and ends clients at a gradient of this norm."""

    def __init__(self, norm: float = -1.0) -> None:
        self.norm, self.told = norm, []

    def finished(self, progress: Any) -> np.ndarray:
        self.told.append(progress)
        return progress.gradient_norm <= self.norm


def play(
    *scripts: Script, stop: Any = None, with_sizes: bool = True, round: Any = None, unit: Any = None
) -> tuple[list[int], list[str]]:
    """Return after how many steps each client ended, and why."""

    def numbers(s: State, field: str) -> np.ndarray:
        played = [getattr(scripts[int(j)], field)(int(k)) for j, k in zip(s.theta, s.steps, strict=True)]
        return np.array(played)

    def with_gradients(s: State) -> State:
        grad_f = numbers(s, "grad_f")[:, None]
        return s._replace(evaluation=Evaluation(0 * s.theta, grad_f, 0 * s.theta, grad_f))

    def measure(problem: LocalProblem, s: State) -> tuple[np.ndarray, ...]:
        assert problem.n_clients == len(s.theta)
        objective: Any = problem.objective
        assert objective.b[:, 0].tolist() == s.theta.tolist()
        return tuple(numbers(s, name) for name in ("value", "norm", "size")[: 3 if with_sizes else 2])

    n = len(scripts)
    clients, never = np.arange(1.0 * n), np.zeros(n, dtype=bool)
    problem = LocalProblem(objective=Quadratic(A=1.0 + clients[:, None, None], b=clients[:, None]), unit=unit)
    start = with_gradients(State(clients, Evaluation(*4 * [clients]), 0 * clients, never))
    state, status = drive(
        lambda _, s: with_gradients(s._replace(steps=s.steps + 1)),
        problem,
        start,
        stop or Rule(),
        round,
        max_iter=LIMIT,
        measure=measure,
    )
    assert state.theta.tolist() == clients.tolist()
    return [int(k) for k in state.steps], list(status)


def swings(low: float, high: float) -> Callable[[int], float]:
    return lambda k: low if k % 2 else high


def falls(k: int) -> float:
    return 1.0 - 1e-3 * k


BIG = 1.0 / (16.0 * EPS)  # gradients of f of this size are known to 1
ENDS = {  # without sizes of terms: the value is what it is known by
    "nothing happens": (Script(), 30, "stalled"),
    "the value is far below zero": (Script(value=swings(-1.0, -1.0 - 4 * EPS)), 30, "stalled"),
    "as much as rounding": (Script(value=swings(1.0, 1.0 + 4 * EPS)), 30, "stalled"),
    "more than rounding": (Script(value=swings(1.0, 1.0 + 5 * EPS)), LIMIT, "max_iter"),
    "smaller gradients": (Script(norm=falls), LIMIT, "max_iter"),
    "smaller than the step before": (Script(norm=swings(1.0, 2.0)), 31, "stalled"),
    "a smaller one on the way": (Script(norm=lambda k: 1.0 if k < 20 else 0.9), 50, "stalled"),
    "another value on the way": (Script(value=lambda k: 1.0 if k < 20 else 2.0), 50, "stalled"),
    "a gradient of rounding at the start": (Script(norm=lambda k: 0.9, grad_f=lambda k: BIG), 0, "stalled"),
    "a little larger than rounding": (Script(norm=lambda k: 1.1, grad_f=lambda k: BIG), 30, "stalled"),
    "as large": (Script(grad_f=lambda k: BIG), 30, "stalled"),
    "later of rounding": (Script(norm=lambda k: falls(k) if k else 1.1, grad_f=lambda k: BIG), 6, "stalled"),
    "later as large": (Script(norm=lambda k: falls(k) if k > 1 else 1.1 - 0.1 * k, grad_f=lambda k: BIG), 7, "stalled"),
    "of another f": (Script(norm=lambda k: 2.0 * falls(k), grad_f=lambda k: BIG * (1 + 2 * (k > 9))), 15, "stalled"),
    "both": (Script(norm=lambda k: 1.1 if k < 21 else 0.9, grad_f=lambda k: BIG), 22, "stalled"),
}


@pytest.mark.parametrize(("script", "steps", "status"), ENDS.values(), ids=ENDS)
def test_a_client_ends_where_nothing_can_be_gained(script, steps, status):
    assert play(script, with_sizes=False) == ([steps], [status])


def test_a_client_ends_with_the_others_as_alone():
    scripts, steps, status = zip(*ENDS.values(), strict=True)
    assert play(*scripts, with_sizes=False) == (list(steps), list(status))


def test_values_that_are_sums_of_larger_terms_are_known_by_these():
    scripts = [Script(value=swings(1e-3, 1e-3 + 3 * EPS), size=lambda k, size=size: size) for size in (1.0, 0.5)]
    assert play(*scripts) == ([30, LIMIT], ["stalled", "max_iter"])


def test_a_gap_that_is_a_sum_over_rows_ends_at_its_rounding():
    """32 units in the last place of its terms: the norms that belong to such gaps depend on mu, which is j + 1."""
    size = 5.0
    rounding = [np.sqrt(2.0 * (j + 1.0) * 32.0 * EPS * size) for j in range(4)]

    def script(last: float, at: int) -> Script:
        return Script(norm=lambda k: falls(k) if k < at else last * falls(k), size=lambda k: size, value=lambda k: -k)

    scripts = [script(0.99 * rounding[0], 3), script(1.2 * rounding[1], 3), script(0.99 * rounding[2], 0),
               script(0.99 * rounding[3], 50)]  # fmt: skip
    assert play(*scripts) == ([3, LIMIT, 0, 50], ["stalled", "max_iter", "stalled", "stalled"])
    assert play(*scripts, with_sizes=False) == ([LIMIT] * 4, ["max_iter"] * 4)


def test_a_fixed_number_of_steps_is_carried_out_whatever_happens():
    scripts = [of for of, _, _ in ENDS.values()]
    assert play(*scripts, stop=Steps(steps=70)) == ([70] * len(scripts), ["converged"] * len(scripts))
    assert play(*scripts, stop=Steps(steps=LIMIT + 1)) == ([LIMIT] * len(scripts), ["max_iter"] * len(scripts))


def test_who_has_come_to_its_end_has_converged_even_in_the_last_step():
    scripts = [Script(norm=lambda k, at=at: falls(k) if k < at else 0.5) for at in (3, LIMIT, LIMIT + 1, 0)]
    ends = ["converged", "converged", "max_iter", "converged"]
    assert play(*scripts, stop=Rule(0.5)) == ([3, LIMIT, LIMIT, 0], ends)
    assert play(ENDS["a gradient of rounding at the start"][0], stop=Rule(0.9)) == ([0], ["converged"])


@pytest.mark.parametrize("unit", [None, np.array([2.0, 0.25, 8.0])])
def test_what_a_rule_is_told(unit):
    ends, rule, round = (4, 2, 5), Rule(0.1), first(3, n=6)

    def script(j, end):
        return Script(value=lambda k: 10.0 * j - k, norm=lambda k: 2.0 + 5.0 * j - 0.125 * k if k < end else 0.0)

    scripts = [script(j, end) for j, end in enumerate(ends)]
    assert play(*scripts, stop=rule, round=round, unit=unit) == (list(ends), 3 * ["converged"])
    for k, told in enumerate(rule.told):
        assert (told.steps, told.round) == (k, round)
        left = [j for j, end in enumerate(ends) if end >= k]  # they are asked until they end
        of, units = np.array(left), 1.0 if unit is None else unit[left]
        assert told.value.tolist() == ((10.0 * of - k) / units).tolist()
        assert told.previous.tolist() == ((10.0 * of - k + 1.0) / units if k else np.inf + 0.0 * of).tolist()
        assert told.mu.tolist() == ((1.0 + of) / units).tolist()
        assert told.gradient_norm.tolist() == [scripts[j].norm(k) / (1.0 if unit is None else unit[j]) for j in left]
        assert told.first_gradient_norm.tolist() == ((2.0 + 5.0 * of) / units).tolist()
    assert len(rule.told) == 6


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - {"exact", "row_lbfgs"}))  # of sparse rows: test_sparse_rows
def test_what_rules_are_told_by_the_solvers(name):
    """The values and the norms of the gradients of F_j, or norms that would have the same gaps."""
    for terms in ("plain", "all"):
        made = {"dual_coordinate": "hinge", "interior_point": "absolute_deviation"}.get(name, "logistic")
        problem, solver = local_problem(OBJECTIVES[made](), terms), SOLVERS[name]
        state, points = solver.initial_state(problem.objective), []
        for steps in (1, 2, 3):
            points.append(solver(problem, starts(problem), Steps(steps=steps), state, first(5)))
        rule = Rule()
        solver = replace(solver, max_iter=3)
        solver(problem, starts(problem), rule, state, first(5))
        values = [problem.value(point.theta) for point in points]
        rest = [list(range(5))]  # those that are told of: who is at rounding ends before the others
        for told, point, value in zip(rule.told[1:], points, values, strict=True):
            own = [int(np.argmin(abs(value - v))) for v in told.value]
            assert len({*own}) == len(own) >= 3
            np.testing.assert_allclose(told.value, value[own], rtol=1e-13, atol=1e-13)
            np.testing.assert_allclose(told.gap, point.gap[own], rtol=1e-12)
            np.testing.assert_array_equal(told.mu, problem.mu[own])
            rest.append(own)
        for k, (told, before) in enumerate(zip(rule.told[1:], rule.told, strict=False)):
            np.testing.assert_array_equal(told.previous, before.value[[rest[k].index(j) for j in rest[k + 1]]])
            np.testing.assert_array_equal(told.first_gradient_norm, rule.told[0].gradient_norm[rest[k + 1]])


# What is made of the end of a loop.


class Priced(ObjectiveWrapper):
    """An objective of which a gradient counts three."""

    gradient_cost = property(lambda self: 3.0)

    def __init__(self, objective):
        self.objective = objective


def test_gaps_are_those_of_the_gradient_where_no_bound_is_known():
    theta, gradient = np.zeros((3, 2, 2)), np.arange(12.0).reshape(3, 2, 2)
    squares, mu = np.array([14.0, 126.0, 366.0]), np.array([0.5, 2.0, 0.0])
    evaluation = Evaluation(mu, 0 * gradient, mu, gradient)
    known = LocalSolution(theta, evaluation, None, None, (), (1.0,) * 3, ("converged",) * 3, mu=mu)
    assert known.gap.tolist() == [squares[0], squares[1] / 4.0, np.inf]
    assert known._replace(bound=mu).gap is mu
    for shape in ((3,), (3, 1), (3, 4, 2)):
        for unknown in (known._replace(evaluation=None), known._replace(mu=None)):
            assert unknown._replace(theta=np.ones(shape)).gap.tolist() == 3 * [np.inf]


def test_gradients_are_charged_at_their_price():
    problem = LocalProblem(objective=Priced(linear(Logistic())))
    theta = starts(problem)
    evaluation, status = problem.evaluate(theta), ("converged",) * 5
    counted = solution(problem, theta, evaluation, gradients=np.arange(5.0), status=status)
    assert counted.gradients == (0.0, 3.0, 6.0, 9.0, 12.0)
    assert counted.charged
    told = solution(problem, theta, evaluation, gradients=(1.0,) * 5, status=status, charged=False)
    assert (told.gradients, told.charged, told.length) == ((1.0,) * 5, False, None)
    np.testing.assert_array_equal(told.gap, problem.gap(theta))
    there = evaluated(problem, theta)
    assert (there.gradients, there.status, there.charged) == ((3.0,) * 5, status, True)
    np.testing.assert_array_equal(there.evaluation.gradient, problem.gradient(theta))
    theta[1, 2] = np.inf
    sampled = sampled_solution(problem, theta, rows=[9, 2, 27, 1, 0])
    assert sampled.gradients == (3.0, 1.5, 9.0, 1.5, 0.0)
    assert sampled.status == ("converged", "stalled", *status[:3])
    assert sampled.gap.tolist() == 5 * [np.inf]


@pytest.mark.parametrize(
    ("mu", "L", "smooth", "has_constant"),
    [
        ([-1.0, 0.0], [2.0, 3.0], True, True),
        ([0.0, 0.0], [2.0, np.inf], False, False),
        ([-np.inf, -np.inf], [np.inf, np.inf], True, False),
        ([-np.inf, 0.0], [np.inf, np.inf], False, False),
    ],
)
def test_what_gradient_methods_are_meant_for(mu, L, smooth, has_constant):
    objective: Any = SimpleNamespace(mu=np.array(mu), L=np.array(L), offers=frozenset({"samples"}))
    problem = LocalProblem(objective=objective)
    curved: Any = SimpleNamespace(mu=np.array(mu), L=np.array(L), offers=frozenset({"hessian"}))
    assert is_smooth(curved)  # there are Hessians, although no constant bounds them
    assert is_smooth(objective) == smooth
    for constant, fits, message in ((False, smooth, "smooth loss"), (True, has_constant, "smooth")):
        with nullcontext() if fits else pytest.raises(ValueError, match=f"^solver 'mine' needs a {message}"):
            require_smooth("mine", problem, constant=constant)


def test_nowhere_is_a_point_for_each_client():
    point = nowhere(linear(Multinomial(classes=3), sizes=(4, 2)))
    assert point.shape == (2, 3, 4)
    assert np.isnan(point).all()
    x = np.arange(8.0).reshape(4, 2)
    y = x + np.array([[0, 0], [0, 1], [1, 0], [np.nan, 0]])
    assert equal_rows(x, y).tolist() == [True, False, False, False]
    assert equal_rows(x[:, 0], y[:, 0]).tolist() == [True, True, False, False]
