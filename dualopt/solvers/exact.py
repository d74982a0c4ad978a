"""Exact minimisers of quadratic local problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dualopt.objectives.local import LocalProblem
from dualopt.participation import Round
from dualopt.solvers._driver import LocalSolution, gradient_solution
from dualopt.stopping import Stop
from dualopt.xp import Array, array_namespace

__all__ = ["Exact"]


@dataclass(frozen=True, kw_only=True)
class Exact:
    """Solve quadratic local problems in closed form; the stopping rule is not needed and not looked at.

    Raises
    ------
    ValueError
        If the objective is not quadratic.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import LocalProblem, Quadratic
    >>> from dualopt.participation import Full
    >>> from dualopt.stopping import Steps
    >>> f = Quadratic(A=np.array([[[2.0]]]), b=np.array([[2.0]]))
    >>> first = next(Full().rounds(1, seed=0))
    >>> Exact()(LocalProblem(objective=f), np.zeros((1, 1)), Steps(steps=1), (), first).theta.tolist()
    [[1.0]]
    """

    def memory(self, objective: Any) -> Any:
        """Return ``()``; refuse an objective without exact minimisers here, before the first round."""
        if not hasattr(objective, "exact_minimiser") or not getattr(objective, "has_exact_minimiser", True):
            raise ValueError("solver 'exact' needs quadratic local problems; choose another solver, such as 'lbfgs'.")
        return ()

    def __call__(self, problem: LocalProblem, start: Array, stop: Stop, memory: Any, round: Round) -> LocalSolution:
        """Return the minimisers; a solution counts as one gradient."""
        theta = problem.objective.exact_minimiser(problem)  # pyright: ignore[reportAttributeAccessIssue]
        value, gradient = problem.value_and_gradient(theta)
        return gradient_solution(
            problem,
            theta,
            value,
            gradient,
            gradients=array_namespace(value).ones_like(value),
            status=("converged",) * problem.n_clients,
        )
