"""Lemma 3: what averaging may cost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.fedpd._instances import equal_hessians, heterogeneous, nonconvex, penalised, run_on
from theory.fedpd._run import Run, lagrangians, spread


def lemma_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Two clients, where half of the bound is attained, and more; exact and inexact."""
    for skip in (0.0, 0.5):
        yield ExpectedVerdict(run_on("two clients", heterogeneous(2), skip=skip))
        yield ExpectedVerdict(run_on("nonconvex quadratics", nonconvex(), skip=skip))
        yield ExpectedVerdict(run_on("equal Hessians", equal_hessians(), skip=skip, tol=1e-2))
    yield ExpectedVerdict(run_on("penalised logistic", penalised(), rounds=10 if quick else 40))


@claim(
    name="fedpd_lemma_3",
    source="Zhang et al., Lemma 3, (23)",
    statement=r"$\frac1N\sum_j[\mathcal L_j(x_j, \bar x_0, \lambda_j) - \mathcal L_j(x_j, x_{0,j}^+, \lambda_j)] \le"
    r" \frac{N-1}{2N\eta}\max|x_{0,i}^+ - x_{0,j}^+|^2$. It is an equality with the mean of $|x_{0,j}^+ - \bar x_0|^2$"
    r" over $2\eta$, which is at most half of this.",
    rounding=1e-9,
    cases=lemma_3_cases,
)
def lemma_3(run: Run) -> Iterator[Inequality]:
    """Compare the increase of the Lagrangian from the clients' copies, as they are uploaded, to their mean."""
    N = run.objective.n_clients
    for step in run.steps():
        s = step.after.clients
        average = np.broadcast_to(np.mean(step.sent, axis=0), step.sent.shape)
        increase = lagrangians(run, s.theta, average, s.dual) - lagrangians(run, s.theta, step.sent, s.dual)
        bound = (N - 1) / (2.0 * N * run.eta) * spread(step.sent) ** 2
        yield Inequality(step.n, float(np.mean(increase)), bound, "increase of the mean Lagrangian")
