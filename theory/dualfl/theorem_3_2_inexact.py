"""Theorem 3.2 with inexact local solutions, for the errors that were made."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from dualopt.solvers import Gradient
from dualopt.stopping import Gap, Steps, SublinearSchedule
from theory._claims import ExpectedVerdict
from theory._problems import breast_cancer, digits, hard_quadratic, logistic, quadratic
from theory.dualfl._assumptions import dual_corrected, sublinear_regime
from theory.dualfl._dual import dual_optimum, steps, trivial
from theory.dualfl._envelope import inexact as envelope
from theory.dualfl._methods import inexact


def theorem_3_2_inexact_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Schedule (3.7) on quadratics and data; and one gradient step per round, after which the bound says nothing."""
    instances = [(quadratic(), 40, 10.0), (hard_quadratic(L=300.0), 120, 1.0), (logistic(), 40, 1e-3)]
    if not quick:
        instances += [(breast_cancer(), 60, 1e-3), (digits(), 40, 1e-3)]
    for instance, rounds, scale in instances:
        stop = Gap(schedule=SublinearSchedule(nu=instance.mu, scale=scale))
        yield ExpectedVerdict(instance.case(inexact(instance, stop, rho=0.0), rounds))
    once = inexact(breast_cancer(), Steps(steps=1), rho=0.0, solver=Gradient())
    yield ExpectedVerdict(breast_cancer().case(once, 40, "one gradient step"), "vacuous")


@claim(
    source="Park and Xu, Theorem 3.2 with (3.7); Schmidt, Le Roux and Bach 2011",
    statement=r"For rho = 0, nu in (0, mu] and dual-corrected local solutions with residuals $r_j$,"
    r" $\varepsilon_i = \sum_j |r_j|^2/(2\nu)$ in round $i$: $E_d(\xi^n) - E_d^* \le \frac{R_n}{2\nu}"
    r" (a_n + \sqrt{|\xi^*|^2 + 2\nu e_n + a_n^2})^2$ with $R_n = t_{n-1}^{-2} \le 4/(n+1)^2$,"
    r" $a_n = \sum_{i \le n} \sqrt{2\nu\varepsilon_i/R_i}$, $e_n = \sum_{i \le n} \varepsilon_i/R_i$.",
    assumptions=lambda case: sublinear_regime(case) + dual_corrected(case),
    trivial=trivial,
    cases=theorem_3_2_inexact_cases,
)
def theorem_3_2_inexact(case: Case) -> Iterator[Inequality]:
    """Compare the dual error, and the squared distance in its units, with the bound for the realised errors."""
    followed = list(steps(case))
    rho, nu = case.algorithm.rho, case.algorithm.nu
    squared = float(np.sum(dual_optimum(case) ** 2))
    bounds = envelope((s.local_error for s in followed), rho=rho, nu=nu, squared=squared)
    for s, bound in zip(followed, bounds, strict=True):
        distance = float(np.sum((s.snapshot.server.theta - case.theta) ** 2))
        yield Inequality(s.n, s.dual_error, bound, "dual error")
        yield Inequality(s.n, 0.5 * case.objective.n_clients * nu * distance, bound, "N nu/2 |theta - theta*|^2")
