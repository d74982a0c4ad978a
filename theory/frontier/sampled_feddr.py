r"""Theorem B for FedDR: any relaxation, any regulariser, any sampling, one step for each client.

Let every :math:`f_j` be :math:`\mu_j`-strongly convex and :math:`L_j`-smooth, let g be convex, let proximal steps of
lengths :math:`s_j` be exact, and let the server take :math:`\theta = \mathrm{prox}_{\Gamma g}(\tilde x)` with

.. math:: \tilde x = \sum_j\frac{2x_j - y_j}{s_j} \Big/ \sum_j\frac1{s_j}, \qquad \Gamma = N\Big/\sum_j\frac1{s_j}.

Client j is active with probability :math:`p_j > 0`; otherwise the cohorts may be drawn in any way.

**Theorem.** With :math:`y_j^* = x^* + s_j\nabla f_j(x^*)`, :math:`p = \min_jp_j` and :math:`k = 1 - \frac a2(1 -
\delta)`, :math:`\delta` as in Theorem B (:mod:`theory.frontier.sampled_fedsplit`),

.. math:: \mathbb E\sum_j\tfrac1{p_js_j}|y_j^+ - y_j^*|^2
          \le \bigl(1 - p(1 - k^2)\bigr)\sum_j\tfrac1{p_js_j}|y_j - y_j^*|^2.

*Proof.* In the inner product :math:`\sum_j\frac1{s_j}\langle\cdot, \cdot\rangle` the proximal map of
:math:`\sum_jf_j(x_j)` is that of the clients, with the steps :math:`s_j`. The function that is :math:`Ng(x)` where all
:math:`x_j = x`, and infinite elsewhere, has the proximal map that takes :math:`\hat x` to the minimiser of
:math:`Ng(x) + \sum_j\frac1{2s_j}|x - \hat x_j|^2`, which is :math:`\theta`. Its reflection :math:`R_G` is therefore
nonexpansive, those of the clients, :math:`R_F`, contract by :math:`\delta`, and with all clients active a round is
:math:`y \mapsto y + a(\theta - x) = (1 - \frac a2)y + \frac a2R_GR_Fy`, which contracts by k. Its fixed point is
:math:`y^*`, with :math:`\sum_j\nabla f_j(x^*) + N\partial g(x^*) \ni 0`. Cohorts are counted as in Theorem B. ∎
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, initial_state
from dualopt.lab.chance import Law, coins, groups
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedDR
from dualopt.objectives import LocalProblem
from dualopt.regularisers import L2, Regulariser, Zero
from theory._cases import Case, accurately
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import (
    WEIGHTS,
    flat_quadratic,
    hard_quadratic,
    logistic,
    lopsided,
    quadratic,
    regularised,
    two,
    weighed,
)
from theory.baselines._runs import reflection, smooth_and_strongly_convex
from theory.baselines.contraction import Errors, one_step
from theory.frontier.sampled_fedsplit import MARGINALS, unequal

ROUNDS = 15


def feddr_case(
    f: Case,
    law: Law,
    note: str,
    *,
    a: float = 1.0,
    times: float = 1.0,
    scaled: bool = True,
    ridge: float = 0.0,
    attained: bool = False,
) -> Case:
    """Return FedDR with ``times`` the suggested steps, and with ``g`` of ``ridge`` times the half of the square."""
    theta = regularised(f.objective, ridge).minimiser() if ridge else f.theta
    f = f.reweighted(np.sqrt(f.objective.L * f.objective.mu)) if scaled and f.mu > 0 else f
    eta = times / np.sqrt(f.L * max(f.mu, 1e-3 * f.L))
    g: Regulariser = L2(weight=ridge) if ridge else Zero()
    method = FedDR(eta=float(eta), relaxation=a, regulariser=g, **accurately(f.objective))
    note = f"{note}, a = {a:g}, {times:g} times the steps" + (", regularised" if ridge else "")
    case = f.case(method, ROUNDS, note, participation=law, attained=attained, known=MARGINALS)
    return case.but(theta=theta, subgradients=f.objective.gradient(theta))


def steps(case: Case) -> Array:
    """Return the s_j of the plain clients, shape (N,)."""
    return case.algorithm.eta / case.masses


def errors(case: Case) -> Errors:
    r"""Return the :math:`(y_j - y_j^*)/\sqrt{p_js_j}`."""
    f, method = case.objective, case.algorithm
    s = np.reshape(steps(case), (-1, *(1,) * len(f.shape)))
    limits = case.theta + s * case.plain_subgradients
    scale = 1.0 / np.sqrt(np.reshape(case.marginals, s.shape) * s)
    start = initial_state(method, f, case.theta)
    gamma = f.n_clients / float(np.sum(1.0 / steps(case)))

    def state(e: Array) -> State:
        y = limits + e.reshape(limits.shape) / scale
        problem = LocalProblem(objective=f, weight=1.0 / method.eta, center=y)
        x = method.solver(problem, start.clients.x, method.stop).theta
        clients = start.clients._replace(y=y, x=x, reflected=2.0 * x - y)
        mean = np.sum(clients.reflected / s, axis=0) / np.sum(1.0 / s)
        theta = method.regulariser.prox(mean, gamma)
        return State(start.server._replace(theta=theta, mean=mean), theta, clients)

    return Errors(limits.size, lambda state: np.ravel(scale * (state.clients.y - limits)), state)


def admitted(case: Case) -> list[str]:
    """Return what fails of the assumptions."""
    some = [] if np.min(case.marginals) > 0 else ["every client is active at times"]
    return smooth_and_strongly_convex(case) + some


def sampled_feddr_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Use groups and coins, relaxations, a regulariser, clients of scales from 1 to 100; the excluded."""
    apart, chain, everybody = groups(4, (0, 1), (2, 3)), groups(3, (0, 1), (1, 2), (2, 0)), groups(4, (0, 1, 2, 3))
    unlike = coins(0.1, 0.5, 1.0, 0.3)
    for a in (0.5, 1.0, 2.0):
        for law, note in ((everybody, "everybody"), (apart, "two groups")):
            yield ExpectedVerdict(feddr_case(unequal(), law, note, a=a, attained=True))
        yield ExpectedVerdict(feddr_case(unequal(), unlike, "unequal coins", a=a))
    yield ExpectedVerdict(feddr_case(hard_quadratic(), chain, "pairs", scaled=False, attained=True))
    yield ExpectedVerdict(feddr_case(unequal(), apart, "two groups", times=5.0, attained=True))
    yield ExpectedVerdict(feddr_case(unequal(), apart, "two groups", scaled=False))
    for law, note in ((everybody, "everybody"), (apart, "two groups"), (unlike, "unequal coins")):
        yield ExpectedVerdict(feddr_case(lopsided(), law, note))
        yield ExpectedVerdict(feddr_case(unequal(), law, note, ridge=0.5))
    yield ExpectedVerdict(feddr_case(two(), groups(2, (0,), (1,)), "one of them", attained=True))
    for ridge in (0.0, 0.5):
        yield ExpectedVerdict(feddr_case(weighed(unequal(), *WEIGHTS), unlike, "unequal coins", ridge=ridge))
        yield ExpectedVerdict(feddr_case(weighed(lopsided(), *WEIGHTS), apart, "two groups", scaled=False, ridge=ridge))
    yield ExpectedVerdict(
        feddr_case(logistic(), groups(4, (0, 1), (2, 3)), "two groups").but(rounds=6 if quick else ROUNDS)
    )
    yield ExpectedVerdict(feddr_case(quadratic(), groups(3, (0, 1)), "a client never active"), "outside assumptions")
    yield ExpectedVerdict(feddr_case(flat_quadratic(), chain, "pairs", scaled=False), "outside assumptions")


