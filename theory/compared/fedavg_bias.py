"""FedAvg: where gradient steps on quadratics end, which is not at the solution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import FedAvg
from dualopt.claims import Inequality, claim
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from dualopt.xp import Array
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import Instance, hard_quadratic, quadratic
from theory.compared._bias import compare_limits, enough, quadratic_clients
from theory.compared._cases import Federation, federation
from theory.compared._instances import one_minimiser


def short_steps(case: Federation) -> list[str]:
    """Return what fails: steps from 2/L on do not contract."""
    return quadratic_clients(case) + ([] if case.algorithm.solver.step * case.L < 2.0 else ["step < 2/L"])


def fedavg_bias_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Few and many steps; clients of the three kinds that agree; steps too long."""
    for K, active in ((2, 3), (8, 2), (30, 1)):
        yield ExpectedVerdict(averaged(quadratic(L=10.0), 1.0, K, active))
    yield ExpectedVerdict(averaged(quadratic(L=10.0), 1.7, 3, 3))
    yield ExpectedVerdict(averaged(quadratic(L=10.0), 1.0, 1, 2))
    yield ExpectedVerdict(averaged(hard_quadratic(L=10.0), 1.0, 8, 2))
    yield ExpectedVerdict(averaged(one_minimiser(L=10.0), 1.0, 8, 2))
    if not quick:
        yield ExpectedVerdict(averaged(quadratic(), 1.0, 8, 3))
    yield ExpectedVerdict(averaged(quadratic(L=10.0), 2.1, 2, 3), "outside assumptions")


@claim(
    source="FedAvg (McMahan et al. 2017), derived",
    statement=r"Quadratic clients, $K$ gradient steps of length $s < 2/L$, any uniform cohort: with"
    r" $Q_j = s\sum_{k<K}(I - sA_j)^k$ the expected model approaches $\theta_\infty = (\sum_j Q_jA_j)^{-1}\sum_j Q_jb_j"
    r" = \theta^* - (\sum_j Q_jA_j)^{-1}\sum_j Q_j\nabla f_j(\theta^*)$ at least by the factor"
    r" $\max(|1 - s\mu|, |1 - sL|)^K$ per round. It is the solution if $K = 1$, or all Hessians are equal, or the"
    r" clients have one minimiser, and in general it is not.",
    assumptions=short_steps,
    rtol=ROUNDING,
    cases=fedavg_bias_cases,
)
def fedavg_bias(case: Federation) -> Iterator[Inequality]:
    """Compare expected models with the closed form."""
    s, K = case.algorithm.solver.step, case.algorithm.stop.steps
    return compare_limits(case, steps(case.objective.A, s, K), factor(s * case.mu, s * case.L, K))


def factor(least: float, greatest: float, K: int) -> float:
    """Return the contraction by K steps, of lengths in units of the inverse curvatures."""
    return max(abs(1.0 - least), abs(1.0 - greatest)) ** K


def steps(A: Array, s: float, K: int) -> Array:
    """Return what K steps make of the first gradient, ``s sum_{k<K} (I - s A_j)^k``."""
    power = np.broadcast_to(np.eye(A.shape[-1]), A.shape)
    total = s * power
    for _ in range(K - 1):
        power = power - s * A @ power
        total = total + s * power
    return total


def averaged(f: Instance, times: float, K: int, active: int) -> Federation:
    """Return FedAvg with K steps of ``times/L``, for as long as it takes."""
    method = FedAvg(solver=Gradient(step=times / f.L), stop=Steps(steps=K))
    rounds = enough(factor(times * f.mu / f.L, times, K)) if times < 2 else 1
    return federation(f, method, active=active, rounds=rounds, note=f"K = {K}, s = {times:g}/L")
