r"""Theorem E: DualFL that restarts, and needs to know nothing but the :math:`\nu_j`.

Let every :math:`f_j` be :math:`\mu_j`-strongly convex, :math:`0 < \nu_j \le \mu_j`, :math:`g_j = f_j -
\frac{\nu_j}2|\cdot|^2`, and let local solutions be exact. DualFL with :math:`\rho = 0` is FISTA with step 1 on

.. math:: E_d(\xi) = \sum_jg_j^*(\xi_j) + h(\xi), \qquad h(\xi) = \tfrac1{2S}\Bigl|\sum_j\xi_j\Bigr|^2, \quad
          S = \sum_j\nu_j, \qquad \min E_d = -N\min E,

in :math:`|\xi|_\nu^2 = \sum_j|\xi_j|^2/\nu_j` (:mod:`theory.frontier.scaled_dualfl`). An *epoch* begins at some
:math:`\xi^0` with :math:`t_1 = 1` and no momentum; its n-th round goes from :math:`\eta^{n-1}` to :math:`\xi^n`. Let
:math:`w_i = -\frac1S\sum_j\eta_j^i = \theta^i + \beta(\theta^i - \theta^{i-1})` be the extrapolated models, :math:`T_n
= t_1 + \dots + t_n = t_n^2 \ge (n+1)^2/4`,

.. math:: \bar w_n = \frac1{T_n}\sum_{i=1}^nt_iw_{i-1}, \qquad G_n = N E(\bar w_n) + E_d(\xi^n).

:math:`G_n` is certified: it bounds :math:`N(E(\bar w_n) - E^*)` and :math:`E_d(\xi^n) - E_d^* \ge \frac S2|\theta^n -
\theta^*|^2`.

**Theorem E.** For any loss and any subgradients,

.. math:: G_n \le \frac{|\nabla g(\bar w_n) - \xi^0|_\nu^2}{2T_n}. \tag{1}

If the :math:`f_j` are :math:`L_j`-smooth, :math:`\kappa = \max_jL_j/\nu_j`, and :math:`G_0` is the gap of
:math:`\xi^0` with any model,

.. math:: \sqrt{G_n} \le q_n\bigl(\sqrt{G_n} + \sqrt{G_0}\bigr), \qquad q_n = \frac{2\sqrt{\kappa-1}}{n+1}, \tag{2}

and an epoch that ends in the first round in which :math:`r^2 := G_0/G_n \ge c^2` and something else holds, at the
latest when :math:`r \ge C`, has at most :math:`\max\{1, 2(1 + \min\{r, C\})\sqrt{\kappa-1}\}` rounds. (3)

*Proof.* (1): the lower model of :math:`E_d` at :math:`\eta^{i-1}`, where :math:`\nabla_jh = -w_{i-1}`, is

.. math:: l_i(\xi) = h(\eta^{i-1}) + \langle\nabla h(\eta^{i-1}), \xi - \eta^{i-1}\rangle + \sum_jg_j^*(\xi_j)
          = -\Bigl\langle w_{i-1}, \sum_j\xi_j\Bigr\rangle - \tfrac S2|w_{i-1}|^2 + \sum_jg_j^*(\xi_j).

:math:`\xi^i` minimises :math:`l_i + \frac12|\cdot - \eta^{i-1}|_\nu^2`, and h is 1-smooth, so that :math:`E_d(\xi^i)
\le l_i(u) + \frac12|u - \eta^{i-1}|_\nu^2 - \frac12|u - \xi^i|_\nu^2` for every u. With :math:`u = (1 -
\frac1{t_i})\xi^{i-1} + \frac1{t_i}\xi` and :math:`z^i = \xi^{i-1} + t_i(\xi^i - \xi^{i-1})` the momentum makes these
differences :math:`\frac1{t_i}(\xi - z^{i-1})` and :math:`\frac1{t_i}(\xi - z^i)`. Multiplied by :math:`t_i^2 = T_i`,
with :math:`t_i^2 - t_i = T_{i-1}` and :math:`l_i \le E_d`, the inequality adds up to

.. math:: T_nE_d(\xi^n) \le \sum_{i=1}^nt_il_i(\xi) + \tfrac12|\xi - \xi^0|_\nu^2 \quad\text{for every } \xi.

The squares of the :math:`w_{i-1}` are convex, so that :math:`\sum t_il_i(\xi)/T_n \le -\langle\bar w_n,
\sum\xi_j\rangle - \frac S2|\bar w_n|^2 + \sum g_j^*(\xi_j)`, which is :math:`-N E(\bar w_n)` at :math:`\xi_j = \nabla
g_j(\bar w_n)`. (2): :math:`|\nabla g(\bar w) - \xi^*|_\nu^2 \le 2(\kappa-1)N(E(\bar w) - E^*)`, because :math:`g_j` is
:math:`(L_j - \nu_j)`-smooth, and the Bregman distances from :math:`\theta^*` add up to :math:`N(E(\bar w) - E^*) -
\frac S2|\bar w - \theta^*|^2`, as :math:`\sum_j\xi_j^* = -S\theta^*`; and :math:`|\xi^0 - \xi^*|_\nu^2 \le
2(\kappa-1)(E_d(\xi^0) - E_d^*)`, because :math:`g_j^*` is :math:`1/(L_j - \nu_j)`-strongly convex. Both errors are at
most the gaps, and :math:`T_n \ge (n+1)^2/4`. (3): in the last round (2) says :math:`n + 1 \le 2(1 + r)\sqrt{\kappa-1}`;
if :math:`r > C`, the same with C in the round before. ∎

*What it is worth.* A factor e of the gap takes at most :math:`\frac{1+r}{\ln r}\sqrt\kappa` rounds, without L: 3.6 at
the best :math:`r = 3.59`, and at most :math:`4.8\sqrt\kappa` for r between the c = 3 and C = 10 of
:class:`dualopt.methods.GapRestartedDualFL`,
where Theorem 3.3 with L known has 1. *Clients with kinks*: if :math:`|\nabla g(\bar w_n) - \xi^0|_\nu \le R` always,
(1) in the round before the last says that an epoch has less than :math:`1 + CR\sqrt{2/G_0}` rounds; the :math:`G_0` of
one epoch is at most a :math:`c^2`-th of that before, so that all together have at most :math:`\frac{cC}{c-1}
R\sqrt{2/G_0}` and their number: the :math:`O(1/n^2)` of Theorem 3.2 is kept, with another constant.

**Whatever the restarts** (as Bao, Chen, Li and Shen 2024 show for gradient restarts of accelerated proximal gradients):
let the momentum be any number in [0, 1], :math:`\tau = 1/(\kappa-1)`, :math:`K_n = \frac12|\xi^n -
\xi^{n-1}|_\nu^2`. Then :math:`W_n = E_d(\xi^n) - E_d^* + (1+\tau)K_n` has

.. math:: W_{n+1} \le W_n - \tau K_n, \qquad W_{n+2} \le \frac{W_n}{1 + 1/((\kappa-1)(2\kappa+1))}. \tag{4}

*Proof.* The :math:`g_j^*` are :math:`\tau`-strongly convex in the norm, so that for every x :math:`E_d(\xi^{n+1}) \le
E_d(x) + \frac12|x - \eta^n|_\nu^2 - \frac{1+\tau}2|x - \xi^{n+1}|_\nu^2`. With :math:`x = \xi^n` and :math:`\eta^n =
\xi^n + \beta(\xi^n - \xi^{n-1})` that is the first inequality, even :math:`W_{n+1} \le E_d(\xi^n) - E_d^* + K_n`. With
:math:`x = \xi^*`, because :math:`\frac12|r + e|^2 - \frac{1+\tau}2|r|^2 \le \frac12(1 + \frac1\tau)|e|^2`, and
:math:`e = \xi^{n+1} - \eta^n` has :math:`\frac12|e|_\nu^2 \le 2(K_n + K_{n+1})`, it is :math:`E_d(\xi^{n+1}) - E_d^*
\le 2(1 + \frac1\tau)(K_n + K_{n+1})`. Hence :math:`W_{n+2} \le (3 + \frac2\tau)(K_n + K_{n+1}) \le (3 +
\frac2\tau)\frac1\tau(W_n - W_{n+2})`. ∎

So DualFL with the gradient restart is linear for smooth clients. The factor is far from :math:`1 - 1/\sqrt\kappa`, and
nothing better is known of this rule; of OptimizedDualFL, whose momentum exceeds 1, nothing is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import Snapshot
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import DualFL, GapRestartedDualFL, RestartedDualFL
from dualopt.methods._dual_theorems import LEAST_FALL, MOST_FALL
from dualopt.objectives.local_problem import client_dot, per_client
from theory._cases import EPSILON, Case
from theory._claims import UP_TO_ROUNDING, ExpectedVerdict
from theory._problems import breast_cancer, digits, hard_quadratic, hinge, logistic, lopsided, quadratic
from theory.dualfl import _runs
from theory.frontier.growing_feddyn import deviations
from theory.frontier.scaled_dualfl import parameters, unequal

TELLING = 1e4  # gaps beyond so many times their rounding are compared
RULES: dict[str | None, type[DualFL]] = {None: DualFL, "gradient": RestartedDualFL, "gap": GapRestartedDualFL}


def _mean(points: list[Array], weights: list[float]) -> Array:
    return np.einsum("i,i...->...", np.array(weights), np.stack(points)) / sum(weights)


class Measured(NamedTuple):
    """What a round has at a mean model and at its dual point."""

    gap: float  # G_n
    rounding: float  # of it
    slopes: float  # |grad g(w-bar_n) - xi^0|^2
    xi: Array
    local: Array
    dual: float  # E_d(xi^n)
    energy: float  # N E(w-bar_n)


class EpochRound(NamedTuple):
    """A round of DualFL, as part of its epoch."""

    n: int  # of all rounds, from 1
    place: int  # in the epoch, from 1
    first: float  # G_0, infinite in the first epoch, which has no gap to begin with
    found: Measured  # at the mean of the models of the epoch
    T: float
    theta: Array
    ends: bool  # whether the epoch ends here


def measured(case: Case, s: Snapshot, w: Array, start: Array) -> Measured:
    """Return the gap of a round from its definition, with dual points that are gradients at the local solutions."""
    nu, f, masses = parameters(case), case.plain, case.own_masses
    column = np.reshape(nu, (-1, *(1,) * case.theta.ndim))
    assert s.solution is not None  # everybody takes part
    local, values = s.solution.theta, masses * s.solution.evaluation.f
    gradients = per_client(masses, local) * s.solution.evaluation.grad_f
    xi = gradients - column * local
    conjugate = client_dot(xi, local) - values + 0.5 * nu * client_dot(local, local)
    if s.solution.excess is not None:
        conjugate = conjugate + masses * s.solution.excess
    average = float(np.sum(np.sum(xi, axis=0) ** 2)) / (2.0 * float(np.sum(nu)))
    dual = float(np.sum(conjugate)) + average
    at_mean, slope = f.value_and_gradient(w)
    energy = float(np.sum(at_mean))
    terms = np.abs(at_mean) + np.abs(values) + np.sqrt(client_dot(gradients, gradients) * client_dot(local, local))
    rounding = 64.0 * EPSILON * (float(np.sum(terms)) + average)
    slopes = float(np.sum((slope - column * w - start) ** 2 / column))
    return Measured(energy + dual, rounding, slopes, xi, local, dual, energy)


def path(case: Case, *, mean: Callable[[list[Array], list[float]], Array] = _mean) -> Iterator[EpochRound]:
    """Run DualFL and follow its epochs from the definitions: nothing that the restart computes is used."""
    start, place, first = np.zeros_like(case.subgradients), 1, math.inf
    models, weights, last = [np.zeros_like(case.theta)], [1.0], np.zeros_like(case.theta)
    for n, s in enumerate(case.snapshots(), start=1):
        found = measured(case, s, mean(models, weights), start)
        theta, ends = s.server.theta, s.server.t == 1.0
        yield EpochRound(n, place, first, found, sum(weights), theta, ends)
        if ends:
            start, place, first, models, weights = found.xi, 1, found.gap, [theta], [1.0]
        else:
            models.append(theta + s.message.beta * (theta - last))
            weights.append(s.server.t)
            place += 1
        last = theta


def condition(case: Case) -> float:
    """Return the largest ``L_j/nu_j``."""
    return float(np.max(case.plain.L / parameters(case)))


def restarted(f: Case, rule: str | None, rounds: int, *, scaled: bool = False, times: float = 1.0) -> Case:
    """Return DualFL with a restart, or with none, and ``nu_j`` of ``times`` the suggested ones."""
    f = f.reweighted(f.objective.mu) if scaled else f
    exactly = _runs.exact(f, rho=0.0)
    solver, stop = exactly.solver, exactly.stop
    kind, fixed = RULES[rule], {"rho": 0.0} if rule is None else {}
    method = kind(nu=times * f.mu, solver=solver, stop=stop, **fixed)
    note = (
        f"{'no' if rule is None else rule} restart, nu{'_j' if scaled else ''} = {times:g} mu{'_j' if scaled else ''}"
    )
    return f.case(method.suggested(f.objective), rounds, note)


def admitted(case: Case) -> list[str]:
    """Return what fails: rho = 0, and every nu_j in (0, mu_j]."""
    nu, rho = parameters(case), case.algorithm.rho
    below = [] if np.all(nu <= case.plain.mu * UP_TO_ROUNDING) and np.min(nu) > 0 else ["0 < nu_j <= mu_j"]
    return below + ([] if rho == 0 else ["rho = 0"])


def smooth(case: Case) -> list[str]:
    """Return what fails, with smooth clients."""
    return admitted(case) + ([] if np.isfinite(case.objective.L).all() else ["L < inf"])


def restarting(case: Case) -> list[str]:
    """Return what fails, with smooth clients and the gap restart."""
    return smooth(case) + ([] if isinstance(case.algorithm, GapRestartedDualFL) else ["the gap restart"])


def smooth_cases(quick: bool, *rules: str | None) -> Iterator[ExpectedVerdict]:
    """Quadratics, equal and unequal, one parameter for all and one for each, and logistic losses."""
    rounds = 200 if quick else 500
    for rule in rules:
        for f in (quadratic(), hard_quadratic(), lopsided(), unequal()):
            yield ExpectedVerdict(restarted(f, rule, rounds))
        for f in (lopsided(), unequal()):
            yield ExpectedVerdict(restarted(f, rule, rounds, scaled=True))
        yield ExpectedVerdict(restarted(hard_quadratic(), rule, rounds, times=0.3))
        yield ExpectedVerdict(restarted(logistic(), rule, 40))
        if not quick:
            yield ExpectedVerdict(restarted(breast_cancer(), rule, 100))
            yield ExpectedVerdict(restarted(digits(), rule, 200))


def excluded_cases() -> Iterator[ExpectedVerdict]:
    """Parameters that are not admitted."""
    case = restarted(quadratic(), None, 5)
    yield ExpectedVerdict(case.but(algorithm=_runs.exact(quadratic())), "outside assumptions")
    yield ExpectedVerdict(restarted(quadratic(), "gradient", 5, times=2.0), "outside assumptions")


def restart_gap_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """All rules, and losses with kinks."""
    yield from smooth_cases(quick, None, "gradient", "gap")
    for f in (hinge(), deviations()):
        for rule in (None, "gradient", "gap"):
            yield ExpectedVerdict(restarted(f, rule, 15 if quick else 30))
    yield from excluded_cases()


@claim(
    source="Theorem E, the certified gap",
    statement=r"In every epoch of DualFL with $\rho = 0$, $\nu_j \in (0, \mu_j]$, exact local solutions and any loss:"
    r" $G_n = N E(\bar w_n) + E_d(\xi^n) \le \frac1{2T_n}\sum_j\frac1{\nu_j}|\nabla g_j(\bar w_n) - \xi_j^0|^2$,"
    r" $\bar w_n = \frac1{T_n}\sum_it_iw_{i-1}$, $T_n = \sum_it_i$; and $N(E(\bar w_n) - E^*)$ and"
    r" $\frac12\sum_j\nu_j|\theta^n - \theta^*|^2$ are at most $G_n$.",
    assumptions=admitted,
    rtol=1e-9,
    cases=restart_gap_cases,
)
def restart_gap(case: Case, *, mean: Callable[[list[Array], list[float]], Array] = _mean) -> Iterator[Inequality]:
    """Theorem E, any loss: the gap at the averaged models, from the start of the epoch.

    Compare the gap with (1), and the distance of the model with the gap.
    """
    half = 0.5 * float(np.sum(parameters(case)))
    for step in path(case, mean=mean):
        yield Inequality(step.n, step.found.gap, step.found.slopes / (2.0 * step.T), "G_n", step.found.rounding)
        distance = half * case.distance(step.theta)
        known = step.found.gap + step.found.rounding
        yield Inequality(step.n, distance, known, "distance", half * case.distance_rounding(step.theta))


def restart_epochs_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Smooth clients with the gap restart, and what is excluded."""
    yield from smooth_cases(quick, "gap")
    yield ExpectedVerdict(restarted(hinge(), "gap", 5), "outside assumptions")
    yield ExpectedVerdict(restarted(quadratic(), "gradient", 5), "outside assumptions")
    yield from excluded_cases()


