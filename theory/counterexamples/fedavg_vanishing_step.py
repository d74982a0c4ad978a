r"""FedAvg with vanishing steps: on the clients of the paper it converges if and only if their squares can be summed.

The proof of Claim D.2 lets the steps vanish, finds an eigenvalue above 1 in every round and concludes that the model
diverges. Factors above 1 are not enough for that; their product must be infinite. On :math:`f_1 = x^2, f_2 = -x^2`,
with :math:`\frac12(1+2s)^Q + \frac12(1-2s)^Q = \sum_k \binom Q{2k}(2s)^{2k}` and
:math:`\binom Q{2k} \le \binom Q2^k/k!`,

.. math:: 1 + S_n \le \frac{x_n}{x_0} \le \exp S_n, \qquad S_n = 2Q(Q-1) \sum_{r<n} s_r^2,

so that :math:`s_r \propto r^{-1/2}` diverges and :math:`s_r \propto 1/r` does not. Here E is zero, and every model is a
minimiser: to converge means that the model comes to rest, and to diverge that it does not stay bounded. Without
local steps (Q = 1) it would not move at all. For two steps and :math:`s_r = s_0(r+1)^{-p}` the products are known:

.. math:: \prod_{r=1}^{n} \Bigl(1 + \frac{(2s_0)^2}{r}\Bigr) = \frac{\Gamma(n + 1 + 4s_0^2)}
          {\Gamma(n+1)\,\Gamma(1 + 4s_0^2)}, \qquad
          \prod_{r=1}^\infty \Bigl(1 + \frac{(2s_0)^2}{r^2}\Bigr) = \frac{\sinh 2\pi s_0}{2\pi s_0};

the first is n + 1 for :math:`s_0 = 1/2`, and a finite product of the second kind misses at most the factor
:math:`\exp((2s_0)^2/n)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ROUNDING, ExpectedVerdict
from theory.counterexamples._recursion import scalars
from theory.fedpd.fedavg import LocalSteps, Vanishing


def fedavg_vanishing_step_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield steps on both sides of 1/sqrt(r) and on it; more local steps; and a single one: nothing moves."""
    rounds = 100 if quick else 500
    for first, power in ((0.5, 0.5), (0.5, 1.0), (0.3, 0.3), (0.2, 0.6)):
        yield ExpectedVerdict(vanishing(first, power, 2, rounds))
    for first, Q in ((0.05, 5), (0.5, 1)):
        yield ExpectedVerdict(vanishing(first, 0.5, Q, rounds // 5))


@claim(
    source="Zhang et al., first version, Claim D.2",
    statement=r"FedAvg with $Q$ gradient steps of length $s_r$ in round r on $x^2$ and $-x^2$: $1 + S_n \le x_n/x_0 \le"
    r" e^{S_n}$, $S_n = 2Q(Q-1)\sum_{r<n}s_r^2$, so that the model stays bounded if and only if $\sum s_r^2 < \infty$."
    r" For $Q = 2$: $x_n = (n+1)x_0$ with $s_r = 1/(2\sqrt{r+1})$, and $x_n \to \frac{\sinh 2\pi s_0}{2\pi s_0}x_0$"
    r" with $s_r = s_0/(r+1)$.",
    assumptions=lambda case: [] if abs(case.objective.A.sum()) == 0 else ["E = 0"],
    rounding=0.0,
    rtol=ROUNDING,
    cases=fedavg_vanishing_step_cases,
)
def fedavg_vanishing_step(case: LocalSteps) -> Iterator[Inequality]:
    """Compare how far the model has gone with both bounds, and with the products that are known."""
    Q, S = case.steps, 0.0
    for n, step, means in case.run():
        S += excess(step, Q)
        gone = float(means[-1][0])
        yield Inequality(n, 1.0 + S, gone, "1 + S and the model")
        yield Inequality(n, gone, math.exp(S), "model")
        if Q == 2 and case.schedule.power in (0.5, 1.0):
            least, most = product(case.schedule, n + 1)
            yield Inequality(n, least, gone, "the known product and the model")
            yield Inequality(n, gone, most, "model and the known product")


def excess(s: float, Q: int) -> float:
    """Return by how much the factor of Q steps of length s exceeds 1, to second order in s: never by less."""
    return 2.0 * Q * (Q - 1) * s**2


def product(steps: Any, n: int) -> tuple[float, float]:
    """Return between what numbers the product of n factors of two steps lies, for the powers 1/2 and 1."""
    square = (2.0 * steps.first) ** 2
    if steps.power == 0.5:
        exact = math.exp(math.lgamma(n + 1 + square) - math.lgamma(n + 1) - math.lgamma(1.0 + square))
        return exact, exact
    infinite = math.sinh(2.0 * math.pi * steps.first) / (2.0 * math.pi * steps.first)
    return infinite * math.exp(-square / n), infinite


def vanishing(first: float, power: float, Q: int, rounds: int) -> LocalSteps:
    """Return FedAvg with Q steps of length ``first/(r+1)^power`` on the two clients, from 1."""
    return LocalSteps(
        name=f"s = {first:.3g}/(r+1)^{power:g}, Q = {Q}: {'stays bounded' if power > 0.5 or Q == 1 else 'diverges'}",
        objective=scalars([2.0, -2.0]),
        schedule=Vanishing(first, power),
        steps=Q,
        rounds=rounds,
        G=math.inf,
        start=np.ones(1),
    )
