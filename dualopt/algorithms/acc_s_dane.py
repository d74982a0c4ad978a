"""Acc-S-DANE (Jiang, Rodomanov and Stich 2024; recalled from the authors' code): DANE, accelerated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

from dualopt._checks import require, require_at_least
from dualopt.algorithms._base import OPEN, Algorithm
from dualopt.algorithms._parameters import (
    largest,
    require_convex_local_problem,
    require_smooth_clients,
    smallest,
    within,
)
from dualopt.objectives import Objective
from dualopt.oracle import Oracle
from dualopt.participation import Round
from dualopt.stopping import GradientReduction, Stop
from dualopt.xp import Array, broadcast, zeros_like

__all__ = ["AccSDANE", "growth", "limit_factor"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # xbar, the mean of the x_j
    v: Array  # v
    point: Array  # y, which the clients work on
    b: float  # infinite before the first solutions
    solving: bool  # whether the clients solve, or compute gradients


class Message(NamedTuple):
    """What the server sends to every client."""

    vector: Array  # grad E(y), or the point y
    solve: bool  # which of both


class Client(NamedTuple):
    """States of the clients."""

    point: Array  # y, where the local solver starts
    gradient: Array  # grad f_j(y)


@dataclass(frozen=True, kw_only=True)
class AccSDANE(Algorithm):
    r"""Nesterov's acceleration around DANE's steps: the more alike the clients are, the smaller may its weight be.

    .. math::
        \text{point:}\quad & y = (1 - \alpha)\,\bar x + \alpha v, \qquad g_j = \nabla f_j(y)
        && \text{up; their mean } g \text{ down} \\
        \text{then:}\quad & x_j \approx \arg\min f_j + \langle g - g_j, \cdot\rangle + \tfrac w2|\cdot - y|^2,
        && \text{up} \\
        & v^+ = \frac{w\alpha\,v + \mu\,\bar x - w(y - \bar x)}{w\alpha + \mu}, \qquad b^+ = w\alpha^2 + \mu\alpha,
        && \alpha = \frac2{1 + \sqrt{1 + 4w/b}}

    with :math:`b = \infty`, that is :math:`\alpha = 1`, at first. An iteration is two rounds of one vector each way.
    The paper sends a third one up, :math:`\nabla f_j(x_j)`: but the local optimality conditions add up to
    :math:`\frac1N\sum_j\nabla f_j(x_j) = w(y - \bar x)`, up to the residuals, which is what the server needs. The model
    is :math:`\bar x`. All clients must take part.

    Let no Hessian be below their mean by more than :math:`\delta`: :math:`\nabla^2 f_j \succeq \nabla^2 E - \delta I`.
    For :math:`w \ge \delta`, convex clients with constants of at least :math:`\mu` and exact local solutions,

    .. math:: P = E(\bar x) - E^* + \tfrac b2|v - \theta^*|^2, \qquad P^+ \le (1 - \alpha)\,P, \qquad
              P^1 \le \tfrac w2|\theta^0 - \theta^*|^2

    and :math:`\alpha` falls to the solution of :math:`w\alpha^2 + \mu\alpha = \mu`: of the order of
    :math:`\sqrt{\delta/\mu}` iterations per digit, and for :math:`\mu = 0`
    :math:`E(\bar x^n) - E^* \le 2w|\theta^0 - \theta^*|^2/n^2` (``acc_s_dane``, with a proof that is not the paper's).
    The smoothness of the clients does not matter.

    Parameters
    ----------
    weight : float, optional
        ``w``. Suggested: :math:`\max L_j - \min\mu_j`, which is at least :math:`\delta` whatever the clients are.
        Clients that are alike want the true :math:`\delta`, or a tenth of it.
    mu : float, optional
        :math:`\mu`; suggested: the least of the clients'.
    solver : LocalSolver, optional
        As in :class:`dualopt.algorithms.Algorithm`.
    stop : Stop
        When a client stops its local solver; the local gradient has to fall to a hundredth when not given.

    Raises
    ------
    ValueError
        If ``weight`` or ``mu`` is negative; from ``suggested`` if the clients are not smooth; from ``check`` if ``mu``
        exceeds that of a client, or both parameters are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([2.0, 3.0])]), b=np.array([[3.0, 0.0], [0.0, 7.0]]))
    >>> run(AccSDANE(weight=0.5), f, rounds=60).theta.round(6).tolist()
    [1.0, 1.0]
    """

    supports: ClassVar[frozenset[str]] = frozenset()

    weight: float = OPEN
    mu: float = OPEN
    stop: Stop = GradientReduction(factor=0.01)

    def __post_init__(self) -> None:
        for name in ("weight", "mu"):
            if getattr(self, name) is not None:
                require_at_least(0.0, **{name: getattr(self, name)})

    def suggested(self, objective: Objective) -> Self:
        """Fill in the weight, ``mu`` and the solver."""
        require_smooth_clients(objective, "DANE")
        mu = max(0.0, smallest(objective.mu)) if self.mu is None else self.mu
        weight = widest(objective) if self.weight is None else self.weight
        require(math.isfinite(weight), "weight must be given: neither mu nor L is known, so nothing can be suggested")
        return replace(super().suggested(objective), weight=weight, mu=mu)

    def check(self, objective: Objective) -> None:
        """Refuse a ``mu`` that is not proved, and local problems without a unique solution."""
        least = smallest(objective.mu)
        require(within(self.mu, least), f"mu must not exceed that of any client, {least:g}", self.mu)
        require(self.weight + self.mu > 0, "weight must be positive where mu is zero", self.weight)
        require_convex_local_problem(objective, self.weight, "weight")

    def guarantee(self, objective: Objective) -> str:
        """Say how fast the potential falls, if the clients are at most as different as the weight."""
        method = self.suggested(objective)
        mu, least, widest_weight = method.mu, smallest(objective.mu), widest(objective)
        if not (least >= 0 and within(mu, least)):
            return "none: the clients are not convex with constant mu"
        sure = within(widest_weight, method.weight)
        given = "" if sure else "where no Hessian is below their mean by more than the weight, "
        if mu == 0:
            return f"{given}E - E* <= 2 weight |theta0 - theta*|^2/n^2 after n iterations of two rounds"
        return f"{given}E - E* = O(q^n), q = {limit_factor(method.weight, mu):.4f} per two rounds"

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """Gradients at ``theta0`` are asked for."""
        server = Server(theta0, theta0, theta0, math.inf, False)
        return server, Message(theta0, False), Client(copies, zeros_like(copies))

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Compute the own gradient at a new point, or solve with the mean gradient in place of the own."""
        if not message.solve:
            gradient = oracle.evaluate(message.vector).grad_f
            return Client(message.vector, gradient), gradient
        linear = message.vector - c.gradient
        return c, oracle.solve(start=c.point, linear=linear, weight=self.weight, center=c.point).theta

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Pass the mean gradient on, or extrapolate."""
        if not server.solving:
            return server._replace(solving=True), Message(mean, True)
        w, mu, y = self.weight, self.mu, server.point
        alpha, b = growth(server.b, w, mu)
        v = (w * alpha * server.v + mu * mean - w * (y - mean)) / (w * alpha + mu)
        alpha, _ = growth(b, w, mu)
        point = (1.0 - alpha) * mean + alpha * v
        return Server(mean, v, point, b, False), Message(point, False)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """At the minimiser, with its gradients."""
        gradient = objective.gradient(theta)
        server, message, clients = self.init(theta, broadcast(theta, gradient.shape))
        return server, message, clients._replace(gradient=gradient)


def growth(b: float, weight: float, mu: float) -> tuple[float, float]:
    r"""Return :math:`\alpha` and :math:`b^+`.

    Examples
    --------
    >>> growth(math.inf, 2.0, 1.0)
    (1.0, 3.0)
    """
    alpha = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 * weight / b))
    return alpha, weight * alpha * alpha + mu * alpha


def limit_factor(weight: float, mu: float) -> float:
    r"""Return :math:`1 - \alpha` in the limit, for ``mu > 0``.

    Examples
    --------
    >>> limit_factor(2.0, 1.0)
    0.5
    """
    return 1.0 - growth(mu, weight, mu)[0]


def widest(objective: Objective) -> float:
    r"""Return :math:`\max L_j - \min\mu_j`, by which a Hessian is below the mean at most."""
    return largest(objective.L) - smallest(objective.mu)
