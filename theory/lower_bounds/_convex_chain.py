r"""Chains: convex problems in which a round of communication gains one coordinate.

The clients of a chain in ``d`` coordinates belong to two groups of equal size, one with the links of even, one with
those of odd number; with :math:`x_0 = 1` and :math:`x_{d+1} = 0`,

.. math:: f_j(x) = w \sum_{k \equiv j\ (2)} \phi(x_{k+1} - r_k x_k) + \tfrac\mu2 |x|^2, \qquad 0 \le k \le d.

This is Nesterov's chain as Arjevani and Shamir (2015) deal it out to machines.

**The class of methods.** All start at zero. Between two communications a client computes, as often as it
likes, linear combinations of vectors that it has, (sub)gradients of its own :math:`f_j` at such points (0 at a kink)
and exact minimisers of :math:`f_j + \langle a, \cdot\rangle + \frac\rho2 |\cdot - b|^2` with such ``a`` and ``b``. To
communicate is to give all vectors to all clients. Coefficients are free and may depend on everything.

**One coordinate per round.** Let :math:`V_n` be the vectors that vanish beyond the first ``n`` coordinates. The links
of a group share no coordinate, so that gradients and minimisers treat the pairs :math:`(x_k, x_{k+1})` of its links one
by one, and a pair of zeros stays one: a group leaves :math:`V_n` only by link ``n``, that is, only one of the two does,
and only to :math:`V_{n+1}`, from which its next link, ``n + 2``, does not start. By induction all vectors are in
:math:`V_n` after ``n`` rounds, whatever was computed locally. An error can then not be less than the least on
:math:`V_n`: for the distance the tail :math:`\sum_{k > n} (\theta^*_k)^2`, in any number of dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dualopt.losses import AbsoluteDeviation, Loss, Squared
from dualopt.objectives import LocalProblem, Objective
from dualopt.objectives.local_problem import client_dot, per_client
from dualopt.xp import Array
from theory._problems import Instance

__all__ = ["Chain", "geometric", "kinked", "level", "power", "squares", "tails"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain(Objective):
    r"""The clients of a chain.

    Parameters
    ----------
    ratios : array, shape (d + 1,)
        :math:`r_0, \ldots, r_d`.
    weight : float
        ``w``.
    ridge : float
        :math:`\mu`, strong convexity of every client.
    loss : Loss
        :math:`\phi`, even, with its minimum at 0.
    groups : tuple of int
        For every client 0 or 1: whether it has the links of even or of odd number.

    Examples
    --------
    >>> f = Chain(ratios=np.ones(4), weight=2.0, ridge=1.0, loss=Squared())
    >>> f.gradient(np.array([1.0, 0.0, 0.0])).tolist()
    [[1.0, 0.0, 0.0], [3.0, -2.0, 0.0]]
    >>> f.exact_minimiser(LocalProblem(objective=f, linear=-f.gradient(np.ones(3)))).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """

    ratios: Array
    weight: float
    ridge: float
    loss: Loss
    groups: tuple[int, ...] = (0, 1)

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return len(self.groups)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(d,)`` of the model."""
        return (len(self.ratios) - 1,)

    @property
    def mu(self) -> Array:
        """The ridge, shape ``(N,)``."""
        return np.full(self.n_clients, self.ridge)

    @property
    def L(self) -> Array:
        """Ridge and largest curvature of a link of each client, shape ``(N,)``."""
        return self.ridge + self.weight * self.loss.curvature * np.max(self._held * self._squared, axis=1)

    @property
    def offers(self) -> frozenset[str]:
        """Exact local solutions."""
        return frozenset({"exact"})

    def zeros(self) -> Array:
        """Return the zero model, shape ``(d,)``."""
        return np.zeros(self.shape)

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)``, shape ``(N,)``."""
        return self.value_and_gradient(theta)[0]

    def gradient(self, theta: Array) -> Array:
        """Return the gradients, at kinks with the subgradient 0 of the loss, shape ``(N, d)``."""
        return self.value_and_gradient(theta)[1]

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return both, shapes ``(N,)`` and ``(N, d)``."""
        theta = np.broadcast_to(theta, (self.n_clients, *self.shape))
        gaps = self._gaps(theta)
        value, slope = self.loss.value_and_gradient(gaps, np.zeros_like(gaps))
        value = self.weight * np.sum(self._held * value, axis=1) + 0.5 * self.ridge * client_dot(theta, theta)
        return value, self.pull(self.weight * slope) + self.ridge * theta

    def exact_minimiser(self, problem: LocalProblem) -> Array:
        r"""Return the local minimisers, shape ``(N, d)``, link by link.

        Without links it is ``free``, the minimiser of the quadratic part, whose curvature is ``m``. A link with row
        ``a`` moves that along ``a`` only, and leaves the gap :math:`\mathrm{prox}_{w|a|^2/m\,\phi}(\langle a,
        \text{free}\rangle)`.
        """
        curvature = per_client(self.ridge + problem.weight, self.ratios[None])
        if np.min(curvature) <= 0:
            raise ValueError("a local problem without quadratic part has no unique minimiser: give the chain a ridge.")
        free = -problem.linear_term() / curvature
        gaps = self._gaps(free)
        squared = np.where(self._squared > 0, self._squared, 1.0)  # a row of zeros moves nothing
        left = self.loss.prox(gaps, np.zeros_like(gaps), self.weight * squared / curvature)
        return free - self.pull((gaps - left) / squared)

    def select(self, ids: Sequence[int]) -> Chain:
        """Return the clients ``ids``."""
        return replace(self, groups=tuple(self.groups[j] for j in ids))

    def pull(self, forces: Array) -> Array:
        r"""Return the sum of the rows of a client's links times their forces, shape ``(N, d)``.

        Link ``k`` has the row :math:`e_{k+1} - r_k e_k`.
        """
        forces = self._held * forces
        return forces[:, :-1] - (self.ratios * forces)[:, 1:]

    def _gaps(self, theta: Array) -> Array:
        """Return all :math:`x_{k+1} - r_k x_k`, shape ``(N, d + 1)``."""
        ends = np.ones((self.n_clients, 1))
        return np.concatenate([theta, 0.0 * ends], axis=1) - self.ratios * np.concatenate([ends, theta], axis=1)

    @cached_property
    def _held(self) -> Array:
        """Which links a client has, shape ``(N, d + 1)``."""
        return np.arange(len(self.ratios)) % 2 == np.asarray(self.groups)[:, None]

    @cached_property
    def _squared(self) -> Array:
        """Squared lengths of the rows, shape ``(d + 1,)``; the ends of the chain are no coordinates."""
        d = len(self.ratios) - 1
        return np.append(np.ones(d), 0.0) + np.append(0.0, self.ratios[1:] ** 2)


