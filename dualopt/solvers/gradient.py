"""Gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.objectives.local import LocalProblem, per_client
from dualopt.participation import Round
from dualopt.solvers._driver import LocalSolution, drive, gradient_solution, require_smooth
from dualopt.stopping import Steps, Stop
from dualopt.xp import Array, array_namespace

__all__ = ["Gradient"]


class State(NamedTuple):
    """Iterates of all clients."""

    theta: Array
    value: Array
    gradient: Array
    gradients: Array  # number of gradients computed
    stalled: Array


@dataclass(frozen=True, kw_only=True)
class Gradient:
    r"""Gradient descent, :math:`\theta_j \leftarrow \theta_j - \text{step}\, \nabla F_j(\theta_j)`.

    ``Steps(K)`` is charged K gradients: the one where it ends serves certificates alone, and a method that needs it
    there adds it. Other rules look at that gradient too, so it counts for them.

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
    >>> from dualopt.participation import Full
    >>> from dualopt.stopping import Steps
    >>> f = Quadratic(A=np.array([[[2.0]]]), b=np.array([[2.0]]))
    >>> first = next(Full().rounds(1, seed=0))
    >>> Gradient()(LocalProblem(objective=f), np.zeros((1, 1)), Steps(steps=1), (), first).theta.tolist()
    [[1.0]]
    """

    step: float | None = None
    max_iter: int = 10_000

    def __post_init__(self) -> None:
        if self.step is not None and not self.step > 0:
            raise ValueError(f"step must be positive, not {self.step}.")

    def memory(self, objective: Any) -> Any:
        """Return ``()``: gradient descent has no memory."""
        return ()

    def path_length(self, problem: LocalProblem, stop: Steps, round: Round) -> float | Array:
        """Return the sum of the step sizes of a call, one number for all clients or ``(N,)``."""
        return stop.steps * (1.0 / problem.L if self.step is None else self.step)

    def __call__(self, problem: LocalProblem, start: Array, stop: Stop, memory: Any, round: Round) -> LocalSolution:
        """Run gradient descent from ``start``."""
        if self.step is None:
            require_smooth("gradient", problem)
        xp = array_namespace(start)

        def step(problem: LocalProblem, s: State) -> State:
            length = self.step if self.step is not None else per_client(1.0 / problem.L, s.theta)
            theta = s.theta - length * s.gradient
            value, gradient = problem.value_and_gradient(theta)
            return State(theta, value, gradient, s.gradients + 1.0, xp.logical_not(xp.isfinite(value)))

        value, gradient = problem.value_and_gradient(start)
        never = xp.zeros_like(value, dtype=xp.bool)
        state = State(start, value, gradient, xp.ones_like(value), never)
        state, status = drive(step, problem, state, stop, round, max_iter=self.max_iter)
        used = state.gradients - 1.0 if isinstance(stop, Steps) else state.gradients
        return gradient_solution(problem, state.theta, state.value, state.gradient, gradients=used, status=status)
