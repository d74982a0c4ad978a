"""The optimized gradient method with adaptive restart and full backtracking: the local solver of the DualFL paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays._checks import Typed, require
from dualopt.arrays.streams import Round
from dualopt.arrays.tree import merge_clients, take_clients
from dualopt.arrays.xp import Array, array_namespace, epsilon, to_numpy
from dualopt.objectives.local_problem import Evaluation, LocalProblem, client_dot, per_client
from dualopt.solvers._loop import LocalSolution, drive, require_smooth, solution
from dualopt.solvers.stopping import Stop

__all__ = ["AOGM"]

MAX_TRIALS = 60


class State(NamedTuple):
    """Iterates of all clients."""

    theta: Array  # x_k, the extrapolated point
    evaluation: Evaluation
    primary: Array  # y_k, the point after the gradient step
    t: Array
    L: Array  # current estimate of the curvature
    gradients: Array
    stalled: Array


@dataclass(frozen=True, kw_only=True)
class AOGM(Typed):
    r"""Optimized gradient method with adaptive restart (Kim and Fessler 2018) and full backtracking.

    .. math::
        y^+ = x - \tfrac{1}{L^+} \nabla F(x), \qquad
        t^+ = \tfrac12 \Bigl(1 + \sqrt{1 + 4 (L^+/L)\, t^2}\Bigr), \qquad
        x^+ = y^+ + \tfrac{t-1}{t^+} (y^+ - y) + \tfrac{t}{t^+} (y^+ - x)

    The momentum is reset (``t = 1``, ``x^+ = y^+``) when the gradient step no longer points forward,
    :math:`\langle -\nabla F(x), y^+ - y\rangle < 0`; the other scheme of that paper compares energies, which near the
    minimum differ by rounding only. The estimate ``L`` is divided by ``decrease`` before each step and multiplied by
    ``increase`` until :math:`F(y^+) \le F(x) - |\nabla F(x)|^2 / (2 L^+)` (Calatroni and Chambolle 2019), so steps
    adapt in both directions and no smoothness constant is needed.

    A value computed alone counts as half a gradient.

    Parameters
    ----------
    increase : float, default 2.0
    decrease : float, default 1.1
        Factors of the backtracking, both greater than 1.
    max_iter : int, default 10000
        Largest number of steps.

    Raises
    ------
    ValueError
        If the loss is nonsmooth, or a factor is not greater than 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import LocalProblem, Quadratic
    >>> from dualopt.solvers.stopping import GradientNorm
    >>> f = Quadratic(A=np.array([[[2.0, 0.0], [0.0, 0.1]]]), b=np.array([[2.0, 1.0]]))
    >>> sol = AOGM()(LocalProblem(objective=f), np.zeros((1, 2)), GradientNorm(tol=1e-10))
    >>> np.round(sol.theta, 8).tolist(), sol.status
    ([[1.0, 10.0]], ('converged',))
    """

    single: ClassVar[bool] = True

    increase: float = 2.0
    decrease: float = 1.1
    max_iter: int = 10_000

    def __post_init__(self) -> None:
        for name, value in (("increase", self.increase), ("decrease", self.decrease)):
            require(value > 1, f"{name} must be greater than 1", value)

    def initial_state(self, objective: Any) -> Any:
        """Return the first estimates of ``L``, shape ``(N,)``; later calls start from the last ones."""
        return (0.25 * objective.L,)

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run the method from ``start``."""
        require_smooth("aogm", problem)
        xp = array_namespace(start)
        (L,) = solver_state or self.initial_state(problem.objective)
        evaluation = problem.evaluate(start)
        one = xp.ones_like(evaluation.f)
        state = State(start, evaluation, start, one, L, one, xp.zeros_like(one, dtype=xp.bool))
        state, status = drive(self._step, problem, state, stop, round, max_iter=self.max_iter)
        return solution(
            problem, state.theta, state.evaluation, solver_state=(state.L,), gradients=state.gradients, status=status
        )

    def _step(self, problem: LocalProblem, s: State) -> State:
        xp = array_namespace(s.theta)
        y, L, cost, failed = self._gradient_step(problem, s)
        forward = -client_dot(s.evaluation.gradient, y - s.primary)
        restart = forward < 0
        t = 0.5 * (1.0 + xp.sqrt(1.0 + 4.0 * (L / s.L) * s.t * s.t))
        inertia = per_client((s.t - 1.0) / t, y) * (y - s.primary) + per_client(s.t / t, y) * (y - s.theta)
        x = y + xp.where(per_client(restart, y), xp.zeros_like(y), inertia)
        t = xp.where(restart, xp.ones_like(t), t)
        return State(x, problem.evaluate(x), y, t, L, s.gradients + cost + 1.0, failed)

    def _gradient_step(self, problem: LocalProblem, s: State) -> tuple[Array, Array, Array, Array]:
        """Take the gradient step with the smallest admissible ``L``; return y, L, its cost in gradients, failed.

        A step that fails by its value is looked at again by its gradient: convexity gives
        ``F(y) <= F(x) - <grad F(y), grad F(x)>/L``, so ``<grad F(y), grad F(x)> >= |grad F(x)|^2 / 2`` proves the
        decrease where the values differ by rounding only. Without it the estimate would explode near the minimum.
        """
        xp = array_namespace(s.theta)
        # Where the decrease drowns in rounding, every step would pass by its value: the estimate shrinks no further.
        squared = client_dot(s.evaluation.gradient, s.evaluation.gradient)
        telling = squared > 20.0 * epsilon(s.theta) * s.L * xp.abs(s.evaluation.value)
        L = xp.where(telling, s.L / self.decrease, s.L)
        result = (s.theta, L, xp.zeros_like(L), xp.ones_like(L, dtype=xp.bool))
        trying = list(range(problem.n_clients))
        theta, value, gradient = s.theta, s.evaluation.value, s.evaluation.gradient
        for _ in range(MAX_TRIALS):
            y = theta - gradient / per_client(L, gradient)
            cost = take_clients(result[2], trying) + 0.5
            passed = problem.value(y) <= value - squared / (2.0 * L)
            doubtful = [position for position, good in enumerate(to_numpy(passed)) if not good]
            if doubtful:
                y_gradient = problem.select(doubtful).gradient(take_clients(y, doubtful))
                proved = client_dot(y_gradient, take_clients(gradient, doubtful)) >= 0.5 * take_clients(
                    squared, doubtful
                )
                again = take_clients(cost, doubtful) + 1.0
                passed, cost = merge_clients((passed, cost), (proved, again), doubtful)
            failed = xp.logical_not(passed)
            result = merge_clients(result, (y, L, cost, failed), trying)
            refused = [position for position, bad in enumerate(to_numpy(failed)) if bad]
            if not refused:
                break
            trying = [trying[position] for position in refused]
            theta, value, gradient, squared, L = take_clients(
                (theta, value, gradient, squared, self.increase * L), refused
            )
            problem = problem.select(refused)
        return result
