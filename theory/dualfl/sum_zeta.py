"""Equation (6.10): the control variates sum to zero, whatever the clients do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._claims import ExpectedVerdict, deviation
from theory._problems import digits, logistic, quadratic
from theory.dualfl._methods import exact, inexact


def sum_zeta_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Exact and very inexact local solutions."""
    yield ExpectedVerdict(quadratic().case(exact(quadratic()), 100))
    for instance in [logistic()] if quick else [logistic(), digits()]:
        once = inexact(instance, Steps(steps=1), rho=0.01, solver=Gradient())
        yield ExpectedVerdict(instance.case(once, 100, "one gradient step"))


@claim(
    source="Park and Xu, equation (6.10)",
    statement=r"$\sum_j \zeta_j^n = 0$ for every $n$, exact or not (checked to $10^{-14}(n+1)$ of its terms).",
    rounding=0.0,
    cases=sum_zeta_cases,
)
def sum_zeta(case: Case) -> Iterator[Inequality]:
    """Compare the sum with the size of what is added and the rounding of n rounds."""
    for n, s in enumerate(case.snapshots(), start=1):
        zeta = s.clients.zeta
        sent = np.sum(np.abs(s.clients.sent), axis=0)
        scale = float(np.max(np.sum(np.abs(zeta), axis=0) + sent))
        yield Inequality(n, deviation(np.sum(zeta, axis=0), 0.0, scale=scale), 1e-14 * (n + 1), "sum zeta")
