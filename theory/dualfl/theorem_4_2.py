"""Theorem 4.2, estimate (4.5): the gradient of the plain energy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from theory._claims import ExpectedVerdict
from theory._problems import flat_quadratic, logistic
from theory.dualfl._dual import dual_optimum
from theory.dualfl._regularised import plain_case, with_ridge


def factor(case: Case, ridge: Case) -> float:
    r"""Return the constant in front of :math:`(1-\sqrt\rho)^{n/2}`; it depends on alpha."""
    f, nu = case.objective, case.algorithm.nu
    size = float(np.linalg.norm(dual_optimum(ridge)))
    return float(np.max(f.L)) * size / (nu * np.sqrt(f.n_clients * (1.0 - np.sqrt(case.algorithm.rho))))


def parameters(case: Case) -> list[str]:
    """Rho is the one of the theorem."""
    alpha, L = case.algorithm.nu, float(np.max(case.objective.L))
    return [] if abs(case.algorithm.rho * (L + alpha) / alpha - 1.0) <= 1e-9 else ["rho = alpha/(L + alpha)"]


def theorem_4_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Singular quadratics and logistic regression without a ridge."""
    for alpha, rounds in ((0.1, 150), (0.01, 1000)):
        yield ExpectedVerdict(plain_case(flat_quadratic(), alpha, rounds, accelerated=True))
    for alpha, rounds in [(0.1, 150)] if quick else [(0.1, 150), (0.01, 600)]:
        yield ExpectedVerdict(plain_case(logistic(mu=0.0), alpha, rounds, accelerated=True))


@claim(
    source="Park and Xu, Theorem 4.2, (4.5)",
    statement=r"DualFL with $\rho = \alpha/(L+\alpha)$, $\nu = \alpha$ on $f_j + \frac\alpha2|\cdot|^2$:"
    r" $|\nabla E(\theta^n) + \alpha\theta^\alpha| \le C (1-\sqrt\rho)^{n/2}$,"
    r" hence $|\nabla E(\theta^n)| \le C (1-\sqrt\rho)^{n/2} + \alpha|\theta^\alpha|$,"
    r" $C = \frac{L|\xi^\alpha|}{\alpha\sqrt{N(1-\sqrt\rho)}}$, $\xi_j^\alpha = \nabla f_j(\theta^\alpha)$.",
    assumptions=parameters,
    rounding=1e-9,
    trivial=lambda case: float(np.linalg.norm(np.mean(case.objective.gradient(0.0 * case.theta), axis=0))),
    cases=theorem_4_2_cases,
)
def theorem_4_2(case: Case) -> Iterator[Inequality]:
    """Compare the plain gradient with its limit (4.7), which gives (4.5) by the triangle inequality."""
    ridge, f, alpha = with_ridge(case), case.objective, case.algorithm.nu
    C, rate = factor(case, ridge), np.sqrt(1.0 - np.sqrt(case.algorithm.rho))
    for n, s in enumerate(ridge.snapshots(), start=1):
        difference = np.mean(f.gradient(s.server.theta), axis=0) + alpha * ridge.theta
        yield Inequality(n, float(np.linalg.norm(difference)), float(C * rate**n), "|grad E + alpha theta^alpha|")
