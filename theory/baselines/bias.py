r"""FedAvg and FedProx on quadratic clients: the limit of the expected model in closed form, which is not the solution.

A client that ends at :math:`\theta_j = \theta - Q_j \nabla f_j(\theta)`, with a matrix :math:`Q_j` that commutes with
:math:`A_j`, makes of the model :math:`\theta` the average

.. math:: \theta^+ = \theta - \tfrac1N \textstyle\sum_j Q_j (A_j\theta - b_j), \qquad
          \theta_\infty = \bigl(\sum_j Q_j A_j\bigr)^{-1} \sum_j Q_j b_j
                        = \theta^* - \bigl(\sum_j Q_j A_j\bigr)^{-1} \sum_j Q_j \nabla f_j(\theta^*).

The expectation over uniform cohorts is the same map, and the round of a cohort is an affine map of the model alone, so
that the expected model follows it exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State
from dualopt.lab.chance import Expect, branches
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import FedAvg, FedProx
from dualopt.objectives import Quadratic
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case, accurately
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import hard_quadratic, logistic, lopsided, quadratic, solved
from theory.baselines._runs import baseline_case, smooth_and_strongly_convex
from theory.limits import averaging_limit, work_of_steps

# What both claims compare.


def compare_limits(case: Case, Q: Array, r: float) -> Iterator[Inequality]:
    """Compare the expected models with their closed form and its limit, which they approach by the factor ``r``.

    In the end they must be nearer to the limit than to the solution, or the solution must be the limit.
    """
    f = case.objective
    pull = np.mean(Q @ f.A, axis=0)
    end = averaging_limit(f, Q)
    away = norm(end - f.zeros())
    entry = away / math.sqrt(end.size)  # what no entry of a difference exceeds is more than its norm
    expected, theta = f.zeros() - end, f.zeros()
    for n, theta in enumerate(expected_models(case), start=1):
        expected = expected - pull @ expected
        yield Inequality(n, deviation(theta - end, expected, scale=entry), ROUNDING, "closed form")
        yield Inequality(n, norm(theta - end) / away, r**n, "distance from the limit")
    bias = -np.linalg.solve(pull, np.mean(Q @ case.subgradients[..., None], axis=0))[:, 0]
    measured = theta - case.theta
    yield Inequality(case.rounds, deviation(measured, bias, scale=entry), r**case.rounds + ROUNDING, "bias")
    if norm(bias) > 3.0 * ROUNDING * away:
        yield Inequality(case.rounds, norm(theta - end), norm(measured), "nearer to the limit")


def expected_models(case: Case) -> Iterator[Array]:
    """Yield the exact expectation of the model after each round from zero."""
    state = case.first()
    for n in range(case.rounds):
        E = Expect(branches(case.algorithm, case.objective, state, case.events(n)))
        theta = E[lambda after: after.state.server.theta]
        yield theta
        state = State(state.server._replace(theta=theta), theta, state.clients, state.solver)


def norm(v: Array) -> float:
    """Return the Euclidean norm."""
    return float(np.linalg.norm(v))


def enough(r: float) -> int:
    """Return the number of rounds after which the factor ``r`` leaves only rounding.

    Examples
    --------
    >>> enough(0.5), enough(0.0)
    (34, 1)
    """
    return max(1, math.ceil(math.log(ROUNDING) / math.log(r))) if r > 0 else 1


def quadratic_clients(case: Case) -> list[str]:
    """Return what fails: every client is a quadratic with a minimiser."""
    quadratic = [] if isinstance(case.objective, Quadratic) else ["quadratic clients"]
    return quadratic + smooth_and_strongly_convex(case)


@cache
def one_minimiser() -> Case:
    """Three clients with different Hessians and the same minimiser."""
    A = quadratic(L=10.0).objective.A
    minimiser = np.random.default_rng(1).standard_normal(A.shape[-1])
    return solved("one minimiser (kappa=10)", Quadratic(A=A, b=A @ minimiser))


# FedAvg: K gradient steps.


def fedavg_case(f: Case, times: float, K: int, active: int) -> Case:
    """Return FedAvg with K steps of ``times/L``, until it has reached its limit."""
    method = FedAvg(solver=Gradient(step=times / f.L), stop=Steps(steps=K))
    rounds = enough(factor(times * f.mu / f.L, times, K)) if times < 2 else 1
    return baseline_case(f, method, rounds, f"K = {K}, s = {times:g}/L", active=active)


def factor(least: float, greatest: float, K: int) -> float:
    """Return the contraction by K steps whose products with the curvatures lie between ``least`` and ``greatest``."""
    return max(abs(1.0 - least), abs(1.0 - greatest)) ** K


def steps_contract(case: Case) -> list[str]:
    """Return what fails: steps from 2/L on do not contract."""
    return quadratic_clients(case) + ([] if case.algorithm.solver.step * case.L < 2.0 else ["step < 2/L"])


def fedavg_bias_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Few and many steps; clients of the three kinds that agree; steps too long."""
    for K, active in ((2, 3), (8, 2), (30, 1)):
        yield ExpectedVerdict(fedavg_case(quadratic(L=10.0), 1.0, K, active))
    yield ExpectedVerdict(fedavg_case(quadratic(L=10.0), 1.7, 3, 3))
    yield ExpectedVerdict(fedavg_case(quadratic(L=10.0), 1.0, 1, 2))
    yield ExpectedVerdict(fedavg_case(hard_quadratic(L=10.0), 1.0, 8, 2))
    yield ExpectedVerdict(fedavg_case(one_minimiser(), 1.0, 8, 2))
    yield ExpectedVerdict(fedavg_case(lopsided(), 1.0, 3, 2))
    if not quick:
        yield ExpectedVerdict(fedavg_case(quadratic(), 1.0, 8, 3))
    yield ExpectedVerdict(fedavg_case(quadratic(L=10.0), 2.1, 2, 3), "outside assumptions")


