"""The loop that all iterative local solvers share, and the solution they return."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from dualopt.arrays.streams import Round, first_round
from dualopt.arrays.tree import join_clients, take_clients, tree_map
from dualopt.arrays.xp import Array, array_namespace, asarray_like, broadcast, epsilon, host_places, is_host, to_numpy
from dualopt.objectives.local_problem import LocalProblem, client_dot, gap_bound, per_client
from dualopt.solvers.stopping import Progress, Steps, Stop

__all__ = [
    "LocalSolution",
    "LocalSolver",
    "assemble",
    "drive",
    "equal_rows",
    "evaluated",
    "found_at",
    "is_smooth",
    "masked",
    "norm",
    "nowhere",
    "progress",
    "require_sampling",
    "require_smooth",
    "sampled_solution",
    "solution",
    "to_host",
    "works_in_single",
]


# Long enough for the oscillations of an accelerated method, short beside the hundreds of steps that a tolerance below
# rounding would otherwise cost in every round. Where the gradient itself is rounding, no oscillation is left.
PATIENCE = 30
PATIENCE_WITH_NOISE = 6
NOISE = 16.0
"""Units in the last place to which gradients are taken to be right, as by ``Objective.rounding``."""
TERMS = 32.0
"""Those to which gaps are that are sums over rows, of the terms of the value: the certificate adds as much."""


class LocalSolution(NamedTuple):
    """What a local solver returns; arrays have the client axis first.

    ``evaluation.grad_f`` is the gradient of ``f_j`` at ``theta_j``; from a dual solver it is a subgradient up to
    ``excess``, ``f_j(x) >= f_j(theta_j) + <grad_f_j, x - theta_j> + mu_j/2 |x - theta_j|^2 - excess_j`` for all ``x``.
    Certificates are made from it.
    """

    theta: Array  # (N, *shape)  the approximate minimisers
    evaluation: Any  # the Evaluation there; None from solvers that see samples only
    bound: Array | None  # (N,)  upper bound of F_j(theta_j) - min F_j; None where the gradient gives it
    length: Any  # the sum of the steps, (N,) or one number; None from solvers whose steps have no length
    solver_state: Any  # what the solver wants back at its next call
    gradients: tuple[float, ...]  # local gradients charged; a Hessian product counts 1, a value alone 0.5
    status: tuple[str, ...]  # "converged", "max_iter" or "stalled" (no decrease left at machine precision)
    excess: Array | None = None  # (N,)  None where grad_f is exact
    charged: bool = True  # whether gradients counts the one of evaluation; if not, who needs it pays
    mu: Array | None = None  # (N,)  strong convexity constants of the F_j

    @property
    def gap(self) -> Array:
        """An upper bound of ``F_j(theta_j) - min F_j``, shape ``(N,)``; by the gradient computed when asked for."""
        if self.bound is not None:
            return self.bound
        if self.evaluation is None or self.mu is None:
            return math.inf * array_namespace(self.theta).ones_like(
                self.theta[(slice(None),) + (0,) * (self.theta.ndim - 1)]
            )
        return gap_bound(client_dot(self.evaluation.gradient, self.evaluation.gradient), self.mu)


class LocalSolver(Protocol):
    """A method for the local problem; pure: what it keeps between rounds goes in and out as ``solver_state``."""

    def initial_state(self, objective: Any) -> Any:
        """Return the state before the first call, client axis first; ``()`` if there is none.

        A solver refuses here, before the first round, an objective that it cannot solve.
        """
        ...

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Solve the local problem of every client from ``start`` until ``stop`` says so.

        Without a ``solver_state`` it is the first call; without a ``round``, that of :func:`first_round`.
        """
        ...


def nowhere(objective: Any) -> Array:
    """Return a point for each client that equals no point, NaN, shape ``(N, *shape)``."""
    point = objective.zeros() + math.nan
    return broadcast(point, (objective.n_clients, *objective.shape))


def equal_rows(x: Array, y: Array) -> Array:
    """Tell of which clients two points are equal, shape ``(N,)``, in host memory; NaN equals nothing."""
    return to_numpy(array_namespace(x, y).all(x == y, axis=tuple(range(1, x.ndim))))


def is_smooth(objective: Any) -> bool:
    """Tell whether gradient methods are meant for it.

    ``L`` is finite, or ``mu = -inf`` says that nothing is known, or there are Hessians although no ``L`` bounds them,
    as for the Poisson loss.
    """
    xp = array_namespace(objective.L)
    if math.isfinite(float(xp.max(objective.L))) or "hessian" in objective.offers:
        return True
    return float(xp.max(objective.mu)) == -math.inf


def works_in_single(solver: LocalSolver, objective: Any) -> bool:
    """Tell whether a solver works in single precision on the local problems of an objective.

    The objective must offer remainders, and the solver need no more than values, gradients, products with Hessians and
    preconditioners: ``single`` says so.
    """
    return getattr(solver, "single", False) and "remainder" in objective.offers


