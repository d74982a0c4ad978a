"""Exact minimisers of quadratic local problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dualopt.arrays.streams import Round
from dualopt.arrays.xp import Array
from dualopt.objectives.local_problem import LocalProblem
from dualopt.solvers._lazy import EvaluationOnDemand
from dualopt.solvers._loop import LocalSolution, found_at
from dualopt.solvers.stopping import Stop

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
    >>> from dualopt.solvers.stopping import Steps
    >>> f = Quadratic(A=np.array([[[2.0]]]), b=np.array([[2.0]]))
    >>> Exact()(LocalProblem(objective=f), np.zeros((1, 1)), Steps(steps=1)).theta.tolist()
    [[1.0]]
    """

    def initial_state(self, objective: Any) -> Any:
        """Return ``()``; refuse an objective without exact minimisers here, before the first round."""
        if "exact" not in objective.offers:
            raise ValueError("solver 'exact' needs quadratic local problems; choose another solver, such as 'lbfgs'.")
        return ()

    def __call__(
        self, problem: LocalProblem, start: Array, stop: Stop, solver_state: Any = (), round: Round | None = None
    ) -> LocalSolution:
        """Return the minimisers; a solution counts as one gradient."""
        theta = problem.objective.exact_minimiser(problem)  # pyright: ignore[reportAttributeAccessIssue]
        return found_at(problem, theta, EvaluationOnDemand(problem, theta))
