"""DualFL: dualized federated learning (Park and Xu, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO
from dualopt.methods._dual_parameters import Dual, EarlyStop
from dualopt.methods._dual_theorems import OF_DUALFL
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round

__all__ = ["DualFL", "momentum"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^(n)
    t: float  # t_n


class Message(NamedTuple):
    """What the server sends to every client."""

    theta: Array  # theta^(n+1)
    beta: float  # beta_n


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # theta_j, where the local solver starts next time
    zeta: Array  # zeta_j
    v: Array  # zeta_j^(n-1) + theta^(n) - theta_j^(n), the latest bracket of (3.3)


@dataclass(frozen=True, kw_only=True)
class DualFL(Dual):
    r"""Accelerated forward-backward splitting on the dual problem, one round per iteration.

    .. math::
        \theta_j &\approx \arg\min f_j - \nu \langle \zeta_j, \cdot\rangle && (3.1) \\
        \theta &= \tfrac1N \textstyle\sum_j \theta_j && (3.2) \\
        v_j &= \zeta_j + \theta - \theta_j, \quad \zeta_j^+ = (1 + \beta) v_j - \beta v_j^{\text{prev}} && (3.3)

    All states start at zero, whatever ``theta0`` is (it is only where the local solvers start).
    :math:`\sum_j \zeta_j = 0` always. With ``nu`` in (0, mu]: ``|theta - theta*|^2 = O(1/n^2)`` for ``rho = 0``
    (Theorem 3.2, any loss) and :math:`O((1 - \sqrt\rho)^n)` for ``rho`` in (0, nu/L] (Theorem 3.3).

    Parameters
    ----------
    rho : float, optional
        Momentum parameter in [0, 1); suggested: ``nu / max L``, 0 when nonsmooth. Clients that differ often bear far
        more: :class:`dualopt.methods.AdaptiveDualFL` finds out how much (docs/no_tuning.md).
    nu : float, optional
        Duality parameter; suggested: ``min mu``.
    solver : LocalSolver, optional
        As in :class:`dualopt.methods.Algorithm`.
    stop : Stop, optional
        When a client stops its local solver; suggested: with L-BFGS and a known L, when the local gradient has fallen
        to 0.3 of what it was, which mostly takes as many rounds as a tenth, and a quarter fewer gradients; else to a
        tenth.

    Raises
    ------
    ValueError
        If ``rho`` or ``nu`` is out of range; from ``suggested`` if nothing is known of the curvature and ``rho`` is not
        given: :class:`dualopt.methods.RestartedDualFL` needs none; from ``check`` if ``nu`` exceeds ``mu``.

    Examples
    --------
    >>> DualFL(rho=0.1, nu=0.5).rho
    0.1
    """

    upload_reference: ClassVar[str] = "message"
    theorems = OF_DUALFL

    stop: EarlyStop = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero; message 0 is the zero model."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        return Server(zero, 1.0), Message(zero, 0.0), Client(copies, zeros, zeros)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve (3.1)."""
        theta = oracle.sent(oracle.solve(start=c.theta, linear=-self.nu * c.zeta).theta)
        return c._replace(theta=theta), theta

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Average (3.2)."""
        t, beta = momentum(server.t, self.rho)
        return Server(mean, t), Message(mean, beta)

    def receive(self, c: Client, message: Message) -> Client:
        """Extrapolate (3.3)."""
        v = c.zeta - c.theta  # in place from here on: where models are large, new arrays cost more than the sums
        v += message.theta
        zeta = v - c.v
        zeta *= message.beta
        zeta += v
        return c._replace(zeta=zeta, v=v)


def momentum(t: float, rho: float) -> tuple[float, float]:
    """Return ``t_{n+1}`` and ``beta_n`` of (3.4).

    Examples
    --------
    >>> momentum(1.0, 0.0)
    (1.618033988749895, 0.0)
    """
    shrink = 1.0 - rho * t * t
    t_next = 0.5 * (shrink + math.sqrt(shrink * shrink + 4.0 * t * t))
    return t_next, (t - 1.0) / t_next * (1.0 - t_next * rho) / (1.0 - rho)
