"""Dual-corrected points for the local solutions of DualFL and OptimizedDualFL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.methods._base import AUTO
from dualopt.methods._dual_parameters import Dual
from dualopt.methods._parameters import GradientSolver
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round

__all__ = ["Corrected"]


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # theta_j, the plain point, where the local solver starts next time
    sent: Array  # its dual correction
    zeta: Array  # zeta_j
    v: Array  # zeta_j^(n-1) + theta^(n) - the latest point sent


@dataclass(frozen=True, kw_only=True)
class Corrected(Dual):
    r"""To be inherited before a method that uploads its local solutions :math:`\theta_j`, and extrapolates with them.

    It then uploads :math:`\theta_j - r_j/\nu`, with the residuals :math:`r_j = \nabla f_j(\theta_j) - \nu\zeta_j`.
    """

    solver: GradientSolver = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Any, Any, Client]:
        """As without corrections."""
        server, message, c = super().init(theta0, copies)
        return server, message, Client(c.theta, *c)

    def local(self, c: Client, message: Any, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve (3.1) and correct the point by its gradient."""
        solution = oracle.solve(start=c.theta, linear=-self.nu * c.zeta)
        sent = oracle.sent(solution.theta - solution.evaluation.gradient / self.nu)
        return c._replace(theta=solution.theta, sent=sent), sent

    def receive(self, c: Client, message: Any) -> Client:
        """Extrapolate with the point that was sent."""
        return super().receive(c._replace(theta=c.sent), message)._replace(theta=c.theta)
