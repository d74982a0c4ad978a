r"""Weights of clients: which mean a server needs, which scales are the best, and where sampling goes wrong.

Let :math:`E = \sum_j\omega_jf_j` with :math:`\omega_j = w_j/\sum_iw_i`. **With everybody active** every method is that
of its paper in the product space with the inner product :math:`\sum_jw_j\langle x_j, y_j\rangle`: proximal maps and
gradients of :math:`\sum_jw_jf_j(x_j)` in it are those of the single :math:`f_j`, and the projection onto equal
:math:`x_j` is the mean with the weights. Theorems that ask for :math:`\mu` and L of every client hold with the same
constants, whatever the weights are. A client of weight 3 is three clients of weight 1.

**Scales.** The clients :math:`f_j/s_j` with the weights :math:`w_js_j` have the same E, up to the factor
:math:`\sum_jw_j/\sum_jw_js_j`, which is 1 for scales of the mean 1. Their condition number is

.. math:: \frac{\max_jL_j/s_j}{\min_j\mu_j/s_j} \ge \max_j\frac{L_j}{\mu_j}, \tag{1}

with equality for :math:`s_j = L_j^a\mu_j^{1-a}`, every a in [0, 1]: then :math:`L_j/s_j = (L_j/\mu_j)^{1-a}` and
:math:`\mu_j/s_j = (L_j/\mu_j)^{-a}`. In terms of the :math:`f_j` a duality parameter :math:`\nu` or a proximal weight
:math:`\alpha` becomes :math:`\nu s_j` or :math:`\alpha s_j`, a step :math:`\eta` becomes :math:`\eta/s_j`.

**Cohorts.** A server that sees some clients needs two means of their uploads :math:`y_j`: with the weights
:math:`\omega_j` of the cohort S,

.. math:: \omega(S)\,\bar y_S = \sum_{j\in S}\omega_jy_j, \qquad \omega(S) = \sum_{j\in S}\omega_j, \tag{2}

for sums over all clients that change by what is sent, such as the mean of all memories; and a *draw*, for what stands
for the mean over all,

.. math:: \tilde y_S = \sum_{j\in S}\frac{\omega_j}{\pi_j}y_j \Big/ \sum_{j\in S}\frac{\omega_j}{\pi_j}. \tag{3}

For cohorts of fixed size with :math:`\pi_j = \min(1, Kw_j)` the divisor is 1 in every cohort: the clients with
:math:`\pi_j = 1` are in all of them, and each of the other places adds :math:`1/(K\sum_iw_i)`. So the draw is a convex
combination, and its mean is :math:`\sum_j\omega_jy_j`. FedDyn takes x from (3) and h from (2), SampledDualFL the model
from (3) and v from (2).

**What does not carry over.** Theorems A, A', C and F rest on :math:`\mathbb E|\tilde y_S - x^*|^2 \le
\sum_j\omega_j|y_j - x^*|^2`, which needs both properties of (3). Under uniform cohorts :math:`\tilde y_S = \bar y_S`
stands for the client that is there, whatever it weighs. Two clients of the weights .97 and .03, Hessians 50 I and I,
one of them drawn by a fair coin: FedDyn with the weight :math:`\alpha` of Theorem A has a mean square that grows by
1.039 in every round in the end, where 0.849 would be promised, and SampledDualFL leaves the bound of Theorem F.
FedSplit with the mean of all :math:`z_j` and FedDR need no more than the marginals (Theorem B).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, advance, initial_state
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedDyn, SampledDualFL
from dualopt.methods._dual_theorems import last_step
from dualopt.methods._feddyn_theorems import best_weight
from dualopt.methods._pivotal import inclusion_probabilities
from dualopt.methods.participation import Participation, UniformSubset, WeightedSubset
from dualopt.objectives.scales import common_scales, reweighted
from dualopt.solvers import Exact
from dualopt.solvers.stopping import Steps
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import WEIGHTS, lopsided, solved, two, weighed
from theory._rounds import all_solutions, by_chance, path
from theory.baselines.contraction import Errors
from theory.frontier._feddyn import feddyn_errors
from theory.frontier.sampled_fedsplit import unequal

GROWTH, DUAL_GROWTH = 1.03, 1.4  # of the mean squares of FedDyn and SampledDualFL in a round, at least


def drawn(f: Case, size: int) -> WeightedSubset:
    """Return cohorts that are drawn with the weights of the clients."""
    return WeightedSubset(size=size, weights=f.objective.weights)


# The two means.


def two_means_case(f: Case, chance: Participation, kind: type = FedDyn) -> Case:
    """Return a method that asks for both means."""
    N = f.n_clients
    method = kind(fraction=chance.law(N).fraction, solver=Exact()).suggested(f.objective)
    return f.case(method, 8, f"{kind.__name__}, {chance.law(N).fraction * N:g} of {N}", participation=chance)


def rightly_drawn(case: Case) -> list[str]:
    """Return what fails: cohorts are drawn with the weights of the clients."""
    weights = case.objective.weights or (1.0,) * case.n_clients
    wanted = inclusion_probabilities(weights, round(case.fraction * case.n_clients))
    found = [sum(p for p, round in case.events() if j in round.clients) for j in range(case.n_clients)]
    return [] if np.allclose(found, wanted, rtol=0.0, atol=ROUNDING) else ["pi_j = min(1, K w_j)"]


def two_means_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Lopsided weights, cohorts of all sizes, clients that are always active, scales; uniform cohorts are excluded."""
    for kind in (FedDyn, SampledDualFL):
        yield ExpectedVerdict(two_means_case(two(), drawn(two(), 1), kind))
        for size in (1, 2, 3, 4):
            f = weighed(lopsided(), *WEIGHTS)
            yield ExpectedVerdict(two_means_case(f, drawn(f, size), kind))
        f = weighed(unequal(), *WEIGHTS).reweighted(common_scales(unequal().objective))
        yield ExpectedVerdict(two_means_case(f, drawn(f, 2), kind))
        yield ExpectedVerdict(two_means_case(two(), UniformSubset(size=1), kind), "outside assumptions")


