"""A2: the factor of the gradient in Lemma 2 of the A-FedPD paper, which has the wrong dimension."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory.afedpd._cases import federation
from theory.afedpd._instances import one_client
from theory.afedpd._path import mean_square, path
from theory.afedpd.afedpd_lemma_2 import centred, drift, lemma_2, q, residuals


def a2_gradient_in_lemma_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One client of curvature 0.1."""
    f = one_client(0.1)
    for printed in (True, False):
        yield ExpectedVerdict(
            Form(federation(f, rho=3.0 * f.L, active=1, rounds=20), printed), "violated" if printed else "holds"
        )


@lemma_2.as_printed(
    source="A-FedPD Lemma 2, (14)",
    statement=r"$(1 - 4L^2/\rho^2)R_t \le \frac{8L^2}{\rho^2}J_t + c|\nabla E(\bar\theta^t)|^2 + $ errors of local"
    r" solutions. Printed: $c = 4L^2/\rho^2$, which is not invariant under scaling of f. Corrected: $c = 4/\rho^2$, as"
    r" in Lemma 11 of the FedDyn paper.",
    rounding=1e-20,
    cases=a2_gradient_in_lemma_2_cases,
)
def a2_gradient_in_lemma_2(form: Form) -> Iterator[Inequality]:
    """Compare along a run; the residuals are counted in either form, so that the factor alone differs."""
    case = form.case
    for s in path(case):
        gradient = float(np.sum(np.mean(case.objective.gradient(s.before.bar), axis=0) ** 2))
        errors = 4.0 * mean_square(s.residual - centred(residuals(case, s))) / case.rho**2
        factor = q(case) if form.printed else 4.0 / case.rho**2
        yield Inequality(s.n, (1.0 - q(case)) * s.spread, 2.0 * q(case) * drift(s) + factor * gradient + errors)
