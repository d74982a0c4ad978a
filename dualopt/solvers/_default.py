"""The local solver that suits an objective."""

from __future__ import annotations

from typing import Any

from dualopt.objectives import LinearModel
from dualopt.objectives._sparse import LARGEST_GRAM
from dualopt.solvers._loop import LocalSolver, is_smooth
from dualopt.solvers.dual_coordinate import DualCoordinate
from dualopt.solvers.exact import Exact
from dualopt.solvers.lbfgs import LBFGS
from dualopt.solvers.row_lbfgs import RowLBFGS

__all__ = ["default_solver"]


def default_solver(objective: Any) -> LocalSolver:
    """Return ``Exact`` for quadratic local problems, ``LBFGS`` for other smooth ones, else ``DualCoordinate``.

    For sparse rows of more columns than rows, too many rows for a Gram matrix, it is ``RowLBFGS`` where the loss is
    smooth and ``mu > 0``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Hinge, Logistic
    >>> from dualopt.objectives import linear_model
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> [type(default_solver(linear_model(X, y, loss=loss, mu=0.1))).__name__ for loss in (Logistic(), Hinge())]
    ['LBFGS', 'DualCoordinate']
    """
    smooth = is_smooth(objective)
    if smooth and isinstance(objective, LinearModel) and is_wide(objective):
        return RowLBFGS()
    if "exact" in objective.offers:
        return Exact()
    return LBFGS() if smooth else DualCoordinate()


def is_wide(model: LinearModel) -> bool:
    """Tell whether vectors of a model's sparse rows are shorter in the space of the rows, and may live there.

    Where a Gram matrix can be kept, its inverse makes L-BFGS in the space of the columns better.
    """
    rows = model.rows
    return rows.is_sparse and LARGEST_GRAM < rows.max_rows < rows.n_features and model.ridge > 0
