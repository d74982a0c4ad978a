"""P1: the constant C2 of Theorem 1 in the FedPD paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from dualopt.claims import Inequality
from dualopt.objectives import Quadratic
from theory._claims import ExpectedVerdict, Form
from theory.fedpd._instances import run_on
from theory.fedpd._run import Run
from theory.fedpd.fedpd_theorem_1 import compare_printed, theorem_1


def flat(L: float, eta: float) -> Run:
    """Return FedPD on two clients that share a quadratic with curvature ``L``, far from its minimum."""
    f = Quadratic(A=L * np.ones((2, 1, 1)), b=np.zeros((2, 1)))
    return run_on(f"L = {L:g}, eta = {eta:g}", f, a=L * eta, rounds=400, theta0=np.ones(1))


def p1_scale_of_constants_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield small curvature, where the printed constant is too small, and a large one, where it is not."""
    for L, eta in ((0.01, 0.3), (0.05, 0.3)):
        yield ExpectedVerdict(Form(flat(L, eta), printed=True), "violated")
        yield ExpectedVerdict(Form(flat(L, eta), printed=False))
    yield ExpectedVerdict(Form(flat(1.0, 0.2), printed=True))


@theorem_1.as_printed(
    source="FedPD Theorem 1, Appendix B-C and (44)",
    statement=r"$\frac1T\sum_{r<T}|\nabla E(x_0^r)|^2 \le \frac{C_2}{T}(E(x^0) - E^*) + C_4\varepsilon_1$. Printed:"
    r" $C_2 = 4L^2C_7$, which the step after (44) allows for $4L^2 \ge 2$ only. Corrected: $C_2 = \max\{4L^2, 2\}C_7$.",
    rounding=0.0,
    cases=p1_scale_of_constants_cases,
)
def p1_scale_of_constants(form: Form) -> Iterable[Inequality]:
    """Compare with either constant."""
    return compare_printed(form.case, repaired=not form.printed)
