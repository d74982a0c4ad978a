"""Lemma 4: the energy lies below the augmented Lagrangian."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.objectives.local_problem import client_dot
from theory._claims import ExpectedVerdict
from theory.fedpd._instances import equal_hessians, heterogeneous, nonconvex, penalised, run_on
from theory.fedpd._run import Run, lagrangians


def lemma_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients, exact and inexact."""
    yield ExpectedVerdict(run_on("nonconvex quadratics", nonconvex()))
    yield ExpectedVerdict(run_on("nonconvex quadratics", nonconvex(), skip=0.5, tol=1e-2))
    yield ExpectedVerdict(run_on("quadratics", heterogeneous(), a=0.3))
    yield ExpectedVerdict(run_on("equal Hessians", equal_hessians(), a=0.05))
    yield ExpectedVerdict(run_on("penalised logistic", penalised(), rounds=15 if quick else 60))


@claim(
    name="fedpd_lemma_4",
    source="Zhang et al., Lemma 4, with the factor of its proof, (54)",
    statement=r"With $\varepsilon$ the mean of the squared local residuals, $\frac{1-2L\eta}{2\eta N}\sum_j|x_j^r -"
    r" x_0^r|^2 \le \frac1N\sum_j\mathcal L_j(x_j^r, x_0^r, \lambda_j^r) - E(x_0^r) + \frac{\varepsilon}{2L}$.",
    rounding=1e-9,
    cases=lemma_4_cases,
)
def lemma_4(run: Run, *, as_printed: bool = False) -> Iterator[Inequality]:
    """Compare the squared distance from the model with the Lagrangian's excess over the energy, at the mean copy."""
    factor = (1.0 - 2.0 * run.a) / ((1.0 if as_printed else 2.0) * run.eta)
    for step in run.steps():
        s = step.after.clients
        model = np.broadcast_to(np.mean(s.x0, axis=0), s.x0.shape)
        distance = float(np.mean(client_dot(s.theta - model, s.theta - model)))
        excess = float(np.mean(lagrangians(run, s.theta, model, s.dual) - run.objective.value(model)))
        bound = excess + float(np.mean(step.errors)) / (2.0 * run.L)
        yield Inequality(step.n, factor * distance, bound, "distance between models, squared")
