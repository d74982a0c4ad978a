r"""Smooth and strongly convex clients: no method is faster than :math:`q^{2n}`.

On the geometric chain the tail of :math:`\theta^*` beyond n is the fraction
:math:`(q^{2n} - q^{2d})/(1 - q^{2d})` of :math:`|\theta^*|^2`. The least of E on the first :math:`n < d` coordinates is
at :math:`x_k = (q^k - q^{2(n+1)-k})/(1 - q^{2(n+1)})`, which solves the same recursion with :math:`x_{n+1} = 0`; as
:math:`E(x) - E(0) = -\frac w4 x_1` where the gradient vanishes on these coordinates, it is
:math:`\frac w4(q - x_1) = \frac w4 q^{2n+1}\frac{1-q^2}{1-q^{2n+2}}` above :math:`E^*`, in any number of dimensions.

For :math:`d \to \infty` and :math:`\kappa = L/\mu` the distance is at least :math:`q^{2n}|\theta^*|^2`, so that
:math:`\epsilon |\theta^*|^2` takes :math:`\frac{\log(1/\epsilon)}{2\log(1/q)} \ge \frac{\sqrt\kappa - 1}4
\log\frac1\epsilon` rounds. No larger rate can be proved for this class: FedSplit contracts by q in every round,
whatever the clients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.lower_bounds._convex_chain import ChainCase, geometric
from theory.lower_bounds._convex_methods import runs


def convex_strong_bound_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Every method, for three condition numbers."""
    shapes = [(10.0, 16, 1)] if quick else [(10.0, 16, 1), (100.0, 60, 2), (1000.0, 150, 4)]
    for kappa, d, pairs in shapes:
        for case in runs(geometric(kappa, d, pairs=pairs), d // 2):
            yield ExpectedVerdict(case)


@claim(
    source="Nesterov 2004, Theorem 2.1.13, and Arjevani and Shamir 2015 (recalled), derived for this chain",
    statement=r"On the geometric chain, $q = \frac{\sqrt\kappa - 1}{\sqrt\kappa + 1}$ with the condition number of"
    r" every client: $|\theta^n - \theta^*|^2 \ge \frac{q^{2n} - q^{2d}}{1 - q^{2d}} |\theta^*|^2$ and"
    r" $E(\theta^n) - E^* \ge \frac{L - \mu}{8} q^{2n+1} \frac{1 - q^2}{1 - q^{2n+2}}$ for $n < d$.",
    rtol=1e-12,
    cases=convex_strong_bound_cases,
)
def convex_strong_bound(case: ChainCase) -> Iterator[Inequality]:
    """Compare the least possible distance and energy with those of the method."""
    f, d = case.objective, case.theta.size
    kappa = float(np.max(f.L) / np.min(f.mu))
    q = (math.sqrt(kappa) - 1.0) / (math.sqrt(kappa) + 1.0)
    square = float(np.sum(case.theta**2))
    quadratic = replace(f, ratios=np.append(0.0, f.ratios[1:]))  # tied to 0, not to 1: E - E* without cancellation
    for n, s in enumerate(case.snapshots(), start=1):
        theta = s.server.theta
        distance = float(np.sum((theta - case.theta) ** 2))
        least = (q ** (2 * n) - q ** (2 * d)) / (1.0 - q ** (2 * d)) * square
        yield Inequality(n, least, distance, "least distance squared")
        energy = float(np.mean(quadratic.value(theta - case.theta)))
        least = 0.25 * f.weight * q ** (2 * n + 1) * (1.0 - q * q) / (1.0 - q ** (2 * n + 2))
        yield Inequality(n, least, energy, "least energy error")
