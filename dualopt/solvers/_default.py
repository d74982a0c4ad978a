"""The local solver that suits an objective."""

from __future__ import annotations

from typing import Any

from dualopt.solvers._loop import LocalSolver, is_smooth
from dualopt.solvers.dual_coordinate import DualCoordinate
from dualopt.solvers.exact import Exact
from dualopt.solvers.lbfgs import LBFGS

__all__ = ["default_solver"]


def default_solver(objective: Any) -> LocalSolver:
    """Return ``Exact`` for quadratic local problems, ``LBFGS`` for other smooth ones, else ``DualCoordinate``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Hinge, Logistic
    >>> from dualopt.objectives import linear_model
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> [type(default_solver(linear_model(X, y, loss=loss, mu=0.1))).__name__ for loss in (Logistic(), Hinge())]
    ['LBFGS', 'DualCoordinate']
    """
    if "exact" in objective.offers:
        return Exact()
    return LBFGS() if is_smooth(objective) else DualCoordinate()
