"""P4: the factors of FedAvg on f = x^2 and f = -x^2 in Appendix A of the FedPD paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.objectives import Quadratic
from theory._claims import ExpectedVerdict, Form
from theory.fedpd._local_steps import LocalSteps, Vanishing


class Factors(NamedTuple):
    """FedAvg with Q steps of length eta on the two clients."""

    name: str
    eta: float
    steps: int


def p4_factors_of_fedavg_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two steps and more; the conclusion, divergence, is the same."""
    for eta, steps in ((0.1, 2), (0.05, 6)):
        case = Factors(f"eta = {eta:g}, Q = {steps}", eta, steps)
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@claim(
    source="FedPD Appendix A, (14)",
    statement=r"On $f_1 = x^2$, $f_2 = -x^2$ a round of FedAvg multiplies the model by $\frac12((1-c\eta)^Q +"
    r" (1+c\eta)^Q)$, which exceeds 1 for $Q \ge 2$. Printed: c = 1. Corrected: c = 2.",
    rounding=0.0,
    corrects="Appendix A",
    cases=p4_factors_of_fedavg_cases,
)
def p4_factors_of_fedavg(form: Form) -> Iterator[Inequality]:
    """Compare the factor of a round, after one step and after all, with the mean of the two clients' factors."""
    case, rate = form.case, 1.0 if form.printed else 2.0
    f = Quadratic(A=np.array([[[2.0]], [[-2.0]]]), b=np.zeros((2, 1)))
    run = LocalSteps(
        name=case.name,
        objective=f,
        schedule=Vanishing(case.eta),
        steps=case.steps,
        rounds=5,
        G=np.inf,
        start=np.ones(1),
    )
    stated = 0.5 * ((1.0 - rate * case.eta) ** case.steps + (1.0 + rate * case.eta) ** case.steps)
    for n, _, means in run.run():
        factor = float(means[-1][0] / means[0][0])
        yield Inequality(n, abs(factor - stated), 1e-12 * stated, "error of the factor")
        yield Inequality(n, 1.0, factor, "1 and the factor")
