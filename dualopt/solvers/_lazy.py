"""Evaluations of local problems that are computed when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from dualopt.arrays.xp import Array
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import Evaluation

__all__ = ["LazyEvaluation"]


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
