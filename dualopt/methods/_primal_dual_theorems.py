"""The theorems of FedPD, A-FedPD, Scaffnew and 5GCS."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dualopt.arrays.xp import Array, array_namespace
from dualopt.methods._parameters import fedpd_step_limit, step_of
from dualopt.methods._splitting_theorems import everybody_averages
from dualopt.methods._theorem import (
    ALL,
    COIN,
    EQUALLY_WEIGHTED,
    SMOOTH_STRONG,
    SUBSETS,
    Known,
    Laws,
    Need,
    Theorem,
    at_most,
    squares,
)
from dualopt.methods.participation import SKIPPED
from dualopt.solvers import SGD

__all__ = ["OF_A_FEDPD", "OF_FEDPD", "OF_FIVEGCS", "OF_SCAFFNEW", "PRODUCT", "SPLIT_OFF", "best_step"]

# FedPD and A-FedPD.

SHORT = Need(
    "eta < (sqrt(5) - 1)/(4L)",
    lambda m, k: m.eta < fedpd_step_limit(k.L),
    lambda m, k: fedpd_step_limit(k.L),
)
OF_FEDPD = (
    Theorem(source="Theorem 1", rate="the mean of |grad E|^2 = O(1/T)", needs=(SHORT,)),
    Theorem(
        source="Theorem 3",
        rate="a bound that does not vanish, for clients whose gradients differ by a bounded amount",
        needs=(SHORT,),
        laws=Laws(SKIPPED, frozenset({SKIPPED})),
    ),
    everybody_averages(lambda m: m.eta, lambda m, s: s.clients.x0 - m.eta * s.clients.dual),
)
OF_A_FEDPD = (
    Theorem(
        source="Theorem 1, corrected",
        rate="the mean of |grad E|^2 = O(1/T)",
        needs=(Need("rho > 2 L", lambda m, k: m.rho > 2.0 * k.L, lambda m, k: 2.0 * k.L),),
    ),
    everybody_averages(lambda m: 1.0 / m.rho, lambda m, s: s.server.theta - (s.clients.dual + s.server.dual) / m.rho),
)

# Scaffnew.


def _controlled(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    weight = (step_of(method.solver) / method.probability) ** 2
    controls = squares(state.clients.control - known.objective.gradient(theta), known.weights)
    return squares(state.clients.theta - theta, known.weights) + weight * controls


def _of_the_coin(method: Any, known: Known) -> float:
    step, p = step_of(method.solver), method.probability
    return max((1.0 - step * known.mu) ** 2, (1.0 - step * known.L) ** 2, 1.0 - p * p)


OF_SCAFFNEW = (
    Theorem(
        source="",
        rate="E Psi falls by a factor of {factor} per round",
        needs=(
            Need("full gradients", lambda m, k: not isinstance(m.solver, SGD)),
            SMOOTH_STRONG,
            Need("a step < 2/L", lambda m, k: step_of(m.solver) * k.L < 2.0, lambda m, k: 2.0 / k.L),
            Need(
                "rounds that communicate with probability p",
                lambda m, k: math.isclose(m.probability, k.law.communication, rel_tol=1e-9),
                lambda m, k: m.probability,
            ),
        ),
        laws=COIN,
        factor=_of_the_coin,
        potential=_controlled,
    ),
)

# 5GCS.

SPLIT_OFF = at_most("mu", "min mu_j", lambda m, k: k.mu)
PRODUCT = at_most("tau", "1/(gamma N)", lambda m, k: 1.0 / (m.gamma * k.N))


def best_step(mu: float, L: float, fraction: float) -> float:
    r"""Return the largest :math:`\gamma` that Theorem G admits, which has the fastest rate, but at most :math:`1/\mu`.

    It is the positive root of :math:`\mu(L - \mu)\gamma^2 + 2(1 - p)\mu\gamma = p`, p the fraction, about
    :math:`\sqrt{p/(L\mu)}`. Up to :math:`1/\mu` local problems are as convex as the clients are.

    Examples
    --------
    >>> round(best_step(1.0, 101.0, 1.0), 9), best_step(1.0, 1.0, 0.75)
    (0.1, 1.0)
    """
    return fraction / max(_fraction_over_step(mu, L, fraction), fraction * mu)


def _fraction_over_step(mu: float, L: float, fraction: float) -> float:
    r"""Return :math:`p/\gamma` for the largest :math:`\gamma` that Theorem G admits."""
    b = (1.0 - fraction) * mu
    return b + math.sqrt(b * b + fraction * mu * (L - mu))


def _longest(method: Any, known: Known) -> float:
    return known.p / _fraction_over_step(method.mu, known.L, known.p)


def _best_steps(known: Known) -> dict[str, float]:
    gamma = best_step(known.mu, known.L, known.p)
    return {"gamma": gamma, "tau": 1.0 / (gamma * known.N)}


def _with_ridge(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return Psi of Theorem G, for the duals times N."""
    away, duals = _errors(method, known, theta, state)
    return away + (method.gamma**2 + 2.0 * method.gamma / (known.L - method.mu)) / known.p * known.N * duals


