"""Federated algorithms: one paper box per file."""

from dualopt.algorithms._protocol import Algorithm
from dualopt.algorithms.dualfl import DualFL
from dualopt.algorithms.optimized_dualfl import OptimizedDualFL

__all__ = ["Algorithm", "DualFL", "OptimizedDualFL"]
