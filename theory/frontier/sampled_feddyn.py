r"""Theorem A: FedDyn with few clients in each round contracts as fast as accelerated methods do.

Let every :math:`f_j` be :math:`\mu`-strongly convex and L-smooth, :math:`\kappa = L/\mu`, let local solutions be exact
and cohorts uniform, of P = pN clients; :math:`m = L\mu/(L + \mu)` and :math:`\gamma = 1/\alpha`. The paper's Theorem 3
asks for :math:`\alpha \ge \max(5\mu N/P, 30L)` and takes of the order of :math:`\kappa + N/P` rounds per factor e.

**Theorem A.** If :math:`L\mu\gamma^2 + 2(1 - p)m\gamma \le p`, then :math:`\mathbb E\,\Psi^+ \le r\Psi` for

.. math:: r = \frac1{1 + 2\gamma m}, \qquad \Psi = |x - x^*|^2 + \frac CN\sum_j|u_j - u_j^*|^2, \qquad
          C = \frac rp\Bigl(\gamma^2 + \frac{2\gamma}{L + \mu}\Bigr).

*Proof.* Strong convexity and smoothness together say :math:`\langle d, e\rangle \ge m|d|^2 + |e|^2/(L + \mu)` of (1).
Put into the identity (2) of :mod:`theory.frontier._feddyn`, with :math:`c = \gamma^2 + 2\gamma/(L + \mu)`,

.. math:: (1 + 2\gamma m)[|d|^2] + c[|e|^2] \le |x - x^*|^2 + \gamma^2[|b|^2].

By (3) and :math:`C = rc/p` the terms with e cancel in

.. math:: \mathbb E\,\Psi^+ \le [|d|^2] + C(1 - p)[|b|^2] + Cp[|e|^2]
          \le r|x - x^*|^2 + \bigl(r\gamma^2 + (1 - p)C\bigr)[|b|^2],

which is :math:`r\Psi` at most if :math:`r\gamma^2 \le C(r - 1 + p)`, that is :math:`p\gamma^2 \le c(r - 1 + p)`.
Multiplied by :math:`(L + \mu)(1 + 2\gamma m)/(2\gamma)`, with :math:`m(L + \mu) = L\mu`, this is the condition. ∎

*The best weight.* The condition holds up to the positive root :math:`\gamma^*` of its quadratic, and r falls with
:math:`\gamma`, so :math:`\alpha^* = 1/\gamma^*` is best; :math:`\sqrt{L\mu}` for p = 1. Because
:math:`1/\log(1 + s) \le \frac12 + \frac1s` and :math:`\alpha^* \le (2(1 - p)m + \sqrt{pL\mu})/p`, a factor e takes at
most

.. math:: \frac12 + \frac{\alpha^*}{2m} \le \frac12\sqrt{\frac NP}\Bigl(\sqrt\kappa + \frac1{\sqrt\kappa}\Bigr)
          + \frac NP - \frac12 \tag{4}

rounds. FedSplit takes about :math:`\frac{N\sqrt\kappa}{4P}` (:mod:`theory.frontier.sampled_fedsplit`): FedDyn is ahead
with fewer than about N/4 active clients, FedSplit with more.

*The constant is the best possible.* Let all clients have one Hessian with an eigenvector of curvature :math:`\mu` or
L, and no errors but of x along it. Then all inequalities of the proof are equalities.

*What it does not say.* :math:`\Psi` is a worst case over the clients' Hessians. Clients that are alike average to
what one of them minimises, whatever their memories are: then the lighter weight :math:`\sqrt{L\mu}` is faster in the
first rounds, although no theorem says so for P < N.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedDyn
from dualopt.methods._feddyn_theorems import best_weight
from theory._cases import Case, accurately
from theory._claims import ROUNDING, UP_TO_ROUNDING, ExpectedVerdict
from theory._problems import (
    flat_quadratic,
    hard_quadratic,
    logistic,
    lopsided,
    one_flat_client,
    quadratic,
)
from theory.baselines._runs import baseline_case, smooth_and_strongly_convex
from theory.baselines.contraction import one_step
from theory.frontier._feddyn import feddyn_errors

ROUNDS = 15


def sampled_case(f: Case, active: int, *, times: float = 1.0, attained: bool = False) -> Case:
    """Return FedDyn with ``times`` the best weight of Theorem A, or with the weight ``times`` if there is none."""
    best = best_weight(f.mu, f.L, active / f.objective.n_clients) if f.mu > 1e-9 * f.L else 1.0
    method = FedDyn(alpha=times * best, fraction=active / f.objective.n_clients, **accurately(f.objective))
    note = "alpha*" if times == 1 else f"{times:g} alpha*"
    return baseline_case(f, method, ROUNDS, note, active=active, attained=attained)


def half_harmonic(mu: float, L: float) -> float:
    """Return m."""
    return L * mu / (L + mu)


def admitted(case: Case) -> list[str]:
    """Return what fails of the assumptions of Theorem A."""
    wrong = smooth_and_strongly_convex(case)
    if wrong:
        return wrong
    gamma, p = 1.0 / case.algorithm.alpha, case.fraction
    m = half_harmonic(case.mu, case.L)
    fits = case.L * case.mu * gamma**2 + 2.0 * (1.0 - p) * m * gamma <= p * UP_TO_ROUNDING
    return [] if fits else ["L mu gamma^2 + 2 (1 - p) m gamma <= p"]


def sampled_feddyn_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Cohorts of all sizes, the best weight, heavier ones and lighter ones; what the theorem excludes."""
    for active in (1, 2, 3):
        yield ExpectedVerdict(sampled_case(quadratic(), active))
        yield ExpectedVerdict(sampled_case(hard_quadratic(), active, attained=True))
    yield ExpectedVerdict(sampled_case(hard_quadratic(L=4.0), 1, attained=True))
    yield ExpectedVerdict(sampled_case(hard_quadratic(), 1, times=3.0, attained=True))
    for active, times in ((1, 1.0), (2, 1.0), (2, 5.0)):
        yield ExpectedVerdict(sampled_case(lopsided(), active, times=times))
    for active in (1, 2):
        yield ExpectedVerdict(sampled_case(logistic(), active).but(rounds=6 if quick else ROUNDS))
    if not quick:
        yield ExpectedVerdict(sampled_case(quadratic(6, L=1e4), 2))
    for active in (1, 2):
        yield ExpectedVerdict(sampled_case(hard_quadratic(), active, times=0.5), "outside assumptions")
    yield ExpectedVerdict(sampled_case(flat_quadratic(), 2), "outside assumptions")
    yield ExpectedVerdict(sampled_case(one_flat_client(), 2), "outside assumptions")


