"""Newton's method at the server with conjugate gradients: every Hessian product is a round trip of a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dualopt.arrays.xp import Array, array_namespace, zeros_like
from dualopt.methods._line_search import LineSearch, Upload, accepts, infinite, inner, shortened
from dualopt.methods._parameters import AtLeastOne
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.solvers.newton import is_curved

__all__ = ["DistributedNewtonCG"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta, the latest accepted point
    value: Array  # ()  E(theta), infinite before the first round
    gradient: Array  # grad E(theta)
    step: Array  # d, so far, of the Newton system H d = -grad E(theta); then shortened where it is refused
    residual: Array  # -grad E(theta) - H d
    direction: Array  # p, the next direction of the conjugate gradients
    products: int  # Hessian products at theta so far; 0 while a point is evaluated


class Message(NamedTuple):
    """What the server sends."""

    vector: Array  # a point, or a direction
    product: bool  # whether it asks for the product with the Hessian at the last point


class Client(NamedTuple):
    """States of the clients."""

    theta: Array  # the last point


@dataclass(frozen=True, kw_only=True)
class DistributedNewtonCG(LineSearch):
    r"""Minimise ``E`` by damped Newton steps, whose systems conjugate gradients solve over the network.

    .. math::
        \text{product rounds:}\quad & p \text{ down}, \ \nabla^2 f_j(\theta)\,p \text{ up}; \quad
        d, r, p \text{ by conjugate gradients for } \nabla^2 E(\theta)\,d = -\nabla E(\theta) \\
        \text{then:}\quad & \theta + d \text{ down}, \ f_j(\theta + d), \nabla f_j(\theta + d) \text{ up}; \quad
        \text{accepted, or } d \text{ is shortened}

    Conjugate gradients stop at the relative residual :math:`\min(0.1, |\nabla E|^{1/2})` or before a direction that is
    next to flat (:func:`dualopt.solvers.newton.is_curved`), and steps are accepted as
    the local solver :class:`dualopt.solvers.NewtonCG` does: without a preconditioner its points on ``E`` are these
    (``newton_cg_is_central``). A round is a round trip of one vector, whether it is a gradient or a product, so that
    an accurate Newton step is expensive: of the order of :math:`\sqrt\kappa` rounds. The model is the latest accepted
    point. All clients must take part. The forcing is that of Eisenstat and Walker (1996; recalled).

    Conjugate gradients with compressed products are not conjugate: ``rounding=8`` takes digits by label in 32 rounds to
    1e-4 (39 without) and in 87 to 1e-10 (55), while ``natural`` does not reach 1e-4 there in 200:
    its products are off by more than the tenth to which the systems are solved.

    Parameters
    ----------
    max_cg : int, default 200
        Largest number of Hessian products in one Newton step.

    Raises
    ------
    ValueError
        If ``max_cg`` is less than 1; from ``suggested`` if the clients are not smooth or offer no Hessian products.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.eye(2), 4 * np.eye(2)]), b=np.array([[5.0, 0.0], [0.0, 10.0]]))
    >>> run(DistributedNewtonCG(), f, rounds=3).theta.round(6).tolist()  # a gradient, a product, a gradient
    [1.0, 2.0]
    """

    needs: ClassVar[frozenset[str]] = frozenset({"smooth", "hessian"})
    without_theorem = "no rate proven here (superlinear near the minimum: Eisenstat and Walker 1996)"
    patience: ClassVar[int] = 250  # the products of a step and refused points

    max_cg: AtLeastOne = 200

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """Start at ``theta0``, which is accepted whatever its value is."""
        zero = zeros_like(theta0)
        return Server(theta0, infinite(theta0), zero, zero, zero, zero, 0), Message(theta0, False), Client(copies)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Upload]:
        """Evaluate the own loss at the point of the server, or multiply its direction by the own Hessian."""
        if message.product:
            product = oracle.sent(oracle.hessian_product(c.theta, message.vector), since=0.0, unbiased=True)
            return c, Upload(array_namespace(product).zeros_like(oracle.mu), product)
        found = oracle.evaluate(message.vector)
        return Client(message.vector), oracle.sent(Upload(found.f, found.grad_f))

    def server(self, server: Server, mean: Upload, round: Round) -> tuple[Server, Message]:
        """Go on with the conjugate gradients, or judge the point."""
        if server.products:
            return self._multiplied(server, mean.gradient)
        if not accepts(server.value, server.gradient, server.step, mean):
            step = shortened(server.value, server.gradient, server.step, mean.value)
            return server._replace(step=step), Message(server.theta + step, False)
        theta, downhill = server.theta + server.step, -mean.gradient
        return self._go_on(Server(theta, mean.value, mean.gradient, zeros_like(downhill), downhill, downhill, 0))

    def delivered(self, server: Server, message: Message) -> Server:
        """Take the direction that arrived, or the step to the point that did."""
        if message.product:
            return server._replace(direction=message.vector)
        return server._replace(step=message.vector - server.theta)

    def _multiplied(self, server: Server, product: Array) -> tuple[Server, Message]:
        """Take a step of the conjugate gradients; without positive curvature, or with next to none, they end."""
        step, residual, p = server.step, server.residual, server.direction
        curvature, size = inner(p, product), inner(residual, residual)
        if not bool(is_curved(curvature, size, -inner(server.gradient, step))):
            step = p if server.products == 1 else step  # steepest descent where nothing is known yet
            return self._to_the_point(server._replace(step=step))
        alpha = size / curvature
        step, residual = step + alpha * p, residual - alpha * product
        p = residual + inner(residual, residual) / size * p
        return self._go_on(server._replace(step=step, residual=residual, direction=p))

    def _go_on(self, server: Server) -> tuple[Server, Message]:
        """Ask for the next product, or for the point if the Newton system is solved."""
        xp = array_namespace(server.theta)
        norm = xp.sqrt(inner(server.gradient, server.gradient))
        tol = norm * xp.minimum(0.1 * xp.ones_like(norm), xp.sqrt(norm))
        if server.products >= self.max_cg or not bool(inner(server.residual, server.residual) > tol * tol):
            return self._to_the_point(server)
        return server._replace(products=server.products + 1), Message(server.direction, True)

    def _to_the_point(self, server: Server) -> tuple[Server, Message]:
        return server._replace(products=0), Message(server.theta + server.step, False)
