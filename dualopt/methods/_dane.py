"""What the methods have in common whose clients solve with the mean gradient in place of their own, as DANE does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.methods._base import Algorithm
from dualopt.methods.oracle import Oracle
from dualopt.objectives import Objective
from dualopt.solvers.stopping import GradientReduction, Stop

__all__ = ["DANE", "Client"]


class Client(NamedTuple):
    """States of the clients."""

    point: Array  # y, where the local solver starts
    gradient: Array  # grad f_j(y)


@dataclass(frozen=True, kw_only=True)
class DANE(Algorithm):
    """Methods with rounds of gradients, which the server averages, and rounds of solutions that look at the mean."""

    needs: ClassVar[frozenset[str]] = frozenset({"smooth"})

    stop: Stop = GradientReduction(factor=0.01)

    def _evaluated(self, c: Any, point: Array, oracle: Oracle) -> tuple[Any, Array]:
        """Compute the own gradient at a new point, where the next solution is looked for, and return the value, too."""
        found = oracle.evaluate(point)
        return c._replace(point=point, gradient=oracle.sent(found.grad_f, since=c.gradient)), found.f

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser, with its gradients."""
        return self.start_with(theta, gradient=objective.gradient(theta))
