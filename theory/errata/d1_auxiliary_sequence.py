"""D1: equation (6.9b) and the last lines of the proof of Lemma 6.5 in the DualFL paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory._problems import quadratic
from theory.dualfl._methods import exact
from theory.dualfl.lemma_6_5 import lemma_6_5


def d1_auxiliary_sequence_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Either form along the same run."""
    f = quadratic()
    case = f.case(exact(f, rho=0.9 / f.L, nu=0.9), 25)
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


@lemma_6_5.as_printed(
    source="DualFL (6.9b)",
    statement=r"The $\eta^n$ of (6.9b) are FISTA's. Printed with $\theta_j$:"
    r" $\nu(\zeta_j^{n+1} - (1+\beta_n)\theta_j^{n+1} + \beta_n\theta_j^n)$. Corrected, with the server's model:"
    r" $\nu(\zeta_j^{n+1} - (1+\beta_n)\theta^{n+1} + \beta_n\theta^n)$; and $+\nu\beta_n\theta^n$ in the last line.",
    rounding=0.0,
    cases=d1_auxiliary_sequence_cases,
)
def d1_auxiliary_sequence(form: Form) -> Iterable[Inequality]:
    """Compare either form along a run of FISTA."""
    return lemma_6_5(form.case, as_printed=form.printed)
