"""Dual ascent: DualFL without momentum (a step of DualFL's proof; Park and Xu, Section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dualopt.arrays.xp import Array, broadcast, zeros_like
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._dual_parameters import Duality
from dualopt.methods._dual_theorems import OF_DUAL_ASCENT
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["DualAscent"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^(n)


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # theta_j, where the local solver starts next time
    zeta: Array  # zeta_j


@dataclass(frozen=True, kw_only=True)
class DualAscent(Algorithm):
    r"""Gradient ascent on the dual problem, with the step ``1/nu``: DualFL with ``beta = 0`` in every round.

    .. math:: \theta_j \approx \arg\min f_j - \nu\langle\zeta_j, \cdot\rangle, \qquad
              \theta = \tfrac1N \textstyle\sum_j \theta_j, \qquad \zeta_j^+ = \zeta_j + \theta - \theta_j

    The duals start at zero, whatever ``theta0`` is (it is only where the local solvers start), and sum to zero. For
    ``nu`` in (0, mu] and exact local solutions, with :math:`\nu\zeta_j^* = \nabla f_j(\theta^*)`,

    .. math:: |\theta^n - \theta^*|^2 \le \frac{|\zeta^*|^2}N \min\Bigl(\bigl(1 - \tfrac\nu L\bigr)^{2(n-1)},
              \frac1{2n-1}\Bigr),

    the second for any loss (``theory/frontier/dual_ascent.py``). It is what momentum is measured against: DualFL needs
    :math:`\sqrt\kappa` rounds where this needs :math:`\kappa`. All clients must take part.

    Parameters
    ----------
    nu : float, optional
        Duality parameter; suggested: ``min mu``.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If ``nu`` is not positive; from ``check`` if it exceeds ``mu``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.eye(1), 2 * np.eye(1)]), b=np.array([[2.0], [1.0]]))
    >>> run(DualAscent(), f, rounds=30).theta.round(6).tolist()
    [1.0]
    """

    upload_reference: ClassVar[str] = "message"
    theorems = OF_DUAL_ASCENT

    nu: Duality = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, Client]:
        """All duals zero; message 0 is the zero model."""
        zero = zeros_like(theta0)
        return Server(zero), zero, Client(copies, zeros_like(copies))

    def local(self, c: Client, message: Array, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve the local problem with the dual."""
        theta = oracle.sent(oracle.solve(start=c.theta, linear=-self.nu * c.zeta).theta)
        return c._replace(theta=theta), theta

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Array]:
        """Average."""
        return Server(mean), mean

    def receive(self, c: Client, message: Array) -> Client:
        """Take the step: ``theta_j - theta`` is the gradient of the dual function over ``nu``."""
        return c._replace(zeta=c.zeta + message - c.theta)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Array, Client]:
        """At the minimiser ``nu zeta_j = grad f_j(theta*)``, as for DualFL."""
        zeta = objective.gradient(theta) / self.nu
        return Server(theta), theta, Client(broadcast(theta, zeta.shape), zeta)
