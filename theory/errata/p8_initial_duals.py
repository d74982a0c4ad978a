"""P8: Theorem 1 of the FedPD paper measures the start by the energy alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory.fedpd._instances import heterogeneous, nonconvex, run_on
from theory.fedpd.fedpd_theorem_1 import compare_printed, theorem_1


def p8_initial_duals_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Clients that disagree, from the minimiser of their mean."""
    for name, f in (("quadratics", heterogeneous()), ("nonconvex quadratics", nonconvex())):
        run = run_on(f"{name}, from the minimiser", f, rounds=30, theta0=f.minimiser())
        yield ExpectedVerdict(Form(run, printed=True), "violated")
        yield ExpectedVerdict(Form(run, printed=False))


@theorem_1.as_printed(
    source="FedPD Theorem 1, (26) at r = 1",
    statement=r"From duals zero, $\frac1T\sum_{r<T}|\nabla E(x_0^r)|^2$ is bounded, for exact local solutions."
    r" Printed: by $\frac{C_2}{T}(E(x^0) - E^*)$, so that a run from the minimiser stays there; (26)"
    r" takes $\lambda_j^0 = -\nabla f_j(x_j^0)$. Corrected: a multiple of"
    r" $\frac1N\sum_j|\nabla f_j(x^0)|^2$ is added.",
    rounding=0.0,
    cases=p8_initial_duals_cases,
)
def p8_initial_duals(form: Form) -> Iterable[Inequality]:
    """Compare with the bound from the energy alone, or with that of the theorem."""
    return compare_printed(form.case, repaired=True) if form.printed else theorem_1(form.case)
