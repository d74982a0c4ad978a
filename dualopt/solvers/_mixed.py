r"""Mixed precision: local solvers work in single precision, on how far they have gone; double precision checks them.

Every client has a center :math:`c_j`, at first its start, where double precision has computed :math:`f_j` and its
gradient. With the local problem :math:`F_j`, :math:`g_j = \nabla F_j(c_j)`, and the remainder :math:`D_j` of
:math:`f_j` there (`dualopt.objectives.remainder`),

.. math:: F_j(c_j + d) = F_j(c_j) + D_j(d) + \langle g_j, d\rangle + \tfrac{\text{weight}_j}2 |d|^2,

a local problem in d that solvers minimise in single precision. All its terms, and so their rounding, go to zero with
d: single precision is enough however small the gradient is, as long as it is large beside what rounding does to terms
of the size of d. That is iterative refinement (Wilkinson 1963; Higham 2002, "Accuracy and Stability of Numerical
Algorithms", chapter 12), with a new center only where an old one no longer serves: with the unit roundoff u,

.. math:: e_j = 16u\,\bigl(|g_j| + |\nabla D_j(d)| + \text{weight}_j|d|\bigr) + \text{(rounding of products)},

where 16 is what gradients are taken to be right to elsewhere, too, and the last part is
``Remainder.rounding_of_products``. A client has done what its stopping rule asks for if the rule holds with the norm of
the gradient and :math:`e_j` together. Otherwise :math:`F_j` is evaluated in double precision where it ended, which is
its new center, and the rule is asked again with that. Who does not pass goes on from there in single precision, or in
double precision if its gradient has not fallen to a half, is as small as the rounding of double precision, or the
solver has done all the steps that it may do, which are counted anew then.

**What leaves a client does not rest on any of this.** Solutions are points in double precision. Values, gradients and
dual points that methods and certificates ask for are computed at these points from rows in double precision, when they
are asked for. If :math:`e_j` were wrong, local problems would be solved less well than asked for, and rounds be more;
what a certificate says would be true.
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
from dualopt.objectives.remainder import remainder
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

__all__ = ["first_state", "solved"]

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


class _Pass(NamedTuple):
    """What came of a pass in single precision."""

    ended: _Here
    began: Origin  # values and norms of gradients where it began
    error: Origin  # bounds of the errors of those where it ended
    out_of_steps: Array  # whom the solver has left for its number of steps


def first_state(solver: LocalSolver, objective: Any) -> Any:
    """Return the state before the first call of a solver that works in single precision."""
    nothing, point = zeros_like(objective.mu), nowhere(objective)
    D = remainder(objective, zeros_like(point))
    return State(solver.initial_state(D), Center(point, nothing, point, D.no_predictors()))


def solved(
    solver: LocalSolver, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any, round: Round | None
) -> LocalSolution:
    """Solve local problems by a solver that works in single precision (``works_in_single``)."""
    round = first_round(problem.n_clients) if round is None else round
    here = _begun(problem, start, solver_state or first_state(solver, problem.objective))
    first: Array = None  # the norms of the gradients where the call began
    status, ids, double = ["converged"] * problem.n_clients, list(range(problem.n_clients)), []
    while ids:
        part, own = problem.select(ids), take_clients(here, ids)
        found = _one_pass(solver, part, own, stop, None if first is None else first[ids], round)
        first = found.began.norm if first is None else first
        now = found.ended
        right = _is_right(stop, part, round, now, first[ids], now.value + found.error.value, found.error.norm)
        if left := host_places(~right):
            now = merge_clients(now, _centered(part.select(left), take_clients(now, left)), left)
            right = right | _is_right(stop, part, round, now, first[ids], found.began.value)
        lost = ~(now.norm < math.inf)  # or no number
        here = merge_clients(here, now if not lost.any() else masked(~lost, now, own), ids)
        fell = (now.norm <= FALL * found.began.norm) | (_length(own.d) > 0)
        goes_on = ~right & ~lost & fell & ~found.out_of_steps & _is_resolved(now)
        double += [ids[k] for k in host_places(~right & ~goes_on)]
        ids = [ids[k] for k in host_places(goes_on)]
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
    if new := host_places(~stays):
        own, points = problem.objective.select(new), take_clients(start, new)
        f, grad_f = own.value_and_gradient(points)
        z = remainder(own, points).predictors()
        center = merge_clients(center, Center(points, f, grad_f, z), new)
        gradients[new] = 1.5 if z.shape[-1] else 1.0
        nothing = _nothing(points)
        d, state = merge_clients(d, nothing, new), merge_clients(state, _rested(take_clients(state, new), nothing), new)
    return _Here(d, center, state, gradients, host_zeros(n), host_zeros(n), host_zeros(n))


def _one_pass(
    solver: LocalSolver, problem: LocalProblem, here: _Here, stop: Stop, first: Array | None, round: Round
) -> _Pass:
    """Let the solver go on in single precision."""
    center, d, unit = here.center, here.d, NOISE * epsilon(here.d)
    there = problem.extend(center.theta, center.f, center.grad_f)
    D = remainder(problem.objective, center.theta, center.z)
    local = LocalProblem(
        objective=D,
        linear=_single(there.gradient),
        weight=_single(problem.weight),
        center=None if problem.center is None else _nothing(center.theta),
        unit=_single(problem.unit),
    )
    state, gradients = here.solver, here.gradients + (0.0 if center.z.shape[-1] else 0.5)
    if hasattr(state, "grad_f"):
        begun, cost = evaluate_start(local, d, state)
        state, gradients = state._replace(theta=d, f=begun.f, grad_f=begun.grad_f), gradients + cost
    else:
        begun, gradients = local.evaluate(d), gradients - 1.0  # nothing is displaced: the solver counts what is known
    (value,) = to_host(there.value)
    above, slope = _in_host(begun.value, norm(begun.gradient))
    began = Origin(value + above, slope)
    local = replace(local, origin=Origin(value, slope if first is None else first))
    found = solver(local, d, stop, state, round)
    d, ended = found.theta, found.evaluation
    above, slope, rest = _in_host(ended.value, norm(ended.gradient), ended.f)
    linear, curved, length, products = _in_host(
        norm(local.linear), norm(ended.grad_f), norm(d), D.rounding_of_products(d)
    )
    weight = problem.weight if isinstance(problem.weight, float | int) else to_numpy(problem.weight)
    of_gradient = unit * (linear + curved + weight * length) + products
    of_value = unit * (linear * length + abs(rest) + 0.5 * weight * length * length)
    moved = here.length + (math.nan if found.length is None else to_numpy(found.length))
    gradients = gradients + asarray_like(found.gradients, gradients)
    now = _Here(d, center, found.solver_state, gradients, moved, value + above, slope)
    out = asarray_like([word == "max_iter" for word in found.status], slope, dtype=array_namespace(slope).bool)
    return _Pass(now, began, Origin(of_value, of_gradient), out)


def _centered(problem: LocalProblem, here: _Here) -> _Here:
    """Return the same with centers where clients are, at the price of a gradient in double precision."""
    D = remainder(problem.objective, here.center.theta, here.center.z)
    theta = _points(here)
    center = Center(theta, *D.with_predictors(here.d))
    there = problem.extend(*center[:3])
    value, now = to_host(there.value, norm(there.gradient))
    nothing = _nothing(theta)
    rested = _rested(here.solver, nothing)
    return _Here(nothing, center, rested, here.gradients + 1.0, here.length, value, now)


def _in_double(
    solver: LocalSolver, problem: LocalProblem, here: _Here, stop: Stop, first: Array, round: Round
) -> tuple[_Here, tuple[str, ...]]:
    """Let the solver go on in double precision, with what it has learnt in single precision."""
    here = _centered(problem, here) if (_length(here.d) > 0).any() else here
    center, xp = here.center, array_namespace(here.center.theta)
    state = tree_map(lambda x: xp.astype(x, center.theta.dtype), here.solver)
    if hasattr(state, "grad_f"):
        state = state._replace(theta=center.theta, f=center.f, grad_f=center.grad_f)
    ends = solver(replace(problem, origin=Origin(0.0 * first, first)), center.theta, stop, state, round)
    z = remainder(problem.objective, ends.theta).predictors()
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
        length=None if (here.length != here.length).any() else asarray_like(here.length, problem.mu),
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


def _in_host(*numbers: Array) -> tuple[Array, ...]:
    """Return numbers of clients in host memory, in double precision."""
    return tuple(array_namespace(x).astype(x, array_namespace(x).float64) for x in to_host(*numbers))


def _length(d: Array) -> Array:
    return _in_host(norm(d))[0]


def _is_right(
    stop: Stop,
    problem: LocalProblem,
    round: Round,
    here: _Here,
    first: Array,
    previous: Array,
    error: Array | None = None,
) -> Array:
    """Ask the rule whether it holds, with errors of gradients that are not in double precision.

    Where steps are all that is asked for, gradients must be known to ``KNOWN`` of themselves to keep the centers.
    """
    if isinstance(stop, Steps):
        return first == first if error is None else error <= KNOWN * here.norm
    (mu,) = to_host(problem.mu)
    length = here.norm if error is None else here.norm + error
    return to_numpy(stop.finished(progress(problem, 1, round, here.value, previous, mu, length, first)))


def _is_resolved(here: _Here) -> Array:
    """Tell whose gradients double precision knows well enough, and single precision can hold the squares of."""
    (size,) = to_host(norm(here.center.grad_f))
    eps, least, _ = limits(here.d)
    return (KNOWN * here.norm >= NOISE * epsilon(here.norm) * size) & (here.norm * here.norm >= least / eps)
