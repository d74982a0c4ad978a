"""Objectives: the local cost functions of all clients at once, and the local problem built on them."""

from dualopt.objectives._protocol import Objective
from dualopt.objectives.linear_model import LinearModel, linear_model
from dualopt.objectives.local import LocalProblem
from dualopt.objectives.quadratic import Quadratic

__all__ = ["LinearModel", "LocalProblem", "Objective", "Quadratic", "linear_model"]