@claim(
    source="Theorem E, the epochs of the gap restart",
    statement=r"For smooth clients, $\kappa = \max_jL_j/\nu_j$: $\sqrt{G_n} \le q_n(\sqrt{G_n} + \sqrt{G_0})$, $q_n ="
    r" \frac{2\sqrt{\kappa-1}}{n+1}$, in every epoch; one that ends with $r^2 = G_0/G_n$ has $r \ge 3$ and at most"
    r" $\max\{1, 2(1 + \min\{r, 10\})\sqrt{\kappa-1}\}$ rounds, so that a factor e of the gap takes at most"
    r" $4.8\sqrt\kappa$, without knowing L.",
    assumptions=restarting,
    rtol=1e-9,
    cases=restart_epochs_cases,
)
def restart_epochs(case: Case, *, root: Callable[[float], float] = lambda kappa: math.sqrt(kappa - 1.0)):
    """Theorem E, smooth clients: how long the epochs of the gap restart last.

    Compare the gap with (2), the fall of an epoch with the least one, and its rounds with (3), as long as gaps are not
    rounding.
    """
    width = root(condition(case))
    for step in path(case):
        if step.found.gap <= TELLING * step.found.rounding:
            return
        if math.isinf(step.first):  # before the first restart there is no gap to compare with
            continue
        q = 2.0 * width / (step.place + 1.0)
        yield Inequality(
            step.n, math.sqrt(step.found.gap), q * (math.sqrt(step.found.gap) + math.sqrt(step.first)), "sqrt G_n"
        )
        r = math.sqrt(step.first / step.found.gap)
        if step.ends:
            yield Inequality(step.n, LEAST_FALL, (1.0 + 2.0 / TELLING) * r, "fall of an epoch")
        longest = max(1.0, 2.0 * (1.0 + min(r, MOST_FALL)) * width)
        yield Inequality(step.n, float(step.place), longest, "rounds of an epoch")