@claim(
    source="Weights of clients, the two means",
    statement=r"For clients of the weights $\omega_j$, $\sum_j\omega_j = 1$, and cohorts of fixed size with $\pi_j ="
    r" \min(1, Kw_j)$: in FedDyn $\mathbb E\,x^+ = \sum_j\omega_jy_j$ with the local solutions $y_j$ that all clients"
    r" would find, and $h = \sum_j\omega_jg_j$ after every round; in SampledDualFL $\mathbb E\,\theta^+ ="
    r" \sum_j\omega_jy_j$ and $v = -\frac1\nu\sum_j\omega_jz_j$ (to 1e-10).",
    assumptions=rightly_drawn,
    rtol=ROUNDING,
    cases=two_means_cases,
)
def two_means(case: Case) -> Iterator[Inequality]:
    """Weights of clients: the mean and the draw of FedDyn and SampledDualFL.

    Compare the exact expectation over all cohorts, and the server's sums with those over all clients.
    """
    f, method = case.objective, case.algorithm
    for turn in path(case, by_chance(np.random.default_rng(0))):
        solutions = all_solutions(method, f, turn.before)
        assert solutions is not None
        expected = f.mean(solutions.theta)
        if isinstance(method, FedDyn):
            found = turn.E[lambda branch: branch.state.server.theta + branch.state.server.h / method.alpha]
            kept = [(b.state.server.h, f.mean(b.state.clients.gradient)) for b in turn.after]
        else:
            found = turn.E[lambda branch: branch.state.server.theta]
            kept = [(b.state.server.v, -f.mean(b.state.clients.z) / method.nu) for b in turn.after]
        yield Inequality(turn.n, deviation(found, expected), ROUNDING, "mean of the draws")
        for server, clients in kept:
            yield Inequality(turn.n, deviation(server, clients), ROUNDING, "sum over all clients")


# Scales.


