"""DualFL: dualized federated learning (Park and Xu, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

from dualopt._checks import require, require_positive
from dualopt.algorithms._base import OPEN, Algorithm
from dualopt.algorithms._parameters import largest, require_local_gradients, smallest, within
from dualopt.objectives import Objective
from dualopt.oracle import Oracle
from dualopt.participation import Round
from dualopt.xp import Array, broadcast, zeros_like

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

    theta: Array  # theta_j, the point where the local solver starts next time
    sent: Array  # the point that was uploaded: theta_j, or its dual correction
    zeta: Array  # zeta_j
    v: Array  # zeta_j^(n-1) + theta^(n) - theta_j^(n), the latest bracket of (3.3)


@dataclass(frozen=True, kw_only=True)
class DualFL(Algorithm):
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
        Momentum parameter in [0, 1); suggested: ``nu / max L``, 0 when nonsmooth.
    nu : float, optional
        Duality parameter; suggested: ``min mu``.
    solver, stop
        As in :class:`dualopt.algorithms.Algorithm`.
    corrected : bool, default False
        Upload the dual-corrected point ``theta_j - grad/nu``, for which the inexact theorems hold at every accuracy
        (the gap (3.6) of the plain point is usually infinite), and restart from the plain one: the
        correction is a step ``1/nu``, far too long to start from. The plain point converges faster in practice.

    Raises
    ------
    ValueError
        If ``rho`` or ``nu`` is out of range; from ``check`` if ``nu`` exceeds ``mu``.

    Examples
    --------
    >>> DualFL(rho=0.1, nu=0.5).rho
    0.1
    """

    listens: ClassVar[frozenset[str]] = frozenset({"active"})

    rho: float = OPEN
    nu: float = OPEN
    corrected: bool = False

    def __post_init__(self) -> None:
        if self.rho is not None and not 0 <= self.rho < 1:
            raise ValueError(f"rho must lie in [0, 1), not {self.rho}.")
        require_positive(nu=self.nu)
        if self.corrected:
            require_local_gradients(self.solver)

    def suggested(self, objective: Objective) -> Self:
        """Fill in ``nu = min_j mu_j`` and ``rho = nu / max_j L_j`` (the optimal choice of Theorem 3.3)."""
        nu = smallest(objective.mu) if self.nu is None else self.nu
        if nu <= 0:
            raise ValueError(f"nu cannot be suggested because mu is {nu:g}: give mu > 0 (Section 4 adds a ridge).")
        rho = nu / largest(objective.L) if self.rho is None else self.rho
        # for mu = L any rho near 1 solves the problem in one round
        return replace(super().suggested(objective), nu=nu, rho=min(rho, 1.0 - 1e-9))

    def check(self, objective: Objective) -> None:
        """Refuse ``nu > mu``, outside the theory: the dual problem is then not convex."""
        mu = smallest(objective.mu)
        unless = "unless check_assumptions is False (--no-check-assumptions on the command line)"
        require(within(self.nu, mu), f"nu = {self.nu:g} must not exceed mu = {mu:g}, {unless}")

    def guarantee(self, objective: Objective) -> str:
        """Say which theorem covers these parameters, for exact local solutions."""
        method = self.suggested(objective)
        nu, rho, limit = method.nu, method.rho, method.nu / largest(objective.L)
        if not within(nu, smallest(objective.mu)):
            return "none: nu exceeds mu"
        if rho == 0:
            return "Theorem 3.2: |theta - theta*|^2 = O(1/n^2)"
        if not within(rho, limit):
            return f"none: rho exceeds nu/L = {limit:.3g}"
        return f"Theorem 3.3: E - E* = O((1 - sqrt(rho))^n), a factor of {1 - math.sqrt(rho):.4f} per round"

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero; message 0 is the zero model."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        return Server(zero, 1.0), Message(zero, 0.0), Client(copies, zeros, zeros, zeros)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Solve (3.1)."""
        solution = oracle.solve(start=c.theta, linear=-self.nu * c.zeta)
        theta = solution.theta
        sent = theta - solution.evaluation.gradient / self.nu if self.corrected else theta
        return c._replace(theta=theta, sent=sent), sent

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Average (3.2)."""
        t, beta = momentum(server.t, self.rho)
        return Server(mean, t), Message(mean, beta)

    def receive(self, c: Client, message: Message) -> Client:
        """Extrapolate (3.3)."""
        v = c.zeta - c.sent  # in place from here on: where models are large, new arrays cost more than the sums
        v += message.theta
        zeta = v - c.v
        zeta *= message.beta
        zeta += v
        return c._replace(zeta=zeta, v=v)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """At the minimiser ``nu zeta_j = grad f_j(theta*)``, and every local solution is ``theta*``."""
        zeta = objective.gradient(theta) / self.nu
        start = broadcast(theta, zeta.shape)
        return Server(theta, 1.0), Message(theta, 0.0), Client(start, start, zeta, zeta)


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
