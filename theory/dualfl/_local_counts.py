"""How many steps the optimal first-order methods need on a client's problem."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dualopt.objectives import LocalProblem
from dualopt.objectives.local_problem import client_dot, per_client
from dualopt.xp import Array

__all__ = ["Subgradient", "accelerated_steps", "averaged_subgradient_steps", "constant_momentum", "decreasing_step"]


class Subgradient(NamedTuple):
    """Steps of the subgradient method and the largest subgradient that it met, for each client."""

    steps: Array
    largest: Array


def averaged_subgradient_steps(problem: LocalProblem, start: Array, best: Array, tol: float, limit: int) -> Subgradient:
    r"""Count steps until :math:`F_j(\bar\theta_j) - \min F_j \le \text{tol}`; infinite beyond the limit.

    The method is :math:`\theta^{k+1} = \theta^k - \frac{2}{\mu(k+1)} s^k` with the average
    :math:`\bar\theta^k = \frac{2}{k(k+1)}\sum_{i\le k} i\,\theta^i`, for which
    :math:`F(\bar\theta^k) - \min F \le \frac{2 G^2}{\mu(k+1)}` when :math:`|s^i| \le G` (Lacoste-Julien, Schmidt and
    Bach 2012): the order :math:`1/\varepsilon` that is optimal for nonsmooth strongly convex functions. The average of
    ``k`` points takes ``k - 1`` steps.

    Parameters
    ----------
    problem : LocalProblem
        The ``F_j``.
    start : array, shape (N, *shape)
        First points.
    best : array, shape (N,)
        ``min F_j``.
    tol : float
        Accuracy.
    limit : int
        Largest number of steps.
    """
    theta, average = start, np.zeros_like(start)
    counts, largest = np.full(problem.n_clients, np.inf), np.zeros(problem.n_clients)
    for k in range(1, limit + 2):
        slope = problem.gradient(theta)
        largest = np.maximum(largest, np.sqrt(client_dot(slope, slope)))
        average = average + 2.0 / (k + 1.0) * (theta - average)
        done = (problem.value(average) - best <= tol) & np.isinf(counts)
        counts = np.where(done, k - 1.0, counts)
        if np.isfinite(counts).all():
            break
        theta = theta - per_client(decreasing_step(problem.mu, k), theta) * slope
    return Subgradient(counts, largest)


def decreasing_step(mu: Array, k: int) -> Array:
    r"""Return :math:`\frac{2}{\mu(k+1)}`."""
    return 2.0 / (mu * (k + 1.0))


def constant_momentum(q: Array) -> Array:
    r"""Return :math:`(1-\sqrt q)/(1+\sqrt q)`, the limit of Nesterov's momentum for :math:`q = \mu/L`."""
    return (1.0 - np.sqrt(q)) / (1.0 + np.sqrt(q))


def accelerated_steps(problem: LocalProblem, start: Array, tol: float, limit: int) -> Array:
    r"""Count steps until :math:`|\nabla F_j|^2/(2\mu_j) \le \text{tol}`; infinite beyond the limit.

    The method is :math:`x^{k+1} = y^k - \frac1L\nabla F(y^k)`, :math:`y^{k+1} = x^{k+1} + \beta(x^{k+1} - x^k)` with
    constant momentum, for which :math:`F(x^k) - \min F \le (1-\sqrt{q})^k\,\frac{L+\mu}{2}|x^0 - x^*|^2` (Nesterov
    2004, Theorem 2.2.3).

    Parameters
    ----------
    problem : LocalProblem
        The ``F_j``.
    start : array, shape (N, *shape)
        First points.
    tol : float
        Accuracy.
    limit : int
        Largest number of steps.
    """
    beta = per_client(constant_momentum(problem.mu / problem.L), start)
    x = y = start
    counts = np.full(problem.n_clients, np.inf)
    for k in range(limit + 1):
        gradient = problem.gradient(x)
        done = (client_dot(gradient, gradient) <= 2.0 * problem.mu * tol) & np.isinf(counts)
        counts = np.where(done, float(k), counts)
        if np.isfinite(counts).all():
            break
        step = y - per_client(1.0 / problem.L, y) * problem.gradient(y)
        x, y = step, step + beta * (step - x)
    return counts
