"""The zero chain: nonconvex losses on which a round makes at most one more entry of the model nonzero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dualopt.arrays._checks import require_positive
from dualopt.arrays.tree import is_everybody, take_clients
from dualopt.arrays.xp import Array, array_namespace, asarray_like, device
from dualopt.objectives.objective import Objective

__all__ = [
    "FLOOR",
    "PSI_1",
    "ZeroChain",
    "phi",
    "phi_curvature",
    "phi_slope",
    "psi",
    "psi_curvature",
    "psi_slope",
]

PSI_1 = -math.expm1(-1.0)  # Psi(1)
CURVATURE = 8.0 * math.pi  # sup |hess Theta_k|, k >= 2: 2 sup Phi, approached
CURVATURE_1 = PSI_1 * 1.5 * math.sqrt(3.0)  # sup |Theta_1''|: Psi(1) max |Phi''|, attained
FLOOR = 4.0 * PSI_1  # min |grad sum_k Theta_k| where the last entry is zero, attained at 0


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroChain(Objective):
    r"""Chains of couplings between neighbouring entries of the model, dealt out to ``N`` clients.

    .. math::
        f_j(\theta) = \text{height} \sum_{k=1}^d w_{jk}\, \Theta_k(\theta/\text{width}), \qquad
        \Theta_k(x) = \Psi(-x_{k-1})\, \Phi(-x_k) - \Psi(x_{k-1})\, \Phi(x_k), \quad x_0 = 1, \\
        \Psi(t) = 1 - e^{-t^2} \text{ for } t > 0, \text{ else } 0, \qquad \Phi(t) = 4 \arctan t + 2\pi

    A term with :math:`x_{k-1} = 0` has no gradient: entry ``k`` cannot leave zero before entry ``k - 1`` has. If no
    client holds two neighbouring terms, a method that combines models and gradients linearly gains at most one nonzero
    entry per communication, however long its clients work in between; and while the last entry is zero,

    .. math:: |\nabla E(\theta)| \ge 4(1 - 1/e)\, \frac{\text{height}}{\text{width}} \min_k \tfrac1N
              \textstyle\sum_j w_{jk},

    attained at 0 where all these means are equal. The construction is that of Carmon, Duchi, Hinder and Sidford, *Lower
    bounds for finding stationary points I*, with the functions and the clients of Zhang et al., FedPD (arXiv v1),
    Theorem 2; proofs are with the claims of ``theory/lower_bounds``.

    The Hessian of :math:`\Theta_k` is bounded by :math:`8\pi`, approached as :math:`x_{k-1} \to 0^+` and
    :math:`x_k \to \infty`, that of :math:`\Theta_1` by :math:`\frac{3\sqrt3}2(1 - 1/e)`. All :math:`\Theta_k`
    but the first are odd, and so is the second derivative of that one: curvatures of both signs are equally large.

    Parameters
    ----------
    split : array, shape (N, d)
        The :math:`w_{jk}`, not negative.
    height : float, default 1
        Unit of the losses.
    width : float, default 1
        Unit of the model.

    Raises
    ------
    ValueError
        If an entry of ``split`` is negative or not finite, or a unit is not positive.

    Examples
    --------
    Two clients, one with the odd couplings and one with the even ones; at 0 the first has a gradient in entry 1 and the
    second has none:

    >>> import numpy as np
    >>> split = np.zeros((2, 4))
    >>> split[0, 0::2] = split[1, 1::2] = 2.0
    >>> f = ZeroChain(split=split).scaled(L=1.0, eps=0.01)
    >>> (f.gradient(np.zeros(4)) != 0).astype(int).tolist()
    [[1, 0, 0, 0], [0, 0, 0, 0]]
    >>> f.L.round(12).tolist(), round(float(np.sum(np.mean(f.gradient(np.zeros(4)), axis=0) ** 2)), 12)
    ([1.0, 1.0], 0.01)
    """

    split: Array
    height: float = 1.0
    width: float = 1.0

    def __post_init__(self) -> None:
        xp = array_namespace(self.split)
        if self.split.ndim != 2 or 0 in self.split.shape:
            raise ValueError(f"split must have shape (N, d), not {tuple(self.split.shape)}.")
        if not bool(xp.all(xp.isfinite(self.split) & (self.split >= 0))):
            raise ValueError("split must be finite and not negative.")
        require_positive(height=self.height, width=self.width)

    @property
    def n_clients(self) -> int:
        """Number ``N`` of clients."""
        return self.split.shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(d,)`` of the model."""
        return (self.split.shape[1],)

    @property
    def mu(self) -> Array:
        """Lower bounds ``-L`` of the curvature, shape ``(N,)``."""
        return -self.L

    @property
    def L(self) -> Array:
        r"""Smoothness constants, shape ``(N,)``; exact for clients without neighbouring terms.

        Entry ``k`` occurs in the terms ``k`` and ``k + 1``, so that the sum of their bounds, at the worst ``k``, bounds
        the Hessian.
        """
        xp = array_namespace(self.split)
        bounds = xp.concat([CURVATURE_1 * self.split[:, :1], CURVATURE * self.split[:, 1:]], axis=1)
        return self.height / self.width**2 * xp.max(bounds + _earlier(bounds), axis=1)

    @property
    def infimum(self) -> Array:
        r"""The infima of the ``f_j``, shape ``(N,)``, which all clients approach as all entries tend to infinity.

        There :math:`\Theta_1 \to -4\pi(1 - 1/e)` and :math:`\Theta_k \to -4\pi`, the least that each can be. The mean
        of these is the infimum of ``E``.
        """
        xp = array_namespace(self.split)
        return -4.0 * math.pi * self.height * (PSI_1 * self.split[:, 0] + xp.sum(self.split[:, 1:], axis=1))

    def scaled(self, *, L: float, eps: float) -> ZeroChain:
        r"""Return the chain in units with ``max L_j = L`` and ``|grad E|^2 >= eps`` while the last entry is zero.

        Raises
        ------
        ValueError
            If ``L`` or ``eps`` is not positive, or no client has one of the terms.
        """
        if not (L > 0 and eps > 0):
            raise ValueError(f"L and eps must be positive, not {L} and {eps}.")
        xp = array_namespace(self.split)
        least = float(xp.min(xp.mean(self.split, axis=0)))
        if least == 0:
            raise ValueError("split must give every term to some client.")
        plain = replace(self, height=1.0, width=1.0)
        constant, slope = float(xp.max(plain.L)), math.sqrt(eps) / (FLOOR * least)  # slope is height/width
        return replace(self, height=constant * slope**2 / L, width=constant * slope / L)

    @property
    def offers(self) -> frozenset[str]:
        """Hessians."""
        return frozenset({"hessian"})

    def zeros(self) -> Array:
        """Return the zero model, shape ``(d,)``."""
        return array_namespace(self.split).zeros(self.shape, dtype=self.split.dtype, device=device(self.split))

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)``, shape ``(N,)``."""
        return self.value_and_gradient(theta)[0]

    def gradient(self, theta: Array) -> Array:
        """Return the gradients, shape ``(N, d)``."""
        return self.value_and_gradient(theta)[1]

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Return values ``(N,)`` and gradients ``(N, d)``."""
        xp = array_namespace(theta)
        before, x = self._pairs(theta)
        terms = psi(-before) * phi(-x) - psi(before) * phi(x)
        along_before = -self.split * (psi_slope(-before) * phi(-x) + psi_slope(before) * phi(x))
        along_x = -self.split * psi(xp.abs(before)) * phi_slope(x)
        value = self.height * xp.sum(self.split * terms, axis=-1)
        return value, self.height / self.width * (along_x + _earlier(along_before))

    def hessian_operator(self, theta: Array) -> Callable[[Array], Array]:
        r"""Return ``v -> hess f_j(theta_j) v_j``, tridiagonal, with :math:`\Psi''(0) = 0`."""
        xp = array_namespace(theta)
        before, x = self._pairs(theta)
        squares = psi_curvature(-before) * phi(-x) - psi_curvature(before) * phi(x)
        diagonal = _earlier(self.split * squares) - self.split * psi(xp.abs(before)) * phi_curvature(x)
        mixed = self.split * (psi_slope(-before) - psi_slope(before)) * phi_slope(x)
        unit = self.height / self.width**2

        def product(v: Array) -> Array:
            v = xp.broadcast_to(v, self.split.shape)
            return unit * (diagonal * v + mixed * _later(v, 0.0) + _earlier(mixed * v))

        return product

    def select(self, ids: Sequence[int]) -> ZeroChain:
        """Return the clients ``ids``."""
        if is_everybody(ids, self.n_clients):
            return self
        return replace(self, split=take_clients(self.split, ids))

    def _pairs(self, theta: Array) -> tuple[Array, Array]:
        """Return the two arguments of every term, ``x_{k-1}`` and ``x_k``, each ``(N, d)``."""
        x = array_namespace(theta).broadcast_to(theta / self.width, self.split.shape)
        return _later(x, 1.0), x


