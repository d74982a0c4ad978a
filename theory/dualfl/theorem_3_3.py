"""Theorem 3.3: with smoothness the error shrinks by 1 - sqrt(rho) in every round."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from theory._claims import ExpectedVerdict
from theory._problems import a9a, breast_cancer, digits, hard_quadratic, logistic, quadratic
from theory.dualfl._assumptions import linear_regime
from theory.dualfl._dual import steps, trivial
from theory.dualfl._methods import exact


def theorem_3_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the optimal rho and a smaller one; rho = 0, which makes the statement empty; rho too large."""
    instances = [(quadratic(), 80), (hard_quadratic(), 400), (logistic(), 60), (breast_cancer(), 60)]
    if not quick:
        instances += [(digits(), 60), *((instance, 30) for instance in a9a())]
    for instance, rounds in instances:
        yield ExpectedVerdict(instance.case(exact(instance), rounds, "rho = nu/L"))
    f = quadratic(5, L=200.0, seed=1)
    yield ExpectedVerdict(f.case(exact(f, rho=0.3 * 0.9 / f.L, nu=0.9), 100, "rho = 0.3 nu/L, nu = 0.9"))
    yield ExpectedVerdict(quadratic().case(exact(quadratic(), rho=0.0), 40, "rho = 0"), "vacuous")
    yield ExpectedVerdict(digits().case(exact(digits(), rho=3e-3), 1, "rho = 3e-3 of Table 2"), "outside assumptions")


@claim(
    source="Park and Xu, Theorem 3.3; Chambolle and Pock 2016, Theorem B.1",
    statement=r"For rho in [0, nu/L], nu in (0, mu] and exact local solutions, $\frac{N\nu}{L}(E(\theta^n) - E^*) \le"
    r" \frac{N\nu}{2}|\theta^n - \theta^*|^2 \le E_d(\xi^n) - E_d^* \le (1-\sqrt\rho)^{n-1}\frac{|\xi^*|^2}{2\nu}$.",
    assumptions=linear_regime,
    trivial=trivial,
    cases=theorem_3_3_cases,
)
def theorem_3_3(case: Case) -> Iterator[Inequality]:
    """Compare the dual error, the squared distance (6.13) and the energy error (6.14), in units of the first."""
    rho, nu, N = case.algorithm.rho, case.algorithm.nu, case.objective.n_clients
    L = float(np.max(case.objective.L))
    optimum = float(np.mean(case.objective.value(case.theta)))
    for s in steps(case):
        theta = s.snapshot.server.theta
        bound = (1.0 - np.sqrt(rho)) ** (s.n - 1) * trivial(case)
        energy = float(np.mean(case.objective.value(theta))) - optimum
        distance = float(np.sum((theta - case.theta) ** 2))
        yield Inequality(s.n, N * nu / L * energy, bound, "N nu/L (E - E*)")
        yield Inequality(s.n, 0.5 * N * nu * distance, bound, "N nu/2 |theta - theta*|^2")
        yield Inequality(s.n, s.dual_error, bound, "dual error")
