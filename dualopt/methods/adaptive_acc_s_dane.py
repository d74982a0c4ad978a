"""Acc-S-DANE with a weight that adapts (of this package): how alike the clients are need not be known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dualopt.arrays._checks import NonNegative, require
from dualopt.arrays.xp import Array, array_namespace, epsilon, zeros_like
from dualopt.methods._base import AUTO
from dualopt.methods._dane import DANE
from dualopt.methods._estimate import Bound, advanced, extrapolated
from dualopt.methods._gradient_theorems import OF_ADAPTIVE_ACC_S_DANE, ProvedConvexity
from dualopt.methods._line_search import infinite, inner
from dualopt.methods._parameters import Suggested
from dualopt.methods.acc_s_dane import POINT, SOLVE, widest
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import client_dot

__all__ = ["AdaptiveAccSDANE"]

JUDGE = 2  # what the clients are asked for beside POINT and SOLVE
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
    search: Search


class Search(NamedTuple):
    """What the server knows of the weight."""

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
    weight: float


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
    solution: Solution


def first_weight(method: Any, objective: Objective, name: str) -> float:
    r"""Return a tenth of :math:`\max L_j - \min\mu_j`, or ``mu`` where that is zero."""
    return FIRST_SHARE * widest(objective, name) or method.mu


@dataclass(frozen=True, kw_only=True)
class AdaptiveAccSDANE(DANE):
    r"""Acc-S-DANE that finds its weight: every mean solution is judged by the lower bound that the proof needs.

    The weight w adapts, which is not the paper's: to the two rounds of :class:`dualopt.methods.AccSDANE`, whose
    notation this is, a third one is added, which has :math:`\bar x` judged,

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

    .. math:: E(x) - E^* \le \min\Bigl(\frac{2\bar w}{(n + 1)^2}, \frac{\bar w}2(1 - \alpha^*)^{n - 1}\Bigr)
              |\theta^0 - \theta^*|^2, \qquad \bar w\alpha^{*2} + \mu\alpha^* = \mu,

    and at most :math:`\log_2\frac{\bar w}{w_0} + 3.33q + 0.16(n - q)` were refused, q accepted ones being before these
    (``acc_s_dane_adaptive``). An iteration takes two vectors and three numbers up (the third is the size of the numbers
    in :math:`D_j`, which says what is rounding), and at most two local gradients more. Digits by label take 32 vectors
    to 1e-4 and 84 to 1e-10, with the best fixed weight tried 34 and 90, with :math:`\max L_j - \min\mu_j` over 200.

    Parameters
    ----------
    mu : float, optional
        :math:`\mu`; suggested: the least of the clients'.
    first : float, optional
        :math:`w_0`, the first weight; suggested: a tenth of :math:`\max L_j - \min\mu_j`.
    solver : LocalSolver, optional
        As in :class:`dualopt.methods.Algorithm`.
    stop : Stop
        When a client stops its local solver; the local gradient has to fall to a hundredth when not given.

    Raises
    ------
    ValueError
        If ``mu`` or ``first`` is negative; from ``suggested`` if the clients are not smooth; from ``check`` if ``mu``
        exceeds that of a client, or ``first`` is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([2.0, 3.0])]), b=np.array([[3.0, 0.0], [0.0, 7.0]]))
    >>> run(AdaptiveAccSDANE(), f, rounds=60).theta.round(6).tolist()
    [1.0, 1.0]
    """

    patience: ClassVar[int] = 32  # an iteration is three rounds, and may be refused
    theorems = OF_ADAPTIVE_ACC_S_DANE

    mu: ProvedConvexity = AUTO
    first: Annotated[NonNegative, Suggested(first_weight)] = AUTO

    def check(self, objective: Objective) -> None:
        """Refuse a ``mu`` that is not proved, and a first weight of zero."""
        super().check(objective)
        require(self.first > 0, "first must be positive", self.first)

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """Gradients at ``theta0`` are asked for."""
        search = Search(self.first, True, infinite(theta0), theta0, 0.0, None, 0.0)
        solution = Solution(copies, zeros_like(client_dot(copies, copies)), zeros_like(copies))
        server = Server(theta0, theta0, theta0, math.inf, POINT, search)
        return server, Message(theta0, POINT, self.first), Client(copies, zeros_like(copies), solution)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array | Judgement]:
        """Compute the own gradient, solve with the mean gradient in place of the own, or judge the mean solution."""
        if message.asks == POINT:
            c, _ = self._evaluated(c, message.vector, oracle)
            return c, c.gradient
        if message.asks == JUDGE:
            return c, self._judgement(c.solution, message.vector, oracle)
        linear = message.vector - c.gradient
        found = oracle.solve(start=c.point, linear=linear, weight=message.weight, center=c.point).theta
        sent, there = oracle.sent(found, since=c.point), oracle.evaluate(found)
        return c._replace(solution=Solution(found, there.f, there.grad_f)), sent

    def _judgement(self, own: Solution, mean: Array, oracle: Oracle) -> Judgement:
        """Return how far the own lower bound is below ``f_j`` at the mean solution."""
        xp = array_namespace(mean)
        value, step = oracle.value(mean), mean - own.point
        rise = client_dot(own.gradient, step)
        excess = value - own.value - rise - 0.5 * self.mu * client_dot(step, step)
        return Judgement(value, excess, xp.abs(value) + xp.abs(own.value) + xp.abs(rise))

    def server(self, server: Server, mean: Array | Judgement, round: Round) -> tuple[Server, Message]:
        """Pass the mean gradient on, have the mean solution judged, or move and choose the next weight."""
        if isinstance(mean, Judgement):
            return self._judged(server, mean)
        if server.asked == POINT:
            return server._replace(asked=SOLVE), Message(mean, SOLVE, server.search.weight)
        search = server.search._replace(mean=mean)
        return server._replace(asked=JUDGE, search=search), Message(mean, JUDGE, search.weight)

    def _judged(self, server: Server, mean: Judgement) -> tuple[Server, Message]:
        """Move as far as the lower bound of these solutions allows, and choose the next weight."""
        search, mu = server.search, self.mu
        w, new = search.weight, search.mean
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
        point = extrapolated(theta, v, step.b, weight, mu)
        return Server(theta, v, point, step.b, POINT, search), Message(point, POINT, weight)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """At the minimiser, with its gradients and values."""
        value, gradient = objective.value_and_gradient(theta)
        server, message, clients = self.start_with(theta, gradient=gradient)
        server = server._replace(search=server.search._replace(energy=objective.mean(value)))
        return server, message, clients._replace(solution=Solution(clients.point, value, gradient))