@claim(
    source="Theorem A",
    statement=r"For $\mu$-strongly convex, $L$-smooth clients, exact local solutions, uniform cohorts of $P = pN$,"
    r" $\gamma = 1/\alpha$, $m = \frac{L\mu}{L + \mu}$ and $L\mu\gamma^2 + 2(1 - p)m\gamma \le p$:"
    r" $\mathbb E\,\Psi^+ \le \frac1{1 + 2\gamma m}\Psi$ with $\Psi = |x - x^*|^2 + \frac CN\sum_j|u_j - \nabla"
    r" f_j(x^*)|^2$, $C = \frac{\gamma^2 + 2\gamma/(L + \mu)}{p(1 + 2\gamma m)}$; x is the mean of the active"
    r" models, $u_j$ the memory of client j. Quadratics with equal Hessians attain it.",
    assumptions=admitted,
    rtol=ROUNDING,
    cases=sampled_feddyn_cases,
)
def sampled_feddyn(case: Case) -> Iterator[Inequality]:
    r"""FedDyn with sampled clients: the contraction of its Lyapunov function.

    Compare the exact expectation over all cohorts, at the states of a path and at the worst of all states.
    """
    return one_step(case, feddyn_errors(case, dual_weight(case)), factor(case))


def factor(case: Case) -> float:
    r"""Return :math:`r = 1/(1 + 2\gamma m)`."""
    return 1.0 / (1.0 + 2.0 * half_harmonic(case.mu, case.L) / case.algorithm.alpha)


def dual_weight(case: Case) -> float:
    r"""Return C."""
    gamma = 1.0 / case.algorithm.alpha
    return factor(case) * (gamma**2 + 2.0 * gamma / (case.L + case.mu)) / case.fraction


class Rate(NamedTuple):
    """Constants of clients and a fraction of them."""

    kappa: float
    fraction: float

    @property
    def name(self) -> str:
        """For tables."""
        return f"kappa = {self.kappa:g}, p = {self.fraction:g}"


def sampled_feddyn_rounds_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """From well to ill conditioned, from one client in a hundred to all of them."""
    for kappa in (1.0, 10.0, 1e3, 1e6):
        for fraction in (0.01, 0.1, 0.5, 1.0):
            yield ExpectedVerdict(Rate(kappa, fraction))


@claim(
    source="Theorem A, the number of rounds",
    statement=r"With $\alpha^* = \frac1p\bigl((1 - p)m + \sqrt{(1 - p)^2m^2 + pL\mu}\bigr)$, which solves"
    r" $L\mu\gamma^2 + 2(1 - p)m\gamma = p$ (to 1e-10), the factor of Theorem A takes at most"
    r" $\frac12\sqrt{N/P}(\sqrt\kappa + \frac1{\sqrt\kappa}) + \frac NP - \frac12$ rounds per factor e.",
    rtol=ROUNDING,
    cases=sampled_feddyn_rounds_cases,
)
def sampled_feddyn_rounds(case: Rate) -> Iterator[Inequality]:
    """FedDyn with sampled clients: the number of rounds per factor e.

    Compare the weight with the equation that it solves, and the rounds with (4).
    """
    mu, L, p = 1.0, case.kappa, case.fraction
    gamma, m = 1.0 / best_weight(mu, L, p), half_harmonic(mu, L)
    left = L * mu * gamma**2 + 2.0 * (1.0 - p) * m * gamma
    yield Inequality(0, left, p, "condition")
    yield Inequality(0, p, left, "condition, from below")
    root = math.sqrt(case.kappa)
    bound = 0.5 * (root + 1.0 / root) / math.sqrt(p) + 1.0 / p - 0.5
    yield Inequality(0, 1.0 / math.log(1.0 + 2.0 * gamma * m), bound, "rounds per factor e")
