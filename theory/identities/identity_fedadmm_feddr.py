"""FedADMM with the right server step is FedDR, whoever takes part."""

from __future__ import annotations

from collections.abc import Iterator

from dualopt.algorithms import FedADMM, FedDR
from dualopt.claims import Inequality, claim
from dualopt.participation import Bernoulli, Participation, UniformSubset
from theory._cases import accurately
from theory._claims import ExpectedVerdict
from theory._problems import Instance, logistic, quadratic
from theory.identities._runs import EXACT, NEWTON, Runs, agree, starting_point


def identity_fedadmm_feddr_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Subsets of fixed and of random size, which may be empty."""
    for participation in (UniformSubset(size=2), Bernoulli(probability=0.4)):
        yield ExpectedVerdict(both(quadratic(6), 10.0, participation, EXACT))
    yield ExpectedVerdict(both(logistic(), 0.2, UniformSubset(size=2), NEWTON))


@claim(
    source="Wang et al. 2022; Tran-Dinh et al. 2021",
    statement=r"Exact local solutions, any participation, $\eta = 1/\rho$: FedADMM with $\eta_s = P/N$ and FedDR with"
    r" $a = 1$ have the same $\theta^n$: both keep the mean of all clients' $\theta_j + \lambda_j/\rho = \hat x_j$.",
    rounding=0.0,
    cases=identity_fedadmm_feddr_cases,
)
def identity_fedadmm_feddr(case: Runs) -> Iterator[Inequality]:
    """Compare the models of all methods with those of the first one."""
    return agree(case)


def both(f: Instance, rho: float, participation: Participation, tolerance: float) -> Runs:
    """Return the two with one weight."""
    exactly = accurately(f.objective)
    return Runs(
        name=f"{f.name}, {participation}, rho {rho:g}",
        objective=f.objective,
        methods={"FedADMM": FedADMM(rho=rho, **exactly), "FedDR": FedDR(eta=1.0 / rho, **exactly)},
        theta0=starting_point(f.objective),
        participation=participation,
        tolerance=tolerance,
    )
