r"""Theorem I: 5GCS with cohorts is in the long run as fast as Theorem H says for everybody.

Let every :math:`f_j` be :math:`\mu`-strongly convex and L-smooth, let proximal maps be exact, cohorts uniform of
:math:`P = pN` of :math:`N \ge 2` clients, :math:`\gamma\tau N = 1` and :math:`m = \gamma\mu < p`. As in
:mod:`theory.frontier.sampled_fivegcs`, :math:`g_j = Nu_j`, :math:`g_j^* = \nabla f_j(x^*) - \mu x^*`, and
:math:`[\,\cdot\,]` is the mean over all clients. Further

.. math:: D = p(1 + m) - m, \qquad c = \frac mD, \qquad \tau = \frac{p - m}D, \qquad e = \frac{m(1 - p)}D, \qquad
          \eta = \tau\,\frac{N - P}{P(N - 1)}, \qquad \ell = \frac1{\gamma(L - \mu)}.

**Theorem I.** Let

.. math:: s = \frac{2\ell}{1 + \sqrt{1 + 2\eta\ell}}, \qquad
          r^2 = \max\Bigl(\frac1{(1 + m)^2},\ 1 - p + \frac p{(1 + s)^2}\Bigr), \qquad
          t = \sqrt{1 - \frac{1 - r^2}p}.

If :math:`(t + \eta(1 - t))(1 - \eta(1 - t) - \tau t) \ge te^2`, then :math:`\mathbb E\,V^+ \le r^2V` for

.. math:: V = |x - x^* + c\gamma(\bar g - \bar g^*)|^2 + \frac kN\gamma^2\sum_j|g_j - g_j^*|^2, \qquad
          k = \frac{\tau(t + \eta(1 - t))}{pt^2}.

*Proof.* As there, :math:`\gamma b_j = \beta + \beta_j` and :math:`\gamma e_j = \varepsilon + \varepsilon_j` with
:math:`[\beta_j] = [\varepsilon_j] = 0`, :math:`q = 1 + m`, :math:`d_j = (a - \beta)/q + \gamma b_j - \gamma e_j`; now
:math:`A = a + c\beta`. Let :math:`\Delta` be the mean over the cohort of the :math:`\gamma(b_j - e_j)`. Then
:math:`x^+ - x^* = (a - \beta)/q + \Delta` and :math:`\beta^+ = \beta - p\Delta`, and c is the number with which

.. math:: A^+ = \tfrac1q(a - \beta) + c\beta + (1 - cp)\Delta = \tfrac1qA + \tau(\Delta - \beta), \qquad 1 - cp = \tau.

:math:`\Delta` has the mean :math:`\beta - \varepsilon` and the variance :math:`\frac{N - P}{P(N - 1)}[|\beta_j -
\varepsilon_j|^2]`, and a memory is renewed with probability p. So

.. math:: \mathbb E\,V^+ = |\tfrac1qA - \tau\varepsilon|^2 + \tau\eta[|\beta_j - \varepsilon_j|^2]
          + k(1 - p)\bigl(|\beta|^2 + [|\beta_j|^2]\bigr) + kp\bigl(|\varepsilon|^2 + [|\varepsilon_j|^2]\bigr).

The mean of the inequalities :math:`\langle d_j, e_j\rangle \ge |e_j|^2/(L - \mu)` is, times :math:`\gamma`,

.. math:: S = \tfrac1q\langle A, \varepsilon\rangle - e\langle\beta, \varepsilon\rangle
          + [\langle\beta_j, \varepsilon_j\rangle] - (1 + \ell)\bigl(|\varepsilon|^2 + [|\varepsilon_j|^2]\bigr) \ge 0.

By the definition of t is :math:`r^2 - 1 + p = pt^2`, and in :math:`r^2V - \mathbb E\,V^+ - 2\tau S` the products of A
and :math:`\varepsilon` cancel. With :math:`w = t + \eta(1 - t)`,

.. math:: \bigl(r^2 - \tfrac1{q^2}\bigr)|A|^2
          &+ \tau\bigl(w|\beta|^2 + 2e\langle\beta, \varepsilon\rangle
             + (2 + 2\ell - \tau - \tfrac w{t^2})|\varepsilon|^2\bigr) \\
          &+ \tau\bigl[t(1 - \eta)|\beta_j|^2 - 2(1 - \eta)\langle\beta_j, \varepsilon_j\rangle
             + (2 + 2\ell - \eta - \tfrac w{t^2})|\varepsilon_j|^2\bigr]

is left. The number s solves :math:`s + \frac\eta2s^2 = \ell`, and :math:`t \ge 1/(1 + s)`; hence :math:`2 + 2\ell \ge
\frac2t + \eta\frac{(1 - t)^2}{t^2}`, which makes the last bracket at least :math:`(1 - \eta)[|\sqrt t\beta_j -
\varepsilon_j/\sqrt t|^2]`, and the factor of :math:`|\varepsilon|^2` at least :math:`(1 - \eta(1 - t) - \tau t)/t`. So
the first bracket is not negative by the condition. As :math:`0 < \tau \le 1` and :math:`\eta \le \tau`, nothing is. ∎

*Theorem H* is the case p = 1: then :math:`c = m`, :math:`\tau = 1 - m`, :math:`e = \eta = 0`, :math:`s = \ell`, and the
condition says :math:`\tau t \le 1`.

*The numbers.* Where r is 1/q the products with A leave no other c. This k is the one for which the last bracket needs
the least :math:`\ell`, so that V with another one admits longer steps nowhere but where the condition fails.

*The condition holds* if r is 1/q, no cohort is of one client, and :math:`t \ge \frac13`, that is :math:`r^2 \ge 1 -
\frac89p`. For p and m follow from r and t, :math:`p(1 - t^2) = 1 - r^2`, and then

.. math:: \tau = 1 - \frac{1 - r^2}{r + t^2}, \qquad e = \frac{r^2 - t^2}{r + t^2}, \qquad
          0 \le \eta = \tau\frac{1 - p}{P - p} \le \tau\frac{1 - p}{2 - p} = \tau\frac{r^2 - t^2}{1 + r^2 - 2t^2}.

Both sides differ by a concave function of :math:`\eta`, which at the two ends of this interval is a polynomial over a
square. Over :math:`\frac13 \le t \le r \le 1` the first one has no negative coefficient in Bernstein's basis, and the
second is :math:`(1 - t^2)^3(t^2 + 2t - 1)^2 + (1 - r)H` with such an H (``tests/theory/test_symbolic_frontier.py``). ∎
It is an equality for :math:`r \to 1`, P = 2 and :math:`t = \sqrt2 - 1`; cohorts of one client have it for shorter
steps.

*At the best step of Theorem G*, for all cohorts of two clients or more and :math:`\kappa \ge 4` of a grid of numbers up
to 100,000 (the same tests), the condition holds and r is 1/q: there a distance falls by :math:`1/(1 + \gamma\mu)`, in
place of :math:`1/\sqrt{1 + 2\gamma\mu}`.

*It is attained* where r is 1/q: by clients of curvature :math:`\mu` along a vector on which all memories are right,
:math:`e_j = b_j = 0`, and :math:`x^+ - x^* = (x - x^*)/q`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from dualopt.lab.claims import Inequality, claim
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import flat_quadratic, hard_quadratic, logistic, lopsided, quadratic
from theory.baselines._runs import smooth_and_strongly_convex
from theory.baselines.contraction import one_step
from theory.frontier.sampled_fivegcs import ROUNDS, errors, ridge_at_the_server, ridge_case

__all__ = ["Numbers", "cohorts_of_fivegcs", "numbers"]


class Numbers(NamedTuple):
    """What the theorem names."""

    moved: float  # c
    weight: float  # k
    square: float  # r^2
    fits: bool  # the condition


def numbers(m: float, p: float, N: int, ell: float) -> Numbers:
    r"""Return the numbers of :math:`m = \gamma\mu < p`, and :math:`\ell = 1/(\gamma(L - \mu))`.

    Examples
    --------
    Everybody, as in Theorem H: c = m, k = (1 - m)/r:

    >>> numbers(0.25, 1.0, 3, 0.25)
    Numbers(moved=0.25, weight=0.9375, square=0.64, fits=True)
    """
    D, P = p * (1.0 + m) - m, p * N
    c, tau, e = m / D, (p - m) / D, m * (1.0 - p) / D
    eta = tau * (N - P) / (P * (N - 1))
    s = 2.0 * ell / (1.0 + math.sqrt(1.0 + 2.0 * eta * ell))
    square = max(1.0 / (1.0 + m) ** 2, 1.0 - p + p / (1.0 + s) ** 2)
    t = math.sqrt(1.0 - (1.0 - square) / p)
    w = t + eta * (1.0 - t)
    return Numbers(c, tau * w / (p * t * t), square, w * (1.0 - eta * (1.0 - t) - tau * t) >= t * e * e)


def of(case: Case) -> Numbers:
    """Return the numbers of a case."""
    gamma, mu = case.gamma, case.algorithm.mu
    return numbers(gamma * mu, case.fraction, case.objective.n_clients, 1.0 / (gamma * (case.L - mu)))


def admitted(case: Case) -> list[str]:
    """Return what fails of the assumptions."""
    wrong = smooth_and_strongly_convex(case)
    if wrong:
        return wrong
    some = ridge_at_the_server(case)
    if not case.gamma * case.algorithm.mu < case.fraction:
        return [*some, "gamma mu < P/N"]
    return some + ([] if some or of(case).fits else ["(t + eta (1 - t)) (1 - eta (1 - t) - tau t) >= t e^2"])


def cohorts_of_fivegcs_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Cohorts of all sizes, steps on both sides of the best one, less of the ridge; what is excluded."""
    for times in (0.3, 1.0):
        yield ExpectedVerdict(ridge_case(hard_quadratic(), 2, times=times, attained=True))
    yield ExpectedVerdict(ridge_case(hard_quadratic(), 1, times=0.3, attained=True))
    yield ExpectedVerdict(ridge_case(hard_quadratic(), 1))
    yield ExpectedVerdict(ridge_case(hard_quadratic(), 3, attained=True))
    yield ExpectedVerdict(ridge_case(hard_quadratic(), 2, times=1.5))
    yield ExpectedVerdict(ridge_case(quadratic(), 2))
    for active, part in ((2, 1.0), (3, 1.0), (3, 0.4)):
        yield ExpectedVerdict(ridge_case(lopsided(), active, part=part))
    yield ExpectedVerdict(ridge_case(logistic(), 2).but(rounds=6 if quick else ROUNDS))
    if not quick:
        yield ExpectedVerdict(ridge_case(quadratic(6, L=1e4), 2))
    yield ExpectedVerdict(ridge_case(hard_quadratic(L=30.0), 1, times=3.5), "outside assumptions")
    yield ExpectedVerdict(ridge_case(hard_quadratic(L=4.0), 2, times=2.0), "outside assumptions")
    yield ExpectedVerdict(ridge_case(hard_quadratic(), 2, product=0.2), "outside assumptions")
    yield ExpectedVerdict(ridge_case(flat_quadratic(), 2), "outside assumptions")


