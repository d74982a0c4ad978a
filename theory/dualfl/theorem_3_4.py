"""Theorem 3.4: how many subgradient steps a client needs without smoothness."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from dualopt.objectives import LocalProblem
from dualopt.stopping import SublinearSchedule
from theory._claims import ExpectedVerdict
from theory._problems import absolute_deviation, hinge
from theory.dualfl._assumptions import sublinear_regime
from theory.dualfl._local_counts import averaged_subgradient_steps
from theory.dualfl._methods import exact

SCALE = 0.05  # of the tolerance; the printed one is so loose on these instances that most clients need no step
LIMIT = 30_000


def theorem_3_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two nonsmooth losses, with a ridge that makes the counts affordable."""
    for instance in (hinge(mu=0.3), absolute_deviation(mu=0.5)):
        yield ExpectedVerdict(instance.case(exact(instance, rho=0.0), 3 if quick else 5))


@claim(
    source="Park and Xu, Theorem 3.4; Lacoste-Julien, Schmidt and Bach 2012",
    statement=r"The averaged subgradient method with steps $\frac{2}{\mu(k+1)}$ and subgradients of norm at most $G$"
    r" reaches the local energy error $\frac{s}{N\nu(n+1)^{4+\gamma}}$ of round $n$, (3.7) for s = 1, within"
    r" $M_n \le \frac{2G^2}{\mu s}\,N\nu(n+1)^{4+\gamma}$ steps (checked for s = 0.05, gamma = 0.1).",
    assumptions=sublinear_regime,
    cases=theorem_3_4_cases,
)
def theorem_3_4(case: Case) -> Iterator[Inequality]:
    """Count the steps on every local problem of an exact run, from where the client was."""
    nu, f = case.algorithm.nu, case.objective
    admitted = SublinearSchedule(nu=nu, scale=SCALE)
    zeta = start = np.zeros_like(case.subgradients)
    for s in case.snapshots():
        problem, tol = LocalProblem(objective=f, linear=-nu * zeta), admitted(s.round)
        counts, largest = averaged_subgradient_steps(problem, start, problem.value(s.clients.theta), tol, LIMIT)
        for count, bound in zip(counts, 2.0 * largest**2 / (f.mu * tol), strict=True):
            yield Inequality(s.round.n, float(count), float(bound), "M_n")
        zeta, start = s.clients.zeta, s.clients.theta
