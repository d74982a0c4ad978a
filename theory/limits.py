r"""Where methods end that do not end at the solution, and up to which parameters they converge, in closed form.

The claims whose names are given compare runs with these formulas.
"""

from __future__ import annotations

import math

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.objectives import Quadratic

__all__ = [
    "afedpd_least_rho",
    "averaging_limit",
    "fedadmm_drift",
    "fedadmm_limit",
    "fedavg_limit",
    "fedprox_limit",
    "work_of_steps",
]


def averaging_limit(f: Quadratic, Q: Array) -> Array:
    r"""Return where averaging ends: :math:`\theta^+ = \frac1N\sum_j(\theta - Q_j\nabla f_j(\theta))`.

    That is :math:`(\sum_j Q_jA_j)^{-1}\sum_j Q_jb_j`.

    Parameters
    ----------
    f : Quadratic
        The clients.
    Q : array, shape (N, d, d)
        What local work makes of a gradient; it commutes with ``f.A``.
    """
    return np.linalg.solve(np.sum(Q @ f.A, axis=0), np.sum(Q @ f.b[..., None], axis=0))[:, 0]


def work_of_steps(A: Array, step: float, K: int) -> Array:
    r"""Return what K gradient steps make of the first gradient, :math:`s\sum_{k<K}(I - sA_j)^k`, shape (N, d, d).

    Examples
    --------
    >>> work_of_steps(np.array([[[2.0]]]), 0.25, 2).tolist()
    [[[0.375]]]
    """
    power = np.broadcast_to(np.eye(A.shape[-1]), A.shape)
    total = step * power
    for _ in range(K - 1):
        power = power - step * A @ power
        total = total + step * power
    return total


def fedavg_limit(f: Quadratic, *, step: float, K: int) -> Array:
    r"""Return where FedAvg with K local gradient steps ends (``fedavg_bias``).

    Examples
    --------
    >>> f = Quadratic(A=np.array([[[1.0]], [[4.0]]]), b=np.array([[0.0], [4.0]]))  # minimisers 0 and 1
    >>> [fedavg_limit(f, step=0.25, K=K).round(4).tolist() for K in (1, 2, 100)]
    [[0.8], [0.6957], [0.5]]
    """
    return averaging_limit(f, work_of_steps(f.A, step, K))


def fedprox_limit(f: Quadratic, *, weight: float) -> Array:
    r"""Return where FedProx with exact local solutions ends, :math:`Q_j = (A_j + wI)^{-1}` (``fedprox_bias``).

    Examples
    --------
    >>> f = Quadratic(A=np.array([[[1.0]], [[4.0]]]), b=np.array([[0.0], [4.0]]))  # minimisers 0 and 1
    >>> [fedprox_limit(f, weight=w).round(4).tolist() for w in (0.0, 4.0, 1e6)]
    [[0.5], [0.7143], [0.8]]
    """
    return averaging_limit(f, np.linalg.inv(f.A + weight * np.eye(f.A.shape[-1])))


def fedadmm_drift(rho: float, server_step: float) -> float:
    r"""Return :math:`c = \rho(1 - \frac1{2\eta_s})`, which is 0 for the server step P/N alone (``fedadmm_dual_drift``).

    On two clients that take turns FedADMM minimises :math:`E - \frac c2|\cdot - \theta^0|^2`.

    Examples
    --------
    >>> fedadmm_drift(2.0, 0.5), fedadmm_drift(2.0, 1.0)
    (0.0, 1.0)
    """
    return rho * (1.0 - 0.5 / server_step)


def fedadmm_limit(c: float, *, a: float = 1.0, solution: float = 1.0, start: float = 0.0) -> float:
    r"""Return :math:`\frac{a\theta^* - c\theta^0}{a - c}` for FedADMM on two clients in turn (``fedadmm_two_clients``).

    Clients are :math:`\frac a2(x - m_j)^2`, ``c`` is :func:`fedadmm_drift`. FedADMM ends there for :math:`c < a`,
    and leaves this point for :math:`c > a`.

    Examples
    --------
    >>> fedadmm_limit(fedadmm_drift(1.0, 1.0)), fedadmm_limit(fedadmm_drift(3.0, 0.5))
    (2.0, 1.0)
    """
    return (a * solution - c * start) / (a - c)


def afedpd_least_rho(a1: float, a2: float) -> float:
    r"""Return the :math:`\rho = 1/\eta` from which on A-FedPD and FedPD converge on two clients (``afedpd_small_rho``).

    Clients are :math:`\frac{a_j}2x^2` with :math:`a_1 > -a_2 > 0`, both of which take part.

    Examples
    --------
    >>> round(afedpd_least_rho(3.0, -1.0), 4)
    1.3028
    """
    half = 0.25 * (a1 + a2)
    return math.sqrt(half**2 - a1 * a2) - half
