"""DANE (Shamir, Srebro and Zhang 2014; recalled) with Anderson acceleration at the server, for alike clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dualopt.arrays._checks import Positive
from dualopt.arrays.xp import Array, array_namespace, zeros_like
from dualopt.methods._anderson import History, Mixing, empty_history, mixture
from dualopt.methods._dane import DANE, Client
from dualopt.methods._gradient_theorems import OF_ANDERSON_DANE
from dualopt.methods._line_search import inner
from dualopt.methods._parameters import LocalWeight
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round

__all__ = ["AndersonDANE"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # xbar, the mean of the x_j at the latest point that was not refused
    point: Array  # theta, which the clients work on
    gradient: Array  # grad E(theta)
    points: tuple[Array, ...]  # theta^i, the newest last
    residuals: tuple[Array, ...]  # r^i
    gradients: tuple[Array, ...]  # grad E(theta^i)
    history: History
    eta: float  # halved whenever a plain step has made the residual larger
    solving: bool  # whether the clients solve, or compute gradients
    started: bool  # whether gradients have been asked for


class Message(NamedTuple):
    """What the server sends to every client."""

    vector: Array  # grad E(theta), or a point theta
    solve: bool  # which of both


@dataclass(frozen=True, kw_only=True)
class AndersonDANE(DANE, Mixing):
    r"""Newton-like steps with the mean of the clients' inverse Hessians, mixed so that their residuals cancel.

    .. math::
        \text{first:}\quad & g_j = \nabla f_j(\theta) && \text{up; their mean } g \text{ down} \\
        \text{then:}\quad & x_j \approx \arg\min f_j + \langle g - g_j, \cdot\rangle
        + \tfrac w2|\cdot - \theta|^2, && \text{up; } \quad r = \bar x - \theta \\
        & a = \arg\min_{\sum a_i = 1} \textstyle\sum_{ik} a_i a_k G_{ik} + \lambda \sum_i a_i^2 G_{ii}, \quad
        \theta^+ = \sum_i a_i\,(\theta^i + \eta r^i) && \text{down}

    with :math:`G_{ik} = -\frac12(\langle r^i, g^k\rangle + \langle r^k, g^i\rangle)` over the last ``m + 1`` points.
    DANE is this with :math:`\theta^+ = \bar x`. An iteration is two rounds of one vector each way and nothing else:
    the server mixes alone. The first round has no gradients, so that it makes the average of the local minimisers,
    the better, the more alike the clients are; the model is :math:`\bar x`. All clients must take part.

    On quadratics :math:`r = -Kg` with :math:`K = \frac1N\sum_j(H_j + w)^{-1}`: G is the Gram matrix of the residuals in
    the inner product of :math:`K^{-1}`, in which :math:`I - \eta KH` is self-adjoint. So, exactly solved,

    .. math:: |r^{n+1}|_{K^{-1}} \le \sqrt{1 + \lambda}\,q\,|r^n|_{K^{-1}}, \qquad q = \max_k |1 - \eta k|

    over the eigenvalues k of KH. For ``w = 0`` they lie in :math:`[1, \frac{(\kappa + 1)^2}{4\kappa}]`, and in
    :math:`[1, 1 + \frac{\epsilon^2}{1 - \epsilon}]` where the :math:`H_j` are within the fraction :math:`\epsilon` of
    their mean (``dane_spectrum``, ``anderson_dane_quadratics``): DANE itself overshoots and diverges beyond 2. The
    safeguard is that of :class:`AndersonFedSplit`, and ``eta`` is halved whenever a plain step has made the residual
    larger, which it does not on quadratics with :math:`q \le 1`. For other losses that is no proof.

    Parameters
    ----------
    weight : float, default 0
        Weight ``w`` of the proximal term.
    eta : float, default 0.2
        First step of the plain iteration; best below 2 over the largest eigenvalue. The mixture makes up for a small
        one.
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

    weight: LocalWeight = 0.0
    eta: Positive = 0.2

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """No gradients are known: the clients minimise their own losses at first."""
        xp, places = array_namespace(theta0), self.memory + 1
        zero = xp.zeros_like(theta0)
        history = empty_history(theta0, self.memory)
        none = (zero,) * places
        server = Server(theta0, theta0, zero, (theta0,) * places, none, none, history, self.eta, True, False)
        return server, Message(zero, True), Client(copies, zeros_like(copies))

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Compute the own gradient at a new point, or solve with the mean gradient in place of the own."""
        if not message.solve:
            return self._gradient(c, message.vector, oracle)
        linear = message.vector - c.gradient
        theta = oracle.solve(start=c.point, linear=linear, weight=self.weight, center=c.point).theta
        return c, oracle.sent(theta, since=c.point)

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Pass the mean gradient on, or mix the points and ask for gradients at the next one."""
        if not server.solving:
            return server._replace(gradient=mean, solving=True), Message(mean, True)
        if not server.started:
            return server._replace(theta=mean, point=mean, solving=False, started=True), Message(mean, False)
        r, g = mean - server.point, server.gradient
        points, residuals = (*server.points[1:], server.point), (*server.residuals[1:], r)
        gradients = (*server.gradients[1:], g)
        products = [-0.5 * (inner(r, q) + inner(p, g)) for p, q in zip(residuals, gradients, strict=True)]
        history, weights, refused = self._judged(server.history, array_namespace(r).stack(products))
        last = server.history
        expands = last.age == 0 and 0 < last.least < float(products[-1])
        eta = 0.5 * server.eta if expands else server.eta
        point = mixture(weights, points) + eta * mixture(weights, residuals)
        theta = server.theta if refused else mean
        return Server(theta, point, g, points, residuals, gradients, history, eta, False, True), Message(point, False)

    def delivered(self, server: Server, message: Message) -> Server:
        """Take the point, or the gradient, that arrived."""
        return server._replace(gradient=message.vector) if message.solve else server._replace(point=message.vector)
