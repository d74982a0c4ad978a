"""Upper bounds of ``E(theta) - E*`` that need no reference solution."""

from __future__ import annotations

import math
from typing import NamedTuple

from dualopt.objectives import Objective
from dualopt.solvers import LocalSolution
from dualopt.xp import Array, array_namespace, epsilon

__all__ = ["Certificate", "DualPoint", "certificate"]


class Certificate(NamedTuple):
    """A certified bound with the energy to which it belongs."""

    energy: float  # E(theta)
    gap: float  # E(theta) - E* is at most this
    kind: str  # "dual" (the clients' own points) or "gradient"

    @property
    def relative(self) -> float:
        """An upper bound of ``(E(theta) - E*) / E*``; infinite while no positive lower bound of ``E*`` is known."""
        lower = self.energy - self.gap
        return self.gap / lower if lower > 0 else math.inf


class DualPoint(NamedTuple):
    """Points ``xi_j`` of the domains of ``g_j*``, with upper bounds of ``g_j*(xi_j)``."""

    dual: Array  # (N, *shape)
    conjugate: Array  # (N,)


def certificate(objective: Objective, theta: Array, work: LocalSolution | DualPoint | None = None) -> Certificate:
    r"""Certify the model ``theta``.

    Any dual points :math:`\xi_j` give, with :math:`g_j = f_j - \frac{\mu_j}{2}|\cdot|^2` and :math:`M = \sum_j \mu_j`,

    .. math:: E(\theta) - E^* \le E(\theta) + \frac1N \Bigl( \sum_j g_j^*(\xi_j) + \frac{|\sum_j \xi_j|^2}{2 M} \Bigr).

    The points of the latest local solutions (``work``, all clients) give the form "dual"; the choice
    :math:`\xi_j = \nabla g_j(\theta)` gives :math:`|\nabla E(\theta)|^2 N / (2M)`, the form "gradient", for every
    method. The
    smaller of the two is returned. An allowance for rounding, a few units in the last place of the terms that are
    added, is included: the bound is meant to hold for the numbers as computed.

    It costs one value and one gradient per client. The bound is infinite when ``M`` is 0.

    Parameters
    ----------
    objective : Objective
        All clients.
    theta : array, shape ``shape``
        The model.
    work : LocalSolution or DualPoint, optional
        Local solutions of all clients, at whatever points and of whatever accuracy.

    Returns
    -------
    Certificate
        ``energy``, ``gap`` and ``kind``.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import Quadratic
    >>> f = Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1)))
    >>> c = certificate(f, np.array([2.0]))  # E = theta^2 / 2
    >>> c.energy, round(c.gap, 12), c.kind
    (2.0, 2.0, 'gradient')
    """
    xp = array_namespace(theta)
    n = objective.n_clients
    values, gradients = objective.value_and_gradient(theta)
    energy = float(xp.mean(values))
    total = float(xp.sum(objective.mu))
    if total <= 0:
        return Certificate(energy, math.inf, "gradient")
    gradient = xp.mean(gradients, axis=0)
    unit = 8.0 * epsilon(theta)
    # d|g|^2 is about 2 |g| |dg|, and the averaged gradient is known to a few ulps of what was added
    largest = float(xp.sqrt(xp.sum(xp.mean(gradients * gradients, axis=0))))
    norm = float(xp.sqrt(xp.sum(gradient * gradient))) + unit * largest
    best = Certificate(energy, norm * norm * n / (2.0 * total) + unit * abs(energy), "gradient")
    if work is not None and work.dual.shape[0] == n:
        xi = xp.sum(work.dual, axis=0)
        squared = float(xp.sum(xi * xi)) / (2.0 * total)
        gap = energy + (float(xp.sum(work.conjugate)) + squared) / n
        size = abs(energy) + (float(xp.sum(xp.abs(work.conjugate))) + squared) / n
        gap = max(gap, 0.0) + unit * size
        if gap < best.gap:  # false for NaN
            best = Certificate(energy, gap, "dual")
    return best
