"""The two forms of FedSplit for partial participation agree when nobody is missing."""

from __future__ import annotations

from collections.abc import Iterator

from dualopt.algorithms import FedSplit
from dualopt.claims import Inequality, claim
from theory._cases import accurately
from theory._claims import ExpectedVerdict
from theory._problems import Instance, quadratic
from theory.identities._runs import EXACT, Runs, agree, starting_point


def identity_fedsplit_averages_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Short and long steps."""
    for step in (0.01, 0.2, 1.0):
        yield ExpectedVerdict(both(quadratic(), step))


@claim(
    source="FedDyn Appendix A.4",
    statement=r"FedSplit with $\theta = \frac1N\sum_j z_j$ over all clients, stale ones included, and with the mean"
    r" over the active ones have the same $\theta^n$ when $P = N$.",
    rounding=0.0,
    cases=identity_fedsplit_averages_cases,
)
def identity_fedsplit_averages(case: Runs) -> Iterator[Inequality]:
    """Compare the models of all methods with those of the first one."""
    return agree(case)


def both(f: Instance, step: float) -> Runs:
    """Return the two forms."""
    exactly = accurately(f.objective)
    methods = {average: FedSplit(step=step, average=average, **exactly) for average in ("all", "active")}
    name, start = f"{f.name}, step {step:g}", starting_point(f.objective)
    return Runs(name=name, objective=f.objective, methods=methods, theta0=start, tolerance=EXACT)
