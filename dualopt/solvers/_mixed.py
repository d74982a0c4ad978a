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
    limits,
    to_numpy,
    zeros_like,
)
from dualopt.objectives.local_problem import Evaluation, LocalProblem, Origin
from dualopt.solvers._lazy import EvaluationOnDemand
from dualopt.solvers._loop import NOISE, LocalSolution, LocalSolver, masked, norm, nowhere, progress, solution, to_host
from dualopt.solvers.lbfgs import evaluate_start
from dualopt.solvers.stopping import Steps, Stop

__all__ = ["first_state", "solved", "works_in_single"]

FALL = 0.5
"""The gradient has to fall to this part of what it was, or double precision takes over."""

KNOWN = 1e-3
"""To this part of itself double precision must know a gradient, for single precision to work with it."""


class State(NamedTuple):
    """What is kept between rounds: the state of the solver, in single precision, and the losses where it ended."""

    solver: Any
    theta: Array  # (N, *shape)  NaN before the first call
    f: Array  # (N,)
    grad_f: Array  # (N, *shape)


class _Here(NamedTuple):
    """Where clients are in a call; what they took to come there is in host memory."""

    theta: Array
    evaluation: Any  # an Evaluation
    solver: Any
    gradients: Array  # (N,)
    length: Array  # (N,)  the sum of the steps; NaN where they have no length


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
    return State(solver.initial_state(objective.remainder(0.0 * objective.zeros())), point, nothing, point)


def solved(
    solver: LocalSolver, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any, round: Round | None
) -> LocalSolution:
    """Solve local problems by a solver, in single precision where it can."""
    if not works_in_single(solver, problem.objective):
        return solver(problem, start, stop, solver_state, round)
    last = solver_state or first_state(solver, problem.objective)
    round = first_round(problem.n_clients) if round is None else round
    evaluation, cost = evaluate_start(problem, start, last)
    here = _Here(start, evaluation, last.solver, cost, 0.0 * cost)
    if isinstance(stop, Steps):
        return _fixed_steps(solver, problem, here, stop, round)
    value, now = _measured(here)
    first, status, double = now, ["converged"] * problem.n_clients, []
    going = ~_finished(stop, problem, round, 0, value, math.inf + 0.0 * value, now, first)
    while going.any():
        known = going & _is_resolved(here, now)
        double += host_places(going & ~known)
        if not (ids := host_places(known)):
            break
        part, own = problem.select(ids), take_clients(here, ids)
        before_value, before = value[ids], now[ids]
        after, how = _one_pass(solver, part, own, stop, Origin(before_value, first[ids]), round)
        new_value, new = _measured(after)
        better = new <= before  # not where a number is NaN
        if not better.all():
            after = after._replace(**_chosen(better, after, own))
            new_value, new = _measured(after)
        here = merge_clients(here, after, ids)
        value, now = (merge_clients(x, y, ids) for x, y in ((value, new_value), (now, new)))
        done = better & _finished(stop, part, round, 1, new_value, before_value, new, first[ids])
        fell, going = new <= FALL * before, going & False
        for k, j in enumerate(ids):
            if done[k] or (better[k] and how[k] == "max_iter"):
                status[j] = "converged" if done[k] else "max_iter"
            elif fell[k]:
                going[j] = True
            else:
                double.append(j)
    if double:
        double = sorted(double)
        part, own = problem.select(double), take_clients(here, double)
        after, how = _in_double(solver, part, own, stop, Origin(0.0 * value[double], first[double]), round)
        here = merge_clients(here, after, double)
        for j, word in zip(double, how, strict=True):
            status[j] = word
    return _solution(problem, here, tuple(status))


def _one_pass(
    solver: LocalSolver, problem: LocalProblem, here: _Here, stop: Stop, origin: Origin, round: Round
) -> tuple[_Here, tuple[str, ...]]:
    """Let the solver go on from where clients are, in single precision, and evaluate the points where it ends."""
    found, theta = _displaced(solver, problem, here, stop, origin, round)
    evaluation, cost = evaluate_start(problem, theta, State((), here.theta, here.evaluation.f, here.evaluation.grad_f))
    return _after(here, found, theta, evaluation, cost), found.status


def _fixed_steps(
    solver: LocalSolver, problem: LocalProblem, here: _Here, stop: Stop, round: Round
) -> LocalSolution:
    """Take a number of steps: no accuracy is asked for, and nobody may ask for the evaluation where they end."""
    value, now = _measured(here)
    found, theta = _displaced(solver, problem, here, stop, Origin(value, now), round)
    after = _after(here, found, theta, EvaluationOnDemand(problem, theta), 0.0)
    ends = _solution(problem, after, found.status)
    nowhere_yet = State(after.solver, math.nan * theta, ends.solver_state.f, ends.solver_state.grad_f)
    return ends._replace(charged=False, solver_state=nowhere_yet)


