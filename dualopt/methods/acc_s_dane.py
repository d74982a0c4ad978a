"""Acc-S-DANE (Jiang, Rodomanov and Stich 2024; recalled from the authors' code): DANE, accelerated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

from dualopt.arrays._checks import require, require_at_least
from dualopt.arrays.xp import Array, array_namespace, broadcast, device, epsilon, zeros_like
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._estimate import Bound, advanced, growth
from dualopt.methods._gradient_theorems import CURVATURE, OF_ACC_S_DANE
from dualopt.methods._line_search import inner
from dualopt.methods._parameters import (
    largest,
    require_convex_local_problem,
    require_smooth_clients,
    smallest,
)
from dualopt.methods._theorem import Known
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import client_dot
from dualopt.solvers.stopping import GradientReduction, Stop

__all__ = ["AccSDANE", "growth", "widest"]

POINT, SOLVE, JUDGE = range(3)  # what the clients do with a vector
RISE = 2.0  # of a refused weight
FALL = 0.9  # of an accepted one
FIRST_FALL = 0.1  # as long as none has been refused
FIRST_SHARE = 0.1  # of L - mu
ROUNDING = 10.0  # units in the last place of what is compared


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # xbar, the mean of the x_j
    v: Array  # v
    point: Array  # y, which the clients work on
    b: float  # infinite before the first solutions
    asked: int  # what the clients have been asked for
    search: Search | None  # None where the weight is fixed


class Search(NamedTuple):
    """What the server knows where the weight adapts."""

    weight: float
    falling: bool  # whether no weight has been refused so far
    energy: Array  # E(theta), infinite before the first judgement
    mean: Array  # xbar, before it is judged
    share: float  # alpha' of the latest judgement
    accepted: bool | None  # the latest judgement; None where rounding hides it
    rounding: float  # of the numbers compared in it


class Message(NamedTuple):
    """What the server sends to every client."""

    vector: Array  # the point y, grad E(y), or xbar
    asks: int  # for which of the three
    weight: float | None  # None where it is fixed


class Solution(NamedTuple):
    """A local solution."""

    point: Array  # x_j
    value: Array  # f_j(x_j)
    gradient: Array  # grad f_j(x_j)


class Judgement(NamedTuple):
    """What a client says of xbar."""

    value: Array  # f_j(xbar)
    excess: Array  # D_j
    size: Array  # of the numbers that D_j is a difference of


class Client(NamedTuple):
    """States of the clients."""

    point: Array  # y, where the local solver starts
    gradient: Array  # grad f_j(y)
    solution: Solution | None  # None where the weight is fixed


@dataclass(frozen=True, kw_only=True)
class AccSDANE(Algorithm):
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

    With a **fixed weight**, an iteration is two rounds of one vector each way. Let no Hessian be below their mean by
    more than :math:`\delta`: :math:`\nabla^2 f_j \succeq \nabla^2 E - \delta I`. For :math:`w \ge \delta`, convex
    clients with constants of at least :math:`\mu` and exact local solutions,

    .. math:: P = E(x) - E^* + \tfrac b2|v - \theta^*|^2, \qquad P^+ \le (1 - \alpha)\,P, \qquad
              P^1 \le \tfrac w2|\theta^0 - \theta^*|^2

    and :math:`\alpha` falls to the solution of :math:`w\alpha^2 + \mu\alpha = \mu`: of the order of
    :math:`\sqrt{\delta/\mu}` iterations per digit, and for :math:`\mu = 0`
    :math:`E(x^n) - E^* \le 2w|\theta^0 - \theta^*|^2/n^2` (``acc_s_dane``, with a proof that is not the paper's).
    The smoothness of the clients does not matter.

    The weight **adapts** when none is given, which is not the paper's: a third round has :math:`\bar x` judged,

    .. math:: \text{judge:}\quad & f_j(\bar x), \ D_j = f_j(\bar x) - f_j(x_j) - \langle\nabla f_j(x_j), \bar x -
        x_j\rangle - \tfrac\mu2|\bar x - x_j|^2 && \text{up} \\
        & m(\alpha) = (1 - \alpha)E(x) + \alpha\,\ell(v) - \tfrac{\alpha^2}{2b^+}|\nabla\ell(v)|^2, && \ell(u) =
        E(\bar x) - D + \langle w(y - \bar x), u - \bar x\rangle + \tfrac\mu2|u - \bar x|^2 \le E(u),

    D being the mean of the :math:`D_j`. The weight is

    * accepted where :math:`m(\alpha) \ge E(\bar x)`, all that the proof needs; the next one is a tenth of it, or 0.9 of
      it once one has been refused;
    * refused otherwise, and doubled. In place of :math:`\alpha` the step is made with the largest :math:`\alpha' \in
      [0, \alpha]` that has :math:`m(\alpha') \ge \min(E(x), E(\bar x))`, :math:`b' = (1 - \alpha')b + \alpha'\mu`, and
      the better of both points: :math:`P' \le (1 - \alpha')P`, and nothing is redone.

    Weights of at least :math:`\delta` are accepted, so that none exceeds :math:`\bar w = \max(w_0, 2\delta)`, and
    :math:`\delta` need not be known. After n accepted iterations

    .. math:: E(x) - E^* \le \min\Bigl(\frac{2\bar w}{n^2}, \frac{\bar w}2(1 - \alpha^*)^{n - 1}\Bigr)
              |\theta^0 - \theta^*|^2, \qquad \bar w\alpha^{*2} + \mu\alpha^* = \mu,

    and at most :math:`\log_2\frac{\bar w}{w_0} + 3.33q + 0.16(n - q)` were refused, q accepted ones being before these
    (``acc_s_dane_adaptive``). An iteration takes two vectors and three numbers up (the third is the size of the numbers
    in :math:`D_j`, which says what is rounding), and at most two local gradients more. Digits by label take 32 vectors
    to 1e-4 and 84 to 1e-10, with the best fixed weight tried 34 and 90, with :math:`\max L_j - \min\mu_j` over 200.

    Parameters
    ----------
    weight : float, optional
        ``w``, if it is fixed: :math:`\delta`, or a tenth of it, where that is known; :math:`\max L_j - \min\mu_j` is at
        least :math:`\delta` whatever the clients are. It adapts when not given.
    mu : float, optional
        :math:`\mu`; suggested: the least of the clients'.
    first : float, optional
        :math:`w_0`, the first weight where it adapts; suggested: a tenth of :math:`\max L_j - \min\mu_j`.
    solver : LocalSolver, optional
        As in :class:`dualopt.methods.Algorithm`.
    stop : Stop
        When a client stops its local solver; the local gradient has to fall to a hundredth when not given.

    Raises
    ------
    ValueError
        If ``weight``, ``mu`` or ``first`` is negative; from ``suggested`` if the clients are not smooth; from ``check``
        if ``mu`` exceeds that of a client, ``weight`` and ``mu`` are zero, or ``first`` is.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([2.0, 3.0])]), b=np.array([[3.0, 0.0], [0.0, 7.0]]))
    >>> run(AccSDANE(weight=0.5), f, rounds=60).theta.round(6).tolist()
    [1.0, 1.0]
    >>> run(AccSDANE(), f, rounds=60).theta.round(6).tolist()
    [1.0, 1.0]
    """

    supports: ClassVar[frozenset[str]] = frozenset()
    patience: ClassVar[int] = 32  # an iteration is three rounds, and may be refused
    theorems = OF_ACC_S_DANE

    weight: float | None = None
    mu: float = AUTO
    first: float = AUTO
    stop: Stop = GradientReduction(factor=0.01)

    def __post_init__(self) -> None:
        for name in ("weight", "mu", "first"):
            if getattr(self, name) is not None:
                require_at_least(0.0, **{name: getattr(self, name)})

    def suggested(self, objective: Objective) -> Self:
        """Fill in ``mu``, the first weight and the solver."""
        require_smooth_clients(objective, "DANE")
        mu = max(0.0, smallest(objective.mu)) if self.mu is None else self.mu
        first = self.first
        if first is None:
            first = (FIRST_SHARE * widest(objective) or mu) if self.weight is None else self.weight
        require(
            math.isfinite(first),
            "weight must be given, or first: neither mu nor L is known, so nothing can be suggested",
        )
        return replace(super().suggested(objective), mu=mu, first=first)

    def check(self, objective: Objective) -> None:
        """Refuse a ``mu`` that is not proved, and local problems without a unique solution."""
        least = smallest(objective.mu)
        proved = CURVATURE.holds(self, Known.of(objective))
        require(proved, f"mu must not exceed that of any client, {least:g}", self.mu)
        if self.weight is None:
            require(self.first > 0, "first must be positive", self.first)
            return
        require(self.weight + self.mu > 0, "weight must be positive where mu is zero", self.weight)
        require_convex_local_problem(objective, self.weight, "weight")

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """Gradients at ``theta0`` are asked for."""
        search, solution = None, None
        if self.weight is None:
            xp = array_namespace(theta0)
            energy = xp.full((), math.inf, dtype=theta0.dtype, device=device(theta0))
            search = Search(self.first, True, energy, theta0, 0.0, None, 0.0)
            solution = Solution(copies, xp.zeros_like(client_dot(copies, copies)), zeros_like(copies))
        server = Server(theta0, theta0, theta0, math.inf, POINT, search)
        return server, self._message(theta0, POINT, search), Client(copies, zeros_like(copies), solution)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array | Judgement]:
        """Compute the own gradient, solve with the mean gradient in place of the own, or judge the mean solution."""
        if message.asks == POINT:
            gradient = oracle.evaluate(message.vector).grad_f
            return c._replace(point=message.vector, gradient=gradient), gradient
        if c.solution is not None and message.asks == JUDGE:
            return c, self._judgement(c.solution, message.vector, oracle)
        linear = message.vector - c.gradient
        weight = message.weight if self.weight is None else self.weight
        assert weight is not None
        found = oracle.solve(start=c.point, linear=linear, weight=weight, center=c.point).theta
        if c.solution is None:
            return c, found
        there = oracle.evaluate(found)
        return c._replace(solution=Solution(found, there.f, there.grad_f)), found

    def _judgement(self, own: Solution, mean: Array, oracle: Oracle) -> Judgement:
        """Return how far the own lower bound is below ``f_j`` at the mean solution."""
        xp = array_namespace(mean)
        value, step = oracle.value(mean), mean - own.point
        rise = client_dot(own.gradient, step)
        excess = value - own.value - rise - 0.5 * self.mu * client_dot(step, step)
        return Judgement(value, excess, xp.abs(value) + xp.abs(own.value) + xp.abs(rise))

    def server(self, server: Server, mean: Array | Judgement, round: Round) -> tuple[Server, Message]:
        """Pass the mean gradient on, have the mean solution judged, or extrapolate."""
        if isinstance(mean, Judgement):
            return self._judged(server, mean)
        if server.asked == POINT:
            return server._replace(asked=SOLVE), self._message(mean, SOLVE, server.search)
        if server.search is not None:
            search = server.search._replace(mean=mean)
            return server._replace(asked=JUDGE, search=search), self._message(mean, JUDGE, search)
        assert self.weight is not None
        w, mu, y = self.weight, self.mu, server.point
        alpha, b = growth(server.b, w, mu)
        v = (w * alpha * server.v + mu * mean - w * (y - mean)) / (w * alpha + mu)
        return self._extrapolated(mean, v, b, w, None)

    def _judged(self, server: Server, mean: Judgement) -> tuple[Server, Message]:
        """Move as far as the lower bound of these solutions allows, and choose the next weight."""
        assert server.search is not None
        search, w, mu, new = server.search, server.search.weight, self.mu, server.search.mean
        slope, away = w * (server.point - new), server.v - new
        gradient = slope + mu * away  # of the lower bound at v
        height = float(inner(slope, away)) + 0.5 * mu * float(inner(away, away)) - float(mean.excess)
        rounding = ROUNDING * epsilon(server.v) * float(mean.size)
        bound = Bound(height, float(inner(gradient, gradient)), float(search.energy - mean.value), rounding)
        step = advanced(server.b, bound, w, mu)
        falling, weight = search.falling and step.accepted is not False, w
        if step.accepted is not None:
            weight *= RISE if not step.accepted else FIRST_FALL if falling else FALL
        theta, energy = (new, mean.value) if step.taken else (server.theta, search.energy)
        v = server.v - step.share / step.b * gradient if step.share > 0 else server.v
        search = Search(weight, falling, energy, new, step.share, step.accepted, rounding)
        return self._extrapolated(theta, v, step.b, weight, search)

    def _extrapolated(
        self, theta: Array, v: Array, b: float, weight: float, search: Search | None
    ) -> tuple[Server, Message]:
        """Ask for gradients at the next point."""
        alpha, _ = growth(b, weight, self.mu)
        point = (1.0 - alpha) * theta + alpha * v
        return Server(theta, v, point, b, POINT, search), self._message(point, POINT, search)

    @staticmethod
    def _message(vector: Array, asks: int, search: Search | None) -> Message:
        return Message(vector, asks, None if search is None else search.weight)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """At the minimiser, with its gradients, and with its values where the weight adapts."""
        value, gradient = objective.value_and_gradient(theta)
        server, message, clients = self.init(theta, broadcast(theta, gradient.shape))
        if server.search is not None and clients.solution is not None:
            server = server._replace(search=server.search._replace(energy=objective.mean(value)))
            clients = clients._replace(solution=clients.solution._replace(value=value, gradient=gradient))
        return server, message, clients._replace(gradient=gradient)


def widest(objective: Objective) -> float:
    r"""Return :math:`\max L_j - \min\mu_j`, by which a Hessian is below the mean at most."""
    return largest(objective.L) - smallest(objective.mu)
