r"""A3: Theorem 1 of the A-FedPD paper for one active client.

With :math:`P = 1`, :math:`\bar\theta^{t+1}` is the solution of the active client, so every dual changes by the same
vector and duals that start equal stay equal. They cannot become the :math:`-\nabla f_j(\theta^*)`, which differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import numpy as np

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory.afedpd._cases import federation
from theory.afedpd._instances import pulled_apart
from theory.afedpd._moments import squared_gradients
from theory.afedpd._path import path
from theory.afedpd.afedpd_theorem_1 import theorem_1, total


def a3_one_active_client_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One active client of three, then two and three."""
    f = pulled_apart(3)
    yield ExpectedVerdict(Form(federation(f, rho=4.0, active=1, rounds=500), printed=True), "violated")
    for active in (2, 3):
        yield ExpectedVerdict(Form(federation(f, rho=4.0, active=active, rounds=500), printed=False))


@theorem_1.as_printed(
    source="A-FedPD Theorem 1",
    statement=r"The mean of $\mathbb{E}|\nabla E(\bar\theta^t)|^2$ over T rounds is $O(1/T)$ on convex quadratics that"
    r" pull apart (checked with the constants of afedpd_theorem_1). Printed: for every P. Corrected: for $P \ge 2$;"
    r" with one active client all duals stay equal.",
    rounding=1e-13,
    cases=a3_one_active_client_cases,
)
def a3_one_active_client(form: Form) -> Iterator[Inequality]:
    """Compare exact expectations with the bound of full participation, and the duals with their limits."""
    case = form.case
    steps = path(case)
    bound = total(case, steps[0].spread)
    for T, summed in enumerate(accumulate(squared_gradients(case)), start=1):
        yield Inequality(T, summed / T, bound / T, "mean of E|grad E|^2")
    wrong = steps[-1].chosen.duals + case.objective.gradient(case.theta)
    yield Inequality(case.rounds, float(np.max(np.abs(wrong))), 1e-6, "distance of the duals from -grad f_j")
