"""Backtracking along descent directions, client by client."""

from __future__ import annotations

from typing import Any, NamedTuple

from dualopt.objectives.local_problem import Evaluation, LocalProblem, client_dot, per_client
from dualopt.tree import merge_clients, take_clients, tree_map
from dualopt.xp import Array, array_namespace, epsilon, to_numpy

__all__ = ["LineSearch", "backtrack"]

SUFFICIENT_DECREASE = 1e-4
MAX_TRIALS = 30


class LineSearch(NamedTuple):
    """The accepted points, with the trials that they took."""

    theta: Array  # (N, *shape)
    evaluation: Evaluation
    trials: Array  # (N,)  gradients computed
    failed: Array  # (N,)  no acceptable point was found: theta and its evaluation are those of the start


def backtrack(problem: LocalProblem, theta: Array, start: Evaluation, direction: Array) -> LineSearch:
    """Find ``theta + t direction`` with sufficient decrease, from ``t = 1`` by safeguarded quadratic interpolation.

    A point is accepted by Armijo's rule. Near a minimum function values lose half of the digits and gradients do not,
    so two forms of the rule by slopes are accepted too: a slope at the new point of at most ``1e-4`` times the first
    one proves the decrease where the local problem is convex; and, where the values differ by rounding only, Hager and
    Zhang's approximate Wolfe condition admits points just beyond the minimum.
    """
    xp = array_namespace(theta)
    slope = client_dot(start.gradient, direction)
    rounding = 10.0 * epsilon(theta) * xp.abs(start.value)
    t = xp.ones_like(slope)
    result = LineSearch(theta, start, xp.zeros_like(slope), xp.ones_like(slope, dtype=xp.bool))
    trying = list(range(problem.n_clients))
    for _ in range(MAX_TRIALS):
        trial = theta + per_client(t, theta) * direction
        new = problem.evaluate(trial)
        new_slope = client_dot(new.gradient, direction)
        armijo = new.value <= start.value + SUFFICIENT_DECREASE * t * slope
        level = (new.value <= start.value + rounding) & (new_slope <= (2 * SUFFICIENT_DECREASE - 1) * slope)
        proved = (new_slope <= SUFFICIENT_DECREASE * slope) & (problem.mu >= 0)
        accepted = (slope <= 0) & (armijo | proved | level)  # uphill, Armijo's rule would admit a rise
        counted = take_clients(result.trials, trying) + 1.0
        failed = xp.logical_not(accepted)
        theta_now, evaluation = _choose(accepted, (trial, new), (theta, start))
        outcome = LineSearch(theta_now, evaluation, counted, failed)
        result = merge_clients(result, outcome, trying)
        refused = [position for position, bad in enumerate(to_numpy(failed)) if bad]
        if not refused:
            break
        curvature = new.value - start.value - t * slope
        usable = xp.isfinite(curvature) & (curvature > 0)
        minimiser = -0.5 * slope * t * t / xp.where(usable, curvature, xp.ones_like(curvature))
        shrunk = xp.where(usable, xp.minimum(xp.maximum(minimiser, 0.1 * t), 0.5 * t), 0.1 * t)
        trying = [trying[position] for position in refused]
        t, theta, start, direction, slope, rounding = take_clients(
            (shrunk, theta, start, direction, slope, rounding), refused
        )
        problem = problem.select(refused)
    return result


def _choose(chosen: Array, new: Any, old: Any) -> Any:
    """Return ``new`` for the chosen clients and ``old`` for the others."""
    xp = array_namespace(chosen)
    return tree_map(lambda after, before: xp.where(per_client(chosen, after), after, before), new, old)
