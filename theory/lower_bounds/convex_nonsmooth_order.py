r"""One nonsmooth chain on which the error of DualFL is of order :math:`1/n^2`, no more and no less.

A level chain is hard at one number of rounds. On the power chain :math:`\theta^*_k = k^{-3/2}`, so that the tail
:math:`\sum_{k>n} k^{-3} \ge \frac12 (n+1)^{-2} - \frac12 (d+1)^{-2}` keeps every method at the order of
:math:`1/n^2` at all n at once. The forces are :math:`p_{k-1} = 2\mu k^{3/2} \sum_{i \ge k} i^{-3} \approx
\mu k^{-1/2}`: the sum of their squares, and with it the bound of Theorem 3.2, grows with d, but like its logarithm.
"""

from __future__ import annotations

from collections.abc import Iterator

from dualopt.algorithms import DualFL, OptimizedDualFL
from dualopt.claims import Inequality, claim
from theory._cases import Case
from theory._claims import ExpectedVerdict
from theory.dualfl._runs import sublinear_regime
from theory.lower_bounds._convex_chain import power
from theory.lower_bounds._convex_methods import chain_case
from theory.lower_bounds._convex_rounds import distances, tails, theorem

DECADE = 10
FACTOR = 3.0


def convex_nonsmooth_order_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Take an early decade and, on a longer chain, a later one."""
    for d, rounds in [(1000, 100)] if quick else [(1000, 100), (3000, 300)]:
        for method in (DualFL(rho=0.0), OptimizedDualFL(rho=0.0)):
            yield ExpectedVerdict(chain_case(power(d), method, rounds))


@claim(
    source="Park and Xu, Theorem 3.2, on an instance of our own",
    statement=r"On the power chain DualFL with $\rho = 0$ has $\sum_{k>n} (\theta^*_k)^2 \le |\theta^n - \theta^*|^2"
    r" \le \frac{4|\xi^*|^2}{N\nu^2(n+1)^2}$, and over a decade of n the largest"
    r" $n^2|\theta^n - \theta^*|^2$ is at most 3 times the least.",
    assumptions=sublinear_regime,
    rtol=1e-12,
    cases=convex_nonsmooth_order_cases,
)
def convex_nonsmooth_order(case: Case) -> Iterator[Inequality]:
    """Compare with the tail and the theorem, and over the last decade n^2 times the error with its least value."""
    errors = list(distances(case))
    for n, (least, error, most) in enumerate(zip(tails(case.theta), errors, theorem(case), strict=False), start=1):
        yield Inequality(n, float(least), error, "least distance squared")
        yield Inequality(n, error, most, "|theta - theta*|^2")
    scaled = {n: n**2 * error for n, error in enumerate(errors, start=1) if n >= case.rounds // DECADE}
    for n, error in scaled.items():
        yield Inequality(n, error, FACTOR * min(scaled.values()), "n^2 |theta - theta*|^2")
