r"""DualFL with rho above nu/L: it converges still, but slower than Theorem 3.3 would promise.

On two clients of one variable (``_momentum``) the characteristic roots in the end are those of
:math:`x^2 - (1 + \beta)(1 - q)x + \beta(1 - q)`, with :math:`\beta = \frac{1-\sqrt\rho}{1+\sqrt\rho}`. They are complex
for :math:`\rho < q`, of modulus :math:`\sqrt{\beta(1-q)}`, and real beyond:

.. math:: x_{\max} = \frac{1 - q + \sqrt{(1-q)(\rho-q)}}{1 + \sqrt\rho},

which is least at :math:`\rho = q`, where it is :math:`1 - \sqrt q`, and grows to 1 - q, the factor without momentum, as
:math:`\rho \to 1`. It never reaches 1: here rho alone makes DualFL slow and not divergent. What breaks is the rate.
Theorem 3.3 promises :math:`|\theta^n - \theta^*|^2 = O((1-\sqrt\rho)^n)`, and with :math:`y = \sqrt{1-\sqrt\rho}` the
equation :math:`x_{\max} = y` is linear in q after squaring:

.. math:: x_{\max}^2 \le 1 - \sqrt\rho \iff q \ge \frac{(1-y)^2(2+y)}{2-y} = \tfrac34\rho + O(\rho^{3/2}).

So rho may exceed q, which is at least nu/L, by a third before the promise fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory.counterexamples._momentum import dualised, final_momentum, follow_dual, step_in_dual
from theory.counterexamples._recursion import Run, side


def dualfl_large_rho_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield rho below q, at q, a little and far above, and both sides of where the promise fails."""
    q = 0.05
    for rho in (0.01, q, 1.2 * q, 0.5, 0.99):
        yield ExpectedVerdict(with_rho(rho, q))
    for rho in (0.02, 0.3):
        for multiple in (0.98, 1.02):
            yield ExpectedVerdict(with_rho(rho, multiple * least_step(rho)))


@claim(
    source="Park and Xu, Theorem 3.3: what rho > nu/L does",
    statement=r"DualFL with exact local solutions and $\nu \le \mu$ on two clients of one variable, $q = \frac\nu2"
    r" (\frac1{a_1} + \frac1{a_2}) \ge \frac\nu L$: it converges for every $\rho \in (0, 1)$, by the factor"
    r" $\sqrt{(1 - q)\frac{1 - \sqrt\rho}{1 + \sqrt\rho}}$ per round in the end for $\rho \le q$ and by $\frac{1 - q +"
    r" \sqrt{(1 - q)(\rho - q)}}{1 + \sqrt\rho}$ for $\rho > q$, which tends to $1 - q$ for $\rho \to 1$. The square is"
    r" at most $1 - \sqrt\rho$, as in the theorem, if and only if $q \ge \frac{(1 - y)^2(2 + y)}{2 - y}$,"
    r" $y = \sqrt{1 - \sqrt\rho}$.",
    assumptions=lambda run: [] if 0 < step_in_dual(run) <= 1 and run.algorithm.rho > 0 else ["nu <= mu, rho > 0"],
    rounding=0.0,
    cases=dualfl_large_rho_cases,
)
def dualfl_large_rho(run: Run) -> Iterator[Inequality]:
    """Compare the factor with the roots of the recursion and with the promised one, and follow the model."""
    rho, q = run.algorithm.rho, step_in_dual(run)
    beta, rate = final_momentum(rho), factor(rho, q)
    roots = np.roots([1.0, -(1.0 + beta) * (1.0 - q), beta * (1.0 - q)])
    # a double root, at rho = q, is known to half of the digits
    yield Inequality(0, deviation(rate, float(np.max(np.abs(roots)))), math.sqrt(ROUNDING), "factor")
    yield side(rate**2, 1.0 - math.sqrt(rho), below=q >= least_step(rho), what="squared factor")
    yield from follow_dual(run, rate)


def factor(rho: float, q: float) -> float:
    """Return the larger modulus of the roots."""
    if rho <= q:
        return math.sqrt((1.0 - q) * final_momentum(rho))
    return (1.0 - q + math.sqrt((1.0 - q) * (rho - q))) / (1.0 + math.sqrt(rho))


def least_step(rho: float) -> float:
    """Return the q from which on the promised rate holds."""
    y = math.sqrt(1.0 - math.sqrt(rho))
    return (1.0 - y) ** 2 * (2.0 + y) / (2.0 - y)


CURVATURES = (1.0, 3.0)


def with_rho(rho: float, q: float) -> Run:
    """Return DualFL on the two clients, with the nu that makes the step q."""
    run = dualised(q / float(np.mean(1.0 / np.array(CURVATURES))), rho, CURVATURES)
    promised = math.sqrt(1.0 - math.sqrt(rho))
    return replace(run, label=f"{run.label}, promised factor {promised:.3f}, true one {factor(rho, q):.3f}")
