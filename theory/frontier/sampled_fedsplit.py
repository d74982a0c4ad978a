r"""Theorem B: FedSplit under any sampling of the clients, with one step for each of them.

Let every :math:`f_j` be :math:`\mu_j`-strongly convex and :math:`L_j`-smooth, let proximal steps of lengths
:math:`s_j` be exact, and let the server keep :math:`\theta = \sum_j\frac{z_j}{s_j} / \sum_j\frac1{s_j}` over all
clients, stale ones included; for equal steps it is the mean. A client is active with probability :math:`p_j > 0` in
each round; otherwise the cohorts may be drawn in any way: subsets of a fixed size, independent coins, fixed groups.

**Theorem B.** With :math:`p = \min_j p_j`, :math:`z_j^* = x^* - s_j\nabla f_j(x^*)` and
:math:`\delta = \max_j\max\bigl(\frac{1 - s_j\mu_j}{1 + s_j\mu_j}, \frac{s_jL_j - 1}{s_jL_j + 1}\bigr)`,

.. math:: \mathbb E\sum_j\tfrac1{p_js_j}|z_j^+ - z_j^*|^2
          \le \bigl(1 - p(1 - \delta^2)\bigr)\sum_j\tfrac1{p_js_j}|z_j - z_j^*|^2.

*Proof.* With all clients active a round is an operator T with fixed point :math:`z^*`. In the inner product
:math:`\sum_j\frac1{s_j}\langle\cdot, \cdot\rangle` it is the reflection at the consensus, :math:`z \mapsto 2\theta -
z`, an isometry because :math:`\theta` is the projection there, followed by the reflections
:math:`2\,\mathrm{prox}_{s_jf_j} - I`, each of which contracts by :math:`\delta` (Giselsson and Boyd 2017). So with
:math:`D_j = \frac1{s_j}|z_j - z_j^*|^2` and :math:`D_j^T` of :math:`(Tz)_j`, :math:`\sum_jD_j^T \le
\delta^2\sum_jD_j`. A round with the cohort S replaces the :math:`z_j` of its clients by :math:`(Tz)_j` and keeps the
others, hence

.. math:: \mathbb E\sum_j\tfrac1{p_j}D_j^+ = \sum_j\tfrac1{p_j}D_j - \sum_jD_j + \sum_jD_j^T
          \le \sum_j\tfrac1{p_j}D_j - (1 - \delta^2)\sum_jD_j,

and :math:`\sum_jD_j \ge p\sum_j\frac1{p_j}D_j`. Nothing was used of the joint law. ∎

*Rounds.* For :math:`s_j = 1/\sqrt{L_j\mu_j}`, :math:`1 - \delta^2 = 4\sqrt\kappa/(\sqrt\kappa + 1)^2` where
:math:`\kappa` is the largest :math:`L_j/\mu_j`, however different the clients are; with one step for all it is
:math:`\max L_j/\min\mu_j`. That is about :math:`\frac NP\frac{\sqrt\kappa}4` rounds per factor e with P of N clients,
where (4) of :mod:`theory.frontier.sampled_feddyn` has :math:`\frac12\sqrt{\kappa N/P} + \frac NP - \frac12` for FedDyn
with large :math:`\kappa` and one weight for all of them. For equal clients the two are equal near P = N/4.

FedDR with any relaxation has the same proof (``feddr_contraction`` states it for subsets of a fixed size).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, initial_state
from dualopt.lab.chance import Law, coins, groups
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedSplit
from dualopt.objectives import Quadratic
from theory._cases import Case, Derived, accurately
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import (
    WEIGHTS,
    flat_quadratic,
    hard_quadratic,
    logistic,
    lopsided,
    quadratic,
    solved,
    two,
    weighed,
)
from theory.baselines._runs import reflection, smooth_and_strongly_convex
from theory.baselines.contraction import Errors, one_step

ROUNDS = 15


def sampled_case(
    f: Case, law: Law, note: str, *, times: float = 1.0, scaled: bool = False, attained: bool = False
) -> Case:
    """Return FedSplit with ``times`` the best step, or ``times`` the best one for each client.

    The case knows the ``marginals``, the probabilities with which the clients are active, shape (N,).
    """
    f = f.reweighted(np.sqrt(f.objective.L * f.objective.mu)) if scaled else f
    step = times / math.sqrt(f.L * max(f.mu, 1e-3 * f.L))
    method = FedSplit(step=step, **accurately(f.objective)).suggested(f.objective)
    note += f", {times:g} times the step" if times != 1 else ""
    return f.case(method, ROUNDS, note, participation=law, attained=attained, known=MARGINALS)


MARGINALS = {"marginals": Derived(lambda case: case.participation.inclusion(case.n_clients))}


def errors(case: Case) -> Errors:
    r"""Return the :math:`(z_j - z_j^*)/\sqrt{p_js_j}`."""
    f, method = case.objective, case.algorithm
    s = np.reshape(steps(case), (-1, *(1,) * len(f.shape)))
    limits = case.theta - s * case.plain_subgradients
    scale = 1.0 / np.sqrt(np.reshape(case.marginals, s.shape) * s)
    start = initial_state(method, f, case.theta)

    def state(e: Array) -> State:
        z = limits + e.reshape(limits.shape) / scale
        theta = np.sum(z / s, axis=0) / np.sum(1.0 / s)
        server = start.server._make([theta] * len(start.server))  # whatever it keeps, it is this mean
        return State(server, theta, start.clients._replace(z=z))

    return Errors(limits.size, lambda state: np.ravel(scale * (state.clients.z - limits)), state)


def steps(case: Case) -> Array:
    """Return the :math:`s_j` of the plain clients, shape (N,)."""
    return case.algorithm.step / case.masses


def admitted(case: Case) -> list[str]:
    """Return what fails of the assumptions of Theorem B."""
    some = [] if np.min(case.marginals) > 0 else ["every client is active at times"]
    return smooth_and_strongly_convex(case) + some


@cache
def unequal() -> Case:
    """Return clients whose Hessians are 1, 4, 30 and 100 times one matrix with eigenvalues from 1 to 25."""
    spectrum = np.array([1.0, 5.0, 25.0])
    A = np.stack([np.diag(scale * spectrum) for scale in (1.0, 4.0, 30.0, 100.0)])
    b = np.random.default_rng(2).standard_normal((4, 3)) * np.sqrt(A.max(axis=2))
    return solved("scales 1 to 100 (kappa_j=25)", Quadratic(A=A, b=b))


def sampled_fedsplit_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Use groups that meet and that do not, coins alike and unlike, other steps; what is excluded."""
    apart, chain = groups(4, (0, 1), (2, 3)), groups(3, (0, 1), (1, 2), (2, 0))
    yield ExpectedVerdict(sampled_case(quadratic(4), apart, "two groups"))
    yield ExpectedVerdict(sampled_case(lopsided(), apart, "two groups"))
    yield ExpectedVerdict(sampled_case(quadratic(), coins(0.3, 0.3, 0.3), "coins of 0.3"))
    yield ExpectedVerdict(sampled_case(hard_quadratic(), chain, "pairs", attained=True))
    yield ExpectedVerdict(sampled_case(hard_quadratic(), coins(0.2, 0.2, 0.2), "coins of 0.2", attained=True))
    yield ExpectedVerdict(sampled_case(hard_quadratic(), coins(0.2, 0.2, 0.2), "coins", times=5.0, attained=True))
    yield ExpectedVerdict(sampled_case(quadratic(), coins(0.1, 0.5, 1.0), "unequal coins"))
    everybody = groups(4, (0, 1, 2, 3))
    for law, note in ((everybody, "everybody"), (apart, "two groups")):
        for f in (unequal(), lopsided()):
            yield ExpectedVerdict(sampled_case(f, law, f"{note}, scaled", scaled=True, attained=f is unequal()))
    yield ExpectedVerdict(sampled_case(unequal(), coins(0.1, 0.5, 1.0, 0.3), "unequal coins, scaled", scaled=True))
    one = groups(2, (0,), (1,))
    yield ExpectedVerdict(sampled_case(two(), one, "one of them, scaled", scaled=True, attained=True))
    for scaled in (False, True):
        f, note = weighed(unequal(), *WEIGHTS), ", scaled" * scaled
        yield ExpectedVerdict(sampled_case(f, coins(0.1, 0.5, 1.0, 0.3), f"unequal coins{note}", scaled=scaled))
        yield ExpectedVerdict(sampled_case(f, everybody, f"everybody{note}", scaled=scaled, attained=scaled))
    if not quick:
        yield ExpectedVerdict(sampled_case(logistic(), apart, "two groups"))
    yield ExpectedVerdict(sampled_case(quadratic(), groups(3, (0, 1)), "a client never active"), "outside assumptions")
    yield ExpectedVerdict(sampled_case(flat_quadratic(), chain, "pairs"), "outside assumptions")


