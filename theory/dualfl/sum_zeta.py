"""Equation (6.10): the control variates sum to zero, whatever the clients do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Claim, Comparison
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._claims import Expectation
from theory._instances import digits, logistic, quadratic
from theory.dualfl._identity import deviation
from theory.dualfl._methods import exact, inexact


def compare(case: Case) -> Iterator[Comparison]:
    """Compare the sum with the size of what is added and the rounding of n rounds."""
    for n, s in enumerate(case.snapshots(), start=1):
        zeta = s.clients.zeta
        sent = np.sum(np.abs(s.clients.sent), axis=0)
        scale = float(np.max(np.sum(np.abs(zeta), axis=0) + sent))
        yield Comparison(n, deviation(np.sum(zeta, axis=0), 0.0, scale=scale), 1e-14 * (n + 1), "sum zeta")


CLAIM = Claim(
    name="sum_zeta",
    source="Park and Xu, equation (6.10)",
    statement=r"$\sum_j \zeta_j^n = 0$ for every $n$, exact or not (checked to $10^{-14}(n+1)$ of its terms).",
    compare=compare,
    rounding=0.0,
)


def cases(quick: bool) -> Iterator[Expectation]:
    """Exact and very inexact local solutions."""
    yield Expectation(quadratic().case(exact(quadratic()), 100))
    for instance in [logistic()] if quick else [logistic(), digits()]:
        once = inexact(instance, Steps(steps=1), rho=0.01, solver=Gradient())
        yield Expectation(instance.case(once, 100, "one gradient step"))
