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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dualopt.arrays.xp import Array, array_namespace, asarray_like, zeros_like
from dualopt.losses import Loss
from dualopt.objectives.local_problem import LocalProblem, client_dot, per_client
from dualopt.objectives.objective import Objective

__all__ = ["ConvexChain"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvexChain(Objective):
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
    >>> import numpy as np
    >>> from dualopt.losses import Squared
    >>> f = ConvexChain(ratios=np.ones(4), weight=2.0, ridge=1.0, loss=Squared())
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
        return (self.ratios.shape[0] - 1,)

    @property
    def mu(self) -> Array:
        """The ridge, shape ``(N,)``."""
        return self.ridge + 0.0 * self._flags[:, 0]

    @property
    def L(self) -> Array:
        """Ridge and largest curvature of a link of each client, shape ``(N,)``."""
        xp = array_namespace(self.ratios)
        return self.ridge + self.weight * self.loss.curvature * xp.max(self._flags * self._squared, axis=1)

    @property
    def offers(self) -> frozenset[str]:
        """Exact local solutions."""
        return frozenset({"exact"})

    def zeros(self) -> Array:
        """Return the zero model, shape ``(d,)``."""
        return zeros_like(self.ratios[1:])

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)``, shape ``(N,)``."""
        return self.value_and_gradient(theta)[0]

    def gradient(self, theta: Array) -> Array:
        """Return the gradients, at kinks with the subgradient 0 of the loss, shape ``(N, d)``."""
        return self.value_and_gradient(theta)[1]

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return both, shapes ``(N,)`` and ``(N, d)``."""
        xp = array_namespace(self.ratios)
        theta = xp.broadcast_to(theta, (self.n_clients, *self.shape))
        gaps = self._gaps(theta)
        value, slope = self.loss.value_and_gradient(gaps, xp.zeros_like(gaps))
        value = self.weight * xp.sum(self._flags * value, axis=1) + 0.5 * self.ridge * client_dot(theta, theta)
        return value, self.pull(self.weight * slope) + self.ridge * theta

    def exact_minimiser(self, problem: LocalProblem) -> Array:
        r"""Return the local minimisers, shape ``(N, d)``, link by link.

        Without links it is ``free``, the minimiser of the quadratic part, whose curvature is ``m``. A link with row
        ``a`` moves that along ``a`` only, and leaves the gap :math:`\mathrm{prox}_{w|a|^2/m\,\phi}(\langle a,
        \text{free}\rangle)`.
        """
        xp = array_namespace(self.ratios)
        total = self.ridge + problem.weight
        curvature = per_client(total, self.ratios[None, :])
        if (total if isinstance(total, float | int) else float(xp.min(total))) <= 0:
            raise ValueError("a local problem without quadratic part has no unique minimiser: give the chain a ridge.")
        free = -problem.linear_term() / curvature
        gaps = self._gaps(free)
        squared = xp.where(
            self._squared > 0, self._squared, xp.ones_like(self._squared)
        )  # a row of zeros moves nothing
        left = self.loss.prox(gaps, xp.zeros_like(gaps), self.weight * squared / curvature)
        return free - self.pull((gaps - left) / squared)

    def select(self, ids: Sequence[int]) -> ConvexChain:
        """Return the clients ``ids``."""
        return replace(self, groups=tuple(self.groups[j] for j in ids))

    def pull(self, forces: Array) -> Array:
        r"""Return the sum of the rows of a client's links times their forces, shape ``(N, d)``.

        Link ``k`` has the row :math:`e_{k+1} - r_k e_k`.
        """
        forces = self._flags * forces
        return forces[:, :-1] - (self.ratios * forces)[:, 1:]

    def _gaps(self, theta: Array) -> Array:
        """Return all :math:`x_{k+1} - r_k x_k`, shape ``(N, d + 1)``."""
        xp = array_namespace(self.ratios)
        ends = xp.ones_like(self._flags[:, :1])
        return xp.concat([theta, 0.0 * ends], axis=1) - self.ratios * xp.concat([ends, theta], axis=1)

    @cached_property
    def _flags(self) -> Array:
        """1 for the links that a client has and 0 for the others, shape ``(N, d + 1)``."""
        links = range(self.ratios.shape[0])
        return asarray_like([[float(k % 2 == group) for k in links] for group in self.groups], self.ratios)

    @cached_property
    def _squared(self) -> Array:
        """Squared lengths of the rows, shape ``(d + 1,)``; the ends of the chain are no coordinates."""
        xp = array_namespace(self.ratios)
        ones, none = xp.ones_like(self.ratios[1:]), xp.zeros_like(self.ratios[:1])
        return xp.concat([ones, none]) + xp.concat([none, self.ratios[1:] ** 2])
