r"""A6: the bound of the larger root :math:`x_+` in the proof of Theorem 2 of the A-FedPD paper."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory.afedpd.afedpd_theorem_2 import theorem_2


class Coefficients(NamedTuple):
    """Rho, L, and ``steps`` for the step length times K."""

    name: str
    rho: float
    L: float
    steps: float


def a6_larger_root_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Smoothness constants below and above 1: the printed bound is wrong for the small one only."""
    small, large = Coefficients("L = 0.1", 0.1, 0.1, 1.0), Coefficients("L = 10", 10.0, 10.0, 0.01)
    yield ExpectedVerdict(Form(small, printed=True), "violated")
    for case in (small, large):
        yield ExpectedVerdict(Form(case, printed=False))


@theorem_2.as_printed(
    source="A-FedPD Appendix B.3.2",
    statement=r"The larger root of $Lx^2 - \rho x - (L + \rho + \frac1{\eta K})$ is at most $1 + \frac\rho L + c$."
    r" Printed: $c = 2\sqrt{L/(\eta K)}$, which has a dimension. Corrected: $c = 1/\sqrt{L\eta K}$.",
    cases=a6_larger_root_cases,
)
def a6_larger_root(form: Form) -> Iterator[Inequality]:
    """Compare the root of the polynomial with either bound."""
    _, rho, L, steps = form.case
    root = max(np.roots([L, -rho, -(L + rho + 1.0 / steps)]).real)
    last = 2.0 * math.sqrt(L / steps) if form.printed else 1.0 / math.sqrt(L * steps)
    yield Inequality(0, float(root), 1.0 + rho / L + last, "x_+")
