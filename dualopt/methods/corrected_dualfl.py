"""DualFL that uploads dual-corrected points (Park and Xu, Section 6 with inexact local solutions)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.methods._base import AUTO
from dualopt.methods._parameters import GradientSolver
from dualopt.methods.dualfl import DualFL, Message, Server
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["CorrectedDualFL"]


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # theta_j, the plain point, where the local solver starts next time
    sent: Array  # its dual correction
    zeta: Array  # zeta_j
    v: Array  # zeta_j^(n-1) + theta^(n) - the latest point sent


@dataclass(frozen=True, kw_only=True)
class CorrectedDualFL(DualFL):
    r"""DualFL with the dual-corrected points in place of the local solutions :math:`\theta_j`.

    They are :math:`\theta_j - r_j/\nu` with the residuals :math:`r_j = \nabla f_j(\theta_j) - \nu\zeta_j`. For them the
    inexact theorems hold at every accuracy (the gap (3.6) of a plain point is usually infinite). Local solvers start
    from the plain one: the correction is a step :math:`1/\nu`, far too long to start from. With exact local solutions
    both are the same; with others the plain point converges faster in practice.

    Parameters
    ----------
    rho, nu, solver, stop
        As in :class:`dualopt.methods.DualFL`.

    Raises
    ------
    ValueError
        As from :class:`dualopt.methods.DualFL`, and if the solver does not know the local gradient where it ends.

    Examples
    --------
    >>> CorrectedDualFL(rho=0.1, nu=0.5).rho
    0.1
    """

    receivers: ClassVar[frozenset[str]] = frozenset({"active"})
    theorems = DualFL.theorems

    solver: GradientSolver = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero; message 0 is the zero model."""
        server, message, c = super().init(theta0, copies)
        return server, message, Client(c.theta, c.zeta, c.zeta, c.v)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve (3.1) and correct the point by its gradient."""
        solution = oracle.solve(start=c.theta, linear=-self.nu * c.zeta)
        sent = oracle.sent(solution.theta - solution.evaluation.gradient / self.nu)
        return c._replace(theta=solution.theta, sent=sent), sent

    def receive(self, c: Client, message: Message) -> Client:
        """Extrapolate (3.3) with the point that was sent."""
        v = c.zeta - c.sent  # in place from here on: where models are large, new arrays cost more than the sums
        v += message.theta
        zeta = v - c.v
        zeta *= message.beta
        zeta += v
        return c._replace(zeta=zeta, v=v)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """As for DualFL: at ``theta*`` there is nothing to correct."""
        server, message, c = super().fixed_point(objective, theta)
        return server, message, Client(c.theta, c.theta, c.zeta, c.v)