def require_smooth(name: str, problem: LocalProblem, *, constant: bool = True) -> None:
    """Refuse in one sentence a nonsmooth local problem, and one with no known ``L`` if a ``constant`` is needed."""
    if not is_smooth(problem.objective):
        raise ValueError(
            f"solver {name!r} needs a smooth loss; "
            "use solver 'interior-point' or 'dual-coordinate' for nonsmooth losses of a linear model."
        )
    if constant and not math.isfinite(float(array_namespace(problem.L).max(problem.L))):
        raise ValueError(
            f"solver {name!r} needs a smoothness constant, which this objective cannot give; "
            "use solver 'lbfgs', or 'gradient' or 'sgd' with a step."
        )


def require_sampling(name: str, objective: Any) -> None:
    """Refuse an objective without samples in one sentence."""
    if "samples" not in objective.offers:
        raise ValueError(f"solver {name!r} needs an objective with draw and sample_gradient, such as a linear model.")


def drive(
    step: Callable[[LocalProblem, Any], Any],
    problem: LocalProblem,
    state: Any,
    stop: Stop,
    round: Round | None,
    *,
    max_iter: int,
    measure: Callable[[LocalProblem, Any], tuple[Array, ...]] | None = None,
    together: bool = False,
) -> tuple[Any, tuple[str, ...]]:
    """Repeat ``step`` on the clients that are not finished.

    ``state`` is a NamedTuple with at least ``theta``, its ``evaluation`` and the boolean ``stalled``, all with the
    client axis first. Solvers without gradients give their own ``measure(problem, state)``, the values and the norms of
    gradients that would have the same gaps, and, where the values are sums of larger terms, the sizes of these; so do
    solvers that have measured both already.

    A finished client never changes again, so that its result is the same whoever else is in the call. In host memory it
    is put aside, and the others go on without it; on another device its rows are kept by a mask, because to gather the
    rows of the others would launch more kernels than it saves, and it is marked as ``stalled`` for ``step``. So it is
    in host memory, too, where small clients are kept ``together`` until half of them are finished. Rules are
    tested on the host everywhere: to transfer two numbers per client takes less time than to launch the comparisons.

    A client is stalled when its solver says so; when its gap is no larger than the rounding of the sum over rows that
    it is, where the solver gives sizes; when at the start its gradient is no larger than the rounding of the gradient
    of ``f_j``, as in rounds after convergence; or after ``PATIENCE`` steps in a row that changed its value by rounding
    only and reached no smaller norm, ``PATIENCE_WITH_NOISE`` with such a gradient. A fixed number of steps is carried
    out whatever happens; on another device than the host's it is not interrupted to look for stalls.
    """
    n, host = problem.n_clients, is_host(problem.mu)
    round = first_round(n) if round is None else round
    measure = measure or (lambda problem, state: (state.evaluation.value, norm(state.evaluation.gradient)))
    value, now, *sizes, mu, squares = to_host(*measure(problem, state), problem.mu, _squares(problem, state))
    xp, first_norm = array_namespace(now), now
    previous = best = xp.full_like(now, math.inf)
    level_steps, running = xp.zeros_like(now), xp.ones_like(now, dtype=xp.bool)
    clients, status = list(range(n)), ["max_iter"] * n  # clients[i] is the one in row i of the state
    finished: list[tuple[list[int], Any]] = []
    for steps in range(max_iter + 1):
        if isinstance(stop, Steps):
            last = steps >= stop.steps
            stalled = to_numpy(state.stalled) if host or last else xp.zeros_like(running)
            done = xp.full_like(running, last) & (host | ~stalled)
        else:
            done = to_numpy(stop.finished(progress(problem, steps, round, value, previous, mu, now, first_norm)))
            stalled = to_numpy(state.stalled)
            for size in sizes:
                stalled = stalled | (now * now <= 2.0 * mu * TERMS * epsilon(now) * size)
            if steps == 0:
                stalled = stalled | (now < NOISE * epsilon(now) * xp.sqrt(squares))
            elif (level := xp.abs(previous - value) <= 4.0 * epsilon(now) * xp.abs([value, *sizes][-1])).any():
                (squares,) = to_host(_squares(problem, state))
                noisy = now < NOISE * epsilon(now) * xp.sqrt(squares)
                weight = xp.where(noisy, PATIENCE / PATIENCE_WITH_NOISE, xp.where(now >= best, 1.0, 0.0))
                level_steps = xp.where(level & (weight > 0), level_steps + weight, 0.0)
                stalled = stalled | (level_steps >= PATIENCE)
            else:
                level_steps = xp.zeros_like(now)
            best = xp.minimum(best, now)
        over = running & (done | stalled)
        for row in host_places(over):
            status[clients[row]] = "converged" if done[row] else "stalled"
        running = running & ~over
        if steps == max_iter or not running.any():
            break
        if over.any() and (not host or (together and 2 * int(running.sum()) > n)):
            rest = array_namespace(state.stalled).ones_like(state.stalled)
            state = state._replace(stalled=masked(running, state.stalled, rest))
        elif over.any():
            leave, keep = host_places(~running), host_places(running)
            finished.append(([clients[row] for row in leave], take_clients(state, leave)))
            clients, n = [clients[row] for row in keep], len(keep)
            state, value, first_norm, best, level_steps, mu, running = take_clients(
                (state, value, first_norm, best, level_steps, mu, running), keep
            )
            problem = problem.select(keep)
        previous = value
        after = step(problem, state)
        state = after if running.all() else masked(running, after, state)
        if not isinstance(stop, Steps):
            value, now, *sizes = to_host(*measure(problem, state))
    return assemble([*finished, (clients, state)]), tuple(status)


