"""P2: the matrix A of Lemma 2 in the FedPD paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory.fedpd import fedpd_lemma_2
from theory.fedpd._drift import matrix
from theory.fedpd._instances import concave
from theory.fedpd._run import Run
from theory.fedpd.fedpd_lemma_2 import lemma_2


class Entries(NamedTuple):
    """Where the matrix is evaluated."""

    name: str
    p: float
    a: float


def p2_matrix_of_lemma_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the numbers that are stated, and a run on which the lemma is attained."""
    for case in (Entries("eigenvalues, p = 0.5, L eta = 0.2", 0.5, 0.2), concave(p=0.5)):
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@lemma_2.as_printed(
    source="FedPD Lemma 2, (22)",
    statement=r"$\mathbb E\triangle^{r+1} \le \frac{1}{1-a}(A\triangle^r + \eta B(G + 2\sqrt{\varepsilon_1}))$, $a ="
    r" L\eta$, where A has rank one and the eigenvalues 0 and $a + p(1+a)$. Printed: $A_{12} = pa(1-a)$, with which it"
    r" has rank two and is too small. Corrected: $A_{12} = p(1+a)a$, as in (52).",
    rounding=0.0,
    rtol=1e-12,
    cases=p2_matrix_of_lemma_2_cases,
)
def p2_matrix_of_lemma_2(form: Form) -> Iterator[Inequality]:
    """Compare the drift of a run with the lemma, or the eigenvalues with those that the paper states."""
    case = form.case
    if isinstance(case, Run):
        yield from fedpd_lemma_2.lemma_2(case, as_printed=form.printed)
        return
    least, largest = sorted(np.linalg.eigvals(matrix(case.p, case.a, as_printed=form.printed)), key=abs)
    yield Inequality(0, float(abs(least)), 1e-12, "smaller eigenvalue")
    yield Inequality(0, float(abs(largest - case.a - case.p * (1.0 + case.a))), 1e-12, "error of the larger eigenvalue")
