"""The theorems of the methods on the dual problem: DualFL and its kin, dual ascent, L-BFGS on the dual."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dualopt.arrays.xp import Array, array_namespace
from dualopt.methods._theorem import DRAWN, ONE_SIZE, SMOOTH, Known, Need, Theorem, at_most, same, squares

__all__ = [
    "FALL",
    "LEAST_FALL",
    "MOST_FALL",
    "NU",
    "OF_ADAPTIVE_DUALFL",
    "OF_DUALFL",
    "OF_DUAL_ASCENT",
    "OF_DUAL_LBFGS",
    "OF_GAP_RESTARTED_DUALFL",
    "OF_OPTIMIZED_DUALFL",
    "OF_RESTARTED_DUALFL",
    "OF_SAMPLED_DUALFL",
    "RHO",
    "TELLS",
    "last_step",
    "longest_run",
]

FALL = 0.1  # times |q|^2, by which a step of dual L-BFGS has to make D fall; a plain step does by a half of it
LEAST_FALL, MOST_FALL = 3.0, 10.0  # c and C of Theorem E: roots of how far a gap falls before an epoch may, must, end
TELLS = 4.0  # of t^2 s: from there on the gap of an epoch in which the momentum grows is below its first one
NU = at_most("nu", "mu", lambda m, k: k.mu)

RHO = at_most("rho", "nu/L", lambda m, k: m.nu / k.L)

# DualFL.


def _without_momentum(method: Any, known: Known) -> bool:
    return method.rho == 0


def _with_momentum(method: Any, known: Known) -> bool:
    return method.rho > 0


def _best(known: Known) -> dict[str, float]:
    return {"nu": known.mu, "rho": known.mu / known.L}


def _of_gaps(method: Any, known: Known) -> str:
    """Return Theorem E: the gap of an epoch for smooth clients, the order of Theorem 3.2 for all."""
    limit = method.nu / known.L
    if limit == 0:
        return "O(1/n^2) at the mean models"
    epoch = max(1, math.floor(2.0 * (1.0 + MOST_FALL) * math.sqrt(max(1.0 / limit - 1.0, 0.0))))
    return f"the certified gap falls by {MOST_FALL**2:.0f} in at most {epoch} rounds"


def longest_run(kappa: float, first: float, fall: float) -> float:
    r"""Return how many rounds AdaptiveDualFL needs at most for a fall of the certified gap.

    The cycles of growing and held momentum have estimates of at least these numbers, from the last one backwards:
    :math:`\sigma/2`, :math:`\sigma`, :math:`2\sigma`, ...; the last one alone, ``first``, if that is at most
    :math:`\sigma = 1/(\kappa - 1)`.

    Examples
    --------
    >>> round(longest_run(101.0, 1.0, 1e6)), round(longest_run(101.0, 0.01, 1e6)), longest_run(1.0, 1.0, 1.0) < 9
    (461, 197, True)
    """
    sigma = 1.0 / (kappa - 1.0) if kappa > 1.0 else math.inf
    least = [first]
    if first > sigma:
        cycles = 1 + math.floor(math.log2(first / sigma))
        least = [0.5 * sigma * 2.0**k for k in range(cycles + 1)]
    found = 1.0 + math.log(max(fall, 1.0)) * math.sqrt(1.0 + 1.0 / least[0])
    for s in least:
        found += math.sqrt(TELLS) * 2.0 / math.sqrt(s) + math.log(5.0) * math.sqrt(1.0 + 1.0 / s) + 1.0
    return found


def _of_adaptive(method: Any, known: Known) -> str:
    """Return the factor of the last cycle, and how many rounds come on top."""
    kappa = known.L / method.nu
    more, whole = (longest_run(kappa, method.first, fall) for fall in (1.0, math.e))
    e, more = math.ceil(10.0 * (whole - more)) / 10.0, math.ceil(more)
    return f"the certified gap falls by a factor of e in at most {e:.1f} rounds each, after {more} at most"


Bound = Callable[[Any, Known, Array, int], float]


def _dual_optimum(method: Any, known: Known, theta: Array, nu: float) -> float:
    r"""Return :math:`\sum_j\omega_j|\nabla f_j(\theta^*) - \nu\theta^*|^2`, weights with the sum 1."""
    return squares(known.objective.gradient(theta) - nu * theta, known.weights)


def _of_theorem_3(method: Any, known: Known, theta: Array, n: int) -> float:
    r"""Return the bounds of Theorems 3.2 and 3.3, :math:`\frac{2}{N\nu}` times those of the dual error."""
    falls = (1.0 - math.sqrt(method.rho)) ** (n - 1) if method.rho else 4.0 / (n + 1) ** 2
    return falls * _dual_optimum(method, known, theta, method.nu) / method.nu**2


def _of_optimized(method: Any, known: Known, theta: Array, n: int) -> float:
    r"""Return :math:`2|\zeta^*|^2/(NA_n)`; :math:`A_n` is at least :math:`(n + 1)^2`, and in linear cases more."""
    falls = (1.0 - math.sqrt(method.rho)) ** (2 * n - 2) / 4.0 if method.rho else 1.0 / (n + 1) ** 2
    return 2.0 * falls * _dual_optimum(method, known, theta, 0.0) / method.nu**2


def _accelerated(
    sources: tuple[str, str], rate: str, factor: Callable[[Any, Known], float], bound: Bound
) -> tuple[Theorem, Theorem]:
    """Return the theorem for ``rho = 0``, any loss, and the one for ``rho > 0``, with its rate in words."""
    any_loss, linear = sources
    return (
        Theorem(
            source=any_loss, rate="|theta - theta*|^2 = O(1/n^2)", needs=(NU,), about=_without_momentum, bound=bound
        ),
        Theorem(
            source=linear,
            rate=f"{rate}, a factor of {{factor}} per round",
            needs=(NU, RHO),
            about=_with_momentum,
            factor=factor,
            bound=bound,
            best=_best,
        ),
    )


OF_DUALFL = _accelerated(
    ("Theorem 3.2", "Theorem 3.3"), "E - E* = O((1 - sqrt(rho))^n)", lambda m, k: 1.0 - math.sqrt(m.rho), _of_theorem_3
)
OF_GAP_RESTARTED_DUALFL = (Theorem(source="Theorem E", rate=_of_gaps, needs=(NU,)),)
OF_ADAPTIVE_DUALFL = (Theorem(source="adaptive_rounds", rate=_of_adaptive, needs=(NU, SMOOTH)),)
OF_RESTARTED_DUALFL = (
    Theorem(
        source="",
        rate="linear for smooth clients (theory/frontier/restarts.py), without a useful factor",
        needs=(NU, SMOOTH),
    ),
)
OF_OPTIMIZED_DUALFL = _accelerated(
    ("2 |zeta*|^2/(N A_n)", "2 |zeta*|^2/(N A_n)"),
    "|theta - theta*|^2 = O((1 - sqrt(rho))^(2n))",
    lambda m, k: (1.0 - math.sqrt(m.rho)) ** 2,
    _of_optimized,
)

# SampledDualFL.


def last_step(rho: float, fraction: float) -> float:
    r"""Return the limit of t, the root of :math:`t^2 + qt = pq`, :math:`q = \rho/(1 - \rho)`.

    Examples
    --------
    >>> round(last_step(0.5, 1.0), 6), last_step(0.0, 0.5)
    (0.618034, 0.0)
    """
    q = rho / (1.0 - rho)
    return 2.0 * fraction * q / (q + math.sqrt(q * q + 4.0 * fraction * q)) if q > 0 else 0.0


def _where(method: Any, known: Known) -> str:
    """Return on what the constant of the bound depends where some are idle: with nu < mu it is finite."""
    return "" if known.p == 1 or _below(method, known) else "where all f_j - nu/2 |.|^2 are bounded below, "


def _below(method: Any, known: Known) -> bool:
    return method.nu < known.mu * (1.0 - 1e-9)


def _of_sampled(method: Any, known: Known, theta: Array, n: int) -> float:
    r"""Return the bound of Theorem F, with a bound of :math:`\Delta` by the curvatures of the :math:`g_j`.

    These are :math:`(\mu_j - \nu)`-strongly convex, so that :math:`g_j(\theta^*) - \inf g_j \le
    \frac{|\xi_j^*|^2}{2(\mu_j - \nu)}`, and :math:`f_j = g_j + \frac\nu2|\cdot|^2`.
    """
    p, rho, nu = known.p, method.rho, method.nu
    optimum, delta = _dual_optimum(method, known, theta, nu), 0.0
    if p < 1:
        if not _below(method, known):
            return math.inf
        curved = [w / (mu - nu) for w, (mu, _) in zip(known.weights, known.bounds, strict=True)]
        delta = 0.5 * squares(known.objective.gradient(theta) - nu * theta, curved)
        delta += 0.5 * nu * float(array_namespace(theta).sum(theta * theta))
    falls = (1.0 - last_step(rho, p)) ** (n - 1) if rho else 4.0 / ((n - 1) * p + 2.0) ** 2
    start = (1.0 - p) * delta + (p + (1.0 - p) * rho / (1.0 - rho)) / (2.0 * nu) * optimum
    return 2.0 * (1.0 - rho) / nu * falls * start


LEAST = Need(
    "cohorts in which a client is active with a probability of at least p",
    lambda m, k: same((m.least,), (k.p,)),
    lambda m, k: m.least,
)
_OF_SAMPLED: dict[str, Any] = {
    "source": "Theorem F",
    "needs": (NU, DRAWN, LEAST, RHO),
    "laws": ONE_SIZE,
    "bound": _of_sampled,
}
OF_SAMPLED_DUALFL = (
    Theorem(
        rate=lambda m, k: f"{_where(m, k)}E |theta - theta*|^2 = O(1/n^2)",
        about=_without_momentum,
        **_OF_SAMPLED,
    ),
    Theorem(
        rate=lambda m, k: f"{_where(m, k)}E |theta - theta*|^2 = O((1 - t)^n), a factor of {{factor}} per round",
        about=_with_momentum,
        factor=lambda m, k: 1.0 - last_step(m.rho, k.p),
        best=_best,
        **_OF_SAMPLED,
    ),
)

# Without momentum, and with pairs in its place.


def _distance(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    return squares(state.clients.zeta - known.objective.gradient(theta) / method.nu, known.weights)


def _dual_error(method: Any, known: Known, theta: Array, state: Any, n: int) -> float:
    """Return D - D* at the latest accepted point, infinite before there is one."""
    return float(state.server.value) + known.mean(known.objective.value(theta)) / method.nu


OF_DUAL_ASCENT = (
    Theorem(
        source="",
        rate="|theta - theta*|^2 = O((1 - nu/L)^(2n)), a factor of {factor} per round",
        needs=(NU, SMOOTH),
        factor=lambda m, k: max(1.0 - m.nu / k.L, 0.0) ** 2,
        potential=_distance,
        best=lambda k: {"nu": k.mu},
    ),
    Theorem(
        source="",
        rate="|theta - theta*|^2 <= |zeta*|^2/(N (2n - 1))",
        needs=(NU,),
        bound=lambda m, k, theta, n: _dual_optimum(m, k, theta, 0.0) / m.nu**2 / (2 * n - 1),
    ),
)
OF_DUAL_LBFGS = (
    Theorem(
        source="",
        rate="the dual error falls by a factor of {factor} in any two rounds, at least",
        needs=(NU, SMOOTH),
        factor=lambda m, k: 1.0 - 2.0 * FALL * m.nu / k.L,
        rounds=2,
        potential=_dual_error,
        best=lambda k: {"nu": k.mu},
    ),
    Theorem(source="", rate="the dual function falls with every accepted point", needs=(NU,)),
)
