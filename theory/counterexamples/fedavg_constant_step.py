r"""FedAvg with a constant step: for every step there are clients on which it diverges.

On :math:`\frac{a+b}2x^2` and :math:`\frac{a-b}2x^2` a round of Q steps multiplies the model by the mean of the clients'
factors, :math:`\frac12(1 - s(a+b))^Q + \frac12(1 - s(a-b))^Q`. For :math:`Q = 2` that is :math:`(1 - sa)^2 + (sb)^2`,
above 1 for :math:`s > 2a/(a^2+b^2)`, although :math:`E = \frac a2x^2` is as harmless for every b. For :math:`a = 0` it
is :math:`\sum_{k\text{ even}} \binom Qk (sb)^k > 1` for every :math:`Q \ge 2` and :math:`s > 0`: the instance of the
paper has a = 0, b = 2, and E is zero there. With a > 0 the same divergence happens to a strongly convex E.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import numpy as np

from dualopt.algorithms import FedAvg
from dualopt.claims import Inequality, claim
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._claims import ExpectedVerdict
from theory.counterexamples._recursion import Run, follow, scalars


def fedavg_constant_step_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the paper's clients with short steps and long ones, and a convex E on both sides of the longest step."""
    for s, Q in ((0.1, 2), (0.05, 6), (1.0, 3)):
        yield ExpectedVerdict(averaged(0.0, 2.0, s, Q))
    for multiple in (0.5, 0.97, 1.03) if quick else (0.5, 0.98, 1.02):
        yield ExpectedVerdict(averaged(1.0, 3.0, multiple * longest_step(1.0, 3.0)))
    yield ExpectedVerdict(averaged(1.0, 30.0, 0.01))


@claim(
    source="FedPD Claim II.2 and Appendix A",
    statement=r"FedAvg with $Q \ge 2$ gradient steps of length $s$ on $\frac{a\pm b}2x^2$: a round multiplies the model"
    r" by $\frac12(1 - s(a+b))^Q + \frac12(1 - s(a-b))^Q$. For $a = 0$ it diverges for every $s > 0$; for $Q = 2$ it"
    r" converges if and only if $s < 2a/(a^2 + b^2)$, which tends to 0 for $b \to \infty$ while E stays"
    r" $\frac a2x^2$.",
    assumptions=lambda run: [] if run.algorithm.stop.steps == 2 or np.sum(run.curvatures) == 0 else ["Q = 2 or a = 0"],
    rounding=0.0,
    cases=fedavg_constant_step_cases,
)
def fedavg_constant_step(run: Run) -> Iterator[Inequality]:
    """Follow the model by its factor."""
    s, Q = run.algorithm.solver.step, run.algorithm.stop.steps
    a = float(np.mean(run.curvatures))
    b = float(run.curvatures[0]) - a
    rate = factor(s, Q, a, b)
    return follow(run, repeat(np.array([1.0, -rate])), rate)


def factor(s: float, Q: int, a: float, b: float) -> float:
    """Return what a round multiplies the model by."""
    return 0.5 * (1.0 - s * (a + b)) ** Q + 0.5 * (1.0 - s * (a - b)) ** Q


def longest_step(a: float, b: float) -> float:
    """Return the step up to which two steps contract; zero, for any number of steps, if a is zero."""
    return 2.0 * a / (a * a + b * b)


def averaged(a: float, b: float, s: float, Q: int = 2) -> Run:
    """Return FedAvg with Q steps on the two clients."""
    method = FedAvg(solver=Gradient(step=s), stop=Steps(steps=Q))
    return Run(
        label=f"a = {a:g}, b = {b:g}, s = {s:.4g}, Q = {Q}",
        algorithm=method,
        objective=scalars([a + b, a - b]),
        converges=s < longest_step(a, b),
        limit=0.0,  # for a = 0 every model is a solution
    )
