"""D1: equation (6.9b) and the last lines of the proof of Lemma 6.5 in the DualFL paper."""

from __future__ import annotations

from collections.abc import Iterator

from dualopt.claims import Claim
from theory._claims import Expectation
from theory._instances import quadratic
from theory.dualfl._methods import exact
from theory.dualfl.lemma_6_5 import compare
from theory.errata._form import Form

CLAIM = Claim(
    name="d1_auxiliary_sequence",
    source="DualFL (6.9b)",
    statement=r"The $\eta^n$ of (6.9b) are FISTA's. Printed with $\theta_j$:"
    r" $\nu(\zeta_j^{n+1} - (1+\beta_n)\theta_j^{n+1} + \beta_n\theta_j^n)$. Corrected, with the server's model:"
    r" $\nu(\zeta_j^{n+1} - (1+\beta_n)\theta^{n+1} + \beta_n\theta^n)$; and $+\nu\beta_n\theta^n$ in the last line.",
    compare=lambda form: compare(form.case, as_printed=form.printed),
    rounding=0.0,
)


def cases(quick: bool) -> Iterator[Expectation]:
    """Either form along the same run."""
    f = quadratic()
    case = f.case(exact(f, rho=0.9 / f.L, nu=0.9), 25)
    yield Expectation(Form(case, printed=True), "violated")
    yield Expectation(Form(case, printed=False))
