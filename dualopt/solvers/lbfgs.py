"""L-BFGS with a preconditioner, its curvature pairs kept between rounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.arrays._checks import Typed, require_kept
from dualopt.arrays.streams import Round
from dualopt.arrays.tree import merge_clients, take_clients
from dualopt.arrays.xp import Array, array_namespace, asarray_like, device, host_places, host_zeros, reshape
from dualopt.objectives.local_problem import Evaluation, LocalProblem, client_dot, per_client
from dualopt.solvers._line_search import LineSearch, backtrack
from dualopt.solvers._loop import LocalSolution, drive, equal_rows, norm, nowhere, require_smooth, solution
from dualopt.solvers.stopping import Stop

__all__ = ["LBFGS"]

SMALL = 2**10
"""Numbers of a client's data of which a gradient takes less time than a preconditioner."""


class SolverState(NamedTuple):
    """What is kept between rounds: the pairs, and the losses where the last call ended.

    ``pairs`` holds the rows of ``S``, the newest last, and then those of ``Y``; zeros where there is no pair.
    """

    pairs: Array  # (N, 2 history, *shape)
    theta: Array  # (N, *shape)  NaN before the first call
    f: Array  # (N,)
    grad_f: Array  # (N, *shape)


class State(NamedTuple):
    """Iterates of all clients; what follows the pairs is in host memory after the first step."""

    theta: Array
    evaluation: Evaluation
    pairs: Array
    value: Array  # F_j
    norm: Array  # |grad F_j|
    gradients: Array
    stalled: Array