def _errors(method: Any, known: Known, theta: Array, state: Any) -> tuple[float, float]:
    """Return the squared errors of the model and of all duals."""
    duals = (known.objective.gradient(theta) - method.mu * theta) / known.N
    away = float(array_namespace(theta).sum((state.server.theta - theta) ** 2))
    return away, squares(state.clients.dual - duals)


def _full(method: Any, known: Known) -> float:
    """Return r of Theorem H."""
    rise = method.gamma * (known.L - method.mu)
    return max(1.0 / (1.0 + method.gamma * method.mu), rise / (1.0 + rise))


def _in_the_long_run(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return V of Theorem H."""
    m = method.gamma * method.mu
    return _moved(method, known, theta, state, m, (1.0 - m) / _full(method, known))


def _moved(method: Any, known: Known, theta: Array, state: Any, c: float, k: float) -> float:
    r"""Return :math:`|x - x^* + c\gamma(\bar g - \bar g^*)|^2 + k\gamma^2[|g - g^*|^2]` for the duals times N."""
    xp = array_namespace(theta)
    duals = known.N * state.clients.dual - known.objective.gradient(theta) + method.mu * theta
    moved = state.server.theta - theta + c * method.gamma * xp.mean(duals, axis=0)
    return float(xp.sum(moved**2)) + k * method.gamma**2 / known.N * squares(duals)


class _Cohorts(NamedTuple):
    """What Theorem I names."""

    c: float
    k: float
    factor: float  # r^2
    fits: bool


def _of_cohorts(method: Any, known: Known) -> _Cohorts:
    """Return the numbers of Theorem I."""
    p, m, ell = known.p, method.gamma * method.mu, 1.0 / (method.gamma * (known.L - method.mu))
    D = p - (1.0 - p) * m
    tau = (p - m) / D
    eta = tau * (1.0 - p) / (known.N * p - p)
    s = 2.0 * ell / (1.0 + math.sqrt(1.0 + 2.0 * eta * ell))
    factor = max((1.0 + m) ** -2.0, 1.0 - p * (1.0 - (1.0 + s) ** -2.0))
    t = math.sqrt((factor - 1.0 + p) / p)
    w = t + eta * (1.0 - t)
    fits = w * (1.0 - eta - (tau - eta) * t) >= t * (m * (1.0 - p) / D) ** 2
    return _Cohorts(m / D, tau * w / (factor - 1.0 + p), factor, fits)


def _of_the_cohorts(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return V of Theorem I."""
    c, k, *_ = _of_cohorts(method, known)
    return _moved(method, known, theta, state, c, k)


def _curvature(method: Any, known: Known) -> float:
    return (known.L - method.mu) / known.N


def _slower(method: Any, known: Known) -> float:
    """Return the larger one of the factors of the model and of the duals."""
    dual = 1.0 - known.p * method.tau / (_curvature(method, known) + method.tau)
    return max(1.0 / (1.0 + method.gamma * method.mu), dual)


def _both(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    away, duals = _errors(method, known, theta, state)
    return away / method.gamma + (1.0 / method.tau + 1.0 / _curvature(method, known)) / known.p * duals


_OF_FIVEGCS = (
    EQUALLY_WEIGHTED,
    SMOOTH_STRONG,
    SPLIT_OFF,
    Need("mu < max L_j", lambda m, k: m.mu < k.L, lambda m, k: k.L),
)
RIDGE = Need("gamma tau N = 1", lambda m, k: math.isclose(m.gamma * m.tau * k.N, 1.0, rel_tol=1e-9))
OF_FIVEGCS = (
    Theorem(
        source="Theorem G",
        rate="E Psi falls by a factor of {factor} per round",
        needs=(*_OF_FIVEGCS, RIDGE, at_most("gamma", "gamma*", _longest)),
        laws=SUBSETS,
        factor=lambda m, k: 1.0 / (1.0 + 2.0 * m.gamma * m.mu),
        potential=_with_ridge,
        best=_best_steps,
    ),
    Theorem(
        source="Theorem H",
        rate="V falls by a factor of {factor} per round",
        needs=(*_OF_FIVEGCS, RIDGE, Need("gamma < 1/mu", lambda m, k: m.gamma * m.mu < 1.0, lambda m, k: 1.0 / m.mu)),
        laws=ALL,
        factor=lambda m, k: _full(m, k) ** 2,
        potential=_in_the_long_run,
    ),
    Theorem(
        source="Theorem I",
        rate="E V falls by a factor of {factor} per round",
        needs=(
            *_OF_FIVEGCS,
            RIDGE,
            Need("gamma < p/mu", lambda m, k: m.gamma * m.mu < k.p, lambda m, k: k.p / m.mu),
            Need("a shorter step for cohorts of this size", lambda m, k: _of_cohorts(m, k).fits),
        ),
        laws=SUBSETS,
        about=lambda m, k: k.p < 1,
        factor=lambda m, k: _of_cohorts(m, k).factor,
        potential=_of_the_cohorts,
    ),
    Theorem(
        source="",
        rate="E Psi falls by a factor of {factor} per round (recalled)",
        needs=(*_OF_FIVEGCS, PRODUCT),
        laws=SUBSETS,
        factor=_slower,
        potential=_both,
    ),
)
