"""P3: the factor of Lemma 4, and (35), in the FedPD paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dualopt.claims import Inequality
from dualopt.objectives.local_problem import client_dot
from theory._claims import ExpectedVerdict, Form
from theory.fedpd import fedpd_lemma_4
from theory.fedpd._instances import heterogeneous, nonconvex, run_on
from theory.fedpd._run import Run, spread
from theory.fedpd.fedpd_lemma_4 import lemma_4


class Averaging(NamedTuple):
    """A run in which (35) is looked at; ``part`` says which of its two relations."""

    name: str
    run: Run
    part: str


def p3_factor_of_lemma_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the lemma, then the two relations of (35), the second with a step of 15."""
    yield ExpectedVerdict(Form(run_on("Lemma 4", heterogeneous(), rounds=10), printed=True), "violated")
    yield ExpectedVerdict(Form(run_on("Lemma 4", heterogeneous(), rounds=10), printed=False))
    flat = run_on("", nonconvex(2, L=0.01), rounds=10)
    for part in ("first", "second"):
        case = Averaging(f"(35), {part} relation, eta = {flat.eta:.3g}", flat, part)
        yield ExpectedVerdict(Form(case, printed=True), "violated")
        yield ExpectedVerdict(Form(case, printed=False))


@lemma_4.as_printed(
    source="FedPD Lemma 4, (24), and (35)",
    statement=r"Lemma 4. Printed: $E(x_0) \le \mathcal L - \frac{1-2L\eta}{\eta}\cdots$. Corrected, as in its"
    r" proof: $\frac{1-2L\eta}{2\eta}$. In (35), where $\delta$, $\delta^+$, $\delta^a$ are the mean squared"
    r" distances from $x_{0,j}^r$ to $x_{0,j}^{r+1}$, from $x_{0,j}^r$ to $x_{0,j}^{r+}$, and from there to"
    r" $x_{0,j}^{r+1}$. Printed: $\delta = 2\delta^+ + 2\delta^a$, $2\delta^a \le \frac{N-1}{\eta N}\triangle^2$."
    r" Corrected: $\delta \le 2\delta^+ + 2\delta^a$, $2\delta^a \le \frac{2(N-1)}{N}\triangle^2$.",
    rounding=0.0,
    cases=p3_factor_of_lemma_4_cases,
)
def p3_factor_of_lemma_4(form: Form) -> Iterator[Inequality]:
    """Compare what Lemma 4 or (35) relates, round by round."""
    if isinstance(form.case, Run):
        yield from fedpd_lemma_4.lemma_4(form.case, as_printed=form.printed)
        return
    run, part = form.case.run, form.case.part
    N = run.objective.n_clients
    for step in run.steps():
        old, new = step.before.clients.x0, step.after.clients.x0
        moves = (old - new, old - step.sent, step.sent - new)
        whole, to_sent, averaged = (float(np.mean(client_dot(move, move))) for move in moves)
        split = 2.0 * to_sent + 2.0 * averaged
        if part == "first" and form.printed:
            yield Inequality(step.n, abs(whole - split), 1e-9 * whole, "difference of the two sides")
        elif part == "first":
            yield Inequality(step.n, whole, split, "squared move of the copies")
        else:
            limit = (N - 1) / N * spread(step.sent) ** 2
            bound = limit / run.eta if form.printed else 2.0 * limit
            yield Inequality(step.n, 2.0 * averaged, bound, "squared move by averaging")
