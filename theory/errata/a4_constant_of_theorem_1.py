r"""A4: the constants of Theorem 1 in the A-FedPD paper.

The last steps of its proof take :math:`q = \rho/(32L^2)`, which leaves the coefficient :math:`\frac1{2\rho} -
\frac1{8\rho} = \frac3{8\rho}` in front of the squared gradient, and replace it by the larger :math:`\frac1\rho`; and
:math:`R_0`, a squared length, is added to :math:`\rho E`, a squared gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory.afedpd._cases import federation
from theory.afedpd._instances import one_client
from theory.afedpd.afedpd_theorem_1 import theorem_1
from theory.errata.a1_range_of_rho import a1_range_of_rho


def a4_constant_of_theorem_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Curvature 10, where the length does not hide the missing factor."""
    f = one_client(10.0)
    for factor in (2.5, 10.0):
        for printed in (True, False):
            case = federation(f, rho=factor * f.L, active=1, rounds=200)
            yield ExpectedVerdict(Form(case, printed), "violated" if printed else "holds")


@theorem_1.as_printed(
    source="A-FedPD Theorem 1, (8)",
    statement=r"One client $Lx^2/2$, exact local solutions, $\rho > 2L$. Printed:"
    r" $\frac1T\sum_{t=1}^T|\nabla E(\bar\theta^t)|^2 \le \frac1T(\rho[E(\bar\theta^1) - E^*] + R_0)$. Corrected: the"
    r" bound of afedpd_theorem_1, about $2\rho[E(\theta^0) - E^*] + 2\rho^2R_0$ for large $\rho$.",
    cases=a4_constant_of_theorem_1_cases,
)
def a4_constant_of_theorem_1(form: Form) -> Iterable[Inequality]:
    """Compare with either bound, as for the range of rho."""
    return a1_range_of_rho(form)
