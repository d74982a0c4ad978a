"""Objectives: the local cost functions of all clients at once, and the local problem built on them."""

from dualopt.objectives._rounding import Rounding
from dualopt.objectives.composite import Composite
from dualopt.objectives.convex_chain import ConvexChain
from dualopt.objectives.finite_sum import FiniteSum
from dualopt.objectives.linear import LinearModel, linear_model
from dualopt.objectives.local_problem import LocalProblem
from dualopt.objectives.network import MLP, mlp
from dualopt.objectives.nonconvex_penalty import NonconvexPenalty
from dualopt.objectives.objective import Objective
from dualopt.objectives.quadratic import Quadratic
from dualopt.objectives.rows import ClientRows
from dualopt.objectives.scales import Reweighted, reweighted
from dualopt.objectives.sharpness_aware import SharpnessAware
from dualopt.objectives.wrapper import ObjectiveWrapper
from dualopt.objectives.zero_chain import ZeroChain

__all__ = [
    "MLP",
    "ClientRows",
    "Composite",
    "ConvexChain",
    "FiniteSum",
    "LinearModel",
    "LocalProblem",
    "NonconvexPenalty",
    "Objective",
    "ObjectiveWrapper",
    "Quadratic",
    "Reweighted",
    "Rounding",
    "SharpnessAware",
    "ZeroChain",
    "linear_model",
    "mlp",
    "reweighted",
]
