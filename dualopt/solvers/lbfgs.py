"""L-BFGS with a preconditioner, its curvature pairs kept between rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.objectives.local_problem import Evaluation, LocalProblem, client_dot, per_client
from dualopt.participation import Round
from dualopt.solvers._line_search import backtrack
from dualopt.solvers._loop import LocalSolution, drive, nowhere, require_smooth, solution
from dualopt.stopping import Stop
from dualopt.tree import merge_clients, take_clients
from dualopt.xp import Array, array_namespace, broadcast, to_numpy

__all__ = ["LBFGS"]


class Pairs(NamedTuple):
    """Curvature pairs, one entry per place, the newest last; ``inverse = 0`` takes a pair out.

    Places are separate arrays, so that appending a pair copies nothing.
    """

    s: tuple[Array, ...]  # (N, *shape)  steps
    y: tuple[Array, ...]  # (N, *shape)  gradient changes
    inverse: tuple[Array, ...]  # (N,)  1 / <s, y>


class SolverState(NamedTuple):
    """What is kept between rounds: the pairs, and the losses where the last call ended."""

    pairs: Pairs
    theta: Array  # (N, *shape)  NaN before the first call
    f: Array  # (N,)
    grad_f: Array  # (N, *shape)


class State(NamedTuple):
    """Iterates of all clients."""

    theta: Array
    evaluation: Evaluation
    pairs: Pairs
    gradients: Array
    stalled: Array


@dataclass(frozen=True, kw_only=True)
class LBFGS:
    r"""Limited-memory BFGS (Liu and Nocedal 1989) with backtracking.

    The initial matrix of the two-loop recursion is the objective's ``preconditioner`` when it has one, and
    :math:`\langle s, y\rangle / \langle y, y\rangle` times the identity otherwise. Local problems are strongly convex,
    so every accepted step gives a pair with :math:`\langle s, y\rangle > 0`. From round to round only the linear term
    of a local problem changes, not its Hessian: the pairs of earlier rounds stay true and are kept, and so is the
    gradient of ``f_j`` where the last call ended.

    Parameters
    ----------
    history : int, default 20
        Number of pairs that are kept.
    precondition : bool, default True
        Whether to use the objective's preconditioner.
    max_iter : int, default 1000
        Largest number of steps.

    Raises
    ------
    ValueError
        If the loss is nonsmooth or ``history`` is less than 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import LocalProblem, Quadratic
    >>> from dualopt.stopping import GradientNorm
    >>> f = Quadratic(A=np.array([[[2.0, 0.0], [0.0, 0.1]]]), b=np.array([[2.0, 1.0]]))
    >>> solver = LBFGS(precondition=False)
    >>> sol = solver(LocalProblem(objective=f), np.zeros((1, 2)), GradientNorm(tol=1e-10))
    >>> np.round(sol.theta, 8).tolist(), sol.status
    ([[1.0, 10.0]], ('converged',))
    """

    history: int = 20
    precondition: bool = True
    max_iter: int = 1000

    def __post_init__(self) -> None:
        if self.history < 1:
            raise ValueError(f"history must be at least 1, not {self.history}.")

    def initial_state(self, objective: Any) -> SolverState:
        """Return no pairs and no evaluated point for every client."""
        zero = objective.zeros()
        xp = array_namespace(zero)
        empty = broadcast(zero, (objective.n_clients, *zero.shape))
        none = (xp.zeros_like(objective.mu),) * self.history
        pairs = Pairs((empty,) * self.history, (empty,) * self.history, none)
        point = nowhere(objective)
        return SolverState(pairs, point, none[0], point)

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run L-BFGS from ``start`` with the pairs of earlier calls."""
        require_smooth("lbfgs", problem, constant=False)
        last = solver_state or self.initial_state(problem.objective)
        evaluation, cost = _evaluate_start(problem, start, last)
        never = array_namespace(cost).zeros_like(cost, dtype=array_namespace(cost).bool)
        state = State(start, evaluation, last.pairs, cost, never)
        state, status = drive(self._step, problem, state, stop, round, max_iter=self.max_iter)
        return solution(
            problem,
            state.theta,
            state.evaluation,
            solver_state=SolverState(state.pairs, state.theta, state.evaluation.f, state.evaluation.grad_f),
            gradients=state.gradients,
            status=status,
        )

    def _step(self, problem: LocalProblem, state: State) -> State:
        gradient = state.evaluation.gradient
        direction = -self._inverse_hessian(problem, state.pairs)(gradient)
        found = backtrack(problem, state.theta, state.evaluation, direction)
        pairs = _append(state.pairs, found.theta - state.theta, found.evaluation.gradient - gradient)
        return State(found.theta, found.evaluation, pairs, state.gradients + found.trials, found.failed)

    def _inverse_hessian(self, problem: LocalProblem, pairs: Pairs) -> Callable[[Array], Array]:
        """Return ``v -> H v`` by the two-loop recursion."""
        if self.precondition and "preconditioner" in problem.objective.offers:
            initial = problem.objective.preconditioner(problem.weight)  # pyright: ignore[reportAttributeAccessIssue]
        else:
            initial = _scaled_identity(pairs)

        def apply(v: Array) -> Array:
            coefficients = []
            for s, y, inverse in reversed(list(zip(*pairs, strict=True))):
                a = inverse * client_dot(s, v)
                v = v - per_client(a, v) * y
                coefficients.append(a)
            v = initial(v)
            for s, y, inverse in zip(*pairs, strict=True):
                b = inverse * client_dot(y, v)
                v = v + per_client(coefficients.pop() - b, v) * s
            return v

        return apply


def _evaluate_start(problem: LocalProblem, start: Array, last: SolverState) -> tuple[Evaluation, Array]:
    """Return the evaluation at ``start`` and the gradients that it took, client by client.

    A client that starts where it ended last time pays nothing: only the linear and proximal terms are new.
    """
    xp = array_namespace(start)
    same = to_numpy(xp.all(xp.reshape(last.theta == start, (start.shape[0], -1)), axis=-1))
    new = [j for j, is_same in enumerate(same) if not is_same]
    f, grad_f, cost = last.f, last.grad_f, xp.zeros_like(last.f)
    if new:
        found = problem.objective.select(new).value_and_gradient(take_clients(start, new))
        f, grad_f, cost = merge_clients((f, grad_f, cost), (*found, xp.ones_like(found[0])), new)
    return problem.extend(start, f, grad_f), cost


def _scaled_identity(pairs: Pairs) -> Callable[[Array], Array]:
    xp = array_namespace(pairs.s[-1])
    product = pairs.inverse[-1] * client_dot(pairs.y[-1], pairs.y[-1])  # <y, y> / <s, y>, or 0 without a pair
    scale = xp.where(product > 0, 1.0 / xp.where(product > 0, product, xp.ones_like(product)), xp.ones_like(product))
    return lambda v: per_client(scale, v) * v


def _append(pairs: Pairs, s: Array, y: Array) -> Pairs:
    """Append a pair; it is taken out for clients whose step has no positive curvature beyond rounding."""
    xp = array_namespace(s)
    product = client_dot(s, y)
    good = product > 1e-14 * xp.sqrt(client_dot(s, s) * client_dot(y, y))
    inverse = xp.where(good, 1.0 / xp.where(good, product, xp.ones_like(product)), xp.zeros_like(product))
    return Pairs((*pairs.s[1:], s), (*pairs.y[1:], y), (*pairs.inverse[1:], inverse))