def _displaced(
    solver: LocalSolver, problem: LocalProblem, here: _Here, stop: Stop, origin: Origin, round: Round
) -> tuple[LocalSolution, Array]:
    """Return the solution of the local problems of displacements, and the points to which it leads."""
    xp, theta = array_namespace(here.theta), here.theta

    def single(x: Any) -> Any:
        return x if x is None or isinstance(x, float | int) else xp.astype(x, xp.float32)

    nothing = xp.zeros(theta.shape, dtype=xp.float32, device=device(theta))
    local = LocalProblem(
        objective=problem.objective.remainder(theta),  # pyright: ignore[reportAttributeAccessIssue]
        linear=single(here.evaluation.gradient),
        weight=single(problem.weight),
        center=None if problem.center is None else nothing,
        unit=single(problem.unit),
        origin=origin,
    )
    found = solver(local, nothing, stop, _begun(here.solver, nothing), round)
    return found, theta + xp.astype(found.theta, theta.dtype)


def _after(here: _Here, found: LocalSolution, theta: Array, evaluation: Any, cost: Any) -> _Here:
    """Return where clients are after a pass, with what it took: half a gradient to know the predictors of all rows.

    What a solver counts for the evaluation where it begins was known.
    """
    began = 0.0 if hasattr(found.solver_state, "grad_f") else 1.0
    gradients = here.gradients + (asarray_like(found.gradients, here.gradients) - began) + 0.5 + cost
    length = here.length + (math.nan if found.length is None else to_numpy(found.length))
    xp = array_namespace(theta)
    nothing = xp.zeros(theta.shape, dtype=xp.float32, device=device(theta))
    return _Here(theta, evaluation, _begun(found.solver_state, nothing), gradients, length)


def _begun(solver_state: Any, nothing: Array) -> Any:
    """Return the state of a solver that has evaluated no displacement, if it is one that remembers evaluations."""
    if not hasattr(solver_state, "grad_f"):
        return solver_state
    values = zeros_like(nothing[(slice(None),) + (0,) * (nothing.ndim - 1)])
    return solver_state._replace(theta=nothing, f=values, grad_f=nothing)


def _in_double(
    solver: LocalSolver, problem: LocalProblem, here: _Here, stop: Stop, origin: Origin, round: Round
) -> tuple[_Here, tuple[str, ...]]:
    """Let the solver go on in double precision, with what it has learnt in single precision."""
    theta, found = here.theta, here.evaluation
    xp = array_namespace(theta)
    state = tree_map(lambda x: xp.astype(x, theta.dtype), here.solver)
    if hasattr(state, "grad_f"):
        state = state._replace(theta=theta, f=found.f, grad_f=found.grad_f)
    ends = solver(replace(problem, origin=origin), theta, stop, state, round)
    kept = tree_map(lambda x: xp.astype(x, xp.float32), ends.solver_state)
    nothing = xp.zeros(theta.shape, dtype=xp.float32, device=device(theta))
    evaluation = Evaluation(*(getattr(ends.evaluation, name) for name in Evaluation._fields))
    gradients = here.gradients + asarray_like(ends.gradients, here.gradients)
    length = here.length + (math.nan if ends.length is None else to_numpy(ends.length))
    return _Here(ends.theta, evaluation, _begun(kept, nothing), gradients, length), ends.status


def _solution(problem: LocalProblem, here: _Here, status: tuple[str, ...]) -> LocalSolution:
    lazy = isinstance(here.evaluation, EvaluationOnDemand)
    f, grad_f = (None, None) if lazy else here.evaluation[:2]
    if lazy:  # nobody has computed it: the next call does
        f, grad_f = zeros_like(problem.mu), here.theta
    return solution(
        problem,
        here.theta,
        here.evaluation,
        gradients=tuple((problem.objective.gradient_cost * here.gradients).tolist()),
        status=status,
        solver_state=State(here.solver, here.theta, f, grad_f),
        length=None if bool((here.length != here.length).any()) else asarray_like(here.length, problem.mu),
    )


def _measured(here: _Here) -> tuple[Array, Array]:
    """Return the values of the local problems and the norms of their gradients, in host memory."""
    return to_host(here.evaluation.value, norm(here.evaluation.gradient))  # pyright: ignore[reportReturnType]


def _finished(
    stop: Stop, problem: LocalProblem, round: Round, steps: int, value: Array, previous: Array, now: Array, first: Array
) -> Array:
    """Ask the rule, by numbers in double precision."""
    (mu,) = to_host(problem.mu)
    told = replace(problem, origin=None)
    return to_numpy(stop.finished(progress(told, steps, round, value, previous, mu, now, first)))


def _is_resolved(here: _Here, now: Array) -> Array:
    """Tell whose gradients double precision knows well enough, and single precision can hold the squares of."""
    (size,) = to_host(norm(here.evaluation.grad_f))
    eps, least, _ = limits(array_namespace(here.theta).zeros((), dtype=array_namespace(here.theta).float32))
    return (KNOWN * now >= NOISE * epsilon(now) * size) & (now * now >= least / eps)


def _chosen(better: Array, after: _Here, before: _Here) -> dict[str, Any]:
    """Return the points that are better, and where clients were for the others."""
    theta, evaluation = masked(better, (after.theta, after.evaluation), (before.theta, before.evaluation))
    return {"theta": theta, "evaluation": evaluation}
