r"""The theorems of FedDyn, what weights they admit, and which of these is best.

Theorems A, A', C and D are proved in ``theory/frontier``; Theorems 2 to 4 are those of the paper. Throughout,
:math:`m = L\mu/(L + \mu)`, :math:`\gamma = 1/\alpha`, and p is the least probability with which a client is active.
Theorems A, A' and C use of the cohorts that they have one size and that :math:`\pi_j = \min(1, Kw_j)`, where the
:math:`w_j` are the weights of the clients in the mean; for equal ones all :math:`\pi_j` are equal. Cohorts of random
size are not covered: with N = 2 and p = 0.1 independent of each other the potential of Theorem A may grow by 1.0497.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dualopt.arrays.xp import Array, array_namespace
from dualopt.methods._parameters import suggested_weight
from dualopt.methods._pivotal import inclusion_probabilities
from dualopt.methods._splitting_theorems import everybody_averages
from dualopt.methods._theorem import (
    ALL,
    DRAWN,
    EQUALLY_WEIGHTED,
    ONE_SIZE,
    SMOOTH_STRONG,
    STRONG,
    SUBSETS,
    Known,
    Need,
    Theorem,
    at_least,
    at_most,
    squares,
)
from dualopt.methods.compressors import CoordinateCohorts
from dualopt.methods.participation import UNIFORM, Law, WeightedSubset
from dualopt.objectives import Objective

__all__ = [
    "OF_FEDDYN",
    "OF_GROWING_FEDDYN",
    "best_weight",
    "best_weights",
    "half_harmonic_mean",
    "largest_growth",
    "suggested_alpha",
]

ITERATIONS = 100  # of a map that contracts by 1/4 in the logarithms


def half_harmonic_mean(mu: float, L: float) -> float:
    r"""Return :math:`m = L\mu/(L + \mu)`.

    Examples
    --------
    >>> half_harmonic_mean(1.0, 3.0)
    0.75
    """
    return L * mu / (L + mu)


def best_weight(mu: float, L: float, fraction: float) -> float:
    r"""Return the smallest :math:`\alpha` that Theorem A admits, which has the fastest rate.

    It is :math:`1/\gamma` for the positive root of :math:`L\mu\gamma^2 + 2(1 - p)m\gamma = p` with
    :math:`m = L\mu/(L + \mu)`: :math:`\sqrt{L\mu}` at p = 1, about :math:`\sqrt{L\mu/p}` otherwise.

    Examples
    --------
    >>> best_weight(1.0, 100.0, 1.0), round(best_weight(1.0, 100.0, 0.1), 6)
    (10.0, 41.765175)
    """
    m = (1.0 - fraction) * half_harmonic_mean(mu, L)
    return (m + math.sqrt(m * m + fraction * L * mu)) / fraction


def best_weights(
    bounds: Sequence[tuple[float, float]], size: int, weights: Sequence[float] | None = None
) -> tuple[float, ...]:
    r"""Return the smallest :math:`\alpha_j` that Theorem A' admits for clients with bounds :math:`(\mu_j, L_j)`.

    They solve :math:`\alpha_j = \alpha^*(\mu_j, L_j, \pi_j)`, :math:`\alpha^*` the function :func:`best_weight`, and
    :math:`\pi_j = \min(1, Kw_j\alpha_j)` with the sum P and the weights :math:`w_j` of the clients. No admitted
    :math:`\alpha_j` is smaller than its counterpart: for given K the equation has one solution, since :math:`\alpha^*`
    falls with :math:`\pi`; all others that are admitted need larger :math:`\pi_j`, so that K would be smaller, and all
    :math:`\alpha_j` larger. The solution is found as the fixed point of :math:`\alpha_j
    \mapsto\sqrt{\alpha_j\alpha^*(\mu_j, L_j, \pi_j)}`, in logarithms a contraction because :math:`\alpha^*` falls with
    :math:`\pi` by a power between 1/2 and 1.

    Examples
    --------
    >>> [round(alpha, 6) for alpha in best_weights([(1.0, 100.0)] * 10, 1)[:2]]
    [41.765175, 41.765175]
    >>> best_weights([(1.0, 100.0), (100.0, 10000.0)], 2)
    (10.0, 1000.0)
    """
    weights = weights or (1.0,) * len(bounds)
    alphas = tuple(best_weight(*bound, size / len(bounds)) for bound in bounds)
    for _ in range(ITERATIONS):
        probabilities = inclusion_probabilities([w * a for w, a in zip(weights, alphas, strict=True)], size)
        wanted = [best_weight(*bound, p) for bound, p in zip(bounds, probabilities, strict=True)]
        alphas = tuple(math.sqrt(alpha * other) for alpha, other in zip(alphas, wanted, strict=True))
    return alphas


def largest_growth(alpha: float, mu: float) -> float:
    r"""Return the largest g with :math:`(\alpha + g)^2 \le \alpha^2 + 2\mu\alpha`, which Theorem C admits.

    Examples
    --------
    >>> largest_growth(1.0, 4.0)
    2.0
    """
    return math.sqrt(alpha * (alpha + 2.0 * mu)) - alpha


def suggested_alpha(objective: Objective, fraction: float, size: int) -> float:
    """Return the best ``alpha`` for cohorts of ``size`` clients, which are the ``fraction`` of all."""
    known = Known(objective, Law(name=UNIFORM, n_clients=objective.n_clients, fraction=fraction))
    if not SMOOTH_STRONG.holds(None, known):
        return suggested_weight(objective, "alpha")
    if fraction < 1 and not known.equal:
        return THEOREM_A_WEIGHTED.suggests(Known.of(objective, WeightedSubset(size=size)))["alpha"]
    return THEOREM_A.suggests(known)["alpha"]


def _fraction(method: Any, known: Known) -> float:
    """Return the least probability with which a coordinate comes from a client."""
    return known.p * known.kept


CONVEX = Need("convex clients", lambda m, k: k.mu >= 0)


def _dual_errors(method: Any, known: Known, theta: Array, state: Any, weights: Sequence[float]) -> float:
    r"""Return the sum of the :math:`|u_j - \nabla f_j(\theta^*)|^2` with given weights."""
    return squares(state.clients.gradient - known.objective.gradient(theta), weights)


def _away(alpha: float, theta: Array, state: Any) -> float:
    r"""Return :math:`|x - \theta^*|^2`; x is the mean of the models of the last active clients."""
    x = state.server.theta + state.server.h / alpha
    return float(array_namespace(theta).sum((x - theta) ** 2))


def _of_lemma(kappa: Any) -> Any:
    r"""Return the potential :math:`|x - \theta^*|^2 + \kappa\frac1N\sum_j|u_j - u_j^*|^2` of Lemmas 1 and 8."""

    def potential(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
        weights = [kappa(method, known) * w for w in known.weights]
        return _away(method.alpha, theta, state) + _dual_errors(method, known, theta, state, weights)

    return potential


def _lemma_1(method: Any, known: Known) -> float:
    a, L = method.alpha, known.L
    return 8.0 * (L + a) / (known.p * a * (a * a - 20.0 * L * L))


def _lemma_8(method: Any, known: Known) -> float:
    a, L, mu, m = method.alpha, known.L, known.mu, 1.0 / known.p
    z = (a * a - 20.0 * L * L) * (a + mu) - m * mu * (a * a - 4.0 * L * L)
    return 8.0 * m * (L + a) / z


THEOREM_2 = Theorem(
    source="Theorem 2",
    rate="E of the mean of the models = O(1/T)",
    needs=(EQUALLY_WEIGHTED, CONVEX, at_least("alpha", "25 L", lambda m, k: 25.0 * k.L)),
    laws=SUBSETS,
    potential=_of_lemma(_lemma_1),
)
THEOREM_3 = Theorem(
    source="Theorem 3",
    rate="O((1 + mu/alpha)^-T), a factor of {factor} per round",
    needs=(
        EQUALLY_WEIGHTED,
        STRONG,
        at_least("alpha", "max(30 L, 5 mu N/P)", lambda m, k: max(30.0 * k.L, 5.0 * k.mu / k.p)),
    ),
    laws=SUBSETS,
    factor=lambda m, k: 1.0 / (1.0 + k.mu / m.alpha),
    potential=_of_lemma(_lemma_8),
)
THEOREM_4 = Theorem(
    source="Theorem 4",
    rate="the mean of |grad E|^2 = O(1/T)",
    needs=(EQUALLY_WEIGHTED, at_least("alpha", "20 L N/P", lambda m, k: 20.0 * k.L / k.p)),
    laws=SUBSETS,
)


def _factor(method: Any, known: Known) -> float:
    return 1.0 / (1.0 + 2.0 * half_harmonic_mean(known.mu, known.L) / method.alpha)


def _psi(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return Psi of Theorems A and D."""
    gamma, p = 1.0 / method.alpha, _fraction(method, known)
    C = _factor(method, known) / p * (gamma * gamma + 2.0 * gamma / (known.L + known.mu))
    weights = [C * w for w in known.weights]
    return _away(method.alpha, theta, state) + _dual_errors(method, known, theta, state, weights)


