"""Passes in single and double precision, with a solver and a rule that do what they are told: every number by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from dualopt import linear_model
from dualopt.arrays.streams import first_round
from dualopt.arrays.xp import zeros_like
from dualopt.objectives import remainder as remainder_module
from dualopt.objectives.local_problem import LocalProblem
from dualopt.objectives.remainder import Remainder, remainder
from dualopt.solvers import LBFGS
from dualopt.solvers._loop import nowhere, solution
from dualopt.solvers._mixed import KNOWN, _is_resolved, _is_right, solved
from dualopt.solvers.lbfgs import evaluate_start
from dualopt.solvers.stopping import GradientNorm, Steps

SIZES = (3, 41, 17, 18, 90)
COSTS = np.array([3.0, 4.0, 5.0, 6.0, 7.0])  # gradients of a pass, by client
WEIGHT = 0.5


@cache
def problem() -> LocalProblem:
    rng = np.random.default_rng(4)
    ends = np.cumsum((0, *SIZES))
    f = linear_model(
        rng.normal(size=(sum(SIZES), 6)) * [1.0, 3.0, 0.1, 1.0, 1.0, 2.0],
        rng.integers(0, 3, sum(SIZES)),
        loss="multinomial",
        mu=0.03,
        clients=[list(range(a, b)) for a, b in pairwise(ends)],
        precision="mixed",
    )
    linear = 0.3 * rng.normal(size=(5, *f.shape))
    return LocalProblem(objective=f, linear=linear, weight=WEIGHT, center=rng.normal(size=f.shape))


def minimisers(p: LocalProblem) -> np.ndarray:
    return LBFGS()(p, np.zeros((5, *p.objective.shape)), GradientNorm(tol=1e-12)).theta


def norms(x: Any) -> np.ndarray:
    return np.linalg.norm(np.asarray(x, dtype=float).reshape(len(x), -1), axis=1)


class Known(NamedTuple):
    """What a solver keeps that remembers where it has ended."""

    theta: Any
    f: Any
    grad_f: Any


class Told:
    """A solver that goes a part of the way to the minimisers in each call, as it is told for each client.

    It says that it took ``COSTS`` gradients, and the words that it is told.
    """

    single = True

    def __init__(self, ends: np.ndarray, parts: list[list[float]], words: Any = None, *, remembers: bool = False):
        self.ends, self.parts, self.remembers = ends, [list(own) for own in parts], remembers
        self.words = words or {}  # (client, call of this client) -> word
        self.calls, self.log = [0] * 5, []

    def initial_state(self, objective: Any) -> Any:
        return Known(nowhere(objective), zeros_like(objective.mu), nowhere(objective)) if self.remembers else ()

    def __call__(self, problem: Any, start: Any, stop: Any, solver_state: Any = (), round: Any = None) -> Any:
        f = problem.objective
        ids = [SIZES.index(m) for m in f.rows.sizes]
        single = isinstance(f, Remainder)
        self.log.append(SimpleNamespace(single=single, ids=ids, start=start, origin=problem.origin))
        if self.remembers:
            _, cost = evaluate_start(problem, start, solver_state)
            assert not np.any(cost)  # it is told what is known where it starts
        way = self.ends[ids] - (f.theta + start if single else start)
        part = np.array([self.parts[j].pop(0) for j in ids])[:, None, None]
        theta = start + (part * way).astype(start.dtype)
        found = problem.evaluate(theta)
        words = tuple(self.words.get((j, self.calls[j]), "converged") for j in ids)
        for j in ids:
            self.calls[j] += 1
        return solution(
            problem,
            theta,
            found,
            gradients=COSTS[ids],
            status=words,
            solver_state=Known(theta, found.f, found.grad_f) if self.remembers else (),
            length=np.linalg.norm((theta - start).reshape(len(ids), -1), axis=1),
        )


class Says:
    """A rule that answers what it is told, and keeps what it was asked."""

    def __init__(self, *answers: list[bool]):
        self.answers, self.log = list(answers), []

    def finished(self, progress: Any) -> Any:
        self.log.append(progress)
        return np.array(self.answers.pop(0))


def values(p: LocalProblem, theta: Any) -> np.ndarray:
    return p.evaluate(theta).value


def errors(p: LocalProblem, start: Any, theta: Any) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of what single precision does to values and gradients at ``theta``, from a center at ``start``."""
    f, d = p.objective, theta - start
    at, there = p.evaluate(start), p.evaluate(theta)
    linear, curved, length = norms(at.gradient), norms(there.grad_f - at.grad_f), norms(d)
    rest = there.f - at.f - np.sum((at.grad_f * d).reshape(len(d), -1), axis=1)
    unit = 16 * 2.0**-23
    of_value = unit * (linear * length + rest + 0.5 * WEIGHT * length**2)
    products = remainder(f, start).rounding_of_products(d.astype(np.float32))
    return of_value, unit * (linear + curved + WEIGHT * length) + products


