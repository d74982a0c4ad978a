"""Backtracking along descent directions, client by client."""

from __future__ import annotations

from typing import NamedTuple

from dualopt.arrays.tree import merge_clients, take_clients
from dualopt.arrays.xp import (
    Array,
    array_namespace,
    asarray_like,
    epsilon,
    host_places,
    host_zeros,
    is_host,
    is_traced,
    repeat,
    to_numpy,
)
from dualopt.objectives.local_problem import Evaluation, LocalProblem, client_dot, per_client
from dualopt.solvers._loop import masked, norm, to_host

__all__ = ["LineSearch", "backtrack"]

SUFFICIENT_DECREASE = 1e-4
MAX_TRIALS = 30


class LineSearch(NamedTuple):
    """The accepted points, with the trials that they took; from ``value`` on in host memory."""

    theta: Array  # (N, *shape)
    evaluation: Evaluation
    step: Array  # (N, *shape)  s: theta less where the search began
    change: Array  # (N, *shape)  y, that of the gradient
    curvature: Array  # (N,)  <s, y>
    value: Array  # (N,)  F_j
    norm: Array  # (N,)  |grad F_j|
    trials: Array  # (N,)  gradients computed
    failed: Array  # (N,)  no acceptable point was found: theta and its evaluation are those of the start
    curved: Array  # (N,)  the curvature is positive beyond rounding


def backtrack(
    problem: LocalProblem, theta: Array, start: Evaluation, direction: Array, resting: Array | None = None
) -> LineSearch:
    """Find ``theta + t direction`` with sufficient decrease, from ``t = 1`` by safeguarded quadratic interpolation.

    A point is accepted by Armijo's rule. Near a minimum function values lose half of the digits and gradients do not,
    so two forms of the rule by slopes are accepted too: a slope at the new point of at most ``1e-4`` times the first
    one proves the decrease where the local problem is convex; and, where the values differ by rounding only, Hager and
    Zhang's approximate Wolfe condition admits points just beyond the minimum.

    All numbers of a trial come to the host in one transfer. Clients whose point was refused try again: in host memory
    without the others, on another device together with them, whose points then stay the same. Of ``resting`` clients,
    marked in host memory, every point is accepted, and no trial is counted.
    """
    if is_traced(theta):
        return _traced_backtrack(problem, theta, start, direction, resting)
    host, origin = is_host(theta), (theta, start)
    rows, result = list(range(problem.n_clients)), None
    slopes = client_dot(start.gradient, direction)
    trials = host_zeros(problem.n_clients)
    t, waiting = trials + 1.0, trials == 0 if resting is None else ~resting
    for _ in range(MAX_TRIALS):
        length = None if result is None else asarray_like(t, theta)
        step = direction if length is None else per_client(length, direction) * direction
        point = theta + step
        new = problem.evaluate(point)
        change = new.gradient - start.gradient
        rises, squares = client_dot(change, direction), client_dot(new.gradient, new.gradient)
        before, slope, value, rise, square = to_host(start.value, slopes, new.value, rises, squares)
        xp = array_namespace(value)
        trials = trials + waiting
        new_slope = slope + rise
        decreased = ~waiting | (value <= before + SUFFICIENT_DECREASE * t * slope)
        if not decreased.all():
            level = value <= before + 10.0 * epsilon(value) * xp.abs(before)
            decreased = decreased | (level & (new_slope <= (2 * SUFFICIENT_DECREASE - 1) * slope))
        if not decreased.all():
            decreased = decreased | ((new_slope <= SUFFICIENT_DECREASE * slope) & to_numpy(problem.mu >= 0))
        waiting = waiting & ~((slope <= 0) & decreased)  # uphill, Armijo's rule would admit a rise
        curvature = rises if length is None else length * rises
        curved = rise > 10.0 * epsilon(slope) * xp.abs(slope)
        found = LineSearch(point, new, step, change, curvature, value, xp.sqrt(square), trials, waiting, curved)
        result = found if result is None else merge_clients(result, found, rows)
        if not waiting.any():
            return result
        excess = value - before - t * slope
        usable = xp.isfinite(excess) & (excess > 0)
        minimiser = -0.5 * slope * t * t / xp.where(usable, excess, 1.0)
        shrunk = xp.where(usable, xp.minimum(xp.maximum(minimiser, 0.1 * t), 0.5 * t), 0.1 * t)
        t = xp.where(waiting, shrunk, t)
        if host:
            keep = host_places(waiting)
            rows = [rows[row] for row in keep]
            t, trials, waiting, theta, start, direction, slopes = take_clients(
                (t, trials, waiting, theta, start, direction, slopes), keep
            )
            problem = problem.select(keep)
    assert result is not None
    return _without_failures(result, *origin)


