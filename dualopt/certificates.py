"""Upper bounds of ``E(theta) - E*``, a regulariser included, that need no reference solution."""

from __future__ import annotations

import math
from typing import NamedTuple

from dualopt.objectives import Objective
from dualopt.objectives.local_problem import client_dot, per_client
from dualopt.regularisers import Regulariser
from dualopt.solvers import LocalSolution
from dualopt.xp import Array, array_namespace, epsilon

__all__ = ["Certificate", "DualPoint", "certificate", "dual_point"]


class Certificate(NamedTuple):
    """A certified bound with the energy to which it belongs."""

    energy: float  # E(theta) + g(theta)
    gap: float  # the energy exceeds its minimum by at most this
    kind: str  # "dual" (the clients' own points) or "gradient"
    gradient_norm: float  # of the minimal subgradient, of least norm in grad E + dg: what tells where E is not convex

    @property
    def relative(self) -> float:
        """An upper bound of ``(E(theta) - E*) / E*``; infinite while no positive lower bound of ``E*`` is known."""
        lower = self.energy - self.gap
        return self.gap / lower if lower > 0 else math.inf


class DualPoint(NamedTuple):
    """Points ``xi_j`` of the domains of ``g_j*``, with upper bounds of ``g_j*(xi_j)``."""

    dual: Array  # (N, *shape)
    conjugate: Array  # (N,)


def dual_point(objective: Objective, solution: LocalSolution) -> DualPoint | None:
    r"""Return the dual points of local solutions of the clients of ``objective``; None where nothing was evaluated.

    With :math:`g_j = f_j - \frac{\mu_j}2|\cdot|^2`, the point is :math:`\xi_j = \nabla f_j(\theta_j) - \mu_j\theta_j`
    and :math:`g_j^*(\xi_j) = \langle\xi_j, \theta_j\rangle - g_j(\theta_j)`, plus the excess of a subgradient that is
    not exact. The conjugate is an upper bound with room for rounding: that of its terms, and that of :math:`\xi_j`,
    :math:`8\epsilon S` with ``S`` the terms of the gradient, which moves the inner products of certificates by at most
    :math:`8\epsilon(S^2/(2\mu_j) + \mu_j|x|^2/2)` (the second half is the certificate's). Where no :math:`\mu_j` makes
    :math:`g_j` convex it is infinite.
    """
    if solution.evaluation is None:
        return None
    theta, f, grad_f = solution.theta, solution.evaluation.f, solution.evaluation.grad_f
    xp = array_namespace(theta)
    known = objective.mu > -math.inf
    mu = xp.where(known, objective.mu, xp.zeros_like(f))
    dual = grad_f - per_client(mu, theta) * theta
    square = client_dot(theta, theta)
    conjugate = client_dot(dual, theta) - f + 0.5 * mu * square
    if solution.excess is not None:
        conjugate = conjugate + solution.excess
    size = xp.sqrt(client_dot(grad_f, grad_f)) + xp.abs(mu) * xp.sqrt(square)  # S
    room = 32.0 * (xp.abs(f) + size * xp.sqrt(square)) + xp.where(
        mu > 0, 4.0 * size * size / xp.where(mu > 0, mu, xp.ones_like(mu)), xp.zeros_like(mu)
    )
    conjugate = conjugate + epsilon(theta) * room
    return DualPoint(dual, xp.where(known, conjugate, math.inf * xp.ones_like(conjugate)))