def test_all_ways_through_the_passes(kept: bool) -> None:
    """Client 0 is right in single precision, 1 when double precision looks, 2 after a second pass.

    Client 3 has not come far and 4 has no steps left: double precision goes on for both.
    """
    p = problem()
    start = np.random.default_rng(7).normal(size=p.linear.shape)  # pyright: ignore
    ends = minimisers(p)
    parts = [[0.99], [0.8], [0.9, 0.95], [0.05, 0.97], [0.8, 0.7]]
    words = {(4, 0): "max_iter", (3, 1): "stalled", (4, 1): "max_iter", (2, 0): "stalled"}
    solver: Any = Told(ends, parts, words)
    rule: Any = Says([True, False, False, False, False], [False, True, False, False, False], [True])
    found = solved(solver, p, start, rule, (), None)

    at = [start]  # where clients are after passes
    for n in range(2):
        share = np.array([own[n] if n < len(own) else 0.0 for own in parts])[:, None, None]
        at.append(at[-1] + share * (ends - at[-1]))
    np.testing.assert_allclose(found.theta, at[2], rtol=1e-5, atol=1e-6)
    assert found.status == ("converged", "converged", "converged", "stalled", "max_iter")
    np.testing.assert_allclose(found.length, norms(at[1] - at[0]) + norms(at[2] - at[1]), rtol=1e-5)
    np.testing.assert_array_equal(found.evaluation.f, p.objective.value(found.theta))
    np.testing.assert_array_equal(found.evaluation.grad_f, p.objective.gradient(found.theta))
    # a center is a gradient, and half of one where predictors are kept; a pass is charged half of one for them
    # elsewhere, and what the solver says less the gradient that is known where it begins
    passes = np.array([1.0, 1.0, 2.0, 1.0, 1.0]) * (COSTS - 1.0) + np.array([0, 0, 0, 1.0, 1.0]) * COSTS
    centers = np.array([1.0, 2.0, 2.0, 2.0, 2.0])
    halves = np.array([1.0, 1.0, 1.0, 2.0, 2.0]) if kept else np.array([1.0, 1.0, 2.0, 1.0, 1.0])
    np.testing.assert_allclose(found.gradients, passes + centers + 0.5 * halves)

    first, second, last = solver.log
    assert [(call.single, call.ids) for call in solver.log] == [(True, [*range(5)]), (True, [2]), (False, [3, 4])]
    began, slopes = values(p, start), norms(p.gradient(start))
    assert not first.start.any()
    assert not second.start.any()
    np.testing.assert_allclose(first.origin.value, began, rtol=1e-12)
    np.testing.assert_allclose(first.origin.norm, slopes, rtol=1e-6)
    between = values(p, at[1])
    np.testing.assert_allclose(second.origin.value, between[2:3], atol=1e-5)
    np.testing.assert_allclose(second.origin.norm, slopes[2:3], rtol=1e-6)
    np.testing.assert_allclose(last.start, at[1][3:], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(last.origin.value, [0.0, 0.0])
    np.testing.assert_allclose(last.origin.norm, slopes[3:], rtol=1e-6)

    of_value, of_gradient = errors(p, start, at[1])
    one, two, three = rule.log
    np.testing.assert_allclose(one.value, between, atol=1e-5)
    np.testing.assert_allclose(one.previous - one.value, of_value, rtol=1e-3)
    np.testing.assert_allclose(one.gradient_norm - norms(p.gradient(at[1])), of_gradient, rtol=0.2)
    np.testing.assert_allclose(two.value, between, atol=1e-5)
    np.testing.assert_allclose(two.previous, began, atol=1e-5)
    np.testing.assert_allclose(two.gradient_norm, norms(p.gradient(at[1])), rtol=1e-4)
    np.testing.assert_allclose(three.value, values(p, at[2])[2:3], atol=1e-5)
    for told, ids in ((one, slice(0, 5)), (two, slice(0, 5)), (three, slice(2, 3))):
        np.testing.assert_allclose(told.first_gradient_norm, slopes[ids], rtol=1e-6)
        np.testing.assert_allclose(told.mu, p.mu[ids], rtol=1e-6)


@pytest.fixture(params=[True, False], ids=["kept", "not kept"])
def kept(request: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether predictors are kept from call to call."""
    if not request.param:
        monkeypatch.setattr(remainder_module, "KEPT", 0)
    return request.param


def test_a_later_call_begins_where_the_last_one_ended(kept: bool) -> None:
    """A solver that remembers goes on from a displacement; only a client that was moved pays for its start."""
    p = problem()
    start = np.random.default_rng(7).normal(size=p.linear.shape)  # pyright: ignore
    solver: Any = Told(minimisers(p), [[0.9]] * 5, remembers=True)
    once = solved(solver, p, start, Says([True] * 5), (), None)  # pyright: ignore
    # the solver is told values and gradients of no displacement, which cost nothing, and says what it took
    half = 0.0 if kept else 0.5
    np.testing.assert_allclose(once.gradients, (1.5 if kept else 1.0) + half + COSTS)

    later = replace(p, linear=p.linear + 0.4 * np.random.default_rng(8).normal(size=start.shape))  # pyright: ignore
    begins = once.theta.copy()
    begins[4] += 0.03
    ends = minimisers(later)
    again: Any = Told(ends, [[0.1, 0.95]] * 5, remembers=True)
    rule: Any = Says([False] * 5, [False] * 5, [True] * 5)
    found = solved(again, later, begins, rule, once.solver_state, None)
    assert [(call.single, call.ids) for call in again.log] == [(True, [*range(5)])] * 2  # although norms fell little
    at = begins + 0.1 * (ends - begins)
    np.testing.assert_allclose(found.theta, at + 0.95 * (ends - at), rtol=1e-5, atol=1e-5)
    began, slopes = values(later, begins), norms(later.gradient(begins))
    first, second = again.log
    np.testing.assert_allclose(start + first.start, begins, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(first.origin.value, values(later, start), rtol=1e-12)
    np.testing.assert_allclose(first.origin.norm, slopes, rtol=1e-4)
    np.testing.assert_allclose(second.origin.norm, slopes, rtol=1e-4)
    one, two, three = rule.log
    np.testing.assert_allclose(two.previous, began, atol=1e-5)
    for told in (one, two, three):
        np.testing.assert_allclose(told.first_gradient_norm, slopes, rtol=1e-4)
    moved = np.array([0.0, 0, 0, 0, 1])
    np.testing.assert_allclose(found.gradients, 2 * half + moved + 2 * COSTS + 1.0)


def test_who_does_not_come_far_from_a_center_goes_on_in_double_precision() -> None:
    """A gradient has to fall to a half."""
    p = problem()
    start = np.random.default_rng(7).normal(size=p.linear.shape)  # pyright: ignore
    parts = [[0.9, 0.9], [0.02, 0.9], [0.9, 0.9], [0.02, 0.9], [0.9, 0.9]]
    solver: Any = Told(minimisers(p), parts)
    solved(solver, p, start, Says([False] * 5, [False] * 5, [True] * 3), (), None)  # pyright: ignore
    assert [(call.single, call.ids) for call in solver.log] == [(True, [*range(5)]), (True, [0, 2, 4]), (False, [1, 3])]


def test_what_single_precision_cannot_resolve() -> None:
    """Gradients must be a thousand times what double precision does not know, and have squares in single precision."""
    size, d = np.array([3.0, 3.0, 0.0, 0.0]), np.zeros((4, 1), dtype=np.float32)
    relative = 16 * 2.0**-52 * 3.0 / KNOWN
    absolute = float(np.sqrt(np.finfo(np.float32).tiny / np.finfo(np.float32).eps))
    norm = np.array([1.01 * relative, 0.99 * relative, 1.01 * absolute, 0.99 * absolute])
    here: Any = SimpleNamespace(center=SimpleNamespace(grad_f=size[:, None]), norm=norm, d=d)
    assert _is_resolved(here).tolist() == [True, False, True, False]


def test_after_a_number_of_steps_gradients_must_be_known() -> None:
    """To a thousandth; double precision always knows them."""
    here: Any = SimpleNamespace(norm=np.array([2.0, 2.0, 0.0]), value=np.zeros(3))
    right: Any = partial(_is_right, Steps(steps=3), problem(), first_round(3), here, np.ones(3), np.zeros(3))
    assert right(np.array([1.99e-3, 2.01e-3, 0.0])).tolist() == [True, False, True]
    assert right().tolist() == [True] * 3
