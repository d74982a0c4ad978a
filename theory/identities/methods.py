"""Methods of different papers that are one: the same models in every round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dualopt.lab.claims import Inequality, claim
from dualopt.methods import AFedPD, ConsensusFedSplit, FedADMM, FedDR, FedDyn, FedPD, FedSpeed
from dualopt.methods.participation import Bernoulli, Full, Participation, UniformSubset
from theory._cases import Case, accurately
from theory._claims import ExpectedVerdict
from theory._problems import logistic, lopsided, one_concave_client, one_flat_client, quadratic
from theory.identities._runs import EXACT, NEWTON, ROUNDS, Runs, agree, runs


def with_weight(f: Case, weight: float, tolerance: float, **more: Any) -> Runs:
    """Return the family of FedPD with one weight of the proximal term."""
    exactly = accurately(f.objective)
    methods = {
        "FedPD": FedPD(eta=1.0 / weight, **exactly),
        "FedDyn": FedDyn(alpha=weight, **exactly),
        "A-FedPD": AFedPD(rho=weight, **exactly),
        "FedADMM": FedADMM(rho=weight, server_step=1.0, **exactly),
        "FedSpeed": FedSpeed(rho=weight, radius=0.0, **exactly),
        "FedDR": FedDR(eta=1.0 / weight, relaxation=1.0, **exactly),
    }
    return runs(f, methods, f"weight {weight:g}", tolerance=tolerance, **more)


def identity_full_participation_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Weights over two orders of magnitude; quadratics, and a loss with local solutions by Newton's method."""
    for weight in (1.0, 7.0, 100.0):
        yield ExpectedVerdict(with_weight(quadratic(), weight, EXACT))
        yield ExpectedVerdict(with_weight(lopsided(), weight, EXACT))
    for f in (one_flat_client(), one_concave_client()):
        yield ExpectedVerdict(with_weight(f, 4.0, EXACT))
    yield ExpectedVerdict(with_weight(logistic(), 0.2, NEWTON, rounds=12 if quick else ROUNDS))


@claim(
    source="FedPD, FedDyn, A-FedPD and FedADMM papers",
    statement=r"$P = N$, exact local solutions, $\eta = 1/\alpha = 1/\rho$, no duals at the start: FedPD ($p = 0$),"
    r" FedDyn, A-FedPD, FedADMM ($\eta_s = 1$), FedSpeed (radius 0) and FedDR ($a = 1$,"
    r" $x_j = y_j = \theta^0$) have the same $\theta^n$.",
    cases=identity_full_participation_cases,
)
def identity_full_participation(case: Runs) -> Iterator[Inequality]:
    """Six methods are one when all clients take part.

    Compare their models with those of FedPD.
    """
    return agree(case)


def fedadmm_and_feddr(f: Case, rho: float, participation: Participation, tolerance: float) -> Runs:
    """Return the two with one weight."""
    exactly = accurately(f.objective)
    methods = {"FedADMM": FedADMM(rho=rho, **exactly), "FedDR": FedDR(eta=1.0 / rho, relaxation=1.0, **exactly)}
    return runs(f, methods, f"{participation}, rho {rho:g}", participation=participation, tolerance=tolerance)


def identity_fedadmm_feddr_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Subsets of fixed and of random size, which may be empty."""
    for participation in (UniformSubset(size=2), Bernoulli(probability=0.4)):
        yield ExpectedVerdict(fedadmm_and_feddr(quadratic(6), 10.0, participation, EXACT))
        yield ExpectedVerdict(fedadmm_and_feddr(one_concave_client(), 4.0, participation, EXACT))
    yield ExpectedVerdict(fedadmm_and_feddr(logistic(), 0.2, UniformSubset(size=2), NEWTON))


@claim(
    source="Wang et al. 2022; Tran-Dinh et al. 2021",
    statement=r"Exact local solutions, any participation, $\eta = 1/\rho$: FedADMM with $\eta_s = P/N$ and FedDR with"
    r" $a = 1$ have the same $\theta^n$: both keep the mean of all clients' $\theta_j + \lambda_j/\rho = \hat x_j$.",
    cases=identity_fedadmm_feddr_cases,
)
def identity_fedadmm_feddr(case: Runs) -> Iterator[Inequality]:
    """FedADMM with the right server step is FedDR, whoever takes part.

    Compare their models.
    """
    return agree(case)


def fedsplit_and_feddr(f: Case, step: float, participation: Participation, tolerance: float) -> Runs:
    """Return the two with one step."""
    exactly = accurately(f.objective)
    split = ConsensusFedSplit(step=step, **exactly)
    methods = {"FedSplit": split, "FedDR": FedDR(eta=step, relaxation=2.0, **exactly)}
    return runs(f, methods, f"{participation}, step {step:g}", participation=participation, tolerance=tolerance)


def identity_fedsplit_feddr_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Short and long steps, with everybody and with some clients."""
    for step in (0.01, 0.2, 1.0):
        for participation in (Full(), UniformSubset(size=2)):
            yield ExpectedVerdict(fedsplit_and_feddr(quadratic(), step, participation, EXACT))
            yield ExpectedVerdict(fedsplit_and_feddr(lopsided(), step, participation, EXACT))
    yield ExpectedVerdict(fedsplit_and_feddr(logistic(), 2.0, UniformSubset(size=3), NEWTON))


@claim(
    source="Pathak and Wainwright 2020; Tran-Dinh et al. 2021",
    statement=r"Exact proximal steps, any participation: FedSplit that averages all $z_j$ and reports their mean, from"
    r" $z_j = \theta^0$, and FedDR with $a = 2$, from $x_j = y_j = \hat x_j = \theta^0$, have the same $\theta^n$ with"
    r" no shift of rounds: $z_j = \hat x_j$.",
    cases=identity_fedsplit_feddr_cases,
)
def identity_fedsplit_feddr(case: Runs) -> Iterator[Inequality]:
    """FedSplit is FedDR with relaxation 2, whoever takes part.

    Compare their models.
    """
    return agree(case)
