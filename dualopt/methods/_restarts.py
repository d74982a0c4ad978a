r"""When DualFL and OptimizedDualFL with ``rho = 0`` forget their momentum: two rules that do not know L.

A restart at the end of a round sets :math:`t = 1` and :math:`\zeta = v`.

**By the gradient** (O'Donoghue and Candès 2015), one scalar up. On :math:`\sum_jw_j\zeta_j = 0` the gradient of the
dual function at :math:`\zeta` is :math:`\zeta - v = (\theta_j - \theta)_j` in the inner product with the weights
:math:`w_j` of the clients. The momentum leads uphill when

.. math:: \sum_jw_j\langle\theta_j - \theta, v_j - v_j^{\text{prev}}\rangle > 0, \qquad
          v_j = \zeta_j - (\theta_j - \theta).

The clients do not know :math:`\theta` when they upload, and need not: with :math:`\delta_j = \theta_j -
\theta^{\text{prev}}` and its weighted mean :math:`\bar\delta = \theta - \theta^{\text{prev}}` the sum is

.. math:: \sum_jw_j\langle\delta_j, \zeta_j - v_j^{\text{prev}} - \delta_j\rangle
          + \sum_jw_j\,|\bar\delta|^2 \tag{1}

because :math:`\sum_jw_j(\zeta_j - v_j^{\text{prev}}) = 0`. So the server decides in the same round. All terms of (1)
vanish with the changes of a round: nothing large cancels. It cannot be positive in the first round of an epoch, where
:math:`\zeta = v^{\text{prev}}`.

**By the gap** (Theorem E, :mod:`theory.frontier.restarts`), two scalars up. The gap

.. math:: G_n = \sum_j\omega_j\bigl(f_j(\bar w_n) + g_j^*(\xi_j^n)\bigr) + \tfrac\nu2|\theta^n|^2, \qquad
          \omega_j = w_j \big/ \sum_iw_i \tag{2}

bounds the error of the mean :math:`\bar w_n = \frac1{T_n}\sum_it_iw_{i-1}` of the extrapolated models :math:`w =
\theta + \beta(\theta - \theta^{\text{prev}})`; here :math:`g_j = f_j - \frac\nu2|\cdot|^2`. An epoch ends when the
gap has fallen to a ninth and the momentum leads uphill, and when it has fallen to a hundredth. Clients know the models
and :math:`\beta` from the messages; if these hold t too, :math:`\bar w` costs a client two arrays and, in each round,
one value of :math:`f_j`, half a gradient. The first round is an epoch of its own: before it no gap is known.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.objectives.local_problem import client_dot
from dualopt.solvers import LocalSolution

__all__ = ["LEAST", "MOST", "Averages", "conjugate", "judged", "slope"]

LEAST, MOST = 3.0, 10.0
"""The c and C of the gap restart: roots of how far a gap falls in an epoch before it may, and must, end."""


class Averages(NamedTuple):
    """What a client keeps of the models for the gap restart."""

    theta: Array  # theta^(n)
    mean: Array  # w-bar_(n+1)

    def after(self, theta: Array, beta: float, t: float | None) -> Averages:
        r"""Return them after a message: :math:`\bar w` moves by :math:`t/T = 1/t` of the way to the new model w."""
        assert t is not None  # the messages of a method with the gap restart hold it
        w = theta + beta * (theta - self.theta)
        return Averages(theta, self.mean + (w - self.mean) / t)


def slope(sent: Array, theta: Array, zeta: Array, v: Array) -> Array:
    r"""Return :math:`\langle\delta_j, \zeta_j - v_j - \delta_j\rangle` of (1), shape ``(P,)``, for the last model."""
    moved = sent - theta
    return client_dot(moved, zeta - v - moved)


def conjugate(solution: LocalSolution, nu: float) -> Array:
    r"""Return :math:`g_j^*(\nabla g_j(\theta_j))`, shape ``(P,)``; an inexact subgradient adds its excess."""
    theta, f, gradient = solution.theta, solution.evaluation.f, solution.evaluation.grad_f
    found = client_dot(gradient, theta) - f - 0.5 * client_dot(nu * theta, theta)
    return found if solution.excess is None else found + solution.excess


def judged(rule: str | None, mean: Any, theta: Array, gap: float, nu: float) -> tuple[Array, bool, float]:
    r"""Return the new model, whether to restart, and the gap with which the present epoch began.

    Parameters
    ----------
    rule : str, optional
        "gradient" or "gap"; without a rule nothing is ever restarted.
    mean : array, or tuple of an array and scalars
        The mean of the uploads: with the gradient restart also that of the slopes, with the gap restart also that of
        the energies.
    theta : array
        The model before.
    gap : float
        With which the epoch began, infinite before the first round.
    nu : float
        ``nu``.

    Examples
    --------
    >>> import numpy as np
    >>> before, model = np.zeros(2), np.array([0.5, 0.5])
    >>> judged("gradient", (model, -0.1), before, math.inf, 1.0)[1:]
    (True, inf)
    >>> judged("gap", (model, -0.1, 1.0), before, 4.0, 1.0)[1:], judged("gap", (model, -0.1, 0.1), before, 4.0, 1.0)[1:]
    ((False, 4.0), (True, 0.35))
    """
    if rule is None:
        return mean, False, gap
    model, slopes, *energies = mean
    uphill = float(slopes) + _squared_norm(model - theta) > 0.0  # (1)
    if not energies:
        return model, uphill, gap
    now = float(energies[0]) + 0.5 * nu * _squared_norm(model)  # (2)
    factor = LEAST if uphill else MOST
    again = math.isinf(gap) or 0.0 < now <= gap / factor**2  # what is not positive is rounding
    return model, again, now if again else gap


def _squared_norm(x: Array) -> float:
    return float(client_dot(x[None, ...], x[None, ...])[0])