def restart_energy_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """All rules, on smooth clients; what is excluded."""
    yield from smooth_cases(quick, None, "gradient", "gap")
    yield ExpectedVerdict(restarted(hinge(), "gradient", 5), "outside assumptions")
    yield from excluded_cases()


@claim(
    source="Theorem E, whatever the restarts (after Bao, Chen, Li and Shen 2024)",
    statement=r"For smooth clients and momentum in $[0, 1]$: $W_{n+1} \le W_n - \tau K_n$ and $W_{n+2} \le W_n/\bigl("
    r"1 + \frac1{(\kappa-1)(2\kappa+1)}\bigr)$, $\tau = \frac1{\kappa-1}$, $K_n = \frac12\sum_j\frac1{\nu_j}|\xi_j^n -"
    r" \xi_j^{n-1}|^2$, $W_n = E_d(\xi^n) - E_d^* + (1+\tau)K_n$: DualFL is linear whatever the restarts.",
    assumptions=smooth,
    rtol=1e-9,
    cases=restart_energy_cases,
)
def restart_energy(case: Case, *, times: float = 1.0) -> Iterator[Inequality]:
    """Whatever the restarts: the energy falls, and linearly.

    Compare it with that of the round before, less what the theorem takes off, and with that of two rounds before.
    ``times`` is for wrong variants: how much more is taken off.
    """
    column = np.reshape(parameters(case), (-1, *(1,) * case.theta.ndim))
    lowest = -case.n_clients * case.value(case.theta)
    rest = condition(case) - 1.0
    tau, factor = times / rest, 1.0 + times / (rest * (2.0 * rest + 3.0))
    before = np.zeros_like(case.subgradients)
    energies: list[tuple[int, float, float, float]] = []
    for step in path(case):
        K = 0.5 * float(np.sum((step.found.xi - before) ** 2 / column))
        W = step.found.dual - lowest + (1.0 + 1.0 / rest) * K
        energies.append((step.n, W, K, step.found.rounding + 64.0 * EPSILON * abs(lowest)))
        before = step.found.xi
    for (_, W, K, _), (n, W_next, _, rounding) in pairwise(energies):
        yield Inequality(n, W_next + tau * K, W + rounding, "W_n", rounding)
    for (_, W, _, _), (n, W_next, _, rounding) in zip(energies, energies[2:], strict=False):
        yield Inequality(n, factor * W_next, W + rounding, "two rounds", 2.0 * rounding)
