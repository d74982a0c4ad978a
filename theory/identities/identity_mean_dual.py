"""The mean dual of A-FedPD moves as if every client had ended at the mean of the active ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import AFedPD
from dualopt.claims import Inequality, claim
from dualopt.participation import UniformSubset
from theory._cases import accurately
from theory._claims import ExpectedVerdict, deviation
from theory._problems import Instance, logistic, quadratic
from theory.identities._runs import EXACT, Runs, starting_point


def identity_mean_dual_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One active client, some, and all of them."""
    for active in (1, 2, 3):
        yield ExpectedVerdict(run(quadratic(), 60.0, active))
    yield ExpectedVerdict(run(logistic(), 1.0, 2))


@claim(
    source="Sun, Shen and Tao, Section 3.3 and Appendix B.3.2",
    statement=r"$\bar\lambda^{t+1} = \bar\lambda^t + \rho(\bar\theta^{t+1} - \theta^t)$ in A-FedPD, exact or not,"
    r" whoever is active (checked to 1e-12 of the largest dual).",
    rounding=0.0,
    cases=identity_mean_dual_cases,
)
def identity_mean_dual(case: Runs) -> Iterator[Inequality]:
    """Compare both sides; the mean of the active models is taken from the solutions themselves."""
    (name,) = case.methods
    rho = case.methods[name].rho
    theta, mean = case.theta0, np.zeros_like(case.theta0)
    for n, s in enumerate(case.snapshots(name), start=1):
        assert s.solution is not None
        bar = np.mean(s.solution.theta, axis=0)
        now = np.mean(s.clients.dual, axis=0)
        scale = float(np.max(np.abs(s.clients.dual)))
        yield Inequality(n, deviation(now, mean + rho * (bar - theta), scale=scale), EXACT, "mean of the duals")
        yield Inequality(n, deviation(now, s.server.dual, scale=scale), EXACT, "what the server keeps")
        theta, mean = s.server.theta, now


def run(f: Instance, rho: float, active: int) -> Runs:
    """Return a run with ``active`` clients."""
    return Runs(
        name=f"{f.name}, {active} active",
        objective=f.objective,
        methods={"A-FedPD": AFedPD(rho=rho, **accurately(f.objective))},
        theta0=starting_point(f.objective),
        participation=UniformSubset(size=active),
    )
