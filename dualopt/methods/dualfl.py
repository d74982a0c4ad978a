"""DualFL: dualized federated learning (Park and Xu, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays.xp import Array, broadcast, zeros_like
from dualopt.methods._dual_parameters import DualParameters
from dualopt.methods._dual_theorems import OF_DUALFL
from dualopt.methods._restarts import MOST, Averages, conjugate, judged, slope
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["DualFL", "momentum"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^(n)
    t: float  # t_n
    gap: float = math.inf  # with which the epoch began; for the gap restart alone


class Message(NamedTuple):
    """What the server sends to every client."""

    theta: Array  # theta^(n+1)
    beta: float  # beta_n
    t: float | None = None  # t_(n+1), for the gap restart alone


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # theta_j, the point where the local solver starts next time
    sent: Array  # the point that was uploaded: theta_j, or its dual correction
    zeta: Array  # zeta_j
    v: Array  # zeta_j^(n-1) + theta^(n) - theta_j^(n), the latest bracket of (3.3)
    averages: Averages | None = None  # for the gap restart alone


@dataclass(frozen=True, kw_only=True)
class DualFL(DualParameters):
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
        As in :class:`dualopt.methods.Algorithm`.
    corrected : bool, default False
        Upload the dual-corrected point ``theta_j - grad/nu``, for which the inexact theorems hold at every accuracy
        (the gap (3.6) of the plain point is usually infinite), and restart from the plain one: the
        correction is a step ``1/nu``, far too long to start from. The plain point converges faster in practice.

    restart : "gradient" or "gap", optional
        When to forget the momentum; ``rho`` is then 0, so that nothing but ``nu`` need be known. "gradient": as soon as
        the momentum leads uphill, one scalar more up; for smooth clients linear, by a proof without a useful factor.
        "gap": when it does and a certified gap has fallen to a ninth, at the latest when to a hundredth, for which at
        most :math:`22\sqrt{L/\nu - 1}` rounds are needed (Theorem E, ``theory/frontier/restarts.py``); two scalars more
        up, and one value of every :math:`f_j` in a round. Measured in docs/no_tuning.md. Suggested: "gradient" where
        nothing is known of the curvature (``mu`` is ``-inf``, and ``nu`` given), otherwise none.

    Raises
    ------
    ValueError
        If ``rho`` or ``nu`` is out of range; if ``restart`` is neither of the two, or ``rho`` is not 0 with it; from
        ``check`` if ``nu`` exceeds ``mu``.

    Examples
    --------
    >>> DualFL(rho=0.1, nu=0.5).rho
    0.1
    """

    receivers: ClassVar[frozenset[str]] = frozenset({"active"})
    theorems = OF_DUALFL
    restarts: ClassVar[tuple[str, ...]] = ("gradient", "gap")

    def _of_restarts(self, limit: float) -> str:
        """Say what is proved of the restart; ``limit`` is 1/kappa."""
        if limit == 0:
            return "Theorem E: O(1/n^2) at the mean models" if self.restart == "gap" else "none: L is not finite"
        if self.restart == "gap":
            epoch = max(1, math.floor(2.0 * (1.0 + MOST) * math.sqrt(max(1.0 / limit - 1.0, 0.0))))
            return f"Theorem E: the certified gap falls by {MOST**2:.0f} in at most {epoch} rounds"
        return "linear for smooth clients (theory/frontier/restarts.py), without a useful factor"

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero; message 0 is the zero model."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        averages = Averages(zeros, zeros) if self.restart == "gap" else None
        return Server(zero, 1.0), Message(zero, 0.0), Client(copies, zeros, zeros, zeros, averages)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Any]:
        """Solve (3.1); with a restart its scalars are uploaded too."""
        solution = oracle.solve(start=c.theta, linear=-self.nu * c.zeta)
        theta = solution.theta
        sent = theta - solution.evaluation.gradient / self.nu if self.corrected else theta
        new = c._replace(theta=theta, sent=sent)
        if self.restart is None:
            return new, sent
        slopes = slope(sent, message.theta, c.zeta, c.v)
        if c.averages is None:
            return new, (sent, slopes)
        return new, (sent, slopes, oracle.value(c.averages.mean) + conjugate(solution, self.nu))

    def server(self, server: Server, mean: Any, round: Round) -> tuple[Server, Message]:
        """Average (3.2), and restart where the rule says so."""
        theta, again, gap = judged(self.restart, mean, server.theta, server.gap, self.nu)
        t, beta = (1.0, 0.0) if again else momentum(server.t, self.rho)
        return Server(theta, t, gap), Message(theta, beta, t if self.restart == "gap" else None)

    def receive(self, c: Client, message: Message) -> Client:
        """Extrapolate (3.3)."""
        v = c.zeta - c.sent  # in place from here on: where models are large, new arrays cost more than the sums
        v += message.theta
        zeta = v - c.v
        zeta *= message.beta
        zeta += v
        averages = None if c.averages is None else c.averages.after(*message)
        return c._replace(zeta=zeta, v=v, averages=averages)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """At the minimiser ``nu zeta_j = grad f_j(theta*)``, and every local solution is ``theta*``."""
        gradient = objective.gradient(theta)
        zeta = gradient / self.nu
        start = broadcast(theta, zeta.shape)
        averages = Averages(start, start) if self.restart == "gap" else None
        message = Message(theta, 0.0, None if averages is None else 1.0)
        return Server(theta, 1.0), message, Client(start, start, zeta, zeta, averages)


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