@dataclass(frozen=True, kw_only=True)
class LBFGS(Typed):
    r"""Limited-memory BFGS (Liu and Nocedal 1989) with backtracking.

    A pair of a step and the change of the gradient, scaled to :math:`\langle s, y\rangle = 1`, changes the
    approximation of the inverse Hessian to :math:`(I - s y^\top) H (I - y s^\top) + s s^\top`. From an initial matrix
    :math:`H_0` and all pairs in turn this is

    .. math:: H = (I - S^\top Y) H_0 (I - Y^\top S) + S^\top S,

    where the rows of ``Y`` are the ``y``, and those of ``S`` the ``s`` times :math:`I - y s^\top` of all later pairs:
    the same as the two-loop recursion, in four products instead of a loop. :math:`H_0` is the objective's
    ``preconditioner`` when it has one, and :math:`\langle s, y\rangle / \langle y, y\rangle` times the identity
    otherwise. Local problems are strongly convex, so every accepted step gives a pair with
    :math:`\langle s, y\rangle > 0`. From round to round only the linear term of a local problem changes, not its
    Hessian: the pairs of earlier rounds stay true and are kept, and so is the gradient of ``f_j`` where the last call
    ended.

    Parameters
    ----------
    history : int, optional
        Number of pairs that are kept; chosen by :func:`usual_history` when not given.
    precondition : bool, optional
        Whether to use the objective's preconditioner, if it has one; when not given, it is used unless all clients have
        less than ``SMALL`` numbers.
    max_iter : int, default 1000
        Largest number of steps.

    Raises
    ------
    ValueError
        If the loss is nonsmooth or ``history`` is not between 1 and 1000.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import LocalProblem, Quadratic
    >>> from dualopt.solvers.stopping import GradientNorm
    >>> f = Quadratic(A=np.array([[[2.0, 0.0], [0.0, 0.1]]]), b=np.array([[2.0, 1.0]]))
    >>> solver = LBFGS(precondition=False)
    >>> sol = solver(LocalProblem(objective=f), np.zeros((1, 2)), GradientNorm(tol=1e-10))
    >>> np.round(sol.theta, 8).tolist(), sol.status
    ([[1.0, 10.0]], ('converged',))
    """

    history: int | None = None
    precondition: bool | None = None
    max_iter: int = 1000

    def __post_init__(self) -> None:
        require_kept(history=self.history)

    def initial_state(self, objective: Any) -> SolverState:
        """Return no pairs and no evaluated point for every client."""
        like, point = objective.mu, nowhere(objective)
        xp, history = array_namespace(like), self.history or usual_history(objective)
        shape = (objective.n_clients, 2 * history, *objective.shape)
        return SolverState(xp.zeros(shape, dtype=like.dtype, device=device(like)), point, xp.zeros_like(like), point)

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run L-BFGS from ``start`` with the pairs of earlier calls."""
        require_smooth("lbfgs", problem, constant=False)
        last = solver_state or self.initial_state(problem.objective)
        evaluation, cost = evaluate_start(problem, start, last)
        state = State(start, evaluation, last.pairs, evaluation.value, norm(evaluation.gradient), cost, cost < 0)
        state, status = drive(
            self._step, problem, state, stop, round, max_iter=self.max_iter, measure=lambda _, s: (s.value, s.norm)
        )
        return solution(
            problem,
            state.theta,
            state.evaluation,
            solver_state=SolverState(state.pairs, state.theta, state.evaluation.f, state.evaluation.grad_f),
            gradients=state.gradients,
            status=status,
        )

    def _step(self, problem: LocalProblem, state: State) -> State:
        direction = self._direction(problem, state.pairs, state.evaluation.gradient)
        found = backtrack(problem, state.theta, state.evaluation, direction, state.stalled)
        pairs, count = _append(state.pairs, found), state.gradients + found.trials
        return State(found.theta, found.evaluation, pairs, found.value, found.norm, count, found.failed)

    def _direction(self, problem: LocalProblem, pairs: Array, gradient: Array) -> Array:
        """Return ``-H`` times the gradient."""
        m = pairs.shape[1] // 2
        s, y = pairs[:, :m, ...], pairs[:, m:, ...]
        wanted = not is_tiny(problem.objective) if self.precondition is None else self.precondition
        if wanted and "preconditioner" in problem.objective.offers:
            initial = problem.preconditioner
        else:
            initial = _scaled_identity(y[:, -1, ...])
        a = dots(s, gradient)
        r = initial(gradient - combination(a, y))
        return combination(dots(y, r) - a, s) - r


def usual_options(objective: Any) -> dict[str, Any]:
    """Return the parameters that are chosen for an objective when they are not given."""
    return {"history": usual_history(objective), "precondition": not is_tiny(objective)}


def is_tiny(objective: Any) -> bool:
    """Tell whether the largest client of the federation has less than ``SMALL`` numbers."""
    return _numbers(objective) < SMALL


def usual_history(objective: Any) -> int:
    """Return 40, 20 or 10 pairs, by the sizes of the pairs and of the data of a client; 20 where there are no rows.

    More pairs save gradients. Their numbers must be at most twice those of the data (or 1,000), because they are kept
    for every client, and at most an eighth of them (or 16,000, which stay in the cache of a CPU), because each step
    reads all of them. The data are those of the largest client of the federation: a client alone chooses the same.
    """
    pair, data = 2 * math.prod(objective.shape), _numbers(objective)
    if data == math.inf:
        return 20
    limit = min(max(2 * data, 2**10), max(data // 8, 2**14))
    return next((history for history in (40, 20) if history * pair <= limit), 10)


def _numbers(objective: Any) -> float:
    """Return how many numbers the features of the largest client of the federation are; infinite without rows."""
    rows = getattr(objective, "rows", None)  # objectives that forward members to another one have its rows
    return math.inf if rows is None else rows.max_rows * rows.n_features


def evaluate_start(problem: LocalProblem, start: Array, last: SolverState) -> tuple[Evaluation, Array]:
    """Return the evaluation at ``start`` and the gradients that it took, client by client.

    A client that starts where it ended last time pays nothing: only the linear and proximal terms are new.
    """
    if start is last.theta:
        return problem.extend(start, last.f, last.grad_f), host_zeros(problem.n_clients)
    moved = ~equal_rows(last.theta, start)
    f, grad_f = last.f, last.grad_f
    if moved.any():
        new = host_places(moved)
        found = problem.objective.select(new).value_and_gradient(take_clients(start, new))
        f, grad_f = merge_clients((f, grad_f), found, new)
    return problem.extend(start, f, grad_f), host_zeros(problem.n_clients) + moved


def _scaled_identity(y: Array) -> Callable[[Array], Array]:
    """Return ``v -> <s, y>/<y, y> v`` with the newest pair, which has ``<s, y> = 1``; the identity without one."""
    square = client_dot(y, y)
    scale = per_client(1.0 / array_namespace(y).where(square > 0, square, 1.0), y)
    return lambda v: scale * v


def _append(pairs: Array, found: LineSearch) -> Array:
    """Append a pair, ``S <- S (I - y s')`` and ``s`` below; zeros for clients whose step has no positive curvature."""
    xp, m, curvature = array_namespace(pairs), pairs.shape[1] // 2, found.curvature
    if not found.curved.all():
        curvature = xp.where(asarray_like(found.curved, curvature, dtype=xp.bool), curvature, math.inf)
    scale = per_client(curvature**-0.5, found.step)
    s, y, old = scale * found.step, scale * found.change, pairs[:, 1:m, ...]
    new = -dots(old, y)[(...,) + (None,) * (s.ndim - 1)] * s[:, None, ...]
    new += old
    return xp.concat([new, s[:, None, ...], pairs[:, m + 1 :, ...], y[:, None, ...]], axis=1)


def dots(rows: Array, v: Array) -> Array:
    """Return the inner products of the rows ``(N, m, *shape)`` of each client with ``v_j``, shape ``(N, m)``."""
    (n, m), size = rows.shape[:2], math.prod(v.shape[1:])
    return (reshape(rows, (n, m, size)) @ reshape(v, (n, size, 1)))[..., 0]


def combination(factors: Array, rows: Array) -> Array:
    """Return the sums of the rows ``(N, m, *shape)`` of each client times its factors ``(N, m)``."""
    (n, m), shape = rows.shape[:2], rows.shape[2:]
    flat = reshape(rows, (n, m, math.prod(shape)))
    return reshape(factors[:, None, :] @ flat, (n, *shape))