def best_scales_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics of unequal curvature, of equal condition numbers and of unequal ones, with weights."""
    for f in (unequal(), lopsided(), weighed(lopsided(), *WEIGHTS), two()):
        yield ExpectedVerdict(f)


@claim(
    source="Weights of clients, the best scales",
    statement=r"For every s: $E(\theta) = \sum_jw_js_j(f_j/s_j)(\theta)/\sum_jw_js_j$ where $\sum_jw_js_j ="
    r" \sum_jw_j$ (to 1e-10), and $\max_j\frac{L_j}{s_j} \ge \max_j\frac{L_j}{\mu_j}\min_j\frac{\mu_j}{s_j}$, with"
    r" equality for the suggested scales $\sqrt{L_j\mu_j}$.",
    rtol=ROUNDING,
    cases=best_scales_cases,
)
def best_scales(case: Case) -> Iterator[Inequality]:
    """Weights of clients: the energy of reweighted clients, and their condition number.

    Compare 40 random scales, and those that are suggested.
    """
    f, rng = case.objective, np.random.default_rng(0)
    worst = float(np.max(f.L / f.mu))
    best = reweighted(f, common_scales(f))
    yield Inequality(0, condition(best), worst, "condition number of the suggested scales")
    for n in range(1, 41):
        g, theta = reweighted(f, np.exp(2.0 * rng.standard_normal(f.n_clients))), rng.standard_normal(f.shape)
        found, expected = (np.asarray(x.mean(x.value(theta))) for x in (g, f))
        yield Inequality(n, deviation(found, expected), ROUNDING, "energies")
        yield Inequality(n, worst, condition(g), "condition numbers")


def condition(f: object) -> float:
    """Return the condition number of clients."""
    return float(np.max(f.L) / np.min(f.mu))  # pyright: ignore[reportAttributeAccessIssue]


# Cohorts that are not drawn with the weights.


def radius(case: Case, errors: Errors) -> float:
    """Return the factor by which the mean square of the errors changes in a round in the end."""
    units, total = [errors.state(unit) for unit in np.eye(errors.size)], np.zeros((1, 1))
    for chance, round in case.events():
        M = np.stack([errors.of(advance(case.algorithm, case.objective, s, round)[0]) for s in units], axis=1)
        total = total + chance * np.kron(M, M)
    return float(np.max(np.abs(np.linalg.eigvals(total))))


def dual_errors(case: Case) -> Errors:
    r"""Return :math:`\theta - \theta^*` and the :math:`z_j - z_j^*` of SampledDualFL, where t has its limit."""
    f, method, size = case.objective, case.algorithm, case.theta.size
    limits, t = case.subgradients - method.nu * case.theta, last_step(method.rho, method.least)
    start = initial_state(method, f, case.theta)

    def state(e: Array) -> State:
        theta, z = case.theta + e[:size], limits + e[size:].reshape(limits.shape)
        v = -f.mean(z) / method.nu
        w = (1.0 - t) * theta + t * v
        server = start.server._replace(theta=theta, v=v, w=w, t=t)
        return State(server, start.message._replace(w=w, t=t), start.clients._replace(z=z))

    return Errors(
        size + limits.size,
        lambda s: np.concatenate([s.server.theta - case.theta, np.ravel(s.clients.z - limits)]),
        state,
    )


def promised(case: Case) -> float:
    """Return the factor of Theorem A for clients of equal weight and this alpha."""
    return 1.0 / (1.0 + 2.0 * case.L * case.mu / (case.L + case.mu) / case.algorithm.alpha)


def unmatched(case: Case) -> list[str]:
    """Return what fails: uniform cohorts of clients that Theorem A covers if their weights are equal."""
    p, uniform = case.fraction, isinstance(case.participation, UniformSubset)
    fits = case.algorithm.alpha >= best_weight(case.mu, case.L, p) * (1.0 - ROUNDING)
    return ([] if uniform else ["uniform cohorts"]) + ([] if fits else ["Theorem A for equal weights"])


def uniform_cohorts_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Weights .97 and .03 with a stiff heavy client; cohorts that are drawn rightly are excluded."""
    for curvatures in ((50.0, 1.0), (80.0, 1.0), (100.0, 1.0)):
        f = two(curvatures=curvatures)
        method = FedDyn(alpha=best_weight(f.mu, f.L, 0.5), fraction=0.5, solver=Exact())
        yield ExpectedVerdict(f.case(method, 1, "uniform", participation=UniformSubset(size=1)))
    yield ExpectedVerdict(f.case(method, 1, "drawn rightly", participation=drawn(f, 1)), "outside assumptions")


@claim(
    source="Weights of clients, FedDyn under uniform cohorts",
    statement=r"Two clients of the weights .97 and .03, one of them active, drawn uniformly, with the best $\alpha$ of"
    r" Theorem A for equal weights, whose factor is below 0.9: the mean square of the errors grows, by a factor of 1.03"
    r" a round at least in the end. With equal weights it falls.",
    assumptions=unmatched,
    rtol=ROUNDING,
    cases=uniform_cohorts_cases,
)
def uniform_cohorts(case: Case) -> Iterator[Inequality]:
    """Weights of clients: FedDyn diverges under uniform cohorts.

    Compare the largest eigenvalue of what a round makes of second moments, exactly, with 1.03 and with 1.
    """
    yield Inequality(0, promised(case), 0.9, "what is promised for equal weights")
    equal = solved("equal weights", replace(case.objective, weights=None)).case(case.algorithm, 1)
    equal = equal.but(participation=case.participation)
    yield Inequality(0, GROWTH, radius(case, feddyn_errors(case, 1.0)), "growth")
    yield Inequality(0, radius(equal, feddyn_errors(equal, 1.0)), promised(case), "factor with equal weights")


def uniform_sampled_dualfl_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Use the same clients."""
    for curvatures in ((50.0, 1.0), (80.0, 1.0), (100.0, 1.0)):
        f = two(curvatures=curvatures)
        method = SampledDualFL(nu=f.mu, rho=f.mu / f.L, fraction=0.5, least=0.5, solver=Exact(), stop=Steps(steps=1))
        yield ExpectedVerdict(f.case(method, 1, "uniform", participation=UniformSubset(size=1)))


@claim(
    source="Weights of clients, SampledDualFL under uniform cohorts",
    statement=r"The same clients: in the end the mean square of the errors of SampledDualFL with $\nu = \mu$, $\rho ="
    r" \nu/L$ grows by a factor of 1.4 a round at least. With equal weights it falls.",
    rtol=ROUNDING,
    cases=uniform_sampled_dualfl_cases,
)
def uniform_sampled_dualfl(case: Case) -> Iterator[Inequality]:
    """Weights of clients: SampledDualFL diverges under uniform cohorts.

    Compare the largest eigenvalue of what a round makes of second moments, exactly, where its steps have their limit.
    """
    equal = solved("equal weights", replace(case.objective, weights=None)).case(case.algorithm, 1)
    equal = equal.but(participation=case.participation)
    yield Inequality(0, DUAL_GROWTH, radius(case, dual_errors(case)), "growth")
    yield Inequality(0, radius(equal, dual_errors(equal)), 1.0, "factor with equal weights")
