"""Lemma 2: how fast clients drift apart when rounds are skipped, with the matrix corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from dualopt.engine import State
from theory._claims import ExpectedVerdict
from theory.fedpd._assumptions import similar
from theory.fedpd._drift import matrix, offset
from theory.fedpd._instances import concave, equal_hessians, logistic, penalised, run_on
from theory.fedpd._run import Run, spread


def lemma_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield clients with one Hessian, logistic losses with G from the data, and a state where the lemma is attained."""
    for p in (0.1, 0.9):
        yield ExpectedVerdict(run_on("equal Hessians", equal_hessians(), skip=p))
        yield ExpectedVerdict(run_on("ten clients, equal Hessians", equal_hessians(10), skip=p))
        yield ExpectedVerdict(concave(p=p))
    yield ExpectedVerdict(run_on("equal Hessians", equal_hessians(), skip=0.5, tol=1e-2))
    for name, f in (("logistic", logistic()), ("penalised logistic", penalised())):
        yield ExpectedVerdict(run_on(name, f, rounds=8 if quick else 40, skip=0.5))


@claim(
    name="fedpd_lemma_2",
    source="Zhang et al., Lemma 2, (22), with the matrix of its proof, (52)",
    statement=r"Under A4, with $\triangle = (\max|x_{0,i} - x_{0,j}|, \max|x_i - x_j|)$ and $a = L\eta < 1$:"
    r" $\mathbb E\triangle^{r+1} \le \frac{1}{1-a}(A\triangle^r + \eta B(G + 2\sqrt{\varepsilon_1}))$,"
    r" $A = (p(1+a), 1)^\top(1, a)$, $B = (p(3+a), 2)^\top$.",
    assumptions=similar,
    rtol=1e-12,
    cases=lemma_2_cases,
)
def lemma_2(run: Run, *, as_printed: bool = False) -> Iterator[Inequality]:
    """Compare the drift that is expected after one round, both sides of the coin, from every state of a path."""
    a, p = run.a, run.skip
    A, B = matrix(p, a, as_printed=as_printed), offset(p, a)
    for step in run.steps():
        G = run.dissimilarity + 2.0 * math.sqrt(step.accuracy)
        bound = (A @ drift_of(step.before) + run.eta * B * G) / (1.0 - a)
        branches = run.branches(step.before, step.n)
        expected = np.sum([branch.probability * drift_of(branch.state) for branch in branches], axis=0)
        for measured, limit, what in zip(expected, bound, ("copies", "models"), strict=True):
            yield Inequality(step.n, float(measured), float(limit), f"distance between {what}")


def drift_of(state: State) -> np.ndarray:
    """Return the largest distances between two copies of the global model, and between two models."""
    return np.array([spread(state.clients.x0), spread(state.clients.theta)])
