"""DANE (Shamir, Srebro and Zhang 2014; recalled) with Anderson acceleration at the server, for alike clients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dualopt.arrays._checks import Positive
from dualopt.arrays.compiled import compiled
from dualopt.arrays.xp import Array, array_namespace, epsilon, zeros_like
from dualopt.methods._anderson import History, Mixing, empty_history, from_newest, mixture
from dualopt.methods._dane import DANE, Client
from dualopt.methods._gradient_theorems import OF_ANDERSON_DANE
from dualopt.methods._line_search import below, inner
from dualopt.methods._parameters import LocalWeight
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round

__all__ = ["AndersonDANE"]


START, POINT, SOLUTION = range(3)  # what a round asks for
LATEST = 5  # accepted values, above the largest of which a point is refused


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta, the latest accepted point
    point: Array  # the one that the clients look at next
    values: tuple[float, ...]  # E at the latest accepted points, the newest last
    gradient: Array  # grad E(theta)
    points: tuple[Array, ...]  # theta^i, the newest last
    residuals: tuple[Array, ...]  # r^i
    gradients: tuple[Array, ...]  # grad E(theta^i)
    history: History
    eta: float  # of plain steps
    solving: bool  # whether the clients solve, or compute gradients
    started: bool  # whether gradients have been asked for


class Message(NamedTuple):
    """What the server sends to every client."""

    vector: Array  # grad E(theta), or a point theta
    asks: int  # for which of the three


class Upload(NamedTuple):
    """What a client sends in the first round, and of a point."""

    value: Array  # (P,)  f_j
    vector: Array  # (P, *shape)  x_j at first, then grad f_j


@dataclass(frozen=True, kw_only=True)
class AndersonDANE(DANE, Mixing):
    r"""Newton-like steps with the mean of the clients' inverse Hessians, mixed so that their residuals cancel.

    .. math::
        \text{first:}\quad & f_j(\theta),\ g_j = \nabla f_j(\theta) && \text{up; the mean } g \text{ of these down} \\
        \text{then:}\quad & x_j \approx \arg\min f_j + \langle g - g_j, \cdot\rangle
        + \tfrac w2|\cdot - \theta|^2, && \text{up; } \quad r = \bar x - \theta \\
        & a = \arg\min_{\sum a_i = 1} \textstyle\sum_{ik} a_i a_k G_{ik} + \lambda \sum_i a_i^2 G_{ii}, \quad
        \theta^+ = \sum_i a_i\,(\theta^i + \eta r^i) && \text{down}

    with :math:`G_{ik} = -\frac12(\langle r^i, g^k\rangle + \langle r^k, g^i\rangle)` over the last ``m + 1`` points.
    DANE is this with :math:`\theta^+ = \bar x`. An iteration is two rounds of one vector each way and one number up:
    the server mixes alone. The first round has no gradients, so that it makes the average of the local minimisers,
    the better, the more alike the clients are. All clients must take part.

    The model is the latest accepted point. A point is refused whose value lies above the largest one of the last five
    accepted points, less :math:`10^{-4}` times what the slope promises and but for rounding (Grippo, Lampariello and
    Lucidi 1986). The next one is then the plain step from the model, which goes downhill for exact solutions of convex
    clients, :math:`\langle g, r\rangle \le -(\mu + w)|r|^2`; a refused plain step quarters ``eta``. So no accepted
    value is above that of the start.

    On quadratics :math:`r = -Kg` with :math:`K = \frac1N\sum_j(H_j + w)^{-1}`: G is the Gram matrix of the residuals in
    the inner product of :math:`K^{-1}`, in which :math:`I - \eta KH` is self-adjoint. So, exactly solved,

    .. math:: |r^{n+1}|_{K^{-1}} \le \sqrt{1 + \lambda}\,q\,|r^n|_{K^{-1}}, \qquad q = \max_k |1 - \eta k|

    over the eigenvalues k of KH. For ``w = 0`` they lie in :math:`[1, \frac{(\kappa + 1)^2}{4\kappa}]`, and in
    :math:`[1, 1 + \frac{\epsilon^2}{1 - \epsilon}]` where the :math:`H_j` are within the fraction :math:`\epsilon` of
    their mean (``dane_spectrum``, ``anderson_dane_quadratics``): DANE itself overshoots and diverges beyond 2. On
    quadratics with :math:`q < 1` no plain step is refused as long as :math:`\eta k < 2(1 - 10^{-4})`. Residuals are
    judged as by :class:`AndersonFedSplit`, too, and ``eta`` is halved whenever a plain step has made the residual
    larger, which it does not on quadratics with :math:`q \le 1`.

    Parameters
    ----------
    weight : float, default 0
        Weight ``w`` of the proximal term.
    eta : float, default 1.0
        First step of the plain iteration, which falls where it is too long; best below 2 over the largest eigenvalue.
        The mixture makes up for a small one.
    memory : int, default 10
        ``m``.
    solver : LocalSolver, optional
        As in :class:`dualopt.methods.Algorithm`.
    stop : Stop
        When a client stops its local solver; the local gradient has to fall to a hundredth when not given.

    Raises
    ------
    ValueError
        If ``weight`` is negative, ``eta`` not positive or ``memory`` not between 1 and 1000; from ``suggested`` if the
        clients are not smooth; from ``check`` if local problems have no unique solution.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([2.0, 3.0])]), b=np.array([[3.0, 0.0], [0.0, 7.0]]))
    >>> run(AndersonDANE(), f, rounds=9).theta.round(6).tolist()
    [1.0, 1.0]
    """

    theorems = OF_ANDERSON_DANE
    patience: ClassVar[int] = 32  # a solution, and refused points

    weight: LocalWeight = 0.0
    eta: Positive = 1.0

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """No gradients are known: the clients minimise their own losses at first."""
        xp, places = array_namespace(theta0), self.memory + 1
        zero = xp.zeros_like(theta0)
        history, values = empty_history(theta0, self.memory), (-math.inf,) * LATEST
        none = (zero,) * places
        server = Server(theta0, theta0, values, zero, (theta0,) * places, none, none, history, self.eta, True, False)
        return server, Message(zero, START), Client(copies, zeros_like(copies))

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Upload | Array]:
        """Compute the own value and gradient at a new point, or solve with the mean gradient in place of the own."""
        if message.asks == POINT:
            c, value = self._evaluated(c, message.vector, oracle)
            return c, Upload(value, c.gradient)
        value = oracle.value(c.point) if message.asks == START else None
        linear = message.vector - c.gradient
        theta = oracle.solve(start=c.point, linear=linear, weight=self.weight, center=c.point).theta
        theta = oracle.sent(theta, since=c.point)
        return c, theta if value is None else Upload(value, theta)

    def server(self, server: Server, mean: Upload | Array, round: Round) -> tuple[Server, Message]:
        """Pass the mean gradient on if the value admits the point, or mix the points and ask for the next one."""
        if isinstance(mean, Upload):
            return self._accepted_or_not(server, mean) if server.started else self._started(server, mean)
        r, g = mean - server.theta, server.gradient
        points, residuals = (*server.points[1:], server.theta), (*server.residuals[1:], r)
        gradients = (*server.gradients[1:], g)
        history, weights, _ = self._judged(server.history, products := _products(residuals, gradients))
        last = server.history
        expands = last.age == 0 and 0 < last.least < float(products[-1])
        eta = 0.5 * server.eta if expands else server.eta
        point = mixture(weights, points) + eta * mixture(weights, residuals)
        known = server._replace(points=points, residuals=residuals, gradients=gradients, history=history)
        return known._replace(point=point, eta=eta, solving=False), Message(point, POINT)

    def _started(self, server: Server, mean: Upload) -> tuple[Server, Message]:
        """Note the value of the start, and ask for gradients at the mean of the local minimisers."""
        values = (*server.values[1:], float(mean.value))
        server = server._replace(point=mean.vector, values=values, solving=False, started=True)
        return server, Message(mean.vector, POINT)

    def _accepted_or_not(self, server: Server, mean: Upload) -> tuple[Server, Message]:
        """Go to the point and ask for solutions there, or ask for gradients at a plain step from the model."""
        value, slope = float(mean.value), float(inner(server.gradient, server.point - server.theta))
        if below(max(server.values), slope, value, rounding=10.0 * epsilon(server.theta)):
            values, theta, g = (*server.values[1:], value), server.point, mean.vector
            return server._replace(theta=theta, values=values, gradient=g, solving=True), Message(g, SOLUTION)
        history = server.history
        was_plain = history.age == 0 and history.least > 0
        eta = 0.25 * server.eta if was_plain else server.eta
        point = server.theta + eta * server.residuals[-1]  # no residual is known before the first accepted point
        return server._replace(point=point, eta=eta, history=from_newest(history)), Message(point, POINT)

    def delivered(self, server: Server, message: Message) -> Server:
        """Take the point, or the gradient, that arrived."""
        field = "point" if message.asks == POINT else "gradient"
        return server._replace(**{field: message.vector})


@compiled
def _products(residuals: tuple[Array, ...], gradients: tuple[Array, ...]) -> Array:
    """Return the products of the newest residual with all of them in the metric of the local problems."""
    r, g = residuals[-1], gradients[-1]
    products = [-0.5 * (inner(r, q) + inner(p, g)) for p, q in zip(residuals, gradients, strict=True)]
    return array_namespace(r).stack(products)