def psi(t: Array) -> Array:
    r"""Return :math:`\Psi(t) = 1 - e^{-t^2}` for positive ``t``, else 0."""
    # Not 1 - exp(-t^2), which is zero for t = 1e-9 already: the entry behind such a one would stay zero forever.
    return -array_namespace(t).expm1(-(_positive(t) ** 2))


def psi_slope(t: Array) -> Array:
    r"""Return :math:`\Psi'(t) = 2te^{-t^2}` for positive ``t``, else 0."""
    return 2.0 * _positive(t) * array_namespace(t).exp(-(t * t))


def psi_curvature(t: Array) -> Array:
    r"""Return :math:`\Psi''(t) = (2 - 4t^2)e^{-t^2}` for positive ``t``, else 0."""
    xp = array_namespace(t)
    return xp.where(t > 0, (2.0 - 4.0 * t * t) * xp.exp(-(t * t)), xp.zeros_like(t))


def phi(t: Array) -> Array:
    r"""Return :math:`\Phi(t) = 4\arctan t + 2\pi`."""
    return 4.0 * array_namespace(t).atan(t) + 2.0 * math.pi


def phi_slope(t: Array) -> Array:
    r"""Return :math:`\Phi'(t) = 4/(1 + t^2)`."""
    return 4.0 / (1.0 + t * t)


def phi_curvature(t: Array) -> Array:
    r"""Return :math:`\Phi''(t) = -8t/(1 + t^2)^2`."""
    return -8.0 * t / (1.0 + t * t) ** 2


def _positive(t: Array) -> Array:
    xp = array_namespace(t)
    return xp.where(t > 0, t, xp.zeros_like(t))


def _later(x: Array, first: float) -> Array:
    """Move the columns of an ``(N, d)`` array by one to the right, behind a constant one."""
    xp = array_namespace(x)
    column = xp.broadcast_to(asarray_like(first, x), (x.shape[0], 1))
    return xp.concat([column, x[:, :-1]], axis=1)


def _earlier(x: Array) -> Array:
    """Move the columns of an ``(N, d)`` array by one to the left, before a zero one."""
    xp = array_namespace(x)
    return xp.concat([x[:, 1:], xp.zeros_like(x[:, :1])], axis=1)
