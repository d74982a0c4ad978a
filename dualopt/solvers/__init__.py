"""Local solvers: one file each, pure functions of problem, start and solver state."""

from dualopt.solvers._default import default_solver
from dualopt.solvers._loop import LocalSolution, LocalSolver
from dualopt.solvers.aogm import AOGM
from dualopt.solvers.dual_coordinate import DualCoordinate
from dualopt.solvers.exact import Exact
from dualopt.solvers.gradient import Gradient
from dualopt.solvers.lbfgs import LBFGS
from dualopt.solvers.nesterov import Nesterov
from dualopt.solvers.newton import NewtonCG
from dualopt.solvers.row_lbfgs import RowLBFGS
from dualopt.solvers.sarah import Sarah
from dualopt.solvers.sgd import SGD

__all__ = [
    "AOGM",
    "LBFGS",
    "SGD",
    "DualCoordinate",
    "Exact",
    "Gradient",
    "LocalSolution",
    "LocalSolver",
    "Nesterov",
    "NewtonCG",
    "RowLBFGS",
    "Sarah",
    "default_solver",
]

SHARED = ("stopping",)
"""The modules here that hold no solver."""
