r"""Acc-S-DANE with weights that adapt: the rate without knowing how different the clients are.

The proof of ``acc_s_dane`` uses :math:`w \ge \delta` in one place: :math:`Q \ge E(\bar x)`, which says that the mean
Bregman distance of :math:`\bar x` from the :math:`x_j` is at most :math:`\frac w2|\bar x - y|^2`. What follows uses
only that the least value of :math:`\psi` is at least :math:`E(\bar x)`; and that can be seen.

**The bound.** Let :math:`D = \frac1N\sum_jD_j` be the mean Bregman distance of :math:`f_j - \frac\mu2|\cdot|^2`. As
:math:`\frac1N\sum_j\nabla f_j(x_j) = w(y - \bar x)`, the :math:`\ell` of that proof is

.. math:: \ell(u) = E(\bar x) - D + \langle w(y - \bar x), u - \bar x\rangle + \tfrac\mu2|u - \bar x|^2 \le E(u),

whatever w is: it needs convexity only.

**One iteration.** Let :math:`\varphi = E(x) + \frac b2|\cdot - v|^2`. For all :math:`\alpha' \in [0, 1]` the function
:math:`(1 - \alpha')\varphi + \alpha'\ell` has the curvature :math:`b' = (1 - \alpha')b + \alpha'\mu` and its minimum at
:math:`v' = v - \frac{\alpha'}{b'}\nabla\ell(v)`, with the value

.. math:: m(\alpha') = (1 - \alpha')E(x) + \alpha'\ell(v) - \tfrac{\alpha'^2}{2b'}|\nabla\ell(v)|^2.

If :math:`m(\alpha') \ge E(x')`, its value at :math:`\theta^*` and :math:`\ell(\theta^*) \le E^*` give

.. math:: P' \le (1 - \alpha')P, \qquad P = E(x) - E^* + \tfrac b2|v - \theta^*|^2. \tag{1}

Where :math:`m(\alpha) \ge E(\bar x)` for the :math:`\alpha` that y was made with, w is accepted, and :math:`x' =
\bar x`, :math:`\alpha' = \alpha`; at first :math:`\alpha = 1` and :math:`\varphi` becomes :math:`\ell + \frac w2|\cdot
- \theta^0|^2`, so that :math:`P^1 \le \frac w2|\theta^0 - \theta^*|^2`. Otherwise w is refused, :math:`x'` is the
better of x and :math:`\bar x`, and :math:`\alpha' \in [0, \alpha]` the largest with :math:`m(\alpha') \ge E(x')`. There
is one: :math:`m(0) = E(x)`; and as m is concave, the minimum of affine functions of :math:`\alpha'`, these are an
interval from zero. If it is the first weight, all stays.

**Weights.** For :math:`w \ge \delta` and y made with :math:`w\alpha^2 = b(1 - \alpha)`, the proof of ``acc_s_dane``
gives :math:`m(\alpha) \ge E(\bar x)`, whatever the weights before were: it needs :math:`E(x) \ge \ell(x)` only.
So a refused weight is below :math:`\delta`, and a doubled one below
:math:`2\delta`: no weight exceeds :math:`\bar w = \max(w_0, 2\delta)`. After k refusals and n accepted iterations, q of
them before the first refusal, the weight is :math:`2^k\,0.1^q\,0.9^{n - q}w_0`, so that

.. math:: k \le \log_2\frac{\bar w}{w_0} + q\log_210 + (n - q)\log_2\tfrac{10}9. \tag{2}

**Rates.** All b are at least :math:`\mu`, and :math:`\alpha` grows with b and falls with w: each of the accepted
iterations but the first has a factor of at most :math:`1 - \alpha^*`, :math:`\bar w\alpha^{*2} + \mu\alpha^* = \mu`;
the others have one of at most 1. For any :math:`\mu`, let A be :math:`\frac1w` at first and :math:`A' = \frac A{1 -
\alpha'}` after that. As :math:`bA \ge 1` is kept, accepted iterations have :math:`w\alpha^2 = b(1 - \alpha) \ge
\frac1{A'}`, that is :math:`w(A' - A)^2 \ge A'`, and :math:`\sqrt{A'} - \sqrt A \ge \frac{A' - A}{2\sqrt{A'}} \ge
\frac1{2\sqrt w}`. Hence :math:`A \ge \frac{(n + 1)^2}{4\bar w}` and, after n accepted iterations,

.. math:: E(x) - E^* \le \min\Bigl(\frac{2\bar w}{(n + 1)^2}, \frac{\bar w}2(1 - \alpha^*)^{n - 1}\Bigr)
          |\theta^0 - \theta^*|^2. \tag{3}
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import AdaptiveAccSDANE
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
from theory.frontier.accelerated_dane import ACCURATE, VISIBLE, difference, limit_factor
from theory.frontier.dane import alike, opposite

__all__ = ["acc_s_dane_adaptive"]

ITERATIONS = 25  # of three rounds
WEIGHTS = {"rise": 2.0, "first fall": 10.0, "fall": 10.0 / 9.0}  # (2): what the method says that it does


def adaptive_case(f: Case, share: float | None = None, **more: float) -> Case:
    r"""Return the method with ``share`` of :math:`L - \mu` for its first weight, None: the suggested one."""
    start = f.theta + np.random.default_rng(3).standard_normal(f.theta.shape)
    if share is not None:
        more["first"] = share * widest(f.objective)
    note = "suggested first weight" if share is None else f"first weight {share:g} (L - mu)"
    method = AdaptiveAccSDANE(**more, **accurately(f.objective, tol=ACCURATE))
    lowest = float(f.objective.mean(f.objective.value(f.theta)))
    return baseline_case(f, method, 3 * ITERATIONS, note, theta0=start, lowest=lowest)


def convex(case: Case) -> list[str]:
    """Return what fails: convex clients with constant mu."""
    missing = [] if case.mu >= 0 else ["convex clients"]
    return missing + ([] if case.algorithm.mu <= case.mu * (1.0 + 1e-12) else ["mu of all clients"])


def acc_s_dane_adaptive_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Alike and different clients, with and without strong convexity, from small and large first weights."""
    for share in (None, 1.0, 1e-4):
        for f in (quadratic(), lopsided(), alike(0.05), alike(0.8), opposite(100.0), flat_quadratic()):
            yield ExpectedVerdict(adaptive_case(f, share))
    yield ExpectedVerdict(adaptive_case(hard_quadratic()))
    yield ExpectedVerdict(adaptive_case(lopsided(), mu=0.0))
    yield ExpectedVerdict(adaptive_case(logistic()))
    if not quick:
        yield ExpectedVerdict(adaptive_case(digits()))
    yield ExpectedVerdict(adaptive_case(indefinite(), first=10.0), "outside assumptions")


