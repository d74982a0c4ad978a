"""Federated algorithms: one paper box per file."""

from dualopt.algorithms._protocol import Algorithm
from dualopt.algorithms.dualfl import DualFL

__all__ = ["Algorithm", "DualFL"]
