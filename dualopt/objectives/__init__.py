"""Objectives: the local cost functions of all clients at once, and the local problem built on them."""

from dualopt.objectives._protocol import Objective
from dualopt.objectives.composite import Composite
from dualopt.objectives.linear_model import LinearModel, linear_model
from dualopt.objectives.local import LocalProblem
from dualopt.objectives.mlp import MLP, mlp
from dualopt.objectives.penalised import NonconvexPenalty
from dualopt.objectives.quadratic import Quadratic
from dualopt.objectives.sharpness_aware import SharpnessAware
from dualopt.objectives.zero_chain import ZeroChain

__all__ = [
    "MLP",
    "Composite",
    "LinearModel",
    "LocalProblem",
    "NonconvexPenalty",
    "Objective",
    "Quadratic",
    "SharpnessAware",
    "ZeroChain",
    "linear_model",
    "mlp",
]
