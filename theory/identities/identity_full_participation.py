"""Five methods of four papers are one when all clients take part."""

from __future__ import annotations

from collections.abc import Iterator

from dualopt.algorithms import AFedPD, FedADMM, FedDR, FedDyn, FedPD, FedSpeed, LazyAFedPD
from dualopt.claims import Inequality, claim
from theory._cases import accurately
from theory._claims import ExpectedVerdict
from theory._problems import Instance, logistic, quadratic
from theory.identities._runs import EXACT, NEWTON, Runs, agree, starting_point


def identity_full_participation_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Weights over two orders of magnitude; quadratics, and a loss with local solutions by Newton's method."""
    for weight in (1.0, 7.0, 100.0):
        yield ExpectedVerdict(same(quadratic(), weight, EXACT))
    yield ExpectedVerdict(same(logistic(), 0.2, NEWTON))


@claim(
    source="FedPD, FedDyn, A-FedPD and FedADMM papers",
    statement=r"$P = N$, exact local solutions, $\eta = 1/\alpha = 1/\rho$, no duals at the start: FedPD ($p = 0$),"
    r" FedDyn, A-FedPD (also with lazy duals), FedADMM ($\eta_s = 1$), FedSpeed (radius 0) and FedDR ($a = 1$,"
    r" $x_j = y_j = \theta^0$) have the same $\theta^n$.",
    rounding=0.0,
    cases=identity_full_participation_cases,
)
def identity_full_participation(case: Runs) -> Iterator[Inequality]:
    """Compare the models of all methods with those of the first one."""
    return agree(case)


def same(f: Instance, weight: float, tolerance: float) -> Runs:
    """Return the methods with one weight of the proximal term."""
    exactly = accurately(f.objective)
    methods = {
        "FedPD": FedPD(eta=1.0 / weight, **exactly),
        "FedDyn": FedDyn(alpha=weight, **exactly),
        "A-FedPD": AFedPD(rho=weight, **exactly),
        "lazy A-FedPD": LazyAFedPD(rho=weight, **exactly),
        "FedADMM": FedADMM(rho=weight, server_step=1.0, **exactly),
        "FedSpeed": FedSpeed(rho=weight, radius=0.0, **exactly),
        "FedDR": FedDR(eta=1.0 / weight, **exactly),
    }
    name, start = f"{f.name}, weight {weight:g}", starting_point(f.objective)
    return Runs(name=name, objective=f.objective, methods=methods, theta0=start, tolerance=tolerance)
