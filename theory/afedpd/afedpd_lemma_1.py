"""Lemma 1: how far the mean of the active models moves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory._problems import logistic, quadratic
from theory.afedpd._cases import Federation, federation
from theory.afedpd._path import path


def lemma_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One active client, some, all; duals far from their limits at the start."""
    for active in (1, 2, 3):
        yield ExpectedVerdict(federation(quadratic(), rho=100.0, active=active, rounds=10 if quick else 40))
    yield ExpectedVerdict(federation(logistic(), rho=2.0, active=2, rounds=10))


@claim(
    name="afedpd_lemma_1",
    source="Sun, Shen and Tao, Lemma 1",
    statement=r"$\mathbb{E}_t|\bar\theta^{t+1} - \bar\theta^t|^2 \le R_t ="
    r" \frac1N\sum_j|\theta_j^{t+1} - \bar\theta^t|^2$, the sum over the local solutions of all clients, active or"
    r" not; $\bar\theta^t$ is the mean over the active ones.",
    rounding=1e-20,
    rtol=1e-12,
    cases=lemma_1_cases,
)
def lemma_1(case: Federation) -> Iterator[Inequality]:
    """Compare the exact conditional expectation at every state of a path; equality for one active client."""
    for s in path(case):
        moved = s.mean(lambda point, s=s: float(np.sum((point.bar - s.before.bar) ** 2)))
        yield Inequality(s.n, moved, s.spread, "E|bar^{t+1} - bar^t|^2")
