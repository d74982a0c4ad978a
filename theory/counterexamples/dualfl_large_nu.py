r"""DualFL with nu above mu: the theory ends there, the method somewhat later.

If some :math:`g_j` is not convex, its conjugate is infinite everywhere, and there is no dual problem. The rounds are
defined all the same, for the local problems stay strongly convex. On two clients of one variable the errors' recursion
has the roots of :math:`x^2 - (1 + \beta)(1 - q)x + \beta(1 - q)` in the end, with q of ``_momentum``. For
:math:`q \le 1` they lie within the unit circle whatever beta is. Beyond, the least one passes -1 where
:math:`1 + (1 - q)(1 + 2\beta) = 0`, that is

.. math:: \nu = \frac{4}{3 - \sqrt\rho} \cdot \frac{2}{1/a_1 + 1/a_2}.

The second factor, the harmonic mean of the curvatures, lies between mu and 2 mu. So nu = mu is not where DualFL begins
to diverge; for small rho and clients of nearly the same curvature that is at 4/3 mu.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.counterexamples._momentum import dualised, final_momentum, follow_dual, step_in_dual
from theory.counterexamples._recursion import Run


def dualfl_large_nu_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield nu = mu and more, and both sides of the largest nu; equal curvatures, whose model tells nothing."""
    for nu in (1.0, 1.5):
        yield ExpectedVerdict(with_nu(nu, 0.25, (1.0, 2.0)))
    for rho, curvatures in ((0.25, (1.0, 2.0)), (0.01, (1.0, 1.1)), (0.5, (3.0, 1.0))):
        for multiple in (0.97, 1.03, 1.5) if quick else (0.98, 1.02, 1.5):
            yield ExpectedVerdict(with_nu(multiple * largest_nu(rho, *curvatures), rho, curvatures))
    yield ExpectedVerdict(with_nu(1.0, 0.25, (1.0, 1.0)), "outside assumptions")


@claim(
    source="Park and Xu, Theorem 3.3: what nu > mu does",
    statement=r"DualFL with exact local solutions and $0 < \rho < 1$ on $\frac{a_1}2(x - m_1)^2$ and $\frac{a_2}2(x -"
    r" m_2)^2$, $a_1 \ne a_2$, converges if and only if $\nu < \frac4{3 - \sqrt\rho}\cdot\frac2{1/a_1 + 1/a_2}$, which"
    r" is more than $\frac43\mu$.",
    assumptions=lambda run: [] if run.algorithm.rho > 0 and np.ptp(run.curvatures) > 0 else ["rho > 0, a_1 != a_2"],
    rounding=0.0,
    cases=dualfl_large_nu_cases,
)
def dualfl_large_nu(run: Run) -> Iterator[Inequality]:
    """Follow the model by the roots in the end."""
    beta, g = final_momentum(run.algorithm.rho), 1.0 - step_in_dual(run)
    roots = np.roots([1.0, -(1.0 + beta) * g, beta * g])
    return follow_dual(run, float(np.max(np.abs(roots))))


def largest_nu(rho: float, a1: float, a2: float) -> float:
    """Return the nu up to which the method converges."""
    return 4.0 / (3.0 - math.sqrt(rho)) * 2.0 / (1.0 / a1 + 1.0 / a2)


def with_nu(nu: float, rho: float, curvatures: tuple[float, float]) -> Run:
    """Return DualFL on two clients."""
    return dualised(nu, rho, curvatures, converges=nu < largest_nu(rho, *curvatures))
