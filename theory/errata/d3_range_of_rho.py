"""D3: the range of rho in Theorem 3.3 of the DualFL paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory._problems import digits, quadratic
from theory.dualfl._assumptions import linear_regime
from theory.dualfl._dual import trivial
from theory.dualfl._methods import exact
from theory.dualfl.theorem_3_3 import theorem_3_3


def d3_range_of_rho_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the end point that is too much, the other one, and the tuned value on pixels in [0, 1]."""
    f = quadratic()
    yield ExpectedVerdict(Form(f.case(exact(f, rho=0.0), 40, "rho = 0"), printed=True), "vacuous")
    yield ExpectedVerdict(Form(f.case(exact(f), 40, "rho = nu/L"), printed=False))
    tuned = digits().case(exact(digits(), rho=3e-3), 1, "rho = 3e-3")
    yield ExpectedVerdict(Form(tuned, printed=True), "outside assumptions")


@theorem_3_3.as_printed(
    source="DualFL Theorem 3.3 and Table 2",
    statement=r"For every rho of the range, $E_d(\xi^n) - E_d^* \le (1-\sqrt\rho)^{n-1}|\xi^*|^2/(2\nu)$ says that the"
    r" method converges. Printed: $[0, \nu/L]$, where rho = 0 gives the rate 1. Corrected: $(0, \nu/L]$."
    r" The rho = 3e-3 of Table 2 may lie outside either.",
    assumptions=lambda form: linear_regime(form.case),
    trivial=lambda form: trivial(form.case),
    cases=d3_range_of_rho_cases,
)
def d3_range_of_rho(form: Form) -> Iterable[Inequality]:
    """Compare as in Theorem 3.3."""
    return theorem_3_3(form.case)
