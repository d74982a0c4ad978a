r"""Smooth convex clients without strong convexity: no method is faster than :math:`1/n^2`.

On the free chain E is :math:`\frac w4` times the sum of the squared gaps. After :math:`n < d` rounds the n + 1 gaps
between :math:`x_0 = 1` and :math:`x_{n+1} = 0` sum to one: at best they are equal, and :math:`E = \frac{w}{4(n+1)}`
with :math:`L = 2w`. For the chain of :math:`d = n + 1` coordinates :math:`|\theta^*|^2 = n + 1`. Conjugate gradients
come to the least E a round later, so that no better constant is to be had from this chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.lower_bounds._convex_chain import ChainCase, squares
from theory.lower_bounds._convex_methods import runs


def convex_smooth_bound_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Every method, with a ridge where it needs one."""
    d = 20 if quick else 60
    for instance in (squares(d), squares(d, ridge=0.1 / d, pairs=2)):
        for case in runs(instance, d - 1):
            yield ExpectedVerdict(case)


@claim(
    source="Nesterov 2004, Theorem 2.1.7, and Arjevani and Shamir 2015 (recalled), derived for a free end",
    statement=r"On the free chain $E(\theta^n) - E^* \ge \frac{L}{8(n+1)}$ for $n < d$, L being the smoothness of every"
    r" client; with $d = n + 1$ this is $\frac{L|\theta^*|^2}{8(n+1)^2}$. Methods may add a ridge.",
    rtol=1e-12,
    cases=convex_smooth_bound_cases,
)
def convex_smooth_bound(case: ChainCase) -> Iterator[Inequality]:
    """Compare the least possible energy without ridge with that of the method."""
    f = replace(case.objective, ridge=0.0)
    L = float(np.max(f.L))
    for n, s in enumerate(case.snapshots(), start=1):
        energy = float(np.mean(f.value(s.server.theta)))
        yield Inequality(n, L / (8.0 * (n + 1)), energy, "least energy")
