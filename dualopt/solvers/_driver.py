"""The loop that all iterative local solvers share, and the solution they return."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from dualopt.objectives.local import LocalProblem, client_dot, gap_bound, per_client
from dualopt.participation import Round
from dualopt.stopping import Progress, Steps, Stop
from dualopt.tree import merge_clients, take_clients, tree_map
from dualopt.xp import Array, array_namespace, epsilon, to_numpy

__all__ = [
    "Known",
    "LocalSolution",
    "LocalSolver",
    "assemble",
    "drive",
    "evaluate_start",
    "gradient_solution",
    "is_smooth",
    "know_nothing",
    "remember",
    "require_sampling",
    "require_smooth",
    "sampled_solution",
]


# Long enough for the oscillations of an accelerated method, short beside the hundreds of steps that a tolerance below
# rounding would otherwise cost in every round.
PATIENCE = 30


class LocalSolution(NamedTuple):
    """What a local solver returns; arrays have the client axis first.

    The dual information makes certificates free: with ``g_j = f_j - (mu_j/2)|.|^2``, ``dual`` is a point of the domain
    of
    ``g_j*`` and ``conjugate`` an upper bound of ``g_j*`` there (exact for gradient-based solvers).
    """

    theta: Array  # (N, *shape)  the approximate minimisers
    residual: (
        Array  # (N, *shape)  theta - residual/nu is the dual-corrected point: grad F_j(theta), or 0 from a dual solver
    )
    dual: Array  # (N, *shape)  xi_j
    conjugate: Array  # (N,)  g_j*(xi_j), or an upper bound of it
    gap: Array  # (N,)  upper bound of F_j(theta_j) - min F_j
    memory: Any  # what the solver wants back at its next call
    gradients: tuple[float, ...]  # local gradients computed; a Hessian product counts 1, a value alone 0.5
    status: tuple[str, ...]  # "converged", "max_iter" or "stalled" (no decrease left at machine precision)


class LocalSolver(Protocol):
    """A method for the local problem; pure: what it remembers goes in and out as ``memory``."""

    def memory(self, objective: Any) -> Any:
        """Return the memory before the first call, client axis first; ``()`` if there is none."""
        ...

    def __call__(self, problem: LocalProblem, start: Array, stop: Stop, memory: Any, round: Round) -> LocalSolution:
        """Solve the local problem of every client from ``start`` until ``stop`` says so."""
        ...


class Known(NamedTuple):
    """Where a solver ended, and ``f_j`` there without the added terms, which change every round."""

    theta: Array  # (N, *shape)
    value: Array  # (N,)
    gradient: Array  # (N, *shape)


def know_nothing(objective: Any) -> Known:
    """Return a ``Known`` that equals no point, client axis first."""
    nowhere = objective.zeros() + math.nan
    xp = array_namespace(nowhere)
    theta = xp.broadcast_to(nowhere, (objective.n_clients, *objective.shape))
    return Known(theta, xp.reshape(theta, (objective.n_clients, -1))[:, 0], theta)


def remember(problem: LocalProblem, theta: Array, value: Array, gradient: Array) -> Known:
    """Keep ``f_j`` and its gradient at ``theta``, from the value and gradient of the local problem."""
    extra_value, extra_gradient = problem.added(theta)
    return Known(theta, value - extra_value, gradient - extra_gradient)


def evaluate_start(problem: LocalProblem, start: Array, known: Known) -> tuple[Array, Array, Array]:
    """Return value and gradient at ``start`` and the gradients that it took, client by client.

    A client that starts where it ended last time pays nothing: only the added terms are new.
    """
    xp = array_namespace(start)
    same = to_numpy(xp.all(xp.reshape(known.theta == start, (start.shape[0], -1)), axis=-1))
    new = [j for j, is_same in enumerate(same) if not is_same]
    value, gradient = known.value, known.gradient
    cost = xp.zeros_like(value)
    if new:
        found = problem.objective.select(new).value_and_gradient(take_clients(start, new))
        one = xp.ones_like(found[0])
        value, gradient, cost = merge_clients((value, gradient, cost), (*found, one), new)
    extra_value, extra_gradient = problem.added(start)
    return value + extra_value, gradient + extra_gradient, cost


def is_smooth(objective: Any) -> bool:
    """Tell whether gradient methods are meant for it: ``L`` is finite, or ``mu = -inf`` says that nothing is known."""
    xp = array_namespace(objective.L)
    return math.isfinite(float(xp.max(objective.L))) or float(xp.max(objective.mu)) == -math.inf


def require_smooth(name: str, problem: LocalProblem, *, constant: bool = True) -> None:
    """Refuse in one sentence a nonsmooth local problem, and one with no known ``L`` if a ``constant`` is needed."""
    if not is_smooth(problem.objective):
        raise ValueError(
            f"solver {name!r} needs a smooth loss; use solver 'dual-coordinate' for nonsmooth losses of a linear model."
        )
    if constant and not math.isfinite(float(array_namespace(problem.L).max(problem.L))):
        raise ValueError(
            f"solver {name!r} needs a smoothness constant, which this objective cannot give; "
            "use solver 'lbfgs', or 'gradient' or 'sgd' with a step."
        )


def require_sampling(name: str, objective: Any) -> None:
    """Refuse an objective without samples in one sentence."""
    if not hasattr(objective, "draw") or not hasattr(objective, "sample_gradient"):
        raise ValueError(f"solver {name!r} needs an objective with draw and sample_gradient, such as a linear model.")


def drive(
    step: Callable[[LocalProblem, Any], Any],
    problem: LocalProblem,
    state: Any,
    stop: Stop,
    round: Round,
    *,
    max_iter: int,
    norm: Callable[[LocalProblem, Any], Array] | None = None,
) -> tuple[Any, tuple[str, ...]]:
    """Repeat ``step`` on the clients that are not finished.

    ``state`` is a NamedTuple with at least ``theta``, ``value``, ``gradient`` and the boolean ``stalled``, all with
    the client axis first. Finished clients are put aside and never touched again, so that the result of a
    client is the same whoever else is in the call. Solvers without a gradient give their own ``norm(problem,
    state)``, the norm of a gradient that would have the same gap.

    A client is stalled when its solver says so, or after ``PATIENCE`` steps in a row that changed its value by rounding
    only and reached no smaller norm. A fixed number of steps is carried out whatever happens.
    """
    n = problem.n_clients
    patience = math.inf if isinstance(stop, Steps) else PATIENCE
    norm = norm or (lambda problem, state: _norm(state.gradient))
    first_norm = norm(problem, state)
    xp = array_namespace(first_norm)
    previous = best = math.inf * xp.ones_like(first_norm)
    idle = xp.zeros_like(first_norm)
    status = ["max_iter"] * n
    running = list(range(n))
    finished: list[tuple[list[int], Any]] = []
    for steps in range(max_iter + 1):
        now = norm(problem, state)
        progress = Progress(
            steps=steps,
            round=round,
            value=state.value,
            previous=previous,
            gap=gap_bound(now * now, problem.mu),
            gradient_norm=now,
            first_gradient_norm=first_norm,
        )
        level = xp.abs(previous - state.value) <= 4.0 * epsilon(now) * xp.abs(state.value)
        idle = xp.where(level & (now >= best), idle + 1.0, xp.zeros_like(idle))
        best = xp.minimum(best, now)
        done, stalled = to_numpy(stop.finished(progress)), to_numpy(state.stalled | (idle >= patience))
        over = [bool(a or b) for a, b in zip(done, stalled, strict=True)]
        for position, client in enumerate(running):
            if over[position]:
                status[client] = "converged" if done[position] else "stalled"
        if steps == max_iter or all(over):
            break
        if any(over):
            leave = [position for position in range(len(running)) if over[position]]
            keep = [position for position in range(len(running)) if not over[position]]
            finished.append(([running[position] for position in leave], take_clients(state, leave)))
            running = [running[position] for position in keep]
            state, first_norm, best, idle = take_clients((state, first_norm, best, idle), keep)
            problem = problem.select(keep)
        previous = state.value
        state = step(problem, state)
    return assemble([*finished, (running, state)]), tuple(status)


def assemble(parts: list[tuple[list[int], Any]]) -> Any:
    """Put the states of groups of clients together again, in the order of the clients."""
    clients = [client for group, _ in parts for client in group]
    if len(parts) == 1:
        return parts[0][1]
    together = tree_map(lambda *rows: array_namespace(*rows).concat(list(rows), axis=0), *(s for _, s in parts))
    return take_clients(together, sorted(range(len(clients)), key=clients.__getitem__))


def gradient_solution(
    problem: LocalProblem,
    theta: Array,
    value: Array,
    gradient: Array,
    *,
    memory: Any = (),
    gradients: Any,
    status: tuple[str, ...],
) -> LocalSolution:
    """Complete a solution whose local value and gradient are known.

    The dual point is ``xi_j = grad g_j(theta_j)``, where ``g_j*(xi_j) = <xi_j, theta_j> - g_j(theta_j)``. Where no
    ``mu_j`` makes ``g_j`` convex, nothing is known of a conjugate, and ``xi_j = grad f_j(theta_j)``.

    ``f_j`` and its gradient are what remains when the added terms are subtracted again. Those may be far larger, so the
    conjugate is an upper bound with room for their rounding: that of the terms of the value, and that of ``xi_j``,
    ``8 eps S`` with ``S`` the terms of the gradient, which moves the inner products of certificates by at most
    ``8 eps (S^2/(2 mu) + mu |x|^2/2)`` (the second half is the certificate's).
    """
    xp = array_namespace(theta)
    known = problem.objective.mu > -math.inf
    mu = xp.where(known, problem.objective.mu, xp.zeros_like(value))
    linear = problem.linear_term()
    cost = value - client_dot(linear, theta) - 0.5 * problem.weight * client_dot(theta, theta)  # f_j + constant
    if problem.anchor is not None:
        anchor = xp.broadcast_to(problem.anchor, theta.shape)
        cost = cost - 0.5 * problem.weight * client_dot(anchor, anchor)
    dual = gradient - linear - per_client(problem.weight, theta) * theta - per_client(mu, theta) * theta
    product, square = client_dot(dual, theta), client_dot(theta, theta)
    conjugate = product - cost + 0.5 * mu * square + _rounding(problem, theta, value, gradient, linear, mu)
    return LocalSolution(
        theta=theta,
        residual=gradient,
        dual=dual,
        conjugate=xp.where(known, conjugate, math.inf * xp.ones_like(conjugate)),
        gap=gap_bound(client_dot(gradient, gradient), problem.mu),
        memory=memory,
        gradients=tuple(_price(problem) * float(count) for count in to_numpy(gradients)),
        status=status,
    )


def _rounding(problem: LocalProblem, theta: Array, value: Array, gradient: Array, linear: Array, mu: Array) -> Array:
    """Return what rounding can make of the conjugates, shape ``(N,)``: see ``gradient_solution``."""
    xp = array_namespace(theta)
    length, pull = _norm(theta), _norm(gradient) + _norm(linear)
    slope = pull + (problem.weight + xp.abs(mu)) * length
    terms = xp.abs(value) + slope * length
    if problem.anchor is not None:
        anchor = xp.broadcast_to(problem.anchor, theta.shape)
        terms = terms + 0.5 * problem.weight * client_dot(anchor, anchor)
    convex = mu > 0
    spread = xp.where(convex, slope * slope / (2.0 * xp.where(convex, mu, xp.ones_like(mu))), xp.zeros_like(mu))
    return epsilon(theta) * (32.0 * terms + 8.0 * spread)


def sampled_solution(problem: LocalProblem, theta: Array, *, rows: list[int], memory: Any = ()) -> LocalSolution:
    """Complete a solution of a solver that sees samples only: nothing is known about its accuracy.

    The work is the number of ``rows`` that each client used, in units of the rows that it has.
    """
    xp = array_namespace(theta)
    unknown = know_nothing(problem.objective)
    infinite = math.inf * xp.ones_like(unknown.value)
    sizes = problem.objective.sizes  # pyright: ignore[reportAttributeAccessIssue]
    finite = to_numpy(xp.all(xp.isfinite(xp.reshape(theta, (theta.shape[0], -1))), axis=-1))
    return LocalSolution(
        theta=theta,
        residual=unknown.gradient,
        dual=unknown.gradient,
        conjugate=infinite,
        gap=infinite,
        memory=memory,
        gradients=tuple(_price(problem) * used / m for used, m in zip(rows, sizes, strict=True)),
        status=tuple("converged" if good else "stalled" for good in finite),
    )


def _price(problem: LocalProblem) -> float:
    """Return how many gradients of the clients a gradient of the objective costs."""
    return getattr(problem.objective, "gradient_cost", 1.0)


def _norm(x: Array) -> Array:
    return array_namespace(x).sqrt(client_dot(x, x))