@claim(
    source="Theorem B, FedDR",
    statement=r"For $\mu_j$-strongly convex, $L_j$-smooth clients, convex g, exact proximal steps $s_j$ and $\Gamma ="
    r" N/\sum_j\frac1{s_j}$, $a \in (0, 2]$, the mean of all $2x_j - y_j$ with weights $1/s_j$, cohorts of any law in"
    r" which client j is active with probability $p_j$, and $p = \min_j p_j$: $\mathbb E\sum_j\frac1{p_js_j}|y_j^+ -"
    r" y_j^*|^2 \le (1 - p(1 - k^2))\sum_j\frac1{p_js_j}|y_j - y_j^*|^2$, $k = 1 - \frac a2(1 - \delta)$, $\delta ="
    r" \max_j\max(\frac{1 - s_j\mu_j}{1 + s_j\mu_j}, \frac{s_jL_j - 1}{s_jL_j + 1})$, $y_j^* = x^* + s_j\nabla"
    r" f_j(x^*)$. Equal $p_j$ and Hessians that are equal up to scales attain it.",
    assumptions=admitted,
    rtol=ROUNDING,
    cases=sampled_feddr_cases,
)
def sampled_feddr(case: Case) -> Iterator[Inequality]:
    """FedDR with one step for each client: the contraction of the weighted distances, whatever the law of the cohorts.

    Compare the exact expectation over all cohorts, at the states of a path and at the worst of all states.
    """
    delta = reflection(case.algorithm.eta, np.array(case.objective.mu), np.array(case.objective.L))
    kept = 1.0 - 0.5 * case.algorithm.relaxation * (1.0 - delta)
    return one_step(case, errors(case), 1.0 - float(np.min(case.marginals)) * (1.0 - kept**2))
