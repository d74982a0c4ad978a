"""A-FedPD without a store of duals on the server."""

from __future__ import annotations

from collections.abc import Iterator

from dualopt.algorithms import AFedPD, LazyAFedPD
from dualopt.claims import Inequality, claim
from dualopt.participation import Bernoulli, Participation, UniformSubset
from theory._cases import accurately
from theory._claims import ExpectedVerdict
from theory._problems import Instance, logistic, quadratic
from theory.identities._runs import EXACT, NEWTON, Runs, agree, starting_point


def identity_lazy_a_fedpd_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Subsets of fixed and of random size, which may be empty."""
    f = quadratic(6)
    for participation in (UniformSubset(size=2), UniformSubset(size=5), Bernoulli(probability=0.4)):
        yield ExpectedVerdict(both(f, 40.0, participation, EXACT))
    yield ExpectedVerdict(both(logistic(), 1.0, UniformSubset(size=2), NEWTON))


@claim(
    source="Sun, Shen and Tao, Algorithm 1 and the limitation of storing duals",
    statement=r"Clients that catch up by $\bar\lambda_{\text{now}} - \bar\lambda_{\text{seen}}$ when they wake up have"
    r" the same $\theta^n$ as those whose duals are updated virtually in every round. In a round, $P(2 - P/N)$ clients"
    r" are told two vectors instead of $N - P + P^2/N$, on average: fewer exactly if $P < N/2$.",
    rounding=0.0,
    cases=identity_lazy_a_fedpd_cases,
)
def identity_lazy_a_fedpd(case: Runs) -> Iterator[Inequality]:
    """Compare the models and, where less than half take part, the numbers sent in all rounds together."""
    yield from agree(case)
    lazy, virtual = (list(case.snapshots(name)) for name in case.methods)
    if sum(s.round.fraction for s in lazy) < 0.5 * case.rounds:
        less, more = (float(sum(s.floats_up + s.floats_down for s in run)) for run in (lazy, virtual))
        yield Inequality(case.rounds, less, more, "floats sent")


def both(f: Instance, rho: float, participation: Participation, tolerance: float) -> Runs:
    """Return both forms under partial participation."""
    exactly = accurately(f.objective)
    return Runs(
        name=f"{f.name}, {participation}, rho {rho:g}",
        objective=f.objective,
        methods={"lazy": LazyAFedPD(rho=rho, **exactly), "virtual": AFedPD(rho=rho, **exactly)},
        theta0=starting_point(f.objective),
        participation=participation,
        tolerance=tolerance,
    )
