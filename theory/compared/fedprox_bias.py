"""FedProx: where proximal steps on quadratics end, which is not at the solution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import FedProx
from dualopt.claims import Inequality, claim
from theory._cases import accurately
from theory._claims import ROUNDING, ExpectedVerdict
from theory._problems import Instance, hard_quadratic, logistic, quadratic
from theory.compared._bias import compare_limits, enough, quadratic_clients
from theory.compared._cases import Federation, federation
from theory.compared._instances import one_minimiser


def fedprox_bias_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Weak and strong proximal terms; clients of the two kinds that agree; a loss that is not quadratic."""
    for weight, active in ((0.1, 3), (1.0, 2), (5.0, 1)):
        yield ExpectedVerdict(near(quadratic(L=10.0), weight, active))
    yield ExpectedVerdict(near(hard_quadratic(L=10.0), 5.0, 2))
    yield ExpectedVerdict(near(one_minimiser(L=10.0), 5.0, 2))
    if not quick:
        yield ExpectedVerdict(near(quadratic(), 50.0, 3))
    yield ExpectedVerdict(near(logistic(), 1.0, 2), "outside assumptions")


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
def fedprox_bias(case: Federation) -> Iterator[Inequality]:
    """Compare expected models with the closed form."""
    A, weight = case.objective.A, case.algorithm.mu_prox
    Q = np.linalg.inv(A + weight * np.eye(A.shape[-1]))
    return compare_limits(case, Q, weight / (weight + case.mu))


def near(f: Instance, weight: float, active: int) -> Federation:
    """Return FedProx with the given weight and exact local solutions, for as long as it takes."""
    method = FedProx(mu_prox=weight, solver=accurately(f.objective)["solver"])
    return federation(f, method, active=active, rounds=enough(weight / (weight + f.mu)), note=f"w = {weight:g}")