class _Trials(NamedTuple):
    """What goes from trial to trial."""

    count: Array
    t: Array
    tried: Array  # whose points are those of this trial
    waiting: Array  # who looks for one still
    trials: Array
    found: LineSearch


def _traced_backtrack(
    problem: LocalProblem, theta: Array, start: Evaluation, direction: Array, resting: Array | None
) -> LineSearch:
    """Do what `backtrack` does while a function is compiled."""
    xp, before, slope = array_namespace(theta), start.value, client_dot(start.gradient, direction)
    eps = epsilon(before)
    none, zero, everybody = xp.zeros_like(theta), xp.zeros_like(before), xp.ones_like(before, dtype=xp.bool)

    def trial(now: _Trials) -> _Trials:
        t = now.t
        step = per_client(t, direction) * direction
        point = theta + step
        new = problem.evaluate(point)
        change = new.gradient - start.gradient
        value, rise, square = new.value, client_dot(change, direction), client_dot(new.gradient, new.gradient)
        trials = now.trials + xp.astype(now.waiting, now.trials.dtype)
        new_slope = slope + rise
        level = value <= before + 10.0 * eps * xp.abs(before)
        decreased = value <= before + SUFFICIENT_DECREASE * t * slope
        decreased = decreased | (level & (new_slope <= (2 * SUFFICIENT_DECREASE - 1) * slope))
        decreased = decreased | ((new_slope <= SUFFICIENT_DECREASE * slope) & (problem.mu >= 0))
        waiting = now.waiting & ~((slope <= 0) & decreased)  # uphill, Armijo's rule would admit a rise
        curved = rise > 10.0 * eps * xp.abs(slope)
        found = LineSearch(point, new, step, change, t * rise, value, xp.sqrt(square), trials, waiting, curved)
        excess = value - before - t * slope
        usable = xp.isfinite(excess) & (excess > 0)
        minimiser = -0.5 * slope * t * t / xp.where(usable, excess, 1.0)
        shrunk = xp.where(usable, xp.minimum(xp.maximum(minimiser, 0.1 * t), 0.5 * t), 0.1 * t)
        t = xp.where(waiting, shrunk, t)
        return _Trials(now.count + 1, t, waiting, waiting, trials, masked(now.tried, found, now.found))

    waiting = everybody if resting is None else ~resting
    nothing = LineSearch(theta, start, none, none, zero, zero, zero, zero, ~everybody, ~everybody)
    first = _Trials(xp.sum(zero), xp.ones_like(zero), everybody, waiting, zero, nothing)
    last = repeat(
        lambda now: (now.count == 0) | (xp.any(now.waiting) & (now.count < MAX_TRIALS)),
        trial,
        first,
    )
    return _without_failures(last.found, theta, start)


def _without_failures(found: LineSearch, theta: Array, start: Evaluation) -> LineSearch:
    """Return where the search began for the clients that found nothing."""
    none = array_namespace(theta).zeros_like(theta)
    theta, evaluation, step, change = masked(
        ~found.failed, (found.theta, found.evaluation, found.step, found.change), (theta, start, none, none)
    )
    value, length = to_host(evaluation.value, norm(evaluation.gradient))
    return found._replace(
        theta=theta,
        evaluation=evaluation,
        step=step,
        change=change,
        value=value,
        norm=length,
        curved=found.curved & ~found.failed,
    )
