"""GIANT (Wang et al. 2018; recalled): the mean of the clients' own Newton directions, and a line search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

from dualopt.arrays._checks import interval, require
from dualopt.arrays.xp import Array, array_namespace, broadcast, to_numpy, zeros_like
from dualopt.methods._gradient_theorems import OF_GIANT
from dualopt.methods._line_search import LineSearch, Upload, accepts, infinite, inner, shortened
from dualopt.methods._parameters import AtLeastOne, LocalWeight
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives.local_problem import client_dot

__all__ = ["GIANT", "best_step"]

POINT, DIRECTION, SLOPES = range(3)  # what a round asks for


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta, the latest accepted point
    value: Array  # ()  E(theta), infinite before the first round
    gradient: Array  # grad E(theta)
    step: Array  # -p, then -t p, from theta to the point that the clients look at next
    asked: int  # what the clients have been asked for


class Message(NamedTuple):
    """What the server sends."""

    vector: Array  # a point, the gradient, or the direction
    asks: int  # for which of the three


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # the last point


@dataclass(frozen=True, kw_only=True)
class GIANT(LineSearch):
    r"""Step along the mean of the clients' own Newton directions, as far as the sum of their slopes says.

    .. math::
        \text{point:}\quad & f_j(\theta),\ g_j = \nabla f_j(\theta) && \text{up; their mean } g \text{ down} \\
        \text{direction:}\quad & p_j \approx (\nabla^2 f_j(\theta) + w)^{-1} g && \text{up; their mean } p
        \text{ down} \\
        \text{slopes:}\quad & \langle\nabla f_j(\theta - t\,p), p\rangle, \ t \in \text{steps} && \text{up;} \quad
        \theta - t\,p \text{ down}

    An iteration is three rounds, with two vectors and a few numbers up; the clients find :math:`p_j` by conjugate
    gradients. The server looks for the t where the slope of :math:`E(\theta - t\,p)` is zero, by linear interpolation
    between the steps, which is exact on quadratics, and takes :math:`t(1 - \rho\max(0, 1 - t))` of it: after exact
    steps the errors of both ends of the spectrum alternate, as in steepest descent, and somewhat shorter ones end that
    (digits by label: 67 vectors to 1e-10 with :math:`\rho = 0`, 41 with 0.2). The new point is accepted by Armijo's
    rule, as by :class:`DistributedLBFGS`; otherwise the model stays, and a step 0.1 to 0.5 times as long is tried. The
    model is the latest accepted point. All clients must take part.

    For :math:`\mu`-strongly convex, :math:`L`-smooth clients and local residuals of at most :math:`\eta|g|`, every
    direction has :math:`\langle g, p\rangle \ge (1 - \eta)^2\frac{|g|^2}{L + w}` and :math:`|p|^2 \le
    \frac{\langle g, p\rangle}{\mu + w}`, so that all steps :math:`t \le 2(1 - 10^{-4})\frac{\mu + w}L` are accepted:
    ``E`` falls in every iteration, by a factor (``giant_descent``). On quadratics, with exact directions and ``w = 0``,

    .. math:: E(\theta^+) - E^* \le \Bigl(1 - (1 - \rho^2)\frac{4k}{(k + 1)^2}\Bigr) (E(\theta) - E^*),

    for :math:`\rho = 0` the square of :math:`\frac{k - 1}{k + 1}`, where k is the ratio of the extreme eigenvalues of
    :math:`\frac1N\sum_j H_j^{-1}\,\frac1N\sum_j H_j` (``giant_quadratics``): at most
    :math:`\frac{(\kappa + 1)^2}{4\kappa}`, and :math:`1 + \frac{\epsilon^2}{1 - \epsilon}` where the :math:`H_j` are
    within the fraction :math:`\epsilon` of their mean (``dane_spectrum``).

    The paper has a finite set of steps without a fallback, so that it may diverge where clients are different.

    Parameters
    ----------
    weight : float, default 0
        ``w``, for clients whose Hessians are singular.
    reduction : float, default 0.01
        :math:`\eta`, below 1.
    max_cg : int, default 200
        Largest number of Hessian products for a direction; ``guarantee`` holds where fewer suffice.
    steps : tuple of float, default (1.0, 0.25)
        Where the slopes are asked for; positive. Each costs a local gradient.
    relaxation : float, default 0.2
        :math:`\rho`, below 1.

    Raises
    ------
    ValueError
        If ``weight`` is negative, ``reduction`` not in (0, 1), ``max_cg`` less than 1, a step not positive, or
        ``relaxation`` not in [0, 1); from ``suggested`` if the clients are not smooth or offer no Hessian products;
        from ``check`` if a local system may be singular.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([2.0, 3.0])]), b=np.array([[3.0, 0.0], [0.0, 7.0]]))
    >>> run(GIANT(), f, rounds=30).theta.round(6).tolist()
    [1.0, 1.0]
    """

    needs: ClassVar[frozenset[str]] = frozenset({"smooth", "hessian"})
    patience: ClassVar[int] = 32  # a direction, slopes, and refused points
    theorems = OF_GIANT

    weight: LocalWeight = 0.0
    reduction: Annotated[float, interval("(0, 1)")] = 0.01
    max_cg: AtLeastOne = 200
    steps: tuple[float, ...] = (1.0, 0.25)
    relaxation: Annotated[float, interval("[0, 1)")] = 0.2

    def __post_init__(self) -> None:
        good = all(0 < t < math.inf for t in self.steps)
        require(bool(self.steps) and good, "steps must be positive finite numbers, at least one", self.steps)

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """Start at ``theta0``, which is accepted whatever its value is."""
        zero = zeros_like(theta0)
        return Server(theta0, infinite(theta0), zero, zero, POINT), Message(theta0, POINT), Client(copies)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Upload | Array]:
        """Evaluate the own loss, find the own Newton direction, or the slopes along the mean one."""
        if message.asks == POINT:
            found = oracle.evaluate(message.vector)
            return Client(message.vector), oracle.sent(Upload(found.f, found.grad_f))
        if message.asks == DIRECTION:
            limits = {"reduction": self.reduction, "most": self.max_cg}
            direction = oracle.newton_direction(c.theta, message.vector, weight=self.weight, **limits)
            return c, oracle.sent(direction, since=0.0)
        p = broadcast(message.vector, c.theta.shape)
        slopes = [client_dot(oracle.evaluate(c.theta - t * p).grad_f, p) for t in sorted(self.steps)]
        return c, oracle.in_single(array_namespace(p).stack(slopes, axis=-1))

    def server(self, server: Server, mean: Upload | Array, round: Round) -> tuple[Server, Message]:
        """Judge the point, pass the direction on, or choose the step."""
        if isinstance(mean, Upload):
            return self._judged(server, mean)
        if server.asked == DIRECTION:
            return server._replace(step=-mean, asked=SLOPES), Message(mean, SLOPES)
        slopes = [float(inner(server.gradient, server.step)), *(-float(slope) for slope in to_numpy(mean))]
        t = best_step((0.0, *sorted(self.steps)), slopes)
        step = t * (1.0 - self.relaxation * max(0.0, 1.0 - t)) * server.step
        return server._replace(step=step, asked=POINT), Message(server.theta + step, POINT)

    def delivered(self, server: Server, message: Message) -> Server:
        """Take the step along the direction that arrived, or to the point; the gradient is known to the server."""
        if message.asks == DIRECTION:
            return server
        return server._replace(step=-message.vector if message.asks == SLOPES else message.vector - server.theta)

    def _judged(self, server: Server, new: Upload) -> tuple[Server, Message]:
        """Accept the point and ask for the next direction, or shorten the step."""
        if accepts(server.value, server.gradient, server.step, new):
            theta = server.theta + server.step
            return Server(theta, new.value, new.gradient, server.step, DIRECTION), Message(new.gradient, DIRECTION)
        step = shortened(server.value, server.gradient, server.step, new.value)
        return server._replace(step=step), Message(server.theta + step, POINT)


def best_step(steps: Sequence[float], slopes: Sequence[float]) -> float:
    """Return where the slope is zero by linear interpolation between ascending steps; the last where all are negative.

    A slope that is not finite counts as positive, and is not interpolated with.

    Examples
    --------
    >>> best_step((0.0, 0.5, 1.0), (-2.0, -1.0, 1.0)), best_step((0.0, 1.0), (-2.0, -1.0))
    (0.75, 1.0)
    """
    ends = zip(steps, slopes, strict=True)
    last, before = next(ends)
    for step, slope in ends:
        if not slope <= 0:
            share = before / (before - slope) if math.isfinite(slope) and before <= 0 else 0.5
            return last + share * (step - last)
        last, before = step, slope
    return last
