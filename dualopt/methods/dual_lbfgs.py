"""L-BFGS on DualFL's dual problem: clients keep their own parts of the pairs, and their scalar products add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

from dualopt.arrays._checks import require_kept
from dualopt.arrays.xp import Array, array_namespace, asarray_like, device, epsilon, to_numpy, zeros_like
from dualopt.methods._anderson import empty_history, mixture
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._dual_parameters import Duality
from dualopt.methods._dual_theorems import FALL, OF_DUAL_LBFGS
from dualopt.methods._line_search import falls, infinite, inner
from dualopt.methods._parameters import GradientSolver
from dualopt.methods.distributed_lbfgs import inverse_hessian_product
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import client_dot

__all__ = ["DualLBFGS", "next_gram"]

ROUNDING = 32.0  # units in the last place of |theta| + |zeta|, by which theta_j may be wrong: it moves less than zeta_j


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # the mean of the theta_j at the latest accepted point
    latest: Array  # the same at the latest point
    value: Array  # ()  D, infinite before the first round
    gram: Array  # (2 m + 1, 2 m + 1)  inner products of the s^i, the y^i and q
    weights: tuple[float, ...]  # (2 m + 1)  of these in the step to the latest point
    plain: bool  # whether that step is -q, which is not refused
    path: Array  # ()  the length of all accepted steps, hence at least |zeta|


class Message(NamedTuple):
    """What the server sends to every client."""

    theta: Array  # the mean of the latest theta_j
    accepted: bool  # whether their point is
    weights: tuple[float, ...]  # (2 m + 1)  of the s^i, the y^i and q in the next step


class Client(NamedTuple):
    """States of the clients: their own parts."""

    theta: Array  # theta_j at the latest point
    zeta: Array  # zeta_j, the latest accepted point
    step: Array  # d_j, from there to the latest point
    q: Array  # theta_j - theta, the gradient at the accepted point
    s: tuple[Array, ...]  # changes of zeta_j, the newest last; zero where there is none yet
    y: tuple[Array, ...]  # changes of q_j


class Upload(NamedTuple):
    """What a client sends."""

    theta: Array  # (P, *shape)  theta_j
    value: Array  # (P,)  its part of D
    products: Array  # (P, 2 m + 2)  of theta_j less the last mean, with the s^i, the y^i, q and itself


@dataclass(frozen=True, kw_only=True)
class DualLBFGS(Algorithm):
    r"""Minimise DualFL's dual function by limited-memory BFGS, in place of Nesterov's momentum.

    .. math::
        \text{clients:}\quad & d_j = \textstyle\sum_i(a_i\,s_j^i + b_i\,y_j^i) + c\,q_j, \qquad
        \theta_j \approx \arg\min f_j - \nu\langle\zeta_j + d_j, \cdot\rangle && \text{up: } \theta_j \\
        \text{server:}\quad & \theta = \tfrac1N\textstyle\sum_j\theta_j, \qquad a, b, c && \text{down} \\
        \text{accepted:}\quad & s_j = d_j, \quad y_j = (\theta_j - \theta) - q_j, \quad
        \zeta_j \leftarrow \zeta_j + d_j, \quad q_j \leftarrow \theta_j - \theta

    On the space where :math:`\sum_j\zeta_j = 0`, :math:`D(\zeta) = \frac1N\sum_j\frac1\nu f_j^*(\nu\zeta_j)` has the
    minimum :math:`-\frac1\nu E^*` and the gradient :math:`q_j = \theta_j - \theta`, in the inner product
    :math:`\frac1N\sum_j\langle\cdot, \cdot\rangle`. DualFL without momentum repeats
    :math:`\zeta_j \leftarrow \zeta_j - q_j`.
    The server needs nothing but inner products for the two-loop recursion, whose result is the step's weights (as in
    Chen, Wang and Zhou 2014; recalled); those of the new :math:`q` with older vectors v are
    :math:`\frac1N\sum_j\langle\theta_j, v_j\rangle`, because :math:`\sum_j v_j = 0`. So one vector and ``2 m + 3``
    numbers travel up, one vector and ``2 m + 2`` numbers down.

    A step has to make ``D`` fall by :math:`0.1\,|q|^2`. Otherwise the model stays, and the next step is
    :math:`-q`, which for :math:`\nu \le \mu` does by :math:`\frac12|q|^2` and is accepted. Hence for exact solutions
    the accepted values of ``D`` fall, with every accepted point by the factor :math:`1 - 0.2\,\nu/L`, and
    :math:`\frac\mu{2\nu}|\theta - \theta^*|^2 \le D - D^*` (``dual_lbfgs_descent``). The points are those of L-BFGS
    with all parts in one place (``dual_lbfgs_is_central``). Pairs whose :math:`y` is no more than rounding are left
    out, so that a run that goes on after convergence stays there. With exact line searches it would be the conjugate
    gradient method on quadratics; it takes steps of length one, so that this is not claimed. The model is the mean of
    the :math:`\theta_j` at the latest accepted point, at first that of the minimisers of the :math:`f_j`. All clients
    must take part. The duals start at zero, whatever ``theta0`` is, which is only where the local solvers start.

    Parameters
    ----------
    nu : float, optional
        The length of a plain step; suggested: ``min mu``.
    history : int, default 20
        ``m``, the number of pairs. Clients keep ``2 m + 4`` vectors. Where the model has few parameters, the scalars
        count: there 5 pairs may cost less.
    solver, stop
        As in :class:`dualopt.methods.Algorithm`.

    Raises
    ------
    ValueError
        If ``nu`` is not positive, ``history`` not between 1 and 1000, or the solver samples; from ``check`` if
        ``nu`` exceeds ``mu``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.diag([1.0, 4.0]), np.diag([9.0, 2.0])]), b=np.array([[5.0, 0.0], [0.0, 10.0]]))
    >>> f.minimiser().tolist(), run(DualLBFGS(), f, rounds=12).theta.round(6).tolist()
    ([0.5, 1.6666666666666667], [0.5, 1.666667])
    """

    theorems = OF_DUAL_LBFGS
    upload_reference: ClassVar[str] = "message"

    nu: Duality = AUTO
    history: Annotated[int, require_kept] = 20
    solver: GradientSolver = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """All zero but the model; the first point is accepted whatever its value is."""
        size, zeros = 2 * self.history + 1, zeros_like(copies)
        gram, weights = empty_history(theta0, 2 * self.history).gram, (0.0,) * size
        server = Server(theta0, theta0, infinite(theta0), gram, weights, True, zeros_like(infinite(theta0)))
        none = (zeros,) * self.history
        return server, Message(theta0, False, weights), Client(copies, zeros, zeros, zeros, none, none)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Upload]:
        """Keep the last point if it was accepted, take the next step, and multiply the solution by what is kept."""
        if message.accepted:
            q = c.theta - message.theta
            s, y = (*c.s[1:], c.step), (*c.y[1:], q - c.q)
            c = c._replace(zeta=c.zeta + c.step, q=q, s=s, y=y)
        kept = (*c.s, *c.y, c.q)
        step = mixture(message.weights, kept)
        zeta = c.zeta + step
        theta = oracle.solve(start=c.theta, linear=-self.nu * zeta).theta
        value = client_dot(zeta, theta) - oracle.evaluate(theta).f / self.nu
        theta = oracle.sent(theta, since=c.theta)
        moved = theta - message.theta
        products = array_namespace(theta).stack([client_dot(moved, v) for v in (*kept, moved)], axis=-1)
        return c._replace(theta=theta, step=step), Upload(theta, value, products)

    def server(self, server: Server, mean: Upload, round: Round) -> tuple[Server, Message]:
        """Accept the point and find the next direction, or go back and take a plain step."""
        xp, shift = array_namespace(mean.theta), mean.theta - server.latest
        weights = asarray_like(server.weights, server.gram)
        products = mean.products[:-1]  # of the new gradient with what is kept
        size = xp.maximum(mean.products[-1] - inner(shift, shift), zeros_like(mean.value))
        slope, new_slope = xp.sum(server.gram[-1, :] * weights), xp.sum(products * weights)
        fall = FALL * server.gram[-1, -1]
        accepted = server.plain or falls(server.value, slope, mean.value, new_slope, fall)
        if not accepted:
            plain = (0.0,) * (2 * self.history) + (-1.0,)
            server = server._replace(latest=mean.theta, weights=plain, plain=True)
            return server, Message(mean.theta, False, plain)
        path = server.path + xp.sqrt(xp.maximum(inner(weights, server.gram @ weights), xp.zeros_like(slope)))
        gram = next_gram(server.gram, weights, products, size)
        rounding = ROUNDING * epsilon(mean.theta) * (path + xp.sqrt(inner(mean.theta, mean.theta)))
        step = tuple(map(float, self._direction(to_numpy(gram), to_numpy(rounding))))
        return Server(mean.theta, mean.theta, mean.value, gram, step, False, path), Message(mean.theta, True, step)

    def _direction(self, gram: Array, rounding: Array) -> Array:
        """Return the weights of L-BFGS, from the pairs whose ``y`` is more than rounding."""
        m = self.history
        s, y = ([_unit(m, first + i, gram) for i in range(m)] for first in (0, m))
        y = [v * asarray_like(gram[m + i, m + i] > rounding**2, v) for i, v in enumerate(y)]
        return -inverse_hessian_product(s, y, _unit(m, 2 * m, gram), lambda u, v: u @ gram @ v)

    def fixed_point(self, objective: Objective, theta: Array) -> tuple[Server, Message, Client]:
        """At the minimiser ``nu zeta_j = grad f_j(theta*)``, every local solution is ``theta*``, and D ``-E*/nu``."""
        value, gradient = objective.value_and_gradient(theta)
        server, message, clients = self.start_with(theta, zeta=gradient / self.nu)
        return server._replace(value=-objective.mean(value) / self.nu), message, clients


def next_gram(gram: Array, weights: Array, products: Array, size: Array) -> Array:
    r"""Return the inner products of the vectors that are kept when a step has been accepted.

    Parameters
    ----------
    gram : array, shape (2 m + 1, 2 m + 1)
        Those of :math:`s^1, \dots, s^m, y^1, \dots, y^m, q`.
    weights : array, shape (2 m + 1,)
        Of these vectors in the step.
    products : array, shape (2 m + 1,)
        Of these vectors with the new gradient.
    size : array, shape ()
        Its square.

    Examples
    --------
    >>> import numpy as np
    >>> s, y, q, new = np.random.default_rng(0).standard_normal((4, 3))
    >>> kept, weights = np.stack([s, y, q]), np.array([0.5, 0.0, -1.0])
    >>> after = np.stack([weights @ kept, new - q, new])
    >>> bool(np.allclose(next_gram(kept @ kept.T, weights, kept @ new, new @ new), after @ after.T))
    True
    """
    xp, n = array_namespace(gram), gram.shape[0]
    m, old = n // 2, xp.eye(n + 1, dtype=gram.dtype, device=device(gram))
    step = xp.concat([weights, xp.zeros_like(weights[:1])])
    rows = [old[1:m, :], step[None, :], old[m + 1 : 2 * m, :], (old[n, :] - old[n - 1, :])[None, :], old[n:, :]]
    change = xp.concat(rows, axis=0)
    column = xp.concat([products, xp.reshape(size, (1,))])
    extended = xp.concat([xp.concat([gram, products[None, :]], axis=0), column[:, None]], axis=1)
    found = change @ extended @ change.T
    squares = xp.linalg.diagonal(found)
    negative = xp.minimum(squares, xp.zeros_like(squares))  # by rounding, where little has changed
    return found - negative * xp.eye(n, dtype=gram.dtype, device=device(gram))


def _unit(m: int, place: int, like: Array) -> Array:
    """Return the weights that choose one of the ``2 m + 1`` vectors."""
    xp = array_namespace(like)
    return xp.eye(1, 2 * m + 1, k=place, dtype=like.dtype, device=device(like))[0, :]
