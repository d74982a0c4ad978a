r"""DualFL on level chains: between what nobody can do without and what Theorem 3.2 admits.

The level is the least squared distance after n rounds (convex_nonsmooth_bound). Theorem 3.2 comes to it when
:math:`(m + 1)^2 \ge 4(9n^2 + 2)`, that is for :math:`m = 6n`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dualopt.algorithms import DualFL, OptimizedDualFL
from dualopt.claims import Inequality, claim
from theory._cases import Case
from theory._claims import ExpectedVerdict
from theory.dualfl._runs import sublinear_regime
from theory.lower_bounds._convex_chain import level
from theory.lower_bounds._convex_methods import chain_case
from theory.lower_bounds._convex_rounds import between

FACTOR = 6.0


def convex_nonsmooth_rounds_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Take a decade of n, and twice as much."""
    for n in (10, 30) if quick else (10, 30, 100, 200):
        for method in (DualFL(rho=0.0), OptimizedDualFL(rho=0.0)):
            yield ExpectedVerdict(chain_case(level(n), method, 6 * n))


@claim(
    source="Park and Xu, Theorem 3.2, against convex_nonsmooth_bound",
    statement=r"On the level chain for n, which no method brings to $|\theta^m - \theta^*|^2 \le \frac n2$ in fewer"
    r" than n rounds, DualFL with $\rho = 0$ takes $m \ge n$ of them, and no more than the theorem, which needs"
    r" $m_+ \le 6n$.",
    assumptions=sublinear_regime,
    cases=convex_nonsmooth_rounds_cases,
)
def convex_nonsmooth_rounds(case: Case) -> Iterator[Inequality]:
    """Compare the rounds to the least distance after two thirds of d rounds."""
    return between(case, float(case.theta.size) / 3.0, FACTOR)
