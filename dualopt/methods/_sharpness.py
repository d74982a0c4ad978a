"""Sharpness-aware steps, in place of the gradient steps of a method (Foret et al. 2021; recalled)."""

from __future__ import annotations

from dataclasses import dataclass

from dualopt.arrays._checks import Positive
from dualopt.arrays.xp import Array
from dualopt.methods._base import Algorithm
from dualopt.objectives import Objective, SharpnessAware
from dualopt.solvers.stopping import Steps, Stop

__all__ = ["Sharp"]


@dataclass(frozen=True, kw_only=True)
class Sharp(Algorithm):
    """To be inherited before a method: some steps along gradients at neighbours, ``radius`` uphill."""

    without_theorem = "the limit is biased"

    stop: Stop = Steps(steps=10)
    radius: Positive = 0.1
    epsilon: Positive = 1e-2

    def local_objective(self, objective: Objective) -> Objective:
        """Return the losses with sharpness-aware gradients."""
        if self.radius == 0:
            return objective
        return SharpnessAware(objective=objective, radius=self.radius, epsilon=self.epsilon)

    def fixed_point(self, objective: Objective, theta: Array) -> None:
        """Return None: biased."""
