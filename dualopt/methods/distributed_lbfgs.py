"""L-BFGS at the server (Liu and Nocedal 1989; recalled): the clients send values and gradients, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dualopt.arrays._checks import require_kept
from dualopt.arrays.compiled import compiled
from dualopt.arrays.xp import Array, array_namespace, zeros_like
from dualopt.methods._line_search import LineSearch, Upload, accepts, infinite, inner, shortened
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round

__all__ = ["DistributedLBFGS", "inverse_hessian_product"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta, the latest accepted point
    value: Array  # ()  E(theta), infinite before the first round
    gradient: Array  # grad E(theta)
    step: Array  # from theta to the point that the clients look at next
    s: tuple[Array, ...]  # changes of theta, the newest last; zero where there is none yet
    y: tuple[Array, ...]  # changes of grad E


@dataclass(frozen=True, kw_only=True)
class DistributedLBFGS(LineSearch):
    r"""Minimise ``E`` by limited-memory BFGS: every round evaluates one point, ``f_j`` and its gradient up.

    .. math::
        \text{clients:}\quad & f_j(\theta + d), \ \nabla f_j(\theta + d) \\
        \text{server:}\quad & \text{accepted:} && s = d,\ y = \nabla E(\theta + d) - \nabla E(\theta),\
        \theta \leftarrow \theta + d,\ d = -H\,\nabla E(\theta) \\
        & \text{else:} && d \leftarrow t\,d, \quad t \in [0.1, 0.5] \text{ by quadratic interpolation}

    ``H`` is the two-loop recursion over the last pairs with :math:`\langle s, y\rangle > 0`, around
    :math:`\langle s, y\rangle/\langle y, y\rangle` times the identity. A point is accepted by the rule of the local
    solver :class:`dualopt.solvers.LBFGS`, which near the minimum looks at slopes where values are rounding. So the
    points are those of that solver on ``E``, in one place and without a preconditioner (``lbfgs_is_central``): the
    baseline against which a federated method has to show that local work saves communication. One vector and one
    number travel up per round, one vector down; the model is the latest accepted point, whose gradient is known, so
    that a certificate costs nothing. All clients must take part.

    For smooth strongly convex ``E`` it converges linearly (Liu and Nocedal 1989, Theorem 6.1), with a factor that says
    nothing in practice. The paper was not at hand.

    Parameters
    ----------
    history : int, default 40
        Number of pairs that the server keeps.

    Raises
    ------
    ValueError
        If ``history`` is not between 1 and 1000; from ``suggested`` if the clients are not smooth.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic, run
    >>> f = Quadratic(A=np.stack([np.eye(2), 4 * np.eye(2)]), b=np.array([[5.0, 0.0], [0.0, 10.0]]))
    >>> run(DistributedLBFGS(), f, rounds=6).theta.round(6).tolist()
    [1.0, 2.0]
    """

    without_theorem = "no rate proven here (Liu and Nocedal 1989: linear for smooth strongly convex E)"
    patience: ClassVar[int] = 30  # refused points

    history: Annotated[int, require_kept] = 40

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Array, tuple[()]]:
        """No pairs; the first point is ``theta0``, which is accepted whatever its value is."""
        zero = zeros_like(theta0)
        none = (zero,) * self.history
        return Server(theta0, infinite(theta0), zero, zero, none, none), theta0, ()

    def local(self, c: Any, message: Array, oracle: Oracle, round: Round) -> tuple[Any, Upload]:
        """Evaluate the own loss at the point of the server."""
        found = oracle.evaluate(message)
        return c, Upload(found.f, found.grad_f)

    def server(self, server: Server, mean: Upload, round: Round) -> tuple[Server, Array]:
        """Accept the point and find the next direction, or shorten the step."""
        if not accepts(server.value, server.gradient, server.step, mean):
            step = shortened(server.value, server.gradient, server.step, mean.value)
            return server._replace(step=step), server.theta + step
        theta = server.theta + server.step
        s = (*server.s[1:], theta - server.theta)
        y = (*server.y[1:], mean.gradient - server.gradient)
        step = -_product(s, y, mean.gradient)
        return Server(theta, mean.value, mean.gradient, step, s, y), theta + step

    def delivered(self, server: Server, message: Array) -> Server:
        """Take the step to the point that arrived."""
        return server._replace(step=message - server.theta)


def inverse_hessian_product(
    s: Sequence[Array], y: Sequence[Array], v: Array, inner: Callable[[Array, Array], Array] = inner
) -> Array:
    r"""Return ``H v`` by the two-loop recursion; pairs without :math:`\langle s, y\rangle > 0` beyond rounding are out.

    With an inner product of their own the vectors may be any coordinates of what they stand for.

    Examples
    --------
    >>> import numpy as np
    >>> A, e = np.diag([2.0, 5.0]), np.eye(2)
    >>> inverse_hessian_product((e[0], e[1]), (A @ e[0], A @ e[1]), np.ones(2)).tolist()
    [0.5, 0.2]
    """
    xp = array_namespace(v)
    inverses = []
    for step, change in zip(s, y, strict=True):
        product = inner(step, change)
        good = product > 1e-14 * xp.sqrt(inner(step, step) * inner(change, change))
        inverses.append(xp.where(good, 1.0 / xp.where(good, product, xp.ones_like(product)), xp.zeros_like(product)))
    coefficients = []
    for step, change, inverse in reversed(list(zip(s, y, inverses, strict=True))):
        a = inverse * inner(step, v)
        v = v - a * change
        coefficients.append(a)
    product = inverses[-1] * inner(y[-1], y[-1])  # <y, y>/<s, y>, or 0 without a pair
    v = v * (1.0 / xp.where(product > 0, product, xp.ones_like(product)))
    for step, change, inverse in zip(s, y, inverses, strict=True):
        b = inverse * inner(change, v)
        v = v + (coefficients.pop() - b) * step
    return v


_product = compiled(inverse_hessian_product)
