"""Theorem 1 with the range of rho that can be proved at full participation, and explicit constants."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory._problems import indefinite, logistic, penalised_logistic, quadratic
from theory.afedpd._cases import Federation, federation
from theory.afedpd._instances import two_signs
from theory.afedpd._path import path
from theory.afedpd._potential import full_participation, gradient_constant, squared_gradient


def theorem_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients; outside the range, and with clients missing, nothing is proved."""
    rounds = 400 if quick else 1000
    for f in (two_signs(), indefinite(), quadratic(), logistic(), penalised_logistic()):
        yield ExpectedVerdict(federation(f, rho=3.0 * f.L, active=f.objective.n_clients, rounds=rounds))
    f = two_signs()
    yield ExpectedVerdict(federation(f, rho=1.2, active=2, rounds=10), "outside assumptions")
    yield ExpectedVerdict(
        federation(indefinite(), rho=3.0 * indefinite().L, active=2, rounds=10), "outside assumptions"
    )


@claim(
    name="afedpd_theorem_1",
    source="Sun, Shen and Tao, Theorem 1 (full participation, corrected)",
    statement=r"$P = N$, exact local solutions, L-smooth $f_j$, $\rho > 2L$:"
    r" $\frac1T\sum_{t=1}^T|\nabla E(\bar\theta^t)|^2 \le \frac1T\bigl(C[E(\theta^0) - E^*"
    r" + \frac{\rho+L}2R_0] + (L^2+\rho^2)R_0\bigr)$ with"
    r" $C = 2\rho + \frac{2L^2(L^2+\rho^2)}{\rho(\rho-2L)(\rho+L)}$,"
    r" $R_0 = \frac1N\sum_j|\theta_j^1 - \theta^0|^2$.",
    assumptions=full_participation,
    trivial=lambda case: float(np.sum(np.mean(case.objective.gradient(case.theta0), axis=0) ** 2)),
    cases=theorem_1_cases,
)
def theorem_1(case: Federation) -> Iterator[Inequality]:
    """Compare the mean of the squared gradients with the bound, for every number of rounds."""
    steps = path(case)
    bound = total(case, steps[0].spread)
    for T, summed in enumerate(accumulate(squared_gradient(case, s.chosen) for s in steps), start=1):
        yield Inequality(T, summed / T, bound / T, "mean of |grad E|^2")


def total(case: Federation, first: float) -> float:
    r"""Bound the sum of all squared gradients; ``first`` is :math:`R_0`."""
    rho, L = case.rho, case.L
    gap = float(np.mean(case.objective.value(case.theta0))) - case.lowest
    return gradient_constant(rho, L) * (gap + 0.5 * (rho + L) * first) + (L**2 + rho**2) * first
