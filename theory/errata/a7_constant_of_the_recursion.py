r"""A7: the constant :math:`\mu` in Theorem 2 of the A-FedPD paper.

The recursion needs :math:`\alpha - \frac1\rho \ge \frac{\alpha + (1+\alpha\rho)\eta K}{1 + (1+\alpha\rho)\eta KL}` for
the step of every round; it is equivalent to :math:`\alpha\rho \ge x_+(\eta)`, which grows without limit as
:math:`\eta^t = \eta_0/(t+1)` falls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory.afedpd._stability import larger_root
from theory.afedpd.afedpd_theorem_2 import theorem_2


class Decay(NamedTuple):
    """Rho, L, the first step times K, and the number of rounds."""

    name: str
    rho: float
    L: float
    steps: float
    rounds: int


def a7_constant_of_the_recursion_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Ten rounds."""
    case = Decay("ten rounds", 2.0, 1.0, 0.3, 10)
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


@theorem_2.as_printed(
    source="A-FedPD Theorem 2, (11)",
    statement=r"With $\eta^t = \eta_0/(t+1)$ and $\mu = \gamma\eta_0K$, $\gamma = 1 + x_+$, the recursion of Theorem 2"
    r" is valid for all $t < T$. Printed: $\mu$ does not depend on T, so $x_+ = x_+(\eta_0)$. Corrected:"
    r" $x_+ = x_+(\eta_0/T)$, which grows like $\sqrt T$, and so does the exponent $\mu L$.",
    rtol=1e-12,
    cases=a7_constant_of_the_recursion_cases,
)
def a7_constant_of_the_recursion(form: Form) -> Iterator[Inequality]:
    """Compare both sides of the condition in every round."""
    _, rho, L, steps, T = form.case
    x = larger_root(rho, L, steps if form.printed else steps / T)
    for t in range(T):
        now = steps / (t + 1)
        left = (x / rho + (1.0 + x) * now) / (1.0 + (1.0 + x) * now * L)
        yield Inequality(t, left, (x - 1.0) / rho, "condition on alpha")
