"""Evaluations of local problems that are computed when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from dualopt.arrays.xp import Array
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import Evaluation, LocalProblem

__all__ = ["EvaluationOnDemand", "LazyEvaluation"]


class EvaluationOnDemand:
    """The ``Evaluation`` of local problems at points that no gradient was needed to find, computed when asked for.

    Parameters
    ----------
    problem : LocalProblem
        The local problems.
    theta : array, shape (N, *shape)
        The points.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import LocalProblem, Quadratic
    >>> f = Quadratic(A=np.array([[[2.0]]]), b=np.array([[2.0]]))
    >>> EvaluationOnDemand(LocalProblem(objective=f), np.ones((1, 1))).value.tolist()
    [-1.0]
    """

    def __init__(self, problem: LocalProblem, theta: Array) -> None:
        self._problem, self._theta = problem, theta

    @cached_property
    def _found(self) -> Evaluation:
        return self._problem.evaluate(self._theta)

    def __getattr__(self, name: str) -> Array:
        if name not in Evaluation._fields:
            raise AttributeError(name)
        return getattr(self._found, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Evaluation, tuple(self._found)


class LazyEvaluation:
    """An ``Evaluation`` by a solver whose steps do not compute gradients of the size of the model.

    Most methods use the local solution alone, and certificates ask for ``f`` and ``grad_f`` now and then. What was
    computed is kept; a pickle holds the ``Evaluation``.

    Parameters
    ----------
    objective : Objective
        The ``f_j``.
    theta : array, shape (N, *shape)
        The points.
    value : array, shape (N,)
        ``F_j(theta_j)``.
    gradient : callable
        Returns the gradients of ``F_j``, shape ``(N, *shape)``.
    """

    def __init__(self, objective: Objective, theta: Array, value: Array, gradient: Callable[[], Array]) -> None:
        self.value = value
        self._of_f = lambda: objective.value_and_gradient(theta)
        self._of_problem = gradient

    @cached_property
    def _both(self) -> tuple[Array, Array]:
        return self._of_f()

    @property
    def f(self) -> Array:
        """``f_j(theta_j)``, shape ``(N,)``."""
        return self._both[0]

    @property
    def grad_f(self) -> Array:
        """``grad f_j(theta_j)``, shape ``(N, *shape)``."""
        return self._both[1]

    @cached_property
    def gradient(self) -> Array:
        """``grad F_j(theta_j)``, shape ``(N, *shape)``."""
        return self._of_problem()

    def __reduce__(self) -> tuple[Any, ...]:
        return Evaluation, (self.f, self.grad_f, self.value, self.gradient)