def geometric(kappa: float, d: int, *, pairs: int = 1) -> Instance:
    r"""Squares with strong convexity 1 and smoothness ``kappa`` of every client; :math:`\theta^*_k = q^k`.

    With :math:`r_0 = \cdots = r_{d-1} = 1` and :math:`w = (\kappa - 1)/2` the gradient of E at the coordinate k is
    :math:`\frac w2 (2x_k - x_{k-1} - x_{k+1}) + x_k`. It vanishes at :math:`q^k` if :math:`q + 1/q = 2 + 2/w`, that is
    :math:`q = \frac{\sqrt\kappa - 1}{\sqrt\kappa + 1}`; at the last one :math:`r_d^2 = 1 - q` takes the place of
    :math:`x_{d+1}`. The condition number of E is less than that of the clients, and tends to it with d.

    Examples
    --------
    >>> f = geometric(9.0, 4)
    >>> f.theta.tolist(), f.objective.L.tolist()
    ([0.5, 0.25, 0.125, 0.0625], [9.0, 9.0])
    >>> bool(abs(f.subgradients.sum(axis=0)).max() < 1e-15)
    True
    """
    q = (math.sqrt(kappa) - 1.0) / (math.sqrt(kappa) + 1.0)
    ratios = np.append(np.ones(d), math.sqrt(1.0 - q))
    f = Chain(ratios=ratios, weight=0.5 * (kappa - 1.0), ridge=1.0, loss=Squared(), groups=(0, 1) * pairs)
    return _instance(f"geometric chain (kappa={kappa:g}, d={d})", f, q ** np.arange(1.0, d + 1.0))