FALLS = "E Psi falls by a factor of {factor} per round"
HEAVY = at_least("alpha", "alpha*", lambda m, k: best_weight(k.mu, k.L, _fraction(m, k)))
THEOREM_A = Theorem(
    source="Theorem A",
    rate=FALLS,
    needs=(DRAWN, SMOOTH_STRONG, HEAVY),
    laws=ONE_SIZE,
    about=lambda m, k: k.equal or k.p == 1,
    factor=_factor,
    potential=_psi,
    best=lambda k: {"alpha": best_weight(k.mu, k.L, k.p)},
)
THEOREM_D = Theorem(
    source="Theorem D",
    rate=FALLS,
    needs=(
        EQUALLY_WEIGHTED,
        Need("cohorts of coordinates", lambda m, k: isinstance(k.compressor, CoordinateCohorts)),
        SMOOTH_STRONG,
        HEAVY,
    ),
    laws=ALL,
    compressed=True,
    factor=_factor,
    potential=_psi,
)


def _growing(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return V_n of Theorem C."""
    weights = [w / p for w, p in zip(known.weights, known.law.inclusion, strict=True)]
    alpha = method.alpha_of(n)
    away = alpha**2 * _away(alpha, theta, state)
    return away + _dual_errors(method, known, theta, state, weights)


THEOREM_C = Theorem(
    source="Theorem C",
    rate="E |x - theta*|^2 = O(1/n^2), any loss",
    needs=(
        DRAWN,
        STRONG,
        Need("growth > 0", lambda m, k: m.growth > 0),
        at_most("growth", "sqrt(alpha^2 + 2 alpha mu) - alpha", lambda m, k: largest_growth(m.alpha, k.mu)),
    ),
    laws=ONE_SIZE,
    potential=_growing,
)
THEOREM_C_ELSEWHERE = Theorem(
    source="Theorem C",
    rate="",
    needs=(Need("an alpha that grows, which growing-feddyn has", lambda m, k: False),),
    laws=ONE_SIZE,
    about=lambda m, k: k.mu > 0 and math.isinf(k.L),
)

# Unequal weights, in cohorts that are drawn with them.


def _lightest(known: Known) -> float:
    """Return the least alpha that Theorem A' admits, with the constants and the probability of every client."""
    return max(best_weight(*bound, p) for bound, p in zip(known.bounds, known.law.inclusion, strict=True))


def _slowest(method: Any, known: Known) -> float:
    return max(1.0 / (1.0 + 2.0 * half_harmonic_mean(*bound) / method.alpha) for bound in known.bounds)


def _weighted_psi(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return Psi of Theorem A'."""
    gamma, r, weights = 1.0 / method.alpha, _slowest(method, known), []
    for w, (mu, L), p in zip(known.weights, known.bounds, known.law.inclusion, strict=True):
        weights.append(r * w / p * (gamma * gamma + 2.0 * gamma / (L + mu)))
    return _away(method.alpha, theta, state) + _dual_errors(method, known, theta, state, weights)


THEOREM_A_WEIGHTED = Theorem(
    source="Theorem A'",
    rate=FALLS,
    needs=(DRAWN, SMOOTH_STRONG, at_least("alpha", "max_j alpha*_j", lambda m, k: _lightest(k))),
    laws=ONE_SIZE,
    about=lambda m, k: not k.equal and k.p < 1,
    factor=_slowest,
    potential=_weighted_psi,
    best=lambda k: {"alpha": _lightest(k)},
)

# Everybody: Douglas-Rachford splitting, for every alpha.

THEOREM_B = everybody_averages(lambda m: 1.0 / m.alpha, lambda m, s: s.server.theta + s.clients.gradient / m.alpha)

OF_FEDDYN = (
    THEOREM_3,
    THEOREM_2,
    THEOREM_4,
    THEOREM_A,
    THEOREM_A_WEIGHTED,
    THEOREM_B,
    THEOREM_D,
    THEOREM_C_ELSEWHERE,
)
OF_GROWING_FEDDYN = (THEOREM_C,)
