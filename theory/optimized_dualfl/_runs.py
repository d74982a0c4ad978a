r"""Runs of OptimizedDualFL, and the dual function on which it is a gradient method.

On the subspace :math:`\sum_j \zeta_j = 0` the function

.. math:: D(\zeta) = \sum_j f_j^*(\nu\zeta_j)

is convex, :math:`\nu`-smooth for :math:`\nu \le \mu` and :math:`\nu\rho`-strongly convex for :math:`\rho \le \nu/L`,
because :math:`f_j^*` is :math:`1/\mu_j`-smooth and :math:`1/L_j`-strongly convex. With the local solutions
:math:`\theta_j = \nabla f_j^*(\nu\zeta_j)` and the model :math:`\theta = \frac1N\sum_j\theta_j`, its gradient there is
:math:`G_j = \nu(\theta_j - \theta)`, so that :math:`v = \zeta - G/\nu` is a gradient step. The minimiser is
:math:`\nu\zeta_j^* = \nabla f_j(\theta^*)`, and :math:`D^* = -N \min E`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.methods import CorrectedOptimizedDualFL
from dualopt.methods.optimized_dualfl import growth
from dualopt.objectives.local_problem import client_dot
from theory._cases import Case
from theory.dualfl import _runs

__all__ = ["OptimizedRound", "admitted", "bracket", "dual_optimum", "growths", "optimized", "path", "potential"]


def optimized(instance: Case, *, rho: float | None = None, nu: float | None = None) -> CorrectedOptimizedDualFL:
    """Return OptimizedDualFL with the parameters and the local solver of :func:`theory.dualfl._runs.exact`."""
    method = _runs.exact(instance, rho=rho, nu=nu)
    return CorrectedOptimizedDualFL(rho=method.rho, nu=method.nu, solver=method.solver, stop=method.stop)


def admitted(case: Case) -> list[str]:
    """Return what fails: ``nu`` lies in (0, mu], ``rho`` in [0, nu/L]; 0 is all that nonsmooth clients admit."""
    rho = case.algorithm.rho
    return _runs.strongly_convex(case) if rho == 0 else _runs.linear_regime(case)


def growths(rho: float) -> Iterator[float]:
    """Yield ``A_1, A_2, ...``.

    Examples
    --------
    >>> from itertools import islice
    >>> list(islice(growths(0.0), 2))
    [4.0, 10.47213595499958]
    """
    A = 0.0
    while True:
        A = growth(A, rho)
        yield A


def dual_optimum(case: Case) -> Array:
    r"""Return :math:`\zeta_j^* = s_j/\nu` for the subgradients :math:`s_j` at :math:`\theta^*` that sum to zero."""
    return case.subgradients / case.algorithm.nu


class OptimizedRound(NamedTuple):
    """A round in the dual; ``n`` counts from 1."""

    n: int
    A: float  # A_n
    zeta: Array  # zeta^(n-1), from which the round started
    theta: Array  # theta^n
    gradient: Array  # G^(n-1), of D at zeta^(n-1)
    error: float  # D(zeta^(n-1)) - D*
    size: float  # of the terms that cancel in it
    v: Array  # v^n
    z: Array  # z^n, the sequence that the published form keeps


def path(case: Case) -> Iterator[OptimizedRound]:
    r"""Run the method and follow it in the dual.

    By Fenchel's equality at the local solutions, :math:`D(\zeta) - D^* = \sum_j \bigl(f_j(\theta^*) - f_j(\theta_j) -
    \langle\nu\zeta_j, \theta^* - \theta_j\rangle\bigr)`. The published form keeps the sequence z with
    :math:`\zeta^n = (1-\beta_n)z^n + \beta_n v^n`, :math:`\beta_n = \frac{A_n}{(1-\rho)A_{n+1}}`, which gives it back.
    """
    nu, rho, f = case.algorithm.nu, case.algorithm.rho, case.objective
    least = f.value(case.theta)
    zeta, known = np.zeros_like(case.subgradients), growths(rho)
    A_next = next(known)
    for n, s in enumerate(case.snapshots(), start=1):
        A, A_next = A_next, next(known)
        beta = A / ((1.0 - rho) * A_next)
        sent, theta, v = _runs.uploaded(s), s.server.theta, s.clients.v
        values, products = f.value(sent), nu * client_dot(zeta, case.theta - sent)
        error, size = float(np.sum(least - values - products)), float(np.sum(np.abs(least) + np.abs(products)))
        z = (s.clients.zeta - beta * v) / (1.0 - beta)
        yield OptimizedRound(n, A, zeta, theta, nu * (sent - theta), error, size, v, z)
        zeta = s.clients.zeta


def bracket(case: Case, step: OptimizedRound) -> float:
    r"""Return :math:`B_n = D(\zeta^{n-1}) - D^* - \frac{|G^{n-1}|^2}{2\nu} - \frac{\nu\rho}{2(1-\rho)}|v^n-\zeta^*|^2`.

    For :math:`\rho = 0` it is the dual error :math:`E_d(\xi^n) - E_d^*` of the DualFL paper, (6.4): with
    :math:`\xi_j = \nu(\zeta_j - \theta_j)` and :math:`g_j^*(\xi_j) = f_j^*(\nu\zeta_j) - \frac\nu2|\theta_j|^2`,
    :math:`E_d(\xi) = D(\zeta) - \frac\nu2\sum_j|\theta_j|^2 + \frac{N\nu}2|\theta|^2 = D(\zeta) - |G|^2/(2\nu)`.
    """
    nu, rho = case.algorithm.nu, case.algorithm.rho
    away = float(np.sum((step.v - dual_optimum(case)) ** 2))
    return step.error - float(np.sum(step.gradient**2)) / (2.0 * nu) - 0.5 * nu * rho / (1.0 - rho) * away


def potential(case: Case, step: OptimizedRound) -> float:
    r"""Return :math:`\Phi_n = (1-\rho)A_nB_n + \nu(1 + \rho A_n)|z^n - \zeta^*|^2`."""
    nu, rho = case.algorithm.nu, case.algorithm.rho
    away = float(np.sum((step.z - dual_optimum(case)) ** 2))
    return (1.0 - rho) * step.A * bracket(case, step) + nu * (1.0 + rho * step.A) * away
