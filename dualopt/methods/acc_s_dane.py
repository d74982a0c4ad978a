"""Acc-S-DANE (Jiang, Rodomanov and Stich 2024; recalled from the authors' code): DANE, accelerated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods._base import AUTO
from dualopt.methods._dane import DANE, Client
from dualopt.methods._estimate import extrapolated, growth
from dualopt.methods._gradient_theorems import OF_ACC_S_DANE, ProvedConvexity
from dualopt.methods._parameters import LocalWeight, Suggested, largest, smallest
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective

__all__ = ["AccSDANE", "widest"]

POINT, SOLVE = range(2)  # what the clients do with a vector


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # xbar, the mean of the x_j
    v: Array  # v
    point: Array  # y, which the clients work on
    b: float  # infinite before the first solutions
    asked: int  # what the clients have been asked for


class Message(NamedTuple):
    """What the server sends to every client."""

    vector: Array  # the point y, or grad E(y)
    asks: int  # for which of both


def widest(objective: Objective, name: str = "weight") -> float:
    r"""Return :math:`\max L_j - \min\mu_j`, by which a Hessian is below the mean at most: a weight for all clients."""
    found = largest(objective.L) - smallest(objective.mu)
    require(math.isfinite(found), f"{name} must be given: L is not known, so nothing can be suggested")
    return found


WIDEST = Suggested(lambda method, f, name: widest(f, name))


@dataclass(frozen=True, kw_only=True)
class AccSDANE(DANE):
    r"""Nesterov's acceleration around DANE's steps: the more alike the clients are, the smaller may its weight be.

    .. math::
        \text{point:}\quad & y = (1 - \alpha)\,x + \alpha v, \qquad g_j = \nabla f_j(y)
        && \text{up; their mean } g \text{ down} \\
        \text{solve:}\quad & x_j \approx \arg\min f_j + \langle g - g_j, \cdot\rangle + \tfrac w2|\cdot - y|^2,
        && \text{up; their mean } \bar x \text{ down} \\
        \text{then:}\quad & x^+ = \bar x, \qquad v^+ = v - \frac\alpha{b^+}\nabla\ell(v), \qquad b^+ = w\alpha^2 +
        \mu\alpha, && w\alpha^2 = b(1 - \alpha), \\
        & \nabla\ell(v) = w(y - \bar x) + \mu(v - \bar x)

    with :math:`b = \infty`, that is :math:`\alpha = 1`, at first; x is the model. The paper sends a third vector up,
    :math:`\nabla f_j(x_j)`: but the local optimality conditions add up to :math:`\frac1N\sum_j\nabla f_j(x_j) = w(y -
    \bar x)`, up to the residuals, which is what the server needs. All clients must take part.

    An iteration is two rounds of one vector each way. Let no Hessian be below their mean by more than :math:`\delta`:
    :math:`\nabla^2 f_j \succeq \nabla^2 E - \delta I`. For :math:`w \ge \delta`, convex clients with constants of at
    least :math:`\mu` and exact local solutions,

    .. math:: P = E(x) - E^* + \tfrac b2|v - \theta^*|^2, \qquad P^+ \le (1 - \alpha)\,P, \qquad
              P^1 \le \tfrac w2|\theta^0 - \theta^*|^2

    and :math:`\alpha` falls to the solution of :math:`w\alpha^2 + \mu\alpha = \mu`: of the order of
    :math:`\sqrt{\delta/\mu}` iterations per digit, and for :math:`\mu = 0`
    :math:`E(x^n) - E^* \le 2w|\theta^0 - \theta^*|^2/(n + 1)^2` (``acc_s_dane``, with a proof that is not the paper's).
    The smoothness of the clients does not matter. Where :math:`\delta` is not known,
    :class:`dualopt.methods.AdaptiveAccSDANE` finds a weight.

    Parameters
    ----------
    weight : float, optional
        ``w``: :math:`\delta`, or a tenth of it; suggested: :math:`\max L_j - \min\mu_j`, which is at least
        :math:`\delta` whatever the clients are.
    mu : float, optional
        :math:`\mu`; suggested: the least of the clients'.
    solver : LocalSolver, optional
        As in :class:`dualopt.methods.Algorithm`.
    stop : Stop
        When a client stops its local solver; the local gradient has to fall to a hundredth when not given.

    Raises
    ------
    ValueError
        If ``weight`` or ``mu`` is negative; from ``suggested`` if the clients are not smooth; from ``check`` if ``mu``
        exceeds that of a client, or ``weight`` and ``mu`` are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([2.0, 3.0])]), b=np.array([[3.0, 0.0], [0.0, 7.0]]))
    >>> run(AccSDANE(weight=0.5), f, rounds=60).theta.round(6).tolist()
    [1.0, 1.0]
    """

    patience: ClassVar[int] = 16  # an iteration is two rounds
    theorems = OF_ACC_S_DANE

    weight: Annotated[LocalWeight, WIDEST] = AUTO
    mu: ProvedConvexity = AUTO

    def check(self, objective: Objective) -> None:
        """Refuse a ``mu`` that is not proved, and local problems without a unique solution."""
        super().check(objective)
        require(self.weight + self.mu > 0, "weight must be positive where mu is zero", self.weight)

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """Gradients at ``theta0`` are asked for."""
        server = Server(theta0, theta0, theta0, math.inf, POINT)
        return server, Message(theta0, POINT), Client(copies, zeros_like(copies))

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Compute the own gradient, or solve with the mean gradient in place of the own."""
        if message.asks == POINT:
            c, _ = self._evaluated(c, message.vector, oracle)
            return c, c.gradient
        linear = message.vector - c.gradient
        theta = oracle.solve(start=c.point, linear=linear, weight=self.weight, center=c.point).theta
        return c, oracle.sent(theta, since=c.point)

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Pass the mean gradient on, or extrapolate and ask for gradients at the next point."""
        if server.asked == POINT:
            return server._replace(asked=SOLVE), Message(mean, SOLVE)
        w, mu, y = self.weight, self.mu, server.point
        alpha, b = growth(server.b, w, mu)
        v = (w * alpha * server.v + mu * mean - w * (y - mean)) / (w * alpha + mu)
        point = extrapolated(mean, v, b, w, mu)
        return Server(mean, v, point, b, POINT), Message(point, POINT)

    def delivered(self, server: Server, message: Message) -> Server:
        """Take the point that arrived; what gradients arrive only tilts the local problems."""
        return server._replace(point=message.vector) if message.asks == POINT else server
