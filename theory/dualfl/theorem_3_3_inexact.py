"""Theorem 3.3 with inexact local solutions, for the errors that were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dualopt.claims import Case, Inequality, claim
from dualopt.solvers import Gradient
from dualopt.stopping import Gap, LinearSchedule, Steps
from theory._claims import ExpectedVerdict
from theory._problems import breast_cancer, digits, hard_quadratic, logistic, quadratic
from theory.dualfl._assumptions import dual_corrected, linear_regime
from theory.dualfl._dual import trivial
from theory.dualfl._methods import inexact
from theory.dualfl.theorem_3_2_inexact import theorem_3_2_inexact


def theorem_3_3_inexact_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Schedule (3.8) on quadratics and data; 20 gradient steps per round; one, when the bound says nothing."""
    instances = [(quadratic(), 80, 1.0), (hard_quadratic(), 300, 1.0), (logistic(), 60, 1e-3)]
    if not quick:
        instances += [(breast_cancer(), 80, 1e-3), (digits(), 60, 1e-3)]
    for instance, rounds, scale in instances:
        rho = instance.mu / instance.L
        stop = Gap(schedule=LinearSchedule(rho=rho, scale=scale))
        yield ExpectedVerdict(instance.case(inexact(instance, stop, rho=rho), rounds))
    f = quadratic(5, L=100.0, seed=1)
    twenty = inexact(f, Steps(steps=20), rho=f.mu / f.L, solver=Gradient())
    yield ExpectedVerdict(f.case(twenty, 80, "20 gradient steps"))
    f = breast_cancer()
    once = inexact(f, Steps(steps=1), rho=f.mu / f.L, solver=Gradient())
    yield ExpectedVerdict(f.case(once, 60, "one gradient step"), "vacuous")


@claim(
    source="Park and Xu, Theorem 3.3 with (3.8)",
    statement=r"For rho in [0, nu/L], nu in (0, mu] and dual-corrected local solutions with residuals $r_j$,"
    r" $\varepsilon_i = \sum_j |r_j|^2/(2\nu)$ in round $i$: $E_d(\xi^n) - E_d^* \le \frac{R_n}{2\nu}"
    r" (a_n + \sqrt{|\xi^*|^2 + 2\nu e_n + a_n^2})^2$ with $R_n = \prod_{k<n} (1-1/t_k) \le (1-\sqrt\rho)^{n-1}$,"
    r" $a_n = \sum_{i \le n} \sqrt{2\nu\varepsilon_i/R_i}$, $e_n = \sum_{i \le n} \varepsilon_i/R_i$.",
    assumptions=lambda case: linear_regime(case) + dual_corrected(case),
    trivial=trivial,
    cases=theorem_3_3_inexact_cases,
)
def theorem_3_3_inexact(case: Case) -> Iterable[Inequality]:
    """Compare as in Theorem 3.2: the envelope knows rho."""
    return theorem_3_2_inexact(case)
