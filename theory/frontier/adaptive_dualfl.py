r"""AdaptiveDualFL: the momentum follows the curvature that is met, and a certified gap says whether it may.

Notation and the assumptions of :mod:`theory.frontier.restarts`; in the inner product :math:`|\cdot|_\nu` the function
:math:`\sum_jg_j^*` is :math:`\sigma`-strongly convex, :math:`\sigma = 1/(\kappa-1)`, :math:`\kappa = \max_jL_j/\nu_j`
(0 for clients with kinks). A round n of an epoch makes :math:`\xi^n` from :math:`\eta^{n-1}`, with :math:`\alpha_n =
1/t_n` and a model :math:`w_{n-1} = -\frac1S\sum_j\eta_j^{n-1}`, and :math:`\bar w_n = (1 - \alpha_n)\bar w_{n-1} +
\alpha_nw_{n-1}`. The estimate of :math:`\sigma` in it is :math:`s_n`, :math:`\rho_n = s_n/(1+s_n)`; estimates never
rise.

**What a run shows of** :math:`\sigma`. For the dual points of two rounds and their local solutions :math:`\theta_j \in
\partial g_j^*(\xi_j)`

.. math:: \sum_j\langle\Delta\theta_j, \Delta\xi_j\rangle \ge \sigma|\Delta\xi|_\nu^2, \tag{1}

and in an epoch with :math:`\rho = 0`, :math:`t_1 = 1`, by (2) of :mod:`theory.frontier.restarts`, with :math:`T_n =
t_n^2`

.. math:: \sigma \le \frac{(\sqrt{G_n} + \sqrt{G_0})^2}{t_n^2G_n}. \tag{2}

**Held momentum.** Let an epoch begin at :math:`\xi^0` without momentum, with any model :math:`\bar w_0`, :math:`t_0 =
1/\sqrt{\rho_0}`, and let all :math:`s_i \le \sigma`. Then

.. math:: G_n \le B_n\bigl(G_0 + \tfrac{s_0}2|\nabla g(\bar w_n) - \xi^0|_\nu^2\bigr)
          \le B_n\bigl(G_0 + (\sqrt{G_n} + \sqrt{G_0})^2\bigr), \qquad B_n = \prod_{i=1}^n(1 - \alpha_i). \tag{3}

*Proof.* Let :math:`l_n` be the lower model of :math:`E_d` at :math:`\eta^{n-1}`, that is h replaced by its tangent. It
is s-strongly convex for every :math:`s \le \sigma`, so that for every u

.. math:: E_d(\xi^n) \le l_n(u) + \tfrac12|u - \eta^{n-1}|_\nu^2 - \tfrac{1+s}2|u - \xi^n|_\nu^2,

and with :math:`u = (1 - \alpha)\xi^{n-1} + \alpha\xi` it is :math:`l_n(u) \le (1 - \alpha)E_d(\xi^{n-1}) + \alpha
l_n(\xi) - \frac s2\alpha(1 - \alpha)|\xi - \xi^{n-1}|_\nu^2`. Let :math:`z^n = \xi^{n-1} + t_n(\xi^n - \xi^{n-1})`,
:math:`z^0 = \xi^0`. The momentum (3.4) is :math:`\beta = \frac{t_{n-1}-1}{t_n}(1 - s(t_n - 1))`, with which
:math:`u - \eta^{n-1} = \alpha(\xi - y)` for :math:`y = z^{n-1} + s(t_n - 1)(\xi^{n-1} - z^{n-1})`, and :math:`u - \xi^n
= \alpha(\xi - z^n)`. As the square is convex, :math:`\alpha^2|\xi - y|^2 - s\alpha(1-\alpha)|\xi - \xi^{n-1}|^2 \le
\alpha^2(1 - s(t_n - 1))|\xi - z^{n-1}|^2`, and (3.4) says that :math:`\alpha_n^2(1 - s(t_n - 1)) = (1 -
\alpha_n)(1+s)\alpha_{n-1}^2`. So :math:`V_n = E_d(\xi^n) + \frac{1+s_n}2\alpha_n^2|\xi - z^n|_\nu^2` has :math:`V_n \le
(1 - \alpha_n)V_{n-1} + \alpha_nl_n(\xi)`, also where :math:`s_n < s_{n-1}`, and :math:`(1+s_0)\alpha_0^2 = s_0`. The
models :math:`l_n(\xi)` are :math:`q(w_{n-1}; \xi)`,

.. math:: q(w; \xi) = -\Bigl\langle w, \sum_j\xi_j\Bigr\rangle - \tfrac S2|w|^2 + \sum_jg_j^*(\xi_j) \le E_d(\xi),

concave in w, and :math:`q(w; \nabla g(w)) = -NE(w) \le q(w; \xi)` for every :math:`\xi`. With :math:`\xi = \nabla
g(\bar w_n)` they add up to :math:`E_d(\xi^n) + NE(\bar w_n) \le B_n(E_d(\xi^0) - q(\bar w_0; \xi) + \frac{s_0}2|\xi -
\xi^0|_\nu^2)`, and :math:`-q(\bar w_0; \xi) \le NE(\bar w_0)`. The second inequality is the end of the proof of (2) in
:mod:`theory.frontier.restarts`: :math:`|\nabla g(\bar w_n) - \xi^0|_\nu \le \sqrt{2/\sigma}(\sqrt{G_n} +
\sqrt{G_0})`. ∎

**Theorem.** A method begins an epoch with :math:`\rho = 0` after the first round, whose gap is :math:`G_1`, and

- lets the momentum grow until :math:`G_n \le G_0` and either :math:`t_n^2s_n \ge 4` or something else holds, where
  :math:`s_n` is the least of ``first`` and what (1) and (2) have shown;
- then holds it, with :math:`\rho_n = s_n/(1 + s_n)`, where (1) may still lower :math:`s_n`;
- in the first round n in which (3) fails goes back to :math:`\xi^{n-1}`, halves s, and lets it grow anew, with the
  least energy so far in the :math:`G_0` of the new epoch.

Then :math:`s_n \ge \min(\text{first}, \frac\sigma2)` always, the gaps with which epochs begin never rise, (3) fails at
most :math:`K = 1 + \log_2(\text{first}/\sigma)` times, never if first is at most :math:`\sigma`, and in a round n in
which (3) does not fail, with the gap G with which its epoch began, or its own if that is smaller and momentum is held,

.. math:: n \le 1 + \sqrt{1 + 1/s_0}\,\ln\frac{G_1}G + \sum_{k=0}^K\Bigl(\frac4{\sqrt{s_k}} + \ln5\sqrt{1 + 1/s_k} +
          1\Bigr), \qquad s_k = 2^k\tfrac\sigma2 \tag{4}

(:math:`K = 0` and :math:`s_0 = \text{first}` if first is at most :math:`\sigma`): at most
:math:`\sqrt{2\kappa}\ln(G_1/G) + 28\sqrt\kappa + 3\log_2\kappa`, for first = 1 and :math:`\kappa \ge 2`.

*Proof.* What (1) and (2) show is at least :math:`\sigma`. (3) fails only where the s with which its epoch began exceeds
:math:`\sigma`; the s of that round is then at least :math:`\sigma`, its half at least :math:`\sigma/2`. So the k-th
failure but one from the end had :math:`s \ge 2^{k}\sigma`, :math:`k = 0, 1, \dots`, and the first an s of at most
first. *Growing*: as :math:`t_n \ge (n+1)/2`, the epoch is no longer than :math:`\max(1, 4/\sqrt s)`, with the last s:
then :math:`t_n^2s \ge 4`, and (2) makes that :math:`\sqrt{G_n} + \sqrt{G_0} \ge 2\sqrt{G_n}`. *Held*: (3.4) keeps
:math:`t_i \le 1/\sqrt{\rho_i} \le 1/\sqrt{\rho_n}`, and with :math:`r^2 = G_0/G_n` (3) says :math:`1 \le B_n(2r^2 + 2r
+ 1)`, so that the round is at most :math:`\ln(5\max(r^2, 1))/\ln\frac1{1 - \sqrt{\rho_n}} \le
\ln(5\max(r^2, 1))/\sqrt{\rho_n}`, one more if (3) fails in the next. Where s exceeds 16 the first of these two is less
than the second by more than the one round in which the momentum grew. *Together*: E_d does not rise from the
beginning of an epoch of held momentum, because :math:`\beta \le 1` and :math:`E_d(\xi^{n+1}) + \frac12|\xi^{n+1} -
\xi^n|_\nu^2 \le E_d(\xi^n) + \frac{\beta^2}2|\xi^n - \xi^{n-1}|_\nu^2`; so the next epoch has a :math:`G_0` of at most
the :math:`G_0` and the last gap, before (3) failed, of this one, and the logarithms add up. ∎

Theorem 3.3 with L known has :math:`\sqrt\kappa\ln(1/\epsilon)`. The second line of the rule is what is fast in
practice: as long as s is far above :math:`\sigma`, and the gap falls as (3) says, rounds are those of a problem with
the condition number :math:`1 + 1/s`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import AdaptiveDualFL
from dualopt.methods._dual_theorems import longest_run
from dualopt.objectives import Quadratic
from theory._cases import Case
from theory._claims import ExpectedVerdict
from theory._problems import breast_cancer, digits, hard_quadratic, hinge, logistic, lopsided, quadratic, solved
from theory.dualfl import _runs
from theory.frontier.restarts import TELLING, Measured, admitted, condition, measured, smooth
from theory.frontier.scaled_dualfl import parameters, unequal

__all__ = ["adaptive_gap", "adaptive_rounds"]


class AdaptiveRound(NamedTuple):
    """A round of AdaptiveDualFL, as part of its epoch."""

    n: int  # of all rounds, from 1
    found: Measured
    held: bool  # whether the momentum is
    left: float  # B_n
    t: float  # t_n
    s0: float  # the estimate with which the epoch began
    first: float  # G_0, infinite in the first round
    met: float  # the left-hand side of (1) over |Delta xi|^2, infinite where there is none
    s: float  # the estimate after the round
    refuted: bool  # whether (3) failed


def path(case: Case) -> Iterator[AdaptiveRound]:
    """Follow a run: gaps, mean models and the curvature met from the definitions, with the t and the s of the method.

    Epochs are told from the states: growing ones have ``left`` = 0, and a failure of (3) makes of held momentum such a
    one.
    """
    column = np.reshape(parameters(case), (-1, *(1,) * case.theta.ndim))
    start, model, last = np.zeros_like(case.subgradients), np.zeros_like(case.theta), np.zeros_like(case.theta)
    held, left, first, t, s0, least = False, 1.0, math.inf, 1.0, case.algorithm.first, math.inf
    before: Measured | None = None
    for n, snapshot in enumerate(case.snapshots(), start=1):
        server = snapshot.server
        found = measured(case, snapshot, model, start)
        met = math.inf
        if before is not None:
            change = found.xi - before.xi
            square = float(np.sum(change**2 / column))
            met = float(np.sum(change * (found.local - before.local))) / square if square > 0 else math.inf
        refuted = held and server.left == 0.0
        yield AdaptiveRound(n, found, held, left, t, s0, first, met, server.s, refuted)
        least = min(least, found.energy)
        if math.isinf(first):
            start, first = found.xi, found.gap
        elif refuted:
            assert before is not None
            start, first, held = before.xi, least + before.dual, False
        elif server.left > 0.0 and not held:
            start, first, held, left, s0 = found.xi, found.gap, True, 1.0, server.s
        t = server.t
        left *= 1.0 - 1.0 / t if held else 1.0
        w = server.theta + snapshot.message.beta * (server.theta - last)
        model = model + (w - model) / t
        last, before = server.theta, found


@cache
def faint() -> Case:
    """Return clients on whose slow direction there is almost nothing to do: the curvature met misleads for long."""
    A = np.stack([np.diag([400.0, 3.0, 1.0]), np.diag([900.0, 2.0, 1.5])])
    return solved(
        "a faint slow direction (kappa=900)", Quadratic(A=A, b=np.array([[0.3, 4.0, 1.0], [-0.2, 1.0, -3.0]]))
    )


def adaptive(f: Case, rounds: int, *, scaled: bool = False, times: float = 1.0, share: float | None = None) -> Case:
    """Return AdaptiveDualFL, with a first estimate of ``share`` times sigma, or the suggested one."""
    f = f.reweighted(f.objective.mu) if scaled else f
    exactly = _runs.exact(f, rho=0.0)
    more: dict[str, Any] = {"nu": times * f.mu}
    note = f"nu{'_j' if scaled else ''} = {times:g} mu{'_j' if scaled else ''}"
    if share is not None:
        probe = f.case(AdaptiveDualFL(solver=exactly.solver, stop=exactly.stop, **more), 1)
        more["first"] = share / (condition(probe) - 1.0)
        note += f", first = {share:g} sigma"
    method = AdaptiveDualFL(solver=exactly.solver, stop=exactly.stop, **more)
    return f.case(method.suggested(f.objective), rounds, note)


def adaptive_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics, equal and unequal, one parameter for all and one for each, logistic losses, wrong first estimates."""
    rounds = 200 if quick else 500
    for share in (None, 1.0):
        for f in (quadratic(), hard_quadratic(), lopsided(), unequal(), faint()):
            yield ExpectedVerdict(adaptive(f, rounds, share=share))
        for f in (lopsided(), unequal()):
            yield ExpectedVerdict(adaptive(f, rounds, scaled=True, share=share))
        yield ExpectedVerdict(adaptive(hard_quadratic(), rounds, times=0.3, share=share))
        yield ExpectedVerdict(adaptive(logistic(), 40, share=share))
    yield ExpectedVerdict(adaptive(quadratic(), rounds, share=0.1))
    if not quick:
        yield ExpectedVerdict(adaptive(breast_cancer(), 100))
        yield ExpectedVerdict(adaptive(digits(), 200))
    yield ExpectedVerdict(adaptive(quadratic(), 5, times=2.0), "outside assumptions")


