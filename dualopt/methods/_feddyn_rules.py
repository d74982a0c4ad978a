r"""The weights of FedDyn: what its theorems admit, which of them is best, and what they say of given ones.

Theorems A, A' and C are proved in ``theory/frontier``; Theorems 2 to 4 are those of the paper. Throughout,
:math:`m = L\mu/(L + \mu)`, p is the expected fraction of active clients, and a guarantee is for exact local solutions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualopt.arrays._checks import require
from dualopt.methods._parameters import largest, smallest, suggested_weight, within
from dualopt.methods._pivotal import inclusion_probabilities
from dualopt.methods._scales import constants, same
from dualopt.objectives import Objective

__all__ = [
    "best_weight",
    "best_weights",
    "compressed_guarantee",
    "guarantee",
    "half_harmonic_mean",
    "largest_growth",
    "scaled_guarantee",
    "suggested_scales",
    "suggested_weights",
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


def best_weights(bounds: Sequence[tuple[float, float]], size: int) -> tuple[float, ...]:
    r"""Return the smallest :math:`\alpha_j` that Theorem A' admits for clients with bounds :math:`(\mu_j, L_j)`.

    They solve :math:`\alpha_j = \alpha^*(\mu_j, L_j, \pi_j)`, :math:`\alpha^*` the function :func:`best_weight`, and
    :math:`\pi_j = \min(1, K\alpha_j)` with the sum P. No admitted :math:`\alpha_j` is smaller than its counterpart: for
    given K the equation has one solution, since :math:`\alpha^*` falls with :math:`\pi`; all others that are admitted
    need larger :math:`\pi_j`, so that K would be smaller, and all :math:`\alpha_j` larger. The solution is found as the
    fixed point of :math:`\alpha_j \mapsto\sqrt{\alpha_j\alpha^*(\mu_j, L_j, \pi_j)}`, in logarithms a contraction
    because :math:`\alpha^*` falls with :math:`\pi` by a power between 1/2 and 1.

    Examples
    --------
    >>> [round(alpha, 6) for alpha in best_weights([(1.0, 100.0)] * 10, 1)[:2]]
    [41.765175, 41.765175]
    >>> best_weights([(1.0, 100.0), (100.0, 10000.0)], 2)
    (10.0, 1000.0)
    """
    alphas = tuple(best_weight(*bound, size / len(bounds)) for bound in bounds)
    for _ in range(ITERATIONS):
        probabilities = inclusion_probabilities(alphas, size)
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
    objective: Objective, alpha: float | None, growth: float | None, fraction: float
) -> tuple[float, float]:
    """Return ``alpha`` and ``growth``, suggested where they are open."""
    if alpha is not None:
        return alpha, growth or 0.0
    mu, L = smallest(objective.mu), largest(objective.L)
    if mu > 0 and math.isfinite(L):
        return best_weight(mu, L, fraction), growth or 0.0
    alpha = suggested_weight(objective, "alpha")
    grows = mu > 0 and fraction < 1 and growth is None
    return alpha, largest_growth(alpha, mu) if grows else growth or 0.0


def suggested_scales(objective: Objective, size: int) -> tuple[float, ...]:
    """Return the smallest ``alpha_j`` of Theorem A' for cohorts of ``size`` clients."""
    bounds = constants(objective)
    smooth = all(mu > 0 and math.isfinite(L) for mu, L in bounds)
    require(smooth, "scaled must be False for clients that are not smooth and strongly convex")
    return best_weights(bounds, size)


def guarantee(
    objective: Objective, alpha: float, growth: float, fraction: float, inclusion: Sequence[float] | None
) -> str:
    """Say which theorems cover one weight for all clients when the expected fraction of them takes part."""
    if inclusion is not None and not same(inclusion, (fraction,) * len(inclusion)):
        return "none: some clients are active more often than others, and all have one weight"
    of_all = (_of_paper(objective, alpha, growth, fraction), _of_frontier(objective, alpha, growth, fraction))
    limit = 20.0 * largest(objective.L) / fraction
    said = "; ".join(filter(None, of_all))
    return said or f"none: alpha is below 20 L N/P = {limit:.3g}, or growth above its limit"


def compressed_guarantee(objective: Objective, alpha: float, growth: float, fraction: float, cohorts: bool) -> str:
    """Say what Theorem D says where every coordinate comes from this fraction of the clients, drawn as ``cohorts``."""
    if growth > 0 or not cohorts:
        return "none: Theorem D asks for cohorts of coordinates and a constant alpha"
    limit = 20.0 * largest(objective.L) / fraction
    said = _of_frontier(objective, alpha, growth, fraction)
    return said or f"none: alpha is below 20 L N/P = {limit:.3g}, or growth above its limit"


def _of_paper(objective: Objective, alpha: float, growth: float, fraction: float) -> str:
    """Return what the theorems of the paper say of a constant ``alpha``; nothing if they do not cover it."""
    mu, L = smallest(objective.mu), largest(objective.L)
    if growth > 0:
        return ""
    if mu > 0 and within(max(30.0 * L, 5.0 * mu / fraction), alpha):
        return f"Theorem 3: O((1 + mu/alpha)^-T), a factor of {1.0 / (1.0 + mu / alpha):.6f} per round"
    if mu >= 0 and within(25.0 * L, alpha):
        return "Theorem 2: E of the mean of the models = O(1/T)"
    if within(20.0 * L / fraction, alpha):
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


def scaled_guarantee(
    objective: Objective, alphas: Sequence[float], size: int, inclusion: Sequence[float] | None
) -> str:
    """Say what Theorem A' says of one weight for each client, with the probabilities of the clients if known."""
    bounds, needed = constants(objective), inclusion_probabilities(alphas, size)
    if any(not mu > 0 or math.isinf(L) for mu, L in bounds):
        return "none: Theorem A' needs smooth and strongly convex clients"
    if inclusion is not None and not same(inclusion, needed):
        return "none: Theorem A' needs cohorts drawn with the weights alpha_j"
    for alpha, bound, p in zip(alphas, bounds, needed, strict=True):
        if not within(best_weight(*bound, p), alpha):
            return f"none: some alpha_j = {alpha:.3g} is below the {best_weight(*bound, p):.3g} of Theorem A'"
    rate = min(half_harmonic_mean(*bound) / alpha for alpha, bound in zip(alphas, bounds, strict=True))
    drawn = "" if size == objective.n_clients else ", for cohorts drawn with the weights alpha_j"
    return f"Theorem A': E Psi falls by a factor of {1.0 / (1.0 + 2.0 * rate):.6f} per round{drawn}"
