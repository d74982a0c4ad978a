r"""DualFL with the ridge of Section 4 on the free chain, in rounds to an energy error.

With :math:`\alpha = \epsilon/|\theta^*|^2` the ridge costs at most half of :math:`\epsilon`, since
:math:`E(\theta) - E^* \le E_\alpha(\theta) - E_\alpha^* + \frac\alpha2|\theta^*|^2`; Theorem 3.3 gives the other half
from :math:`E_\alpha(\theta) - E_\alpha^* \le \frac{L+\alpha}2|\theta - \theta^\alpha|^2`. For
:math:`\epsilon = \frac{L|\theta^*|^2}{8d^2}` the least number of rounds is :math:`d - 1`, and the theorem admits a
logarithm more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dualopt.algorithms import DualFL, OptimizedDualFL
from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.dualfl._runs import linear_regime
from theory.lower_bounds._convex_chain import ChainCase, squares
from theory.lower_bounds._convex_methods import chain_case
from theory.lower_bounds._convex_rounds import needed, theorem

FACTOR = 10.0


def convex_smooth_rounds_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Accuracies over more than two decades."""
    for d in (5, 10, 20) if quick else (5, 10, 20, 50, 100):
        for method in (DualFL(), OptimizedDualFL()):
            yield ExpectedVerdict(ridged(d, method))


@claim(
    source="Park and Xu, Section 4 and Theorem 3.3, against convex_smooth_bound",
    statement=r"On free chains let $\epsilon = \frac{L|\theta^*|^2}{8d^2}$: no method has"
    r" $E(\theta^n) - E^* < \epsilon$ before the round d. DualFL with a ridge of weight $\epsilon/|\theta^*|^2$ has"
    r" it by the round that Theorem 3.3 gives, and within 10 times the least number of rounds.",
    assumptions=linear_regime,
    cases=convex_smooth_rounds_cases,
)
def convex_smooth_rounds(case: ChainCase) -> Iterator[Inequality]:
    """Compare the rounds to the accuracy that belongs to the ridge."""
    f, d, alpha = replace(case.objective, ridge=0.0), case.theta.size, case.objective.ridge
    epsilon = alpha * d  # |theta*|^2 = d
    energies = (float(np.mean(f.value(s.server.theta))) for s in case.snapshots())
    half = (0.5 * float(np.max(case.objective.L)) * distance for distance in theorem(case))
    measured, upper = needed(energies, epsilon), needed(half, 0.5 * epsilon)
    yield Inequality(d, d - 1.0, measured, "least rounds of any method and those measured")
    yield Inequality(d, measured, upper, "rounds measured and those of the theorem")
    yield Inequality(d, measured, FACTOR * (d - 1.0), f"rounds measured and {FACTOR:g} times the least")


def ridged(d: int, method: Any) -> ChainCase:
    """Put a method on the free chain with the ridge of its accuracy."""
    return chain_case(squares(d, ridge=0.125 / d**2), method, 20 * d)
