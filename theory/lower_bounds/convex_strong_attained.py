r"""The bound of the strongly convex chain is attained in every round, by FedSplit.

With two groups and the step :math:`s = 1/\sqrt{L\mu}` FedSplit is :math:`z_A^+ = R_A z_B`, :math:`z_B^+ = R_B z_A` with
the reflections :math:`R_j z = 2\,\mathrm{prox}_{s f_j}(z) - z`. On a pair with a link the curvature is
:math:`\mu` along (1, 1) and L along (1, -1), where a reflection multiplies by :math:`\frac{1-s\mu}{1+s\mu} = q` and
:math:`\frac{1-sL}{1+sL} = -q`: it swaps the two coordinates and shrinks them by q. Link 0 makes :math:`2q - q^2 z_1` of
the first one. From zero, 2q enters there, and every round passes it on: :math:`z_A = (2q, 0, 2q^3, 0, \ldots)` and
:math:`z_B = (0, 2q^2, 0, 2q^4, \ldots)` up to the coordinate n, and half their sum is the model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import FedSplit
from dualopt.claims import Case, Inequality, claim
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory.lower_bounds._convex_chain import geometric
from theory.lower_bounds._convex_methods import chain_case


def convex_strong_attained_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two condition numbers, two clients and six; another step."""
    for kappa, d, pairs in [(10.0, 16, 1), (1000.0, 60, 3)]:
        chain = geometric(kappa, d, pairs=pairs)
        yield ExpectedVerdict(chain_case(chain, FedSplit(), d))
    other = chain_case(chain, FedSplit(step=1.0 / chain.L), 3)
    yield ExpectedVerdict(other, "violated")


@claim(
    source="derived here; the contraction is that of Pathak and Wainwright 2020",
    statement=r"On the geometric chain FedSplit with $s = 1/\sqrt{L\mu}$ has"
    r" $\theta^n = (q, q^2, \dots, q^n, 0, \dots, 0)$ for $n \le d$: $|\theta^n - \theta^*|^2$ is the least that any"
    r" method can have.",
    rounding=0.0,
    cases=convex_strong_attained_cases,
)
def convex_strong_attained(case: Case) -> Iterator[Inequality]:
    """Compare the model with the point of the first n coordinates that is nearest to the solution."""
    place = np.arange(1, case.theta.size + 1)
    for n, s in enumerate(case.snapshots(), start=1):
        yield Inequality(n, deviation(s.server.theta, np.where(place <= n, case.theta, 0.0)), ROUNDING, "model")
