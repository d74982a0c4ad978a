r"""DualFL on the strongly convex chain: between the lower bound of all methods and its own upper bound.

To :math:`|\theta - \theta^*|^2 \le \epsilon|\theta^*|^2` every method needs about :math:`\frac{\sqrt\kappa}4
\log\frac1\epsilon` rounds (convex_strong_bound). For :math:`d \to \infty` the chain has :math:`|\xi^*|^2/(N\mu^2) =
(\kappa + 1)|\theta^*|^2`, so that Theorem 3.3 admits about :math:`\sqrt\kappa(\log\frac1\epsilon + \log\kappa)`, and
the bound of OptimizedDualFL half of that: four times and twice the least, but for the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from dualopt.algorithms import DualFL, OptimizedDualFL
from dualopt.claims import Inequality, claim
from theory._cases import Case
from theory._claims import ExpectedVerdict
from theory.dualfl._runs import linear_regime
from theory.lower_bounds._convex_chain import ChainCase, geometric
from theory.lower_bounds._convex_methods import chain_case
from theory.lower_bounds._convex_rounds import between

ACCURACY = 1e-8  # of the squared distance
FACTOR = 10.0


def convex_strong_rounds_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Condition numbers over three decades."""
    for kappa in (10.0, 100.0, 1000.0) if quick else (10.0, 100.0, 1000.0, 10_000.0):
        for method in (DualFL(), OptimizedDualFL()):
            yield ExpectedVerdict(chain(kappa, method))


@claim(
    source="Park and Xu, Theorem 3.3, against convex_strong_bound",
    statement=r"On geometric chains with $10 \le \kappa \le 10^4$ let $n_-$ be the rounds to"
    r" $|\theta^n - \theta^*|^2 \le 10^{-8}|\theta^*|^2$ that no method can do without, $n_+$ those within which the"
    r" theorem promises it. Then $n_- \le n \le n_+ \le 10\,n_-$ for the measured n; of OptimizedDualFL as well.",
    assumptions=linear_regime,
    cases=convex_strong_rounds_cases,
)
def convex_strong_rounds(case: Case) -> Iterator[Inequality]:
    """Compare the rounds to the accuracy."""
    return between(case, ACCURACY * float(case.theta @ case.theta), FACTOR)


def chain(kappa: float, method: Any) -> ChainCase:
    """Put a method on a chain so long that its end is below the square of the accuracy."""
    q = (math.sqrt(kappa) - 1.0) / (math.sqrt(kappa) + 1.0)
    d = math.ceil(math.log(ACCURACY) / math.log(q))
    return chain_case(geometric(kappa, d), method, 10 * d)
