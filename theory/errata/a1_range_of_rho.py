"""A1: "a non-zero positive constant" rho in Theorem 1 of the A-FedPD paper."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import numpy as np

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory.afedpd._cases import Federation, federation
from theory.afedpd._instances import two_signs
from theory.afedpd._moments import squared_gradients
from theory.afedpd._path import path
from theory.afedpd.afedpd_theorem_1 import theorem_1, total


def a1_range_of_rho_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two clients of opposite curvature: all of them active or one, below the range; and within."""
    f = two_signs()
    for rho, active in ((1.2, 2), (1.3, 2), (1.2, 1), (1.3, 1)):
        yield ExpectedVerdict(Form(federation(f, rho=rho, active=active, rounds=60), printed=True), "violated")
    yield ExpectedVerdict(Form(federation(f, rho=2.1 * f.L, active=2, rounds=60), printed=False))


@theorem_1.as_printed(
    source="A-FedPD Theorem 1",
    statement=r"$\frac1T\sum_{t=1}^T\mathbb{E}|\nabla E(\bar\theta^t)|^2 = O(1/T)$ with exact local solutions. Printed:"
    r" for every $\rho > 0$ and every P, with the constant $\rho(E(\bar\theta^1) - E^*) + R_0$. Corrected: $P = N$ and"
    r" $\rho > 2L$, with the constants of afedpd_theorem_1.",
    cases=a1_range_of_rho_cases,
)
def a1_range_of_rho(form: Form) -> Iterator[Inequality]:
    """Compare exact expectations over all choices of clients with the bound of either form."""
    case = form.case
    first = path(case)[0]
    bound = printed(case) if form.printed else total(case, first.spread)
    for T, summed in enumerate(accumulate(squared_gradients(case)), start=1):
        yield Inequality(T, summed / T, bound / T, "mean of E|grad E|^2")


def printed(case: Federation) -> float:
    r"""Return :math:`\rho\,E[f(\bar\theta^1) - f^*] + R_0`."""
    first = path(case)[0]
    gap = first.mean(lambda point: float(np.mean(case.objective.value(point.bar)))) - case.lowest
    return case.rho * gap + first.spread
