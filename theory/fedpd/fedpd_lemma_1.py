"""Lemma 1: the augmented Lagrangian of a client decreases."""

from __future__ import annotations

from collections.abc import Iterator

from dualopt.claims import Inequality, claim
from dualopt.objectives.local_problem import client_dot
from theory._claims import ExpectedVerdict
from theory.fedpd._instances import equal_hessians, heterogeneous, nonconvex, penalised, run_on
from theory.fedpd._run import Run, lagrangians


def lemma_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients, exact and inexact, with and without skipped rounds."""
    for skip in (0.0, 0.5):
        yield ExpectedVerdict(run_on("nonconvex quadratics", nonconvex(), skip=skip))
        yield ExpectedVerdict(run_on("quadratics", heterogeneous(), a=0.3, skip=skip))
        yield ExpectedVerdict(run_on("equal Hessians", equal_hessians(), skip=skip))
    yield ExpectedVerdict(run_on("nonconvex quadratics", nonconvex(), tol=1e-2, skip=0.5))
    yield ExpectedVerdict(run_on("penalised logistic", penalised(), rounds=15 if quick else 60, skip=0.5))
    yield ExpectedVerdict(run_on("quadratics", heterogeneous(), a=2.0))  # A1 is all that is assumed


@claim(
    name="fedpd_lemma_1",
    source="Zhang et al., Lemma 1, (21)",
    statement=r"If $|\nabla_{x_j}\mathcal L_j(x_j^{r+1}, x_{0,j}^r, \lambda_j^r)|^2 \le \varepsilon_j$, then"
    r" $\frac{1-2L\eta}{2\eta}|x_j^{r+1} - x_j^r|^2 + \frac{1}{2\eta}|x_{0,j}^{r+} - x_{0,j}^r|^2 \le \mathcal L_j^r -"
    r" \mathcal L_j^{r+} + \eta|\lambda_j^{r+1} - \lambda_j^r|^2 + \frac{\varepsilon_j}{2L}$.",
    rounding=1e-9,
    cases=lemma_1_cases,
)
def lemma_1(run: Run) -> Iterator[Inequality]:
    """Compare, client by client, the squared steps with the decrease of the Lagrangian that must pay for them."""
    eta, L = run.eta, run.L
    for step in run.steps():
        old, new = step.before.clients, step.after.clients
        decrease = lagrangians(run, old.theta, old.x0, old.dual) - lagrangians(run, new.theta, step.sent, new.dual)
        moved, copied, turned = new.theta - old.theta, step.sent - old.x0, new.dual - old.dual
        paid = (1.0 - 2.0 * run.a) / (2.0 * eta) * client_dot(moved, moved) + client_dot(copied, copied) / (2.0 * eta)
        available = decrease + eta * client_dot(turned, turned) + step.errors / (2.0 * L)
        for j, (measured, bound) in enumerate(zip(paid, available, strict=True)):
            yield Inequality(step.n, float(measured), float(bound), f"squared steps of client {j}")
