"""P5: the second moment (41) of the drift in the proof of Theorem 3 in the FedPD paper."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dualopt.claims import Inequality
from theory._claims import ExpectedVerdict, Form
from theory.fedpd._drift import drift
from theory.fedpd._instances import equal_hessians, run_on
from theory.fedpd._run import Branch, Run, spread
from theory.fedpd._skipping import skipped_drift
from theory.fedpd.fedpd_theorem_3 import theorem_3


def p5_expectations_in_theorem_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Clients with one Hessian, where G is exact; often and seldom skipped."""
    for p, a in ((0.1, 0.1), (0.3, 0.05)):
        run = run_on("equal Hessians", equal_hessians(), skip=p, a=a, rounds=5 if quick else 8)
        yield ExpectedVerdict(Form(run, printed=True), "violated")
        yield ExpectedVerdict(Form(run, printed=False))


@theorem_3.as_printed(
    source="FedPD (41), Theorem 3",
    statement=r"$\mathbb E(\triangle x_0^r)^2$ for exact local solutions, $a = L\eta$, $C_3 ="
    r" \frac{p(1+a)+a}{1-a}$. Printed: at most $4p^2\eta^2(1+a)^2(2a+p(3+a))^2"
    r"\bigl(\frac{1-C_3^{1/(1-p)}}{1-C_3}\bigr)^2G^2$, which squares an expectation, puts the mean 1/(1-p) for a number"
    r" of rounds, and loses the term that a single skipped round leaves, of order $p\eta^2G^2$. Corrected: at most"
    r" the second moment of the chain in Theorem 3.",
    cases=p5_expectations_in_theorem_3_cases,
)
def p5_expectations_in_theorem_3(form: Form) -> Iterator[Inequality]:
    """Compare the exact second moment, over all outcomes of the coin, with (41) or with the recursion."""
    run: Run = form.case
    G, p = run.dissimilarity, run.skip
    printed = (2.0 * run.eta * G * skipped_drift(p, a=run.a)) ** 2
    corrected = drift(p, a=run.a, h=run.eta * G)
    next(corrected)
    level = [Branch(1.0, run.first())]
    for n in range(run.rounds):
        level = [
            Branch(leaf.probability * branch.probability, branch.state)
            for leaf in level
            for branch in run.branches(leaf.state, n)
        ]
        moment = math.fsum(leaf.probability * spread(leaf.state.clients.x0) ** 2 for leaf in level)
        bound = printed if form.printed else next(corrected).copies
        yield Inequality(n + 1, moment, bound, "E max|x_0i - x_0j|^2")
