r"""Acc-S-DANE with exact local solutions: an accelerated rate in which only the differences of the clients count.

Let :math:`\nabla^2f_j \succeq \nabla^2E - \delta I`, :math:`w \ge \delta`, and all :math:`f_j` be :math:`\mu`-strongly
convex, :math:`\mu \ge 0`. With :math:`d_j = f_j - E`, whose mean is zero, the local problem minimises

.. math:: F_j(x) = f_j(x) - \langle\nabla d_j(y), x\rangle + \tfrac w2|x - y|^2
          = G(x) + r_j(x) + \text{const}, \qquad G = E + \tfrac w2|\cdot - y|^2,

where :math:`r_j(x) = d_j(x) - d_j(y) - \langle\nabla d_j(y), x - y\rangle \ge -\frac\delta2|x - y|^2`. Its optimality,
:math:`\nabla f_j(x_j) = \nabla d_j(y) - w(x_j - y)`, has the mean :math:`\frac1N\sum_j\nabla f_j(x_j) = w(y - \bar x)`.

**One solution.** Let :math:`Q = \frac1N\sum_j\bigl(f_j(x_j) + \langle\nabla f_j(x_j), \bar x - x_j\rangle\bigr) +
\frac w2|\bar x - y|^2` and V the mean of :math:`|x_j - \bar x|^2`. Inserting the gradients and :math:`\sum_jd_j = 0`,

.. math:: Q - E(\bar x) = \tfrac1N\textstyle\sum_jG(x_j) - G(\bar x) + \frac1N\sum_jr_j(x_j)
          + \tfrac w2\,\tfrac1N\textstyle\sum_j|x_j - y|^2
          \ge \tfrac{w + \mu}2V + \tfrac{w - \delta}2\,\tfrac1N\sum_j|x_j - y|^2 \ge 0, \tag{1}

because G is :math:`(w + \mu)`-strongly convex: the smoothness of the clients has not been used.

**One iteration.** Let :math:`\ell(u) = \frac1N\sum_j\bigl(f_j(x_j) + \langle\nabla f_j(x_j), u - x_j\rangle +
\frac\mu2|u - x_j|^2\bigr) \le E(u)`, and x the model before. The function

.. math:: \psi(u) = (1 - \alpha)E(x) + \tfrac{b(1 - \alpha)}2|u - v|^2 + \alpha\,\ell(u)

is minimal at :math:`v^+`, with the curvature :math:`b^+ = b(1 - \alpha) + \alpha\mu`. Put :math:`z = (1 - \alpha)x +
\alpha u`, so that :math:`z - y = \alpha(u - v)`. As :math:`E(x) \ge \ell(x)` and :math:`b(1 - \alpha) = w\alpha^2`,

.. math:: \psi(u) \ge \tfrac1N\textstyle\sum_j\bigl(f_j(x_j) + \langle\nabla f_j(x_j), z - x_j\rangle\bigr)
          + \tfrac w2|z - y|^2 \ge Q \ge E(\bar x),

since the middle is least at :math:`z = y - \frac1w\cdot w(y - \bar x) = \bar x`. Hence :math:`E(\bar x) +
\frac{b^+}2|v^+ - \theta^*|^2 \le \psi(\theta^*) \le (1 - \alpha)E(x) + \frac{b(1 - \alpha)}2|\theta^* - v|^2 + \alpha
E^*`, which is

.. math:: P^+ \le (1 - \alpha)P, \qquad P = E(\bar x) - E^* + \tfrac b2|v - \theta^*|^2. \tag{2}

At first :math:`\alpha = 1`, :math:`b(1 - \alpha) = w\alpha^2 = w`: :math:`P^1 \le \frac w2|\theta^0 - \theta^*|^2`.

**Rates.** b falls to :math:`\mu` and :math:`\alpha` to :math:`\alpha^* = \frac2{1 + \sqrt{1 + 4w/\mu}}`, so that
:math:`P^n \le \frac w2(1 - \alpha^*)^{n - 1}|\theta^0 - \theta^*|^2`. For any :math:`\mu`, :math:`A_n =
\frac1w\prod_{i = 2}^n(1 - \alpha_i)^{-1}` has :math:`\sqrt{A_n} - \sqrt{A_{n - 1}} \ge \frac1{2\sqrt w}` and begins
with :math:`A_1 = \frac1w`, so :math:`A_n \ge \frac{(n + 1)^2}{4w}` and

.. math:: E(\bar x^n) - E^* \le \tfrac{2w}{(n + 1)^2}|\theta^0 - \theta^*|^2. \tag{3}

The paper has a bound of the same order for the mean of squared differences of gradients, with errors of the local
solutions; neither is treated here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import AccSDANE
from dualopt.methods._estimate import growth
from dualopt.methods.acc_s_dane import POINT, widest
from dualopt.objectives import Quadratic
from theory._cases import EPSILON, Case, accurately
from theory._claims import ExpectedVerdict
from theory._problems import (
    digits,
    flat_quadratic,
    hard_quadratic,
    indefinite,
    logistic,
    lopsided,
    quadratic,
)
from theory.baselines._runs import baseline_case
from theory.frontier.dane import alike, opposite

__all__ = ["acc_s_dane"]

ITERATIONS = 20  # of two rounds
VISIBLE = 1e-9  # of the first potential
ACCURATE = 1e-12  # gradients where local problems are solved


def difference(f: Quadratic) -> float:
    r"""Return :math:`\delta`, the largest eigenvalue of the mean Hessian less one of a client.

    Examples
    --------
    >>> round(difference(opposite(5.0).objective), 12)
    2.0
    """
    return max(0.0, float(np.max(np.linalg.eigvalsh(np.mean(f.A, axis=0) - f.A))))


def acc_case(f: Case, times: float | None = 1.0, **more: float) -> Case:
    r"""Return the method with ``times`` :math:`\delta` for its weight, None: :math:`L - \mu`, unless it is given."""
    start = f.theta + np.random.default_rng(3).standard_normal(f.theta.shape)
    if times is not None:
        more["weight"] = times * difference(f.objective)
    more.setdefault("weight", widest(f.objective))
    note = f"w = {more['weight']:.4g}" if times is None else f"w = {times:g} delta"
    method = AccSDANE(**more, **accurately(f.objective, tol=ACCURATE))
    lowest = float(f.objective.mean(f.objective.value(f.theta)))
    return baseline_case(f, method, 2 * ITERATIONS, note, theta0=start, lowest=lowest)


def similar(case: Case) -> list[str]:
    """Return what fails: convex clients with constant mu, and a weight that their differences do not exceed."""
    missing = [] if case.mu >= 0 else ["convex clients"]
    missing += [] if case.algorithm.mu <= case.mu * (1.0 + 1e-12) else ["mu of all clients"]
    f = case.objective
    most = difference(f) if isinstance(f, Quadratic) else widest(f)
    return missing + ([] if case.algorithm.weight >= most * (1.0 - 1e-12) else ["weight >= delta"])


def acc_s_dane_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Alike and different clients, with and without strong convexity, at the end of the range and within it."""
    for times in (1.0, 3.0, None):
        for f in (quadratic(), lopsided(), alike(0.05), alike(0.8), opposite(100.0), flat_quadratic()):
            yield ExpectedVerdict(acc_case(f, times))
    yield ExpectedVerdict(acc_case(hard_quadratic(), None))
    yield ExpectedVerdict(acc_case(lopsided(), mu=0.0))
    yield ExpectedVerdict(acc_case(logistic(), None))
    if not quick:
        yield ExpectedVerdict(acc_case(digits(), None))
    yield ExpectedVerdict(acc_case(opposite(100.0), 0.5), "outside assumptions")
    yield ExpectedVerdict(acc_case(indefinite(), weight=10.0, times=None), "outside assumptions")


