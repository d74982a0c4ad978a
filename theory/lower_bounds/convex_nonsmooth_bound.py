r"""Nonsmooth, strongly convex clients: no method is faster than :math:`1/n^2`.

On the level chain every :math:`\theta^*_k` is 1 and the forces are :math:`p_k = 2\mu(d - k)`. With
:math:`\xi_j^*` the subgradients of :math:`f_j - \frac\mu2|\cdot|^2` at :math:`\theta^*`,

.. math:: \frac1N \sum_j |\xi_j^*|^2 = \tfrac12 \bigl( p_0^2 + 2p_1^2 + \cdots + 2p_{d-1}^2 \bigr)
          = \tfrac23 \mu^2 d (2d^2 + 1),

while n rounds leave at least :math:`d - n` of :math:`|\theta - \theta^*|^2`. The quotient is largest for
:math:`d = \frac32 n`, and is :math:`1/(9n^2 + 2)` there. Theorem 3.2 has :math:`4/(n+1)^2` instead: six
times the rounds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import FedSplit
from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.lower_bounds._convex_chain import ChainCase, level
from theory.lower_bounds._convex_methods import chain_case, runs
from theory.lower_bounds._convex_rounds import distances

NEARLY_BEST = 0.55  # the step of FedSplit, times mu n: its distance is 1.001 times the least, found by search


def convex_nonsmooth_bound_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Every method, for several numbers of rounds; FedSplit with a step for this number."""
    for n, pairs in [(10, 1)] if quick else [(10, 1), (60, 2)]:
        chain = level(n, pairs=pairs)
        for case in runs(chain, n):
            yield ExpectedVerdict(case)
        yield ExpectedVerdict(chain_case(chain, FedSplit(step=NEARLY_BEST / n), n))


@claim(
    source="Arjevani and Shamir 2015 (recalled), with an instance and a constant of our own",
    statement=r"For even n, on the level chain of $\frac32 n$ coordinates,"
    r" $|\theta^m - \theta^*|^2 \ge \frac{1}{9n^2 + 2} \cdot \frac{1}{N\mu^2} \sum_j |\xi_j^*|^2$ for all $m \le n$.",
    rtol=1e-12,
    cases=convex_nonsmooth_bound_cases,
)
def convex_nonsmooth_bound(case: ChainCase) -> Iterator[Inequality]:
    """Compare the least possible distance after all n rounds with those of the method until then."""
    mu = float(np.min(case.objective.mu))
    spread = float(np.sum((case.subgradients - mu * case.theta) ** 2)) / case.objective.n_clients
    least = spread / (mu**2 * (9.0 * case.rounds**2 + 2.0))
    for n, distance in enumerate(distances(case), start=1):
        yield Inequality(n, least, distance, "least distance squared")
