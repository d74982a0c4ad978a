"""Nesterov's accelerated gradient method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays._checks import Typed
from dualopt.arrays.streams import Round
from dualopt.arrays.xp import Array, array_namespace
from dualopt.objectives.local_problem import Evaluation, LocalProblem, per_client
from dualopt.solvers._loop import LocalSolution, drive, require_smooth, solution
from dualopt.solvers.stopping import Stop

__all__ = ["Nesterov"]


class State(NamedTuple):
    """Iterates of all clients; ``theta`` is the extrapolated point, the one whose gradient is known."""

    theta: Array
    evaluation: Evaluation
    last: Array  # the point after the latest gradient step
    t: Array  # momentum parameter
    gradients: Array
    stalled: Array


@dataclass(frozen=True, kw_only=True)
class Nesterov(Typed):
    r"""Nesterov's accelerated gradient method with step ``1/L_j``.

    .. math:: x^+ = y - \tfrac1L \nabla F(y), \quad t_+ = \frac{1 - q t^2 + \sqrt{(1 - q t^2)^2 + 4 t^2}}{2}, \quad
              y^+ = x^+ + \frac{t-1}{t_+} \frac{1 - t_+ q}{1 - q} (x^+ - x), \qquad q = \mu / L

    (Chambolle and Pock 2016, the same momentum as DualFL's (3.4)): :math:`O(1/k^2)` for ``mu = 0``, the factor
    :math:`1 - \sqrt{q}` otherwise. As :math:`t_+^2 - (1 - q t^2) t_+ = t^2`, the factor of :math:`x^+ - x` is
    :math:`(t-1) t_+ / (t_+ + t^2)`, which is 0 for ``q = 1``, where one step solves the problem. It returns the
    extrapolated point, the one whose gradient is known.

    Parameters
    ----------
    max_iter : int, default 10000
        Largest number of steps.

    Raises
    ------
    ValueError
        If the loss is nonsmooth.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import LocalProblem, Quadratic
    >>> from dualopt.solvers.stopping import GradientNorm
    >>> f = Quadratic(A=np.array([[[2.0, 0.0], [0.0, 0.1]]]), b=np.array([[2.0, 1.0]]))
    >>> sol = Nesterov()(LocalProblem(objective=f), np.zeros((1, 2)), GradientNorm(tol=1e-10))
    >>> np.round(sol.theta, 8).tolist(), sol.status
    ([[1.0, 10.0]], ('converged',))
    """

    single: ClassVar[bool] = True

    max_iter: int = 10_000

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``: the momentum starts anew in each call."""
        return ()

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run the method from ``start``."""
        require_smooth("nesterov", problem)
        xp = array_namespace(start)

        def step(problem: LocalProblem, s: State) -> State:
            q = xp.minimum(problem.mu / problem.L, xp.ones_like(s.t))
            q = xp.maximum(q, xp.zeros_like(q))  # no more momentum for nonconvex problems than for convex ones
            x = s.theta - per_client(1.0 / problem.L, s.theta) * s.evaluation.gradient
            shrink = 1.0 - q * s.t * s.t
            t = 0.5 * (shrink + xp.sqrt(shrink * shrink + 4.0 * s.t * s.t))
            beta = (s.t - 1.0) * t / (t + s.t * s.t)
            y = x + per_client(beta, x) * (x - s.last)
            evaluation = problem.evaluate(y)
            return State(y, evaluation, x, t, s.gradients + 1.0, xp.logical_not(xp.isfinite(evaluation.value)))

        evaluation = problem.evaluate(start)
        one = xp.ones_like(evaluation.f)
        state = State(start, evaluation, start, one, one, xp.zeros_like(one, dtype=xp.bool))
        state, status = drive(step, problem, state, stop, round, max_iter=self.max_iter)
        return solution(problem, state.theta, state.evaluation, gradients=state.gradients, status=status)
