"""Gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays._checks import Typed
from dualopt.arrays.streams import Round
from dualopt.arrays.xp import Array, array_namespace
from dualopt.objectives.local_problem import Evaluation, LocalProblem, per_client
from dualopt.solvers._loop import LocalSolution, drive, require_smooth, solution
from dualopt.solvers.stopping import Steps, Stop

__all__ = ["Gradient"]


class State(NamedTuple):
    """Iterates of all clients."""

    theta: Array
    evaluation: Evaluation
    gradients: Array  # number of gradients computed
    stalled: Array


@dataclass(frozen=True, kw_only=True)
class Gradient(Typed):
    r"""Gradient descent, :math:`\theta_j \leftarrow \theta_j - \text{step}\, \nabla F_j(\theta_j)`.

    ``Steps(K)`` is charged K gradients: the one where it ends serves certificates alone, and is charged to a method
    that asks for it. Other rules look at that gradient too, so it counts for them.

    Parameters
    ----------
    step : float, optional
        Step size; ``1/L_j`` of the local problem when not given.
    max_iter : int, default 10000
        Largest number of steps; reaching it is the status ``"max_iter"``.

    Raises
    ------
    ValueError
        If the loss is nonsmooth and no step is given.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import LocalProblem, Quadratic
    >>> from dualopt.solvers.stopping import Steps
    >>> f = Quadratic(A=np.array([[[2.0]]]), b=np.array([[2.0]]))
    >>> Gradient()(LocalProblem(objective=f), np.zeros((1, 1)), Steps(steps=1)).theta.tolist()
    [[1.0]]
    """

    single: ClassVar[bool] = True

    step: float | None = None
    max_iter: int = 10_000

    def __post_init__(self) -> None:
        if self.step is not None and not self.step > 0:
            raise ValueError(f"step must be positive, not {self.step}.")

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``: gradient descent keeps nothing."""
        return ()

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Run gradient descent from ``start``."""
        if self.step is None:
            require_smooth("gradient", problem)
        xp = array_namespace(start)

        def step(problem: LocalProblem, s: State) -> State:
            gradient = s.evaluation.gradient
            fixed = self.step is not None
            change = self.step * problem.asked(gradient) if fixed else per_client(1.0 / problem.L, gradient) * gradient
            theta = s.theta - change
            evaluation = problem.evaluate(theta)
            return State(theta, evaluation, s.gradients + 1.0, xp.logical_not(xp.isfinite(evaluation.value)))

        evaluation = problem.evaluate(start)
        one = xp.ones_like(evaluation.f)
        state = State(start, evaluation, one, xp.zeros_like(one, dtype=xp.bool))
        state, status = drive(step, problem, state, stop, round, max_iter=self.max_iter)
        steps, fixed = state.gradients - 1.0, isinstance(stop, Steps)
        return solution(
            problem,
            state.theta,
            state.evaluation,
            length=steps * (self.step or (1.0 / problem.L if problem.unit is None else problem.unit / problem.L)),
            gradients=steps if fixed else state.gradients,
            charged=not fixed,
            status=status,
        )