def squares(d: int, *, ridge: float = 0.0, pairs: int = 1) -> Instance:
    r"""Squares with a free end; every client has smoothness 1, besides the ridge.

    Here :math:`w = \frac12`, :math:`r_k = 1` but :math:`r_d = 0`. Without a ridge :math:`\theta^* = (1, \ldots, 1)` and
    :math:`E^* = 0`. With a ridge :math:`\alpha` it is :math:`\cosh(t(d + \frac12 - k))/\cosh(t(d + \frac12))`,
    :math:`\cosh t = 1 + 2\alpha`.

    Examples
    --------
    >>> squares(3).theta.tolist()
    [1.0, 1.0, 1.0]
    >>> f = squares(3, ridge=0.25)
    >>> bool(abs(f.subgradients.sum(axis=0)).max() < 1e-15)
    True
    """
    rate = math.acosh(1.0 + 2.0 * ridge)
    theta = np.cosh(rate * (d + 0.5 - np.arange(1.0, d + 1.0))) / math.cosh(rate * (d + 0.5))
    f = Chain(ratios=np.append(np.ones(d), 0.0), weight=0.5, ridge=ridge, loss=Squared(), groups=(0, 1) * pairs)
    return _instance(f"free chain (d={d}, ridge={ridge:.3g})" if ridge else f"free chain (d={d})", f, theta)


def kinked(name: str, theta: Array, *, pairs: int = 1) -> Instance:
    r"""Absolute values with strong convexity 1 that have a given minimiser, positive and not increasing.

    With :math:`r_k = \theta_{k+1}/\theta_k` (0 at the end) the minimiser is at the kink of every link but the first,
    whose kink is far away, so that it has the force ``w``. Forces :math:`p_k` against the rows make E stationary
    if :math:`2\theta_k = p_{k-1} - r_k p_k`, that is :math:`p_{k-1} = \frac2{\theta_k} \sum_{i \ge k} \theta_i^2`. They
    decrease with k, and :math:`w = p_0` is enough. Other links cannot do with less: the subgradients of a convex
    function of the pair :math:`(x_k, x_{k+1})` that is least at (0, 0) have with the pair a product of at least 0, by
    monotonicity, and those of these links have 0.

    Examples
    --------
    >>> f = kinked("two", np.array([1.0, 0.5]))
    >>> f.objective.weight, f.subgradients.tolist()
    (2.5, [[-1.5, 0.5], [1.5, -0.5]])
    """
    forces = 2.0 * np.cumsum((theta**2)[::-1])[::-1] / theta
    first = 2.0 * forces[0]  # its clients would stop at half of it without the others
    ratios = np.concatenate([[first], theta[1:] / theta[:-1], [0.0]])
    f = Chain(ratios=ratios, weight=float(forces[0]), ridge=1.0, loss=AbsoluteDeviation(), groups=(0, 1) * pairs)
    subgradients = f.pull(np.append(-forces, 0.0)) + theta
    return Instance(name=name, objective=f, theta=theta, subgradients=subgradients)


def level(n: int, *, pairs: int = 1) -> Instance:
    r"""Absolute values for an even number ``n`` of rounds: :math:`\theta^* = (1, \ldots, 1)`, :math:`d = 3n/2`.

    Examples
    --------
    >>> level(2).objective.weight, level(2).subgradients.tolist()
    (6.0, [[-5.0, 3.0, -1.0], [5.0, -3.0, 1.0]])
    """
    return kinked(f"level chain (n={n})", np.ones(3 * n // 2), pairs=pairs)


def power(d: int, *, pairs: int = 1) -> Instance:
    r"""Absolute values with :math:`\theta^*_k = k^{-3/2}`: the tail is about :math:`1/(2n^2)` for every ``n`` at once.

    Examples
    --------
    >>> round(10**2 * float(np.sum(power(1000).theta[10:] ** 2)), 3)
    0.452
    """
    return kinked(f"power chain (d={d})", np.arange(1.0, d + 1.0) ** -1.5, pairs=pairs)


def tails(theta: Array) -> Array:
    r"""Return :math:`\sum_{k > n} \theta_k^2` for n = 1, 2, ..., d - 1: nothing in the first n coordinates is nearer.

    Examples
    --------
    >>> tails(np.array([3.0, 2.0, 1.0])).tolist()
    [5.0, 1.0]
    """
    return np.cumsum((theta**2)[:0:-1])[::-1]


def _instance(name: str, f: Chain, theta: Array) -> Instance:
    return Instance(name=name, objective=f, theta=theta, subgradients=f.gradient(theta))
