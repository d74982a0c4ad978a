"""FedSplit is FedDR with relaxation 2, whoever takes part."""

from __future__ import annotations

from collections.abc import Iterator

from dualopt.algorithms import FedDR, FedSplit
from dualopt.claims import Inequality, claim
from dualopt.participation import Full, Participation, UniformSubset
from theory._cases import accurately
from theory._claims import ExpectedVerdict
from theory._problems import Instance, logistic, quadratic
from theory.identities._runs import EXACT, NEWTON, Runs, agree, starting_point


def identity_fedsplit_feddr_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Short and long steps."""
    for step in (0.01, 0.2, 1.0):
        for participation in (Full(), UniformSubset(size=2)):
            yield ExpectedVerdict(both(quadratic(), step, participation, EXACT))
    yield ExpectedVerdict(both(logistic(), 2.0, UniformSubset(size=3), NEWTON))


@claim(
    source="Pathak and Wainwright 2020; Tran-Dinh et al. 2021",
    statement=r"Exact proximal steps, any participation: FedSplit that averages all $z_j$, from $z_j = \theta^0$, and"
    r" FedDR with $a = 2$, from $x_j = y_j = \hat x_j = \theta^0$, have the same $\theta^n$ with no shift of rounds:"
    r" $z_j = \hat x_j$.",
    rounding=0.0,
    cases=identity_fedsplit_feddr_cases,
)
def identity_fedsplit_feddr(case: Runs) -> Iterator[Inequality]:
    """Compare the models of all methods with those of the first one."""
    return agree(case)


def both(f: Instance, step: float, participation: Participation, tolerance: float) -> Runs:
    """Return the two with one step."""
    exactly = accurately(f.objective)
    methods = {"FedSplit": FedSplit(step=step, **exactly), "FedDR": FedDR(eta=step, relaxation=2.0, **exactly)}
    return Runs(
        name=f"{f.name}, {participation}, step {step:g}",
        objective=f.objective,
        methods=methods,
        theta0=starting_point(f.objective),
        participation=participation,
        tolerance=tolerance,
    )
