"""The local solver that suits an objective."""

from __future__ import annotations

from typing import Any

from dualopt.objectives import LinearModel
from dualopt.objectives._sparse import LARGEST_GRAM
from dualopt.objectives.scales import own_clients
from dualopt.solvers._loop import LocalSolver, is_smooth
from dualopt.solvers.dual_coordinate import DualCoordinate
from dualopt.solvers.exact import Exact
from dualopt.solvers.interior_point import InteriorPoint, suits
from dualopt.solvers.lbfgs import LBFGS, usual_options
from dualopt.solvers.row_lbfgs import RowLBFGS

__all__ = ["default_solver"]


def default_solver(objective: Any, fraction: float = 1.0) -> LocalSolver:
    """Return ``Exact`` for quadratic local problems, ``LBFGS`` for other smooth ones, and a dual solver for kinks.

    For sparse rows of more columns than rows, too many rows for a Gram matrix, it is ``RowLBFGS`` where the loss is
    smooth and ``mu > 0``. Losses with one kink at the label take ``InteriorPoint`` where rows are dense and have at
    most 256 columns, other losses with kinks ``DualCoordinate``. Where only a small ``fraction`` of the clients takes
    part in a round, ``LBFGS`` keeps fewer pairs of tiny ones.

    Notes
    -----
    Milliseconds of a round of DualFL with its default rule, and gradients per client (a product with a Hessian counts
    one), means over rounds 3 to 40 (15 of the thousand clients), CPU time of one thread beside other work:

    ======================================  ==========  ==========  ==========  =========  ==========
    clients x rows x columns x classes      history 10  history 20  history 40  no P, 10   Newton-CG
    ======================================  ==========  ==========  ==========  =========  ==========
    4 x 10 x 2 x 1                          0.9, 1.2    0.7, 1.1    0.7, 1.1    0.7, 1.1   0.7, 3.9
    4 x 50 x 11 x 1                         1.5, 2.0    1.2, 1.6    0.9, 1.3    1.0, 1.5   0.9, 5.9
    breast cancer, 8 x 71 x 31 x 1          1.7, 2.1    1.3, 1.6    1.0, 1.3    2.0, 3.3   1.5, 9.1
    1000 x 20 x 21 x 1                      21.8, 3.2   22.9, 2.6   31.6, 2.3   16.5, 3.3  21.2, 7.2
    digits, 8 x 225 x 65 x 10               3.0, 2.2    3.2, 2.1    3.8, 1.9    7.2, 5.7   4.7, 7.0
    ======================================  ==========  ==========  ==========  =========  ==========

    "No P" is without the preconditioner, which saves time where clients have a thousand numbers or more. ``LBFGS``
    does without it for the first two and the fourth, and chooses 10, 20, 40, 10 and 10 pairs; 40 for eight clients
    of MNIST or a9a.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Hinge, Logistic
    >>> from dualopt.objectives import linear_model
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> [type(default_solver(linear_model(X, y, loss=loss, mu=0.1))).__name__ for loss in (Logistic(), Hinge())]
    ['LBFGS', 'InteriorPoint']
    """
    objective = own_clients(objective)
    smooth = is_smooth(objective)
    if smooth and (isinstance(objective, LinearModel) or getattr(objective, "is_linear", False)) and is_wide(objective):
        return RowLBFGS()
    if "exact" in objective.offers:
        return Exact()
    if smooth:
        return LBFGS(**usual_options(objective, fraction))
    return InteriorPoint() if suits(objective) else DualCoordinate()


def is_wide(model: LinearModel) -> bool:
    """Tell whether vectors of a model's sparse rows are shorter in the space of the rows, and may live there.

    Where a Gram matrix can be kept, its inverse makes L-BFGS in the space of the columns better.
    """
    rows, held = model.rows, model.ridge > 0 and not model.free_intercept
    return held and rows.is_sparse and LARGEST_GRAM < rows.max_rows < rows.n_features
