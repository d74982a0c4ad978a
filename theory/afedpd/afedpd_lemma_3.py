"""Lemma 3: how far the local solutions are from each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory._problems import logistic, quadratic
from theory.afedpd._cases import Federation, federation
from theory.afedpd._path import mean_square, path


def lemma_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One active client, some, all."""
    for active in (1, 2, 3):
        yield ExpectedVerdict(federation(quadratic(), rho=100.0, active=active, rounds=10 if quick else 40))
    yield ExpectedVerdict(federation(logistic(), rho=2.0, active=2, rounds=10))


@claim(
    name="afedpd_lemma_3",
    source="Sun, Shen and Tao, Lemma 3, (15)",
    statement=r"$\frac1N\sum_j\mathbb{E}_t|\theta_j^{t+1} - \bar\theta^{t+1}|^2 \le 4R_t$; exactly, it is"
    r" $1 + \frac{N-P}{P(N-1)} \le 2$ times the variance of the $\theta_j^{t+1}$ over the clients, which is at most"
    r" $R_t$.",
    rounding=1e-20,
    rtol=1e-12,
    cases=lemma_3_cases,
)
def lemma_3(case: Federation) -> Iterator[Inequality]:
    """Compare the exact conditional expectation with the printed constant and with the one that sampling has."""
    N, P = case.n_clients, case.active
    sampling = 1.0 + (N - P) / (P * (N - 1))
    for s in path(case):
        apart = s.mean(lambda point, s=s: mean_square(s.all_solutions - point.bar))
        yield Inequality(s.n, apart, 4.0 * s.spread, "as printed")
        variance = mean_square(s.all_solutions - np.mean(s.all_solutions, axis=0))
        yield Inequality(s.n, apart, sampling * variance, "sharp")