@claim(
    source="Theorem I",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, exact proximal maps, uniform cohorts of $P = pN$,"
    r" $\gamma\tau N = 1$ and $m = \gamma\mu < p$, let $D = p(1 + m) - m$, $c = \frac mD$, $\tau = \frac{p - m}D$, $e ="
    r" \frac{m(1 - p)}D$, $\eta = \tau\frac{N - P}{P(N - 1)}$, $\ell = \frac1{\gamma(L - \mu)}$, $s ="
    r" \frac{2\ell}{1 + \sqrt{1 + 2\eta\ell}}$, $r^2 = \max\bigl(\frac1{(1 + m)^2}, 1 - p + \frac p{(1 + s)^2}\bigr)$,"
    r" $t = \sqrt{1 - \frac{1 - r^2}p}$, $w = t + \eta(1 - t)$. If $w(1 - \eta(1 - t) - \tau t) \ge te^2$, 5GCS has"
    r" $\mathbb E\,V^+ \le r^2V$ with $V = |x - x^* + c\gamma(\bar g - \bar g^*)|^2 + \frac{\tau w}{pt^2}"
    r"\frac{\gamma^2}N\sum_j|g_j - g_j^*|^2$, $g_j = Nu_j$, $g_j^* = \nabla f_j(x^*) - \mu x^*$. Where $r = \frac1{1 +"
    r" m}$, quadratics attain it.",
    assumptions=admitted,
    rtol=ROUNDING,
    cases=cohorts_of_fivegcs_cases,
)
def cohorts_of_fivegcs(case: Case) -> Iterator[Inequality]:
    """5GCS with the ridge at the server and cohorts: the contraction of a Lyapunov function in the long run.

    Compare the exact expectation over all cohorts, at the states of a path and at the worst of all states.
    """
    c, k, square, _ = of(case)
    return one_step(case, errors(case, k * case.gamma**2, c * case.gamma), square)