def certificate(objective: Objective, theta: Array, solution: LocalSolution | DualPoint | None = None) -> Certificate:
    r"""Certify the model ``theta``.

    Let :math:`g_j = f_j - \frac{\mu_j}{2}|\cdot|^2`, :math:`m = \frac1N \sum_j \mu_j`, and ``h`` the regulariser of the
    objective, zero if it has none. Because :math:`g_j(x) \ge \langle \xi_j, x\rangle - g_j^*(\xi_j)` for all ``x``, any
    dual points :math:`\xi_j` with the mean :math:`\bar\xi` give the bound

    .. math:: (E + h)(\theta) - \min(E + h) \le (E + h)(\theta) + \frac1N \sum_j g_j^*(\xi_j)
              - \min_x \Bigl( \langle \bar\xi, x\rangle + \frac m2 |x|^2 + h(x) \Bigr),

    whose minimum is attained at :math:`\mathrm{prox}_{h/m}(-\bar\xi/m)`; without a regulariser it is
    :math:`-|\bar\xi|^2/(2m)`. The points of the latest local solutions of all clients give the form "dual".

    If ``h`` is :math:`\mu_h`-strongly convex, every :math:`s \in \nabla E(\theta) + \partial h(\theta)` has

    .. math:: (E + h)(x) \ge (E + h)(\theta) + \langle s, x - \theta\rangle + \frac{m + \mu_h}{2} |x - \theta|^2
              \ge (E + h)(\theta) - \frac{|s|^2}{2 (m + \mu_h)},

    so that the gap is at most :math:`|s|^2 / (2(m + \mu_h))`, best with the ``s`` of least norm: the form "gradient",
    for every method. Where ``h`` has kinks this is small only if ``theta`` sits in them as the minimiser does, which
    the results of proximal maps do.

    The smaller of the two is returned. An allowance for rounding, a few units in the last place of the terms that are
    added, is included: the bound is meant to hold for the numbers as computed. It costs one value and one gradient per
    client. The form "dual" needs :math:`m > 0`, the other one :math:`m + \mu_h > 0`; the bound is infinite when neither
    holds.

    Parameters
    ----------
    objective : Objective
        All clients; a :class:`dualopt.objectives.Composite` for a problem with a regulariser.
    theta : array, shape ``shape``
        The model.
    solution : LocalSolution or DualPoint, optional
        Local solutions of all clients, at whatever points and of whatever accuracy; those of fewer clients are
        not used.

    Returns
    -------
    Certificate
        ``energy``, ``gap``, ``kind`` and ``gradient_norm``.

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
    regulariser = objective.regulariser
    values, gradients = objective.value_and_gradient(theta)
    energy = float(xp.mean(values)) + regulariser.value(theta)
    m = float(xp.mean(objective.mu))
    gradient = xp.mean(gradients, axis=0)
    subgradient = regulariser.minimal_subgradient(theta, gradient)
    best = Certificate(energy, math.inf, "gradient", _norm(subgradient))
    unit = 8.0 * epsilon(theta)
    if m + regulariser.mu > 0:
        # d|s|^2 is about 2 |s| |ds|, and s is known to a few ulps of what was added
        largest = math.sqrt(float(xp.sum(xp.mean(gradients * gradients, axis=0))))
        norm = best.gradient_norm + unit * largest
        best = best._replace(gap=norm * norm / (2.0 * (m + regulariser.mu)) + unit * abs(energy))
    point = solution
    if isinstance(solution, LocalSolution):
        everybody = solution.theta.shape[0] == objective.n_clients
        point = dual_point(objective, solution) if everybody and m > 0 else None
    if isinstance(point, DualPoint) and m > 0:
        least, terms = _least(xp.mean(point.dual, axis=0), m, regulariser)
        gap = energy + float(xp.mean(point.conjugate)) - least
        room = unit * (abs(energy) + float(xp.mean(xp.abs(point.conjugate))) + terms)
        # false for NaN; a bound that is negative beyond rounding is none
        if -room <= gap and max(gap, 0.0) + room < best.gap:
            best = best._replace(gap=max(gap, 0.0) + room, kind="dual")
    return best


def _least(xi: Array, m: float, regulariser: Regulariser) -> tuple[float, float]:
    """Return the minimum of ``<xi, x> + m/2 |x|^2 + h(x)``, and the sum of the sizes of its terms."""
    center = -xi / m
    x = regulariser.prox(center, 1.0 / m)
    inside, outside = 0.5 * m * _norm(center) ** 2, 0.5 * m * _norm(x - center) ** 2 + regulariser.value(x)
    return outside - inside, outside + inside


def _norm(x: Array) -> float:
    return math.sqrt(float(array_namespace(x).sum(x * x)))
