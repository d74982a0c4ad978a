"""Theorem 4.1: without strong convexity a vanishing ridge leads to the minimum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dualopt.claims import Case, Inequality, claim
from theory._claims import ExpectedVerdict
from theory._problems import hinge_without_ridge, logistic
from theory.dualfl._dual import dual_optimum
from theory.dualfl._regularised import plain_case, with_ridge


def theorem_4_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield enough rounds for the ridge; and a ridge too small for its rounds, where the bound says nothing."""
    for instance in (logistic(mu=0.0), hinge_without_ridge()):
        yield ExpectedVerdict(plain_case(instance, 0.03, 200, accelerated=False))
    if not quick:
        yield ExpectedVerdict(plain_case(logistic(mu=0.0), 0.01, 800, accelerated=False))
    yield ExpectedVerdict(plain_case(logistic(mu=0.0), 0.003, 10, accelerated=False), "vacuous")


@claim(
    source="Park and Xu, Theorem 4.1",
    statement=r"DualFL with rho = 0, nu = alpha on $f_j + \frac\alpha2|\cdot|^2$, E Lipschitz with constant $G$:"
    r" $E(\theta^n) - E^* \le \frac\alpha2(|\theta^*|^2 - |\theta^\alpha|^2)"
    r" + \frac{2G|\xi^\alpha|}{\sqrt N\alpha(n+1)}$, $\xi_j^\alpha \in \partial f_j(\theta^\alpha)$;"
    r" so the error vanishes as $\alpha \to 0$, $\alpha n \to \infty$.",
    assumptions=lambda case: [] if case.algorithm.rho == 0 else ["rho = 0"],
    trivial=lambda case: float(np.mean(case.objective.value(0.0 * case.theta) - case.objective.value(case.theta))),
    cases=theorem_4_1_cases,
)
def theorem_4_1(case: Case) -> Iterator[Inequality]:
    """Compare the error of the plain energy along the run on the regularised problem."""
    ridge, f, alpha = with_ridge(case), case.objective, case.algorithm.nu
    optimum = float(np.mean(f.value(case.theta)))
    bias = 0.5 * alpha * float(np.sum(case.theta**2) - np.sum(ridge.theta**2))
    speed = 2.0 * _lipschitz(f) * float(np.linalg.norm(dual_optimum(ridge))) / (np.sqrt(f.n_clients) * alpha)
    for n, s in enumerate(ridge.snapshots(), start=1):
        yield Inequality(n, float(np.mean(f.value(s.server.theta))) - optimum, bias + speed / (n + 1.0), "E - E*")


def _lipschitz(f: Any) -> float:
    """Return a Lipschitz constant of E, for losses whose slope is at most 1."""
    return float(np.mean([np.sum(w * np.linalg.norm(X, axis=1)) for X, _, w in f.client_rows()]))
