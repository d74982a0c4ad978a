"""Proposition 6.2: FISTA with errors that fall faster than n^-4 keeps the rate 1/n^2."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from dualopt.claims import Case, Inequality, claim
from theory._claims import ExpectedVerdict
from theory._problems import hard_quadratic, quadratic
from theory.dualfl._assumptions import sublinear_regime
from theory.dualfl._dual import dual_optimum, trivial
from theory.dualfl._envelope import inexact as envelope
from theory.dualfl._fista import Fista, Power


def proposition_6_2_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Errors of order n^-4.1 of two sizes, negligible and large; and of order n^-2, which the proposition excludes."""
    for instance, rounds in [(quadratic(), 100), (hard_quadratic(), 200)]:
        for scale in (1e-2, 10.0):
            fista = Fista(rho=0.0, nu=0.9, errors=Power(scale=scale, exponent=4.1))
            yield ExpectedVerdict(instance.case(fista, rounds, f"delta_n = {scale:g} (n+1)^-4.1"))
    slow = Fista(rho=0.0, nu=0.9, errors=Power(scale=0.01, exponent=2.0))
    yield ExpectedVerdict(quadratic().case(slow, 100, "delta_n = 0.01 (n+1)^-2"), "outside assumptions")


@claim(
    source="Park and Xu, Proposition 6.2; Schmidt, Le Roux and Bach 2011, Proposition 2",
    statement=r"Algorithm 2 with rho = 0, nu in (0, mu], $\delta_n = b_n/(n+1)^2$, $\sum_n\sqrt{b_n} < \infty$:"
    r" $E_d(\xi^n) - E_d^* \le \frac{2}{\nu(n+1)^2}(a_n + \sqrt{|\xi^*|^2 + 2\nu e_n + a_n^2})^2$,"
    r" $a_n = \sum_{i<n} t_i\sqrt{2\nu\delta_i}$, $e_n = \sum_{i<n} t_i^2\delta_i$; both converge.",
    assumptions=lambda case: sublinear_regime(case) + _summable(case),
    trivial=trivial,
    cases=proposition_6_2_cases,
)
def proposition_6_2(case: Case) -> Iterator[Inequality]:
    """Compare the dual error of Algorithm 2 with the bound for the admitted errors."""
    fista = case.algorithm
    squared = float(np.sum(dual_optimum(case) ** 2))
    bounds = envelope(map(fista.errors, range(case.rounds)), rho=fista.rho, nu=fista.nu, squared=squared)
    best = -float(np.sum(case.objective.value(case.theta)))
    iterates = islice(fista.sequence(case.objective), case.rounds)
    for n, (iterate, bound) in enumerate(zip(iterates, bounds, strict=True), start=1):
        yield Inequality(n, iterate.dual_value - best, bound, "dual error")


def _summable(case: Case) -> list[str]:
    errors = case.algorithm.errors
    return [] if isinstance(errors, Power) and errors.exponent > 4 else ["delta_n = b_n/(n+1)^2, sum sqrt(b_n) < inf"]
