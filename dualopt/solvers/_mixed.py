r"""Mixed precision: local solvers work in single precision, on how far they go, and double precision checks them.

Let :math:`\theta_j` be the point of a client whose local problem :math:`F_j` is to be solved, and
:math:`g_j = \nabla F_j(\theta_j)`, in double precision. With the remainder :math:`D_j` of :math:`f_j` there
(`dualopt.objectives.remainder`),

.. math:: F_j(\theta_j + d) = F_j(\theta_j) + D_j(d) + \langle g_j, d\rangle + \tfrac{\text{weight}_j}2 |d|^2,

a local problem in d that begins at 0 with the gradient :math:`g_j`. A solver works on it in single precision: all terms
are right to single precision of themselves, so that gradients are resolved to some :math:`10^{-6}|g_j|` where the
problem is not too badly conditioned, **however small** :math:`g_j` **is**. It is iterative refinement (Wilkinson 1963;
Higham 2002, "Accuracy and Stability of Numerical Algorithms", chapter 12): relative to where a round begins single
precision is enough in all rounds, where an absolute accuracy would not be reached.

Then :math:`F_j` is evaluated at :math:`\theta_j + d_j` in double precision, once in a round, which states, values,
duals and certificates are made of, and the stopping rule is asked again. A client that does not pass goes on from
there; one whose gradient has not fallen to a half is left to the solver in double precision. So nothing that leaves a
client rests on single precision: a solution is what the rule asks for, or what double precision has made of it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from dualopt.arrays.streams import Round, first_round
from dualopt.arrays.tree import merge_clients, take_clients, tree_map
from dualopt.arrays.xp import (
    Array,
    array_namespace,
    asarray_like,
    device,
    epsilon,
    host_places,
    host_zeros,
    limits,
    to_numpy,
    zeros_like,
)
from dualopt.objectives.local_problem import Evaluation, LocalProblem, Origin
from dualopt.solvers._lazy import EvaluationOnDemand
from dualopt.solvers._loop import (
    NOISE,
    LocalSolution,
    LocalSolver,
    equal_rows,
    masked,
    norm,
    nowhere,
    progress,
    solution,
    to_host,
)
from dualopt.solvers.lbfgs import evaluate_start
from dualopt.solvers.stopping import Steps, Stop

__all__ = ["first_state", "solved", "works_in_single"]

FALL = 0.5
"""The gradient has to fall to this part of what it was where a pass began, or double precision takes over."""

KNOWN = 1e-3
"""To this part of itself a gradient must be known: by double precision, for single precision to work with it, and by
single precision after a fixed number of steps, which ask for nothing."""


class Center(NamedTuple):
    """Points from which displacements are measured, and what double precision knows there."""

    theta: Array  # (N, *shape)  NaN before the first call
    f: Array  # (N,)
    grad_f: Array  # (N, *shape)
    z: Array  # (N, k, max_rows)  predictors of the rows in single precision; (N, k, 0) where they are not kept


class State(NamedTuple):
    """What is kept between rounds: the state of the solver, in single precision, and the centers."""

    solver: Any
    center: Center


class _Here(NamedTuple):
    """Where clients are in a call, and what they took to come there, which is in host memory."""

    d: Array  # (N, *shape)  how far they are from their centers, in single precision
    center: Center
    solver: Any
    gradients: Array  # (N,)
    length: Array  # (N,)  the sum of the steps; NaN where they have no length
    value: Array  # (N,)  F_j there, and the norm of its gradient, by the precision that came last
    norm: Array  # (N,)


def works_in_single(solver: LocalSolver, objective: Any) -> bool:
    """Tell whether a solver works in single precision on the local problems of an objective.

    The objective must offer remainders, and the solver need no more than values, gradients, products with Hessians and
    preconditioners: ``single`` says so.
    """
    return "remainder" in objective.offers and getattr(solver, "single", False)


def first_state(solver: LocalSolver, objective: Any) -> Any:
    """Return the state of a solver before its first call, in the precision in which it will work."""
    if not works_in_single(solver, objective):
        return solver.initial_state(objective)
    nothing, point = zeros_like(objective.mu), nowhere(objective)
    remainder = objective.remainder(zeros_like(point))
    return State(solver.initial_state(remainder), Center(point, nothing, point, remainder.no_predictors()))


def solved(
    solver: LocalSolver, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any, round: Round | None
) -> LocalSolution:
    """Solve local problems by a solver, in single precision where it can."""
    if not works_in_single(solver, problem.objective):
        return solver(problem, start, stop, solver_state, round)
    round = first_round(problem.n_clients) if round is None else round
    here = _begun(problem, start, solver_state or first_state(solver, problem.objective))
    first: Array = None  # the norms of the gradients where the call began
    status, ids, double = ["converged"] * problem.n_clients, list(range(problem.n_clients)), []
    while ids:
        part, own = problem.select(ids), take_clients(here, ids)
        given = None if first is None else first[ids]
        after, how, began, error = _one_pass(solver, part, own, stop, given, round)
        first = began if first is None else first
        right = _is_right(stop, part, round, after, first[ids], error)
        over = right | (array_namespace(began).asarray([word == "max_iter" for word in how]) & ~_asks_nothing(stop))
        known, new = over, after
        if not over.all():
            more = host_places(~over)
            checked = _centered(part.select(more), take_clients(after, more))
            new = merge_clients(after, checked, more)
            known = over | _is_right(stop, part, round, new, first[ids], None)
        fell = (new.norm <= FALL * began) | (to_numpy(_norm_of(own.d)) > 0)
        lost = ~(new.norm < math.inf)  # or NaN
        here = merge_clients(here, _chosen(~lost, new, own), ids)
        resolved = _is_resolved(new) & ~lost
        for k, j in enumerate(ids):
            if over[k] and not right[k]:
                status[j] = "max_iter"
        double += [j for k, j in enumerate(ids) if not known[k] and not (fell[k] and resolved[k])]
        ids = [j for k, j in enumerate(ids) if not known[k] and fell[k] and resolved[k]]
    if double:
        double.sort()
        after, how = _in_double(solver, problem.select(double), take_clients(here, double), stop, first[double], round)
        here = merge_clients(here, after, double)
        for j, word in zip(double, how, strict=True):
            status[j] = word
    return _solution(problem, here, tuple(status))


def _begun(problem: LocalProblem, start: Array, last: State) -> _Here:
    """Return where a call begins: displaced from the centers, which are the starts of those who have none.

    Solvers that do not remember where they ended begin at a center, where the gradient is known. There a gradient is
    computed in double precision, unless somebody has computed that at a model which all start from, and the predictors
    of the rows in single precision.
    """
    xp, center, n = array_namespace(start), last.center, problem.n_clients
    remembers = hasattr(last.solver, "grad_f")
    d = _single(start - center.theta)
    if remembers:  # to the last bit where they ended
        ended = equal_rows(start, center.theta + xp.astype(last.solver.theta, start.dtype))
        d = masked(ended, last.solver.theta, d)
    stays = equal_rows(d, d) if remembers else equal_rows(start, center.theta)
    gradients, state = host_zeros(n), last.solver
    if (new := host_places(~stays)):
        own, points = problem.objective.select(new), take_clients(start, new)
        f, grad_f = own.value_and_gradient(points)
        z = own.remainder(points).predictors()  # pyright: ignore[reportAttributeAccessIssue]
        center = merge_clients(center, Center(points, f, grad_f, z), new)
        gradients[new] = 1.5 if z.shape[-1] else 1.0
        nothing = _nothing(points)
        d, state = merge_clients(d, nothing, new), merge_clients(state, _rested(take_clients(state, new), nothing), new)
    return _Here(d, center, state, gradients, host_zeros(n), host_zeros(n), host_zeros(n))


def _one_pass(
    solver: LocalSolver, problem: LocalProblem, here: _Here, stop: Stop, first: Array | None, round: Round
) -> tuple[_Here, tuple[str, ...], Array, tuple[Array, Array]]:
    """Let the solver go on in single precision; return also the norms at first, and bounds of errors at the end."""
    center = here.center
    there = problem.extend(center.theta, center.f, center.grad_f)
    remainder = problem.objective.remainder(center.theta, center.z)  # pyright: ignore[reportAttributeAccessIssue]
    local = LocalProblem(
        objective=remainder,
        linear=_single(there.gradient),
        weight=_single(problem.weight),
        center=None if problem.center is None else _nothing(center.theta),
        unit=_single(problem.unit),
    )
    state, gradients = here.solver, here.gradients + (0.0 if center.z.shape[-1] else 0.5)
    if hasattr(state, "grad_f"):
        begun, cost = evaluate_start(local, here.d, state)
        state, gradients = state._replace(theta=here.d, f=begun.f, grad_f=begun.grad_f), gradients + cost
    else:
        begun, gradients = local.evaluate(here.d), gradients - 1.0  # nothing is displaced: the gradient is known
    (value,), (began,) = to_host(there.value), to_host(_wide(norm(begun.gradient)))
    local = replace(local, origin=Origin(value, began if first is None else first))
    found = solver(local, here.d, stop, state, round)
    ended = found.evaluation
    (now,), (above,), *sizes = (
        to_host(_wide(x))
        for x in (
            norm(ended.gradient),
            ended.value,
            norm(local.linear),
            norm(ended.grad_f),
            norm(found.theta),
            remainder.rounding_of_products(found.theta),
            ended.f,
        )
    )
    linear, slope, length, products, rest = (size for (size,) in sizes)
    weight = problem.weight if isinstance(problem.weight, float | int) else to_numpy(problem.weight)
    unit = NOISE * epsilon(here.d)
    error = unit * (linear + slope + weight * length) + products
    of_value = unit * (linear * length + abs(rest) + 0.5 * weight * length * length)
    moved = here.length + (math.nan if found.length is None else to_numpy(found.length))
    gradients = gradients + asarray_like(found.gradients, gradients)
    after = _Here(found.theta, center, found.solver_state, gradients, moved, value + above, now)
    return after, found.status, began, (error, of_value)


def _centered(problem: LocalProblem, here: _Here) -> _Here:
    """Return the same with centers where clients are, at the price of a gradient in double precision."""
    remainder = problem.objective.remainder(here.center.theta, here.center.z)  # pyright: ignore
    theta = _points(here)
    center = Center(theta, *remainder.with_predictors(here.d))
    there = problem.extend(*center[:3])
    value, now = to_host(there.value, norm(there.gradient))
    nothing = _nothing(theta)
    rested = _rested(here.solver, nothing)
    return _Here(nothing, center, rested, here.gradients + 1.0, here.length, value, now)


def _in_double(
    solver: LocalSolver, problem: LocalProblem, here: _Here, stop: Stop, first: Array, round: Round
) -> tuple[_Here, tuple[str, ...]]:
    """Let the solver go on in double precision, with what it has learnt in single precision."""
    here = _centered(problem, here) if bool((_norm_of(here.d) > 0).any()) else here
    center, xp = here.center, array_namespace(here.center.theta)
    state = tree_map(lambda x: xp.astype(x, center.theta.dtype), here.solver)
    if hasattr(state, "grad_f"):
        state = state._replace(theta=center.theta, f=center.f, grad_f=center.grad_f)
    ends = solver(replace(problem, origin=Origin(0.0 * first, first)), center.theta, stop, state, round)
    z = problem.objective.remainder(ends.theta).predictors()  # pyright: ignore[reportAttributeAccessIssue]
    nothing, evaluation = _nothing(ends.theta), ends.evaluation
    half = 0.5 if z.shape[-1] else 0.0
    return _Here(
        nothing,
        Center(ends.theta, evaluation.f, evaluation.grad_f, z),
        _rested(tree_map(_single, ends.solver_state), nothing),
        here.gradients + asarray_like(ends.gradients, here.gradients) + half,
        here.length + (math.nan if ends.length is None else to_numpy(ends.length)),
        *to_host(evaluation.value, norm(evaluation.gradient)),
    ), ends.status


class _EvaluationAtCenters(EvaluationOnDemand):
    """The evaluation in double precision where clients ended, which is known at centers."""

    def __init__(self, problem: LocalProblem, theta: Array, center: Center) -> None:
        super().__init__(problem, theta)
        self._center = center

    @cached_property
    def _found(self) -> Evaluation:
        return evaluate_start(self._problem, self._theta, self._center)[0]  # pyright: ignore[reportArgumentType]


def _solution(problem: LocalProblem, here: _Here, status: tuple[str, ...]) -> LocalSolution:
    theta = _points(here)
    return solution(
        problem,
        theta,
        _EvaluationAtCenters(problem, theta, here.center),
        gradients=problem.objective.gradient_cost * here.gradients,
        status=status,
        solver_state=State(here.solver, here.center),
        length=None if bool((here.length != here.length).any()) else asarray_like(here.length, problem.mu),
        charged=False,
    )


def _points(here: _Here) -> Array:
    theta = here.center.theta
    return theta + array_namespace(theta).astype(here.d, theta.dtype)


def _rested(solver_state: Any, nothing: Array) -> Any:
    """Return the state of a solver that has evaluated no displacement, if it is one that remembers evaluations."""
    if not hasattr(solver_state, "grad_f"):
        return solver_state
    values = zeros_like(nothing[(slice(None),) + (0,) * (nothing.ndim - 1)])
    return solver_state._replace(theta=nothing, f=values, grad_f=nothing)


def _nothing(theta: Array) -> Array:
    """Return no displacement of points."""
    xp = array_namespace(theta)
    return xp.zeros(theta.shape, dtype=xp.float32, device=device(theta))


def _single(x: Any) -> Any:
    """Return an array in single precision, and what is none as it is."""
    if x is None or isinstance(x, float | int):
        return x
    return array_namespace(x).astype(x, array_namespace(x).float32)


def _wide(x: Array) -> Array:
    return array_namespace(x).astype(x, array_namespace(x).float64)


def _norm_of(d: Array) -> Array:
    (size,) = to_host(norm(d))
    return size


def _chosen(good: Array, new: _Here, old: _Here) -> _Here:
    """Return where clients are, or where they were where that is no number."""
    return new if good.all() else masked(good, new, old)


def _asks_nothing(stop: Stop) -> bool:
    """Tell whether a rule wants steps and no accuracy."""
    return isinstance(stop, Steps)


def _is_right(
    stop: Stop, problem: LocalProblem, round: Round, here: _Here, first: Array, error: tuple[Array, Array] | None
) -> Array:
    """Ask the rule whether it holds whatever the errors of gradients and values are, in double precision none.

    Where steps are all that is asked for, a gradient must be known to ``KNOWN`` of itself to go on with the center.
    """
    of_gradient, of_value = (0.0 * here.norm,) * 2 if error is None else error
    if _asks_nothing(stop):
        return of_gradient <= KNOWN * here.norm
    (mu,) = to_host(problem.mu)
    previous = here.value + of_value if error is not None else math.inf + 0.0 * here.value
    told = progress(problem, 1, round, here.value, previous, mu, here.norm + of_gradient, first)
    return to_numpy(stop.finished(told))


def _is_resolved(here: _Here) -> Array:
    """Tell whose gradients double precision knows well enough, and single precision can hold the squares of."""
    (size,) = to_host(norm(here.center.grad_f))
    eps, least, _ = limits(here.d)
    return (KNOWN * here.norm >= NOISE * epsilon(here.norm) * size) & (here.norm * here.norm >= least / eps)