def of_method(case: Case) -> list[str]:
    """Return what fails: the method, and its nu_j."""
    found = [] if isinstance(case.algorithm, AdaptiveDualFL) else ["AdaptiveDualFL"]
    return found + admitted(case)


def of_smooth(case: Case) -> list[str]:
    """Return what fails, with smooth clients."""
    return of_method(case) + [x for x in smooth(case) if x not in admitted(case)]


def gap_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Those of smooth clients, and kinks."""
    yield from adaptive_cases(quick)
    yield ExpectedVerdict(adaptive(hinge(), 15 if quick else 30))


@claim(
    source="derived here, after Theorem E",
    statement=r"AdaptiveDualFL, $\nu_j \in (0, \mu_j]$, exact local solutions, $G_n = NE(\bar w_n) + E_d(\xi^n)$, any"
    r" loss: while the momentum grows, $G_n \le \frac1{2t_n^2}|\nabla g(\bar w_n) - \xi^0|_\nu^2$; while it is held"
    r" with estimates of at most $\sigma = \min_j\nu_j/(L_j - \nu_j)$, $G_n \le B_n(G_0 + \frac{s_0}2|\nabla g(\bar"
    r" w_n) - \xi^0|_\nu^2)$, $B_n = \prod(1 - 1/t_i)$; always, $\frac12\sum_j\nu_j|\theta^n - \theta^*|^2 \le G_n$.",
    assumptions=of_method,
    rtol=1e-9,
    cases=gap_cases,
)
def adaptive_gap(case: Case, *, half: float = 0.5) -> Iterator[Inequality]:
    """AdaptiveDualFL: the certified gap, from the beginning of an epoch.

    Compare it with the distance from where the epoch began, and the distance of the model with it. ``half`` is
    for wrong variants: the factor of the estimate in the bound.
    """
    mass = 0.5 * float(np.sum(parameters(case)))
    kappa = condition(case)
    sigma = 1.0 / (kappa - 1.0) if kappa > 1.0 else math.inf
    for step, s in zip(path(case), case.snapshots(), strict=True):
        gap, rounding, slopes = step.found.gap, step.found.rounding, step.found.slopes
        if not step.held:
            yield Inequality(step.n, gap, slopes / (2.0 * step.t**2), "growing momentum", rounding)
        elif step.s0 <= sigma * (1.0 + 1e-12):
            bound = step.left * (step.first + half * step.s0 * slopes)
            yield Inequality(step.n, gap, bound, "held momentum", 2.0 * rounding)
        theta = s.server.theta
        distance, unsure = (mass * x(theta) for x in (case.distance, case.distance_rounding))
        yield Inequality(step.n, distance, gap + rounding, "distance", unsure)


@claim(
    source="derived here, after Theorem E",
    statement=r"AdaptiveDualFL, smooth clients, $\kappa = \max_jL_j/\nu_j$, $\sigma = 1/(\kappa - 1)$, exact local"
    r" solutions: $\sum_j\langle\Delta\theta_j, \Delta\xi_j\rangle \ge \sigma|\Delta\xi|_\nu^2$, $s_n \ge"
    r" \min(\text{first}, \frac\sigma2)$, in rounds of held momentum that are not the last of an epoch $G_n \le"
    r" B_n(G_0 + (\sqrt{G_n} + \sqrt{G_0})^2)$, and $n \le 1 + \sqrt{1 + 1/s_0}\ln\frac{G_1}G + \sum_{k=0}^K("
    r"\frac4{\sqrt{s_k}} + \ln5\sqrt{1 + 1/s_k} + 1)$, $s_k = 2^k\sigma/2$, $K = 1 + \log_2(\text{first}/\sigma)$, or"
    r" $K = 0$ and $s_0 = \text{first} \le \sigma$, G the gap with which the epoch of round n began, or $G_n$ if it is"
    r" less and the momentum held; for first = 1 and $\kappa \ge 2$ at most"
    r" $\sqrt{2\kappa}\ln\frac{G_1}G + 28\sqrt\kappa + 3\log_2\kappa$.",
    assumptions=of_smooth,
    rtol=1e-9,
    cases=adaptive_cases,
)
def adaptive_rounds(case: Case, *, times: float = 1.0) -> Iterator[Inequality]:
    r"""AdaptiveDualFL: how many rounds a certified gap takes, without knowing L.

    Compare, as long as gaps are not rounding, the curvature met and the estimates with :math:`\sigma`, the gaps with
    what estimates promise, first gaps with those before, and the rounds with (4), also where the momentum grows.
    ``times`` is for wrong variants: of the condition number less one.
    """
    kappa = 1.0 + times * (condition(case) - 1.0)
    sigma, begun, beginning = 1.0 / (kappa - 1.0), math.nan, math.inf
    least = min(case.algorithm.first, 0.5 * sigma) if case.algorithm.first > sigma else case.algorithm.first
    for step in path(case):
        gap = step.found.gap
        if gap <= TELLING * step.found.rounding:
            return
        if math.isinf(step.first):
            begun = beginning = gap
            continue
        yield Inequality(step.n, sigma, step.met, "curvature met")
        yield Inequality(step.n, least, step.s, "estimate", 1e-12 * least)
        if step.first != beginning:
            yield Inequality(step.n, step.first, beginning, "first gap of an epoch")
        beginning = step.first
        if step.refuted:
            continue
        if step.held:
            both = (math.sqrt(gap) + math.sqrt(step.first)) ** 2
            yield Inequality(step.n, gap, step.left * (step.first + both), "gap of held momentum", step.found.rounding)
        least_gap = min(gap, step.first) if step.held else step.first
        longest = longest_run(kappa, case.algorithm.first, begun / least_gap)
        yield Inequality(step.n, float(step.n), longest, "rounds")
