r"""A8: Lemma 2 of the A-FedPD paper for clients that were idle.

Its proof needs :math:`\lambda_j^t = -\nabla f_j(\theta_j^t)` up to :math:`\epsilon` for all clients. After a virtual
update nothing of the kind holds, however exact the local solutions are; the proof of Theorem 1 therefore covers full
participation only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory.afedpd._cases import federation
from theory.afedpd._instances import pulled_apart
from theory.afedpd._path import mean_square, path
from theory.afedpd.afedpd_lemma_2 import centred, drift, lemma_2, q, residuals


def a8_idle_clients_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One of three clients, and two of eight."""
    for n, active in ((3, 1), (8, 2)):
        case = federation(pulled_apart(n), rho=3.0, active=active, rounds=40)
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@lemma_2.as_printed(
    source="A-FedPD Lemma 2 under partial participation",
    statement=r"Exact local solutions, $P < N$: $(1 - 4L^2/\rho^2)R_t \le \frac{8L^2}{\rho^2}J_t +"
    r" \frac4{\rho^2}|\nabla E(\bar\theta^t)|^2 + \frac4{\rho^2}e^2$ (the factor of the gradient as in A2). Printed:"
    r" $e^2 = \epsilon = 0$. Corrected: $e^2$ is the variance over the clients of $\nabla f_j(\theta_j^t) +"
    r" \lambda_j^t$, which virtual updates do not make small.",
    rounding=1e-20,
    cases=a8_idle_clients_cases,
)
def a8_idle_clients(form: Form) -> Iterator[Inequality]:
    """Compare from the second round on; the start has its own duals."""
    case = form.case
    for s in path(case)[1:]:
        gradient = float(np.sum(np.mean(case.objective.gradient(s.before.bar), axis=0) ** 2))
        errors = 0.0 if form.printed else mean_square(s.residual - centred(residuals(case, s)))
        bound = 2.0 * q(case) * drift(s) + 4.0 * (gradient + errors) / case.rho**2
        yield Inequality(s.n, (1.0 - q(case)) * s.spread, bound, "(1 - 4 L^2/rho^2) R_t")
