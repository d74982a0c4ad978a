r"""The weights of FedDyn: what its theorems admit, which of them is best, and what they say of given ones.

Theorems A, A' and C are proved in ``theory/frontier``; Theorems 2 to 4 are those of the paper. Throughout,
:math:`m = L\mu/(L + \mu)`, p is the expected fraction of active clients, and a guarantee is for exact local solutions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualopt.methods._parameters import constants, largest, smallest, suggested_weight, within
from dualopt.methods._pivotal import inclusion_probabilities
from dualopt.objectives import Objective

__all__ = [
    "best_weight",
    "best_weights",
    "compressed_guarantee",
    "guarantee",
    "half_harmonic_mean",
    "largest_growth",
    "suggested_weights",
    "weighted_guarantee",
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


def suggested_weights(
    objective: Objective, alpha: float | None, growth: float | None, fraction: float, size: int
) -> tuple[float, float]:
    """Return ``alpha`` and ``growth``, suggested where they are open, for cohorts of ``size`` of the clients."""
    if alpha is not None:
        return alpha, growth or 0.0
    mu, L = smallest(objective.mu), largest(objective.L)
    if mu > 0 and math.isfinite(L):
        if fraction < 1 and objective.unequal_weights is not None:
            return max(least_weights(objective, size)), growth or 0.0
        return best_weight(mu, L, fraction), growth or 0.0
    alpha = suggested_weight(objective, "alpha")
    grows = mu > 0 and fraction < 1 and growth is None
    return alpha, largest_growth(alpha, mu) if grows else growth or 0.0


def least_weights(objective: Objective, size: int) -> list[float]:
    """Return what Theorem A' asks of ``alpha`` for every client, in cohorts of ``size`` drawn with their weights."""
    chances = inclusion_probabilities(objective.weights or (1.0,) * objective.n_clients, size)
    return [best_weight(*bound, p) for bound, p in zip(constants(objective), chances, strict=True)]


def guarantee(objective: Objective, alpha: float, growth: float, fraction: float) -> str:
    """Say which theorems cover clients of equal weight when the expected fraction of them takes part."""
    of_all = (_of_paper(objective, alpha, growth, fraction), _of_frontier(objective, alpha, growth, fraction))
    limit = 20.0 * largest(objective.L) / fraction
    said = "; ".join(filter(None, of_all))
    return said or f"none: alpha is below 20 L N/P = {limit:.3g}, or growth above its limit"


def compressed_guarantee(objective: Objective, alpha: float, growth: float, fraction: float, cohorts: bool) -> str:
    """Say what Theorem D says where every coordinate comes from this fraction of the clients, drawn as ``cohorts``."""
    if growth > 0 or not cohorts or objective.unequal_weights is not None:
        return "none: Theorem D asks for cohorts of coordinates, a constant alpha and clients of equal weight"
    limit = 20.0 * largest(objective.L) / fraction
    said = _of_frontier(objective, alpha, growth, fraction)
    return said or f"none: alpha is below 20 L N/P = {limit:.3g}, or growth above its limit"


def _of_paper(objective: Objective, alpha: float, growth: float, fraction: float) -> str:
    """Return what the theorems of the paper say of a constant ``alpha``; nothing if they do not cover it."""
    mu, L = smallest(objective.mu), largest(objective.L)
    if growth > 0:
        return ""
    if mu > 0 and alpha >= max(30.0 * L, 5.0 * mu / fraction):
        return f"Theorem 3: O((1 + mu/alpha)^-T), a factor of {1.0 / (1.0 + mu / alpha):.6f} per round"
    if mu >= 0 and alpha >= 25.0 * L:
        return "Theorem 2: E of the mean of the models = O(1/T)"
    if alpha >= 20.0 * L / fraction:
        return "Theorem 4: the mean of |grad E|^2 = O(1/T)"
    return ""


def _of_frontier(objective: Objective, alpha: float, growth: float, fraction: float) -> str:
    """Return what Theorems A and C say; nothing if they do not cover it."""
    mu, L = smallest(objective.mu), largest(objective.L)
    if not mu > 0:
        return ""
    if growth > 0:
        fits = within(growth, largest_growth(alpha, mu))
        return "Theorem C: E |x - theta*|^2 = O(1/n^2), any loss" if fits else ""
    if math.isfinite(L) and within(best_weight(mu, L, fraction), alpha):
        factor = 1.0 / (1.0 + 2.0 * half_harmonic_mean(mu, L) / alpha)
        return f"Theorem A: E Psi falls by a factor of {factor:.6f} per round"
    return ""


def weighted_guarantee(objective: Objective, alpha: float, growth: float, size: int) -> str:
    """Say what Theorems A' and C say of clients of unequal weight in cohorts of ``size`` that are drawn with it."""
    drawn = ", for cohorts drawn with the weights of the clients"
    mu, bounds = smallest(objective.mu), constants(objective)
    if growth > 0 and mu > 0:
        said = _of_frontier(objective, alpha, growth, 1.0)
        return f"{said}{drawn}" if said else "none: growth is above the limit of Theorem C"
    if not mu > 0 or math.isinf(largest(objective.L)):
        return "none: Theorem A' needs smooth and strongly convex clients"
    least = max(least_weights(objective, size))
    if not within(least, alpha):
        return f"none: alpha = {alpha:.3g} is below the {least:.3g} of Theorem A'"
    rate = min(half_harmonic_mean(*bound) for bound in bounds) / alpha
    return f"Theorem A': E Psi falls by a factor of {1.0 / (1.0 + 2.0 * rate):.6f} per round{drawn}"
