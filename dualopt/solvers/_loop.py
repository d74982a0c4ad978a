"""The loop that all iterative local solvers share, and the solution they return."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from dualopt.objectives.local_problem import Evaluation, LocalProblem, client_dot, gap_bound
from dualopt.participation import Round, first_round
from dualopt.stopping import Progress, Steps, Stop
from dualopt.tree import take_clients, tree_map
from dualopt.xp import Array, array_namespace, broadcast, epsilon, to_numpy

__all__ = [
    "LocalSolution",
    "LocalSolver",
    "assemble",
    "drive",
    "is_smooth",
    "norm",
    "nowhere",
    "require_sampling",
    "require_smooth",
    "sampled_solution",
    "solution",
]


# Long enough for the oscillations of an accelerated method, short beside the hundreds of steps that a tolerance below
# rounding would otherwise cost in every round.
PATIENCE = 30


class LocalSolution(NamedTuple):
    """What a local solver returns; arrays have the client axis first.

    ``evaluation.grad_f`` is the gradient of ``f_j`` at ``theta_j``; from a dual solver it is a subgradient up to
    ``excess``, ``f_j(x) >= f_j(theta_j) + <grad_f_j, x - theta_j> + mu_j/2 |x - theta_j|^2 - excess_j`` for all ``x``.
    Certificates are made from it.
    """

    theta: Array  # (N, *shape)  the approximate minimisers
    evaluation: Any  # the Evaluation there; None from solvers that see samples only
    gap: Array  # (N,)  upper bound of F_j(theta_j) - min F_j
    length: Any  # the sum of the steps, (N,) or one number; None from solvers whose steps have no length
    solver_state: Any  # what the solver wants back at its next call
    gradients: tuple[float, ...]  # local gradients charged; a Hessian product counts 1, a value alone 0.5
    status: tuple[str, ...]  # "converged", "max_iter" or "stalled" (no decrease left at machine precision)
    excess: Array | None = None  # (N,)  None where grad_f is exact
    charged: bool = True  # whether gradients counts the one of evaluation; if not, who needs it pays


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
    measure: Callable[[LocalProblem, Any], tuple[Array, Array]] | None = None,
) -> tuple[Any, tuple[str, ...]]:
    """Repeat ``step`` on the clients that are not finished.

    ``state`` is a NamedTuple with at least ``theta``, its ``evaluation`` and the boolean ``stalled``, all with the
    client axis first. Finished clients are put aside and never touched again, so that the result of a client is the
    same whoever else is in the call. Solvers without gradients give their own ``measure(problem, state)``, the values
    and the norms of gradients that would have the same gaps.

    A client is stalled when its solver says so, or after ``PATIENCE`` steps in a row that changed its value by rounding
    only and reached no smaller norm. A fixed number of steps is carried out whatever happens.
    """
    n = problem.n_clients
    round = first_round(n) if round is None else round
    fixed = isinstance(stop, Steps)  # then nothing is measured that nobody asks for
    measure = measure or (lambda problem, state: (state.evaluation.value, norm(state.evaluation.gradient)))
    value, first_norm = measure(problem, state)
    now, xp = first_norm, array_namespace(first_norm)
    previous = best = math.inf * xp.ones_like(first_norm)
    level_steps = xp.zeros_like(first_norm)
    status = ["max_iter"] * n
    running = list(range(n))
    finished: list[tuple[list[int], Any]] = []
    for steps in range(max_iter + 1):
        if isinstance(stop, Steps):
            done, stalled = [steps >= stop.steps] * len(running), to_numpy(state.stalled)
        else:
            progress = Progress(
                steps=steps,
                round=round,
                value=value,
                previous=previous,
                gap=gap_bound(now * now, problem.mu),
                gradient_norm=now,
                first_gradient_norm=first_norm,
            )
            level = xp.abs(previous - value) <= 4.0 * epsilon(now) * xp.abs(value)
            level_steps = xp.where(level & (now >= best), level_steps + 1.0, xp.zeros_like(level_steps))
            best = xp.minimum(best, now)
            done, stalled = to_numpy(stop.finished(progress)), to_numpy(state.stalled | (level_steps >= PATIENCE))
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
            state, value, first_norm, best, level_steps = take_clients(
                (state, value, first_norm, best, level_steps), keep
            )
            problem = problem.select(keep)
        previous = value
        state = step(problem, state)
        if not fixed:
            value, now = measure(problem, state)
    return assemble([*finished, (running, state)]), tuple(status)


def assemble(parts: list[tuple[list[int], Any]]) -> Any:
    """Put the states of groups of clients together again, in the order of the clients."""
    clients = [client for group, _ in parts for client in group]
    if len(parts) == 1:
        return parts[0][1]
    together = tree_map(lambda *rows: array_namespace(*rows).concat(list(rows), axis=0), *(s for _, s in parts))
    return take_clients(together, sorted(range(len(clients)), key=clients.__getitem__))


def solution(
    problem: LocalProblem,
    theta: Array,
    evaluation: Evaluation,
    *,
    gradients: Array,
    status: tuple[str, ...],
    solver_state: Any = (),
    length: Array | float | None = None,
    charged: bool = True,
) -> LocalSolution:
    """Complete a solution at which the local problems were evaluated; ``gradients`` has shape ``(N,)``."""
    return LocalSolution(
        theta=theta,
        evaluation=evaluation,
        gap=gap_bound(client_dot(evaluation.gradient, evaluation.gradient), problem.mu),
        length=length,
        solver_state=solver_state,
        gradients=tuple(problem.objective.gradient_cost * float(count) for count in to_numpy(gradients)),
        status=status,
        charged=charged,
    )


def sampled_solution(
    problem: LocalProblem, theta: Array, *, rows: list[int], length: Array | float | None = None, solver_state: Any = ()
) -> LocalSolution:
    """Complete a solution of a solver that sees samples only: nothing is known about its accuracy.

    The gradients charged are the numbers of ``rows`` that each client used, in units of the rows that it has.
    """
    xp = array_namespace(theta)
    flat = xp.reshape(theta, (theta.shape[0], -1))
    sizes = problem.objective.sizes  # pyright: ignore[reportAttributeAccessIssue]
    return LocalSolution(
        theta=theta,
        evaluation=None,
        gap=math.inf * xp.ones_like(flat[:, 0]),
        length=length,
        solver_state=solver_state,
        gradients=tuple(problem.objective.gradient_cost * used / m for used, m in zip(rows, sizes, strict=True)),
        status=tuple("converged" if good else "stalled" for good in to_numpy(xp.all(xp.isfinite(flat), axis=-1))),
    )


def norm(x: Array) -> Array:
    """Return ``|x_j|``, shape ``(N,)``."""
    return array_namespace(x).sqrt(client_dot(x, x))