@claim(
    source="derived here",
    statement=r"For $\mu$-strongly convex clients, $\mu \ge 0$, $\nabla^2f_j \succeq \nabla^2E - \delta I$, exact"
    r" solutions and weights that adapt from $w_0$, $P = E(x) - E^* + \frac b2|v - \theta^*|^2$:"
    r" $P' \le (1 - \alpha')P$, weights $w \ge \delta$ are accepted ($\alpha' = \alpha$), all are at most $\bar w ="
    r" \max(w_0, 2\delta)$, and after $n$ accepted iterations, $q$ of them before the first refusal,"
    r" $E(x) - E^* \le \min(\frac{2\bar w}{(n + 1)^2}, \frac{\bar w}2(1 - \alpha^*)^{n - 1})"
    r" |\theta^0 - \theta^*|^2$, with at most $\log_2\frac{\bar w}{w_0} + q\log_210 + (n - q)\log_2\frac{10}9$"
    r" refused ones.",
    assumptions=convex,
    cases=acc_s_dane_adaptive_cases,
)
def acc_s_dane_adaptive(case: Case) -> Iterator[Inequality]:
    r"""Acc-S-DANE with weights that adapt: its rate without delta.

    The potential is computed with a b of its own. Local solutions have gradients below 1e-12 or 8 units in the last
    place: the mean of the gradients is wrong by at most that, and so is :math:`\ell(\theta^*)`, times
    :math:`|\bar x - \theta^*|`. The method compares up to ``rounding``, which it says, and so do energies here.
    """
    mu, f = case.algorithm.mu, case.objective
    delta = difference(f) if isinstance(f, Quadratic) else widest(f)
    widest_weight = max(case.algorithm.first, 2.0 * delta)
    start, first, last, b = case.distance(case.theta0), math.nan, math.inf, math.inf
    weight, accepted, refused, early = case.algorithm.first, 0, 0, 0
    for s in case.snapshots():
        if s.server.asked != POINT:  # nothing has been judged
            continue
        n, found = accepted + refused + 1, s.server.search
        error, away = case.error(s.server.theta), case.distance(found.mean)
        size = sum(float(np.linalg.norm(x)) for x in (s.server.theta, case.theta, s.server.v, found.mean))
        residual = max(ACCURATE, 8.0 * EPSILON * (case.L + weight) * size)
        rounding = case.energy_rounding(s.server.theta) + 2.0 * found.rounding + residual * math.sqrt(away)
        alpha, _ = growth(b, weight, mu)
        refusal = found.accepted is False
        if weight >= delta * (1.0 + 1e-12):
            yield Inequality(n, float(refusal), 0.0, "weights of delta are accepted", 0.0)
        if refusal:
            refused += 1
        else:
            yield Inequality(n, alpha, found.share, "share of an accepted weight", 1e-12)
            accepted, early = accepted + 1, early + (refused == 0)
        if math.isfinite(s.server.b):
            begins = math.isinf(b)
            b = weight + mu if begins else (1.0 - found.share) * b + found.share * mu
            potential = error + 0.5 * b * case.distance(s.server.v)
            if begins:
                first = potential
                yield Inequality(n, potential, 0.5 * weight * start, "first potential", rounding)
            else:
                yield Inequality(n, potential, (1.0 - found.share) * last, "potential after an iteration", rounding)
            last = potential
        if accepted:
            yield Inequality(n, error, 2.0 * widest_weight * start / (accepted + 1) ** 2, "energy, n^2", n * rounding)
        if accepted and mu > 0:
            bound = 0.5 * widest_weight * start * limit_factor(widest_weight, mu) ** (accepted - 1)
            yield Inequality(n, error, bound, "energy, linear", n * rounding)
        rise, quick, slow = (math.log2(WEIGHTS[name]) for name in ("rise", "first fall", "fall"))
        most = (math.log2(widest_weight / case.algorithm.first) + quick * early + slow * (accepted - early)) / rise
        yield Inequality(n, refused, most, "refused weights", 1e-9)
        weight = found.weight
        alpha, _ = growth(s.server.b, weight, mu)
        apart = float(np.linalg.norm(s.server.point - (1.0 - alpha) * s.server.theta - alpha * s.server.v))
        yield Inequality(n, apart, 0.0, "the next point, of the next weight", 8.0 * EPSILON * size)
        yield Inequality(n, weight, widest_weight, "weights", 1e-12 * widest_weight)
        if not last > VISIBLE * first and math.isfinite(last):
            break