def progress(problem: LocalProblem, steps: int, round: Round, *numbers: Array) -> Progress:
    """Return what rules are told, in the units of the method."""
    if problem.origin is not None:
        value, previous, mu, now, _ = numbers
        numbers = value + problem.origin.value, previous + problem.origin.value, mu, now, problem.origin.norm
    if problem.unit is not None:
        (unit,) = to_host(problem.unit)
        numbers = tuple(x / unit for x in numbers)
    return Progress(steps, round, *numbers)


def _squares(problem: LocalProblem, state: Any) -> Array:
    """Return ``|grad f_j|^2``, shape ``(N,)``; 0 for solvers without gradients."""
    evaluation = getattr(state, "evaluation", None)
    if evaluation is None:
        return array_namespace(problem.mu).zeros_like(problem.mu)
    return client_dot(evaluation.grad_f, evaluation.grad_f)


def masked(chosen: Array, new: Any, old: Any) -> Any:
    """Return ``new`` for the chosen clients and ``old`` for the others.

    ``chosen`` is in host memory; leaves may be there too.
    """
    masks: dict[Any, Array] = {}

    def choose(after: Array, before: Array) -> Array:
        if after is before:
            return after
        xp = array_namespace(after)
        if xp not in masks:
            masks[xp] = asarray_like(chosen, after, dtype=xp.bool)
        return xp.where(per_client(masks[xp], after), after, before)

    return tree_map(choose, new, old)


def to_host(*numbers: Array) -> tuple[Array, ...]:
    """Return arrays of shape ``(N,)`` as NumPy arrays, in one transfer from another device."""
    if is_host(numbers[0]):
        return tuple(map(to_numpy, numbers))
    return tuple(to_numpy(array_namespace(*numbers).stack(numbers)))


def assemble(parts: list[tuple[list[int], Any]]) -> Any:
    """Put the states of groups of clients together again, in the order of the clients."""
    if len(parts) == 1:
        return parts[0][1]
    groups, states = zip(*parts, strict=True)
    return join_clients(groups, states)


def solution(
    problem: LocalProblem,
    theta: Array,
    evaluation: Any,
    *,
    gradients: Array | tuple[float, ...],
    status: tuple[str, ...],
    solver_state: Any = (),
    length: Array | float | None = None,
    charged: bool = True,
) -> LocalSolution:
    """Complete a solution at which the local problems were evaluated; ``gradients`` has shape ``(N,)``."""
    if not isinstance(gradients, tuple):
        gradients = tuple((problem.objective.gradient_cost * to_numpy(gradients)).tolist())
    return LocalSolution(theta, evaluation, None, length, solver_state, gradients, status, None, charged, problem.mu)


def evaluated(problem: LocalProblem, theta: Array) -> LocalSolution:
    """Return the solution that a point is, at the price of its evaluation."""
    return found_at(problem, theta, problem.evaluate(theta))


def found_at(problem: LocalProblem, theta: Array, evaluation: Any) -> LocalSolution:
    """Return the solution that a point is, with its evaluation, at the price of one gradient."""
    f, n = problem.objective, theta.shape[0]
    return LocalSolution(theta, evaluation, None, None, (), (f.gradient_cost,) * n, ("converged",) * n, mu=problem.mu)


def sampled_solution(
    problem: LocalProblem, theta: Array, *, rows: list[int], length: Array | float | None = None, solver_state: Any = ()
) -> LocalSolution:
    """Complete a solution of a solver that sees samples only: nothing is known about its accuracy.

    The gradients charged are the numbers of ``rows`` that each client used, in units of the rows that it has.
    """
    xp = array_namespace(theta)
    finite = to_numpy(xp.all(xp.isfinite(theta), axis=tuple(range(1, theta.ndim))))
    sizes = problem.objective.sizes  # pyright: ignore[reportAttributeAccessIssue]
    return LocalSolution(
        theta=theta,
        evaluation=None,
        bound=None,
        length=length,
        solver_state=solver_state,
        gradients=tuple(problem.objective.gradient_cost * used / m for used, m in zip(rows, sizes, strict=True)),
        status=tuple("converged" if good else "stalled" for good in finite),
    )


def norm(x: Array) -> Array:
    """Return ``|x_j|``, shape ``(N,)``."""
    return array_namespace(x).sqrt(client_dot(x, x))
