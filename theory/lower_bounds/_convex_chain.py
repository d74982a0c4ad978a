"""Instances of convex chains (:mod:`dualopt.objectives.convex_chain`) with their minimisers and subgradients."""

from __future__ import annotations

import math

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.verification import chains
from dualopt.losses import Squared
from dualopt.objectives import ConvexChain
from theory._cases import Case

__all__ = ["Chain", "geometric", "kinked", "level", "power", "squares", "tails"]

Chain = ConvexChain


def geometric(kappa: float, d: int, *, pairs: int = 1) -> Case:
    r"""Squares with strong convexity 1 and smoothness ``kappa`` of every client; :math:`\theta^*_k = q^k`.

    See :func:`dualopt.lab.verification.chains.geometric`.

    Examples
    --------
    >>> f = geometric(9.0, 4)
    >>> f.theta.tolist(), f.objective.L.tolist()
    ([0.5, 0.25, 0.125, 0.0625], [9.0, 9.0])
    >>> bool(abs(f.subgradients.sum(axis=0)).max() < 1e-15)
    True
    """
    f, theta = chains.geometric(kappa, d, pairs=pairs)
    return _instance(f"geometric chain (kappa={kappa:g}, d={d})", f, theta)


def squares(d: int, *, ridge: float = 0.0, pairs: int = 1) -> Case:
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
    f = ConvexChain(ratios=np.append(np.ones(d), 0.0), weight=0.5, ridge=ridge, loss=Squared(), groups=(0, 1) * pairs)
    return _instance(f"free chain (d={d}, ridge={ridge:.3g})" if ridge else f"free chain (d={d})", f, theta)


def kinked(name: str, theta: Array, *, pairs: int = 1) -> Case:
    r"""Absolute values with strong convexity 1 that have a given minimiser, positive and not increasing.

    See :func:`dualopt.lab.verification.chains.kinked`, which has the proof.

    Examples
    --------
    >>> f = kinked("two", np.array([1.0, 0.5]))
    >>> f.objective.weight, f.subgradients.tolist()
    (2.5, [[-1.5, 0.5], [1.5, -0.5]])
    """
    f, forces = chains.kinked(theta, pairs=pairs)
    subgradients = f.pull(np.append(-forces, 0.0)) + theta
    return Case(name=name, objective=f, theta=theta, subgradients=subgradients)


def level(n: int, *, pairs: int = 1) -> Case:
    r"""Absolute values for an even number ``n`` of rounds: :math:`\theta^* = (1, \ldots, 1)`, :math:`d = 3n/2`.

    Examples
    --------
    >>> level(2).objective.weight, level(2).subgradients.tolist()
    (6.0, [[-5.0, 3.0, -1.0], [5.0, -3.0, 1.0]])
    """
    return kinked(f"level chain (n={n})", np.ones(3 * n // 2), pairs=pairs)


def power(d: int, *, pairs: int = 1) -> Case:
    r"""Absolute values with :math:`\theta^*_k = k^{-3/2}`: the tail is about :math:`1/(2n^2)` for every ``n`` at once.

    Examples
    --------
    >>> round(10**2 * float(np.sum(power(1000).theta[10:] ** 2)), 3)
    0.452
    """
    return kinked(f"power chain (d={d})", chains.power(d)[1], pairs=pairs)


def tails(theta: Array) -> Array:
    r"""Return :math:`\sum_{k > n} \theta_k^2` for n = 1, 2, ..., d - 1: nothing in the first n coordinates is nearer.

    Examples
    --------
    >>> tails(np.array([3.0, 2.0, 1.0])).tolist()
    [5.0, 1.0]
    """
    return np.cumsum((theta**2)[:0:-1])[::-1]


def _instance(name: str, f: ConvexChain, theta: Array) -> Case:
    return Case(name=name, objective=f, theta=theta, subgradients=f.gradient(theta))