@claim(
    source="Theorem B",
    statement=r"For $\mu_j$-strongly convex, $L_j$-smooth clients, exact proximal steps $s_j$, FedSplit with the mean"
    r" of all $z_j$ with weights $1/s_j$, cohorts of any law in which client j is active with probability $p_j$, and"
    r" $p = \min_j p_j$: $\mathbb E\sum_j\frac1{p_js_j}|z_j^+ - z_j^*|^2 \le (1 - p(1 - \delta^2))\sum_j\frac1{p_js_j}"
    r"|z_j - z_j^*|^2$, $\delta = \max_j\max(\frac{1 - s_j\mu_j}{1 + s_j\mu_j}, \frac{s_jL_j - 1}{s_jL_j + 1})$,"
    r" $z_j^* = x^* - s_j\nabla f_j(x^*)$. Equal $p_j$ and Hessians that are equal up to scales attain it.",
    assumptions=admitted,
    rtol=ROUNDING,
    cases=sampled_fedsplit_cases,
)
def sampled_fedsplit(case: Case) -> Iterator[Inequality]:
    """FedSplit with sampled clients: the contraction of the weighted distances, whatever the law of the cohorts.

    Compare the exact expectation over all cohorts, at the states of a path and at the worst of all states.
    """
    delta = reflection(case.algorithm.step, np.array(case.objective.mu), np.array(case.objective.L))
    return one_step(case, errors(case), 1.0 - float(np.min(case.marginals)) * (1.0 - delta**2))