@claim(
    source="FedAvg (McMahan et al. 2017), derived",
    statement=r"Quadratic clients, $K$ gradient steps of length $s < 2/L$, any uniform cohort: with"
    r" $Q_j = s\sum_{k<K}(I - sA_j)^k$ the expected model approaches $\theta_\infty = (\sum_j Q_jA_j)^{-1}\sum_j Q_jb_j"
    r" = \theta^* - (\sum_j Q_jA_j)^{-1}\sum_j Q_j\nabla f_j(\theta^*)$ at least by the factor"
    r" $\max(|1 - s\mu|, |1 - sL|)^K$ per round. It is the solution if $K = 1$, or all Hessians are equal, or the"
    r" clients have one minimiser, and in general it is not.",
    assumptions=steps_contract,
    rtol=ROUNDING,
    cases=fedavg_bias_cases,
)
def fedavg_bias(case: Case) -> Iterator[Inequality]:
    """FedAvg: where gradient steps on quadratics end, which is not at the solution.

    Compare expected models with the closed form.
    """
    s, K = case.algorithm.solver.step, case.algorithm.stop.steps
    return compare_limits(case, work_of_steps(case.objective.A, s, K), factor(s * case.mu, s * case.L, K))


# FedProx: exact proximal steps.


def fedprox_case(f: Case, weight: float, active: int) -> Case:
    """Return FedProx with the given weight and exact local solutions, until it has reached its limit."""
    method = FedProx(mu_prox=weight, solver=accurately(f.objective)["solver"])
    return baseline_case(f, method, enough(weight / (weight + f.mu)), f"w = {weight:g}", active=active)


def fedprox_bias_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Weak and strong proximal terms; clients of the two kinds that agree; a loss that is not quadratic."""
    for weight, active in ((0.1, 3), (1.0, 2), (5.0, 1)):
        yield ExpectedVerdict(fedprox_case(quadratic(L=10.0), weight, active))
    yield ExpectedVerdict(fedprox_case(hard_quadratic(L=10.0), 5.0, 2))
    yield ExpectedVerdict(fedprox_case(one_minimiser(), 5.0, 2))
    yield ExpectedVerdict(fedprox_case(lopsided(), 5.0, 2))
    if not quick:
        yield ExpectedVerdict(fedprox_case(quadratic(), 50.0, 3))
    yield ExpectedVerdict(fedprox_case(logistic(), 1.0, 2), "outside assumptions")


@claim(
    source="FedProx (Li et al. 2020), derived",
    statement=r"Quadratic clients, exact local solutions with the proximal weight $w$, any uniform cohort: with"
    r" $Q_j = (A_j + wI)^{-1}$ the expected model approaches $\theta_\infty = (\sum_j Q_jA_j)^{-1}\sum_j Q_jb_j"
    r" = \theta^* - (\sum_j Q_jA_j)^{-1}\sum_j Q_j\nabla f_j(\theta^*)$ at least by the factor $w/(w + \mu)$ per round."
    r" It is the solution if all Hessians are equal, or the clients have one minimiser, and in general it is not.",
    assumptions=quadratic_clients,
    rtol=ROUNDING,
    cases=fedprox_bias_cases,
)
def fedprox_bias(case: Case) -> Iterator[Inequality]:
    """FedProx: where proximal steps on quadratics end, which is not at the solution.

    Compare expected models with the closed form.
    """
    A, weight = case.objective.A, case.algorithm.mu_prox
    Q = np.linalg.inv(A + weight * np.eye(A.shape[-1]))
    return compare_limits(case, Q, weight / (weight + case.mu))
