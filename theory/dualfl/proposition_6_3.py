"""Proposition 6.3: FISTA with errors that fall faster than (1 - sqrt(rho))^n keeps this rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dualopt.claims import Case, Inequality, claim
from theory._claims import ExpectedVerdict
from theory._problems import hard_quadratic, quadratic
from theory.dualfl._assumptions import linear_regime
from theory.dualfl._dual import trivial
from theory.dualfl._fista import Fista, Geometric
from theory.dualfl.proposition_6_2 import proposition_6_2


def _fast(case: Case) -> list[str]:
    errors, limit = case.algorithm.errors, 1.0 - case.algorithm.rho**0.5
    return [] if isinstance(errors, Geometric) and errors.ratio < limit else ["delta_n = a^n, a < 1 - sqrt(rho)"]


def proposition_6_3_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Errors of two sizes just inside the range; and just outside, which the proposition excludes."""
    for instance, rounds in [(quadratic(), 80), (hard_quadratic(), 300)]:
        rho = 0.9 / instance.L
        ratio = (1.0 - rho**0.5) / 1.1
        for scale in (1e-2, 10.0):
            fista = Fista(rho=rho, nu=0.9, errors=Geometric(scale=scale, ratio=ratio))
            yield ExpectedVerdict(instance.case(fista, rounds, f"delta_n = {scale:g} * {ratio:.3f}^n"))
    rho = 0.9 / quadratic().L
    slow = Fista(rho=rho, nu=0.9, errors=Geometric(scale=1e-2, ratio=1.0 - 0.9 * rho**0.5))
    yield ExpectedVerdict(quadratic().case(slow, 80, "a > 1 - sqrt(rho)"), "outside assumptions")


@claim(
    source="Park and Xu, Proposition 6.3",
    statement=r"Algorithm 2 with rho in (0, nu/L], nu in (0, mu], $\delta_n = \delta_0 a^n$, $a < 1 - \sqrt\rho$:"
    r" $E_d(\xi^n) - E_d^* \le \frac{R_n}{2\nu}(a_n + \sqrt{|\xi^*|^2 + 2\nu e_n + a_n^2})^2$,"
    r" $R_n = \prod_{k<n}(1-1/t_k) \le (1-\sqrt\rho)^{n-1}$, $a_n = \sum_{i \le n}\sqrt{2\nu\delta_{i-1}/R_i}$,"
    r" $e_n = \sum_{i \le n}\delta_{i-1}/R_i$; both converge.",
    assumptions=lambda case: linear_regime(case) + ([] if case.algorithm.rho > 0 else ["rho > 0"]) + _fast(case),
    trivial=trivial,
    cases=proposition_6_3_cases,
)
def proposition_6_3(case: Case) -> Iterable[Inequality]:
    """Compare as in Proposition 6.2: the envelope knows rho."""
    return proposition_6_2(case)