def limit_factor(weight: float, mu: float) -> float:
    r"""Return :math:`1 - \alpha` for the :math:`\alpha` with :math:`w\alpha^2 + \mu\alpha = \mu`."""
    return 1.0 - 2.0 / (1.0 + math.sqrt(1.0 + 4.0 * weight / mu))


@claim(
    source="derived here, for a method of Jiang, Rodomanov and Stich 2024 (from their code)",
    statement=r"For $\mu$-strongly convex clients, $\mu \ge 0$, $\nabla^2f_j \succeq \nabla^2E - \delta I$,"
    r" $w \ge \delta$ and exact solutions, $P = E(\bar x) - E^* + \frac b2|v - \theta^*|^2$:"
    r" $P^+ \le (1 - \alpha)P$, $P^1 \le \frac w2|\theta^0 - \theta^*|^2$, and after $n$ iterations"
    r" $E(\bar x^n) - E^* \le \min(\frac{2w}{(n + 1)^2}, \frac w2(1 - \alpha^*)^{n - 1})|\theta^0 - \theta^*|^2$,"
    r" $\alpha^* = 2/(1 + \sqrt{1 + 4w/\mu})$.",
    assumptions=similar,
    cases=acc_s_dane_cases,
)
def acc_s_dane(case: Case) -> Iterator[Inequality]:
    r"""Acc-S-DANE: its accelerated rate.

    Compare the potential with the one before, and the energy with both rates, up to the rounding of the energies and of
    local solutions, whose gradients are below 1e-12 or 8 units in the last place: they move :math:`\bar x` and v by at
    most that over :math:`\mu + w` and :math:`w\alpha + \mu`.
    """
    w, mu = case.algorithm.weight, case.algorithm.mu
    start = case.distance(case.theta0)
    last, b, first, n = math.nan, math.inf, math.nan, 0
    for s in case.snapshots():
        if s.server.asked != POINT:  # a round of gradients
            continue
        n += 1
        alpha, b = growth(b, w, mu)
        error, away = case.error(s.server.theta), case.distance(s.server.v)
        potential = error + 0.5 * b * away
        size = float(np.linalg.norm(s.server.theta) + np.linalg.norm(case.theta) + np.linalg.norm(s.server.v))
        residual = max(ACCURATE, 8.0 * EPSILON * (case.L + w) * size)
        moved = residual / max(w * alpha + mu, 1e-300)
        slope = math.sqrt(case.squared_gradient(s.server.theta))
        rounding = case.energy_rounding(s.server.theta) + moved * (b * math.sqrt(away) + slope)
        rounding += 0.5 * (b + case.L) * moved**2
        if n > 1:
            yield Inequality(n, potential, (1.0 - alpha) * last, "potential after an iteration", rounding)
        else:
            first = potential
            yield Inequality(n, potential, 0.5 * w * start, "first potential", rounding)
        yield Inequality(n, error, 2.0 * w * start / (n + 1) ** 2, "energy, n^2", rounding)
        if mu > 0:
            bound = 0.5 * w * start * limit_factor(w, mu) ** (n - 1)
            yield Inequality(n, error, bound, "energy, linear", rounding)
        if potential < VISIBLE * first:
            break
        last = potential
