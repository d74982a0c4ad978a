"""Theorem 3.2: without smoothness the squared distance falls like 1/n^2."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from theory._claims import ExpectedVerdict
from theory._problems import absolute_deviation, breast_cancer, breast_cancer_hinge, hard_quadratic, hinge, quadratic
from theory.dualfl._assumptions import sublinear_regime
from theory.dualfl._dual import steps, trivial
from theory.dualfl._methods import exact


def theorem_3_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Nonsmooth losses, quadratics of both kinds, real data; and a momentum parameter that the theorem excludes."""
    for instance, rounds in [(quadratic(), 60), (hard_quadratic(L=300.0), 100), (hinge(), 30)]:
        yield ExpectedVerdict(instance.case(exact(instance, rho=0.0), rounds))
    smaller = quadratic(5, L=200.0, seed=1)
    yield ExpectedVerdict(smaller.case(exact(smaller, rho=0.0, nu=0.4), 60, "nu = 0.4"))
    yield ExpectedVerdict(quadratic().case(exact(quadratic()), 10, "rho = 1/kappa"), "outside assumptions")
    if not quick:
        for instance, rounds in [(absolute_deviation(), 40), (breast_cancer(), 60), (breast_cancer_hinge(), 15)]:
            yield ExpectedVerdict(instance.case(exact(instance, rho=0.0), rounds))


@claim(
    source="Park and Xu, Theorem 3.2",
    statement=r"For rho = 0, nu in (0, mu] and exact local solutions, $E_d(\xi^n) - E_d^* \le"
    r" \frac{2|\xi^*|^2}{\nu(n+1)^2}$ and $|\theta^n - \theta^*|^2 \le \frac{4|\xi^*|^2}{N\nu^2(n+1)^2}$.",
    assumptions=sublinear_regime,
    trivial=trivial,
    cases=theorem_3_2_cases,
)
def theorem_3_2(case: Case) -> Iterator[Inequality]:
    """Compare the dual error, and the squared distance in the units of the dual error (6.13)."""
    for s in steps(case):
        bound = 4.0 * trivial(case) / (s.n + 1.0) ** 2
        distance = float(np.sum((s.snapshot.server.theta - case.theta) ** 2))
        yield Inequality(s.n, s.dual_error, bound, "dual error")
        weight = 0.5 * case.objective.n_clients * case.algorithm.nu
        yield Inequality(s.n, weight * distance, bound, "N nu/2 |theta - theta*|^2")
