"""OptimizedDualFL that uploads dual-corrected points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dualopt.arrays.xp import Array
from dualopt.methods._base import AUTO
from dualopt.methods._parameters import GradientSolver
from dualopt.methods.corrected_dualfl import Client
from dualopt.methods.optimized_dualfl import Message, OptimizedDualFL, Server
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["CorrectedOptimizedDualFL"]


@dataclass(frozen=True, kw_only=True)
class CorrectedOptimizedDualFL(OptimizedDualFL):
    r"""OptimizedDualFL with the points of :class:`dualopt.methods.CorrectedDualFL` for the :math:`\theta_j`.

    Parameters
    ----------
    rho, nu, solver, stop
        As in :class:`dualopt.methods.DualFL`.

    Raises
    ------
    ValueError
        As from :class:`dualopt.methods.CorrectedDualFL`.

    Examples
    --------
    >>> CorrectedOptimizedDualFL(rho=0.1, nu=0.5).rho
    0.1
    """

    receivers: ClassVar[frozenset[str]] = frozenset({"active"})
    theorems = OptimizedDualFL.theorems

    solver: GradientSolver = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero; message 0 is the zero model."""
        server, message, c = super().init(theta0, copies)
        return server, message, Client(c.theta, c.zeta, c.zeta, c.v)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve the local problem (3.1) of DualFL and correct the point by its gradient."""
        solution = oracle.solve(start=c.theta, linear=-self.nu * c.zeta)
        sent = oracle.sent(solution.theta - solution.evaluation.gradient / self.nu)
        return c._replace(theta=solution.theta, sent=sent), sent

    def receive(self, c: Client, message: Message) -> Client:
        """Extrapolate with the point that was sent."""
        v = c.zeta + message.theta - c.sent
        return c._replace(zeta=v + message.b * (v - c.v) + message.c * (v - c.zeta), v=v)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """As for OptimizedDualFL: at ``theta*`` there is nothing to correct."""
        server, message, c = super().fixed_point(objective, theta)
        return server, message, Client(c.theta, c.theta, c.zeta, c.v)
