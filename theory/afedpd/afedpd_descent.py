"""The augmented Lagrangian falls in every round, at full participation and rho > 2 L."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory._problems import indefinite, logistic, penalised_logistic, quadratic
from theory.afedpd._cases import Federation, federation
from theory.afedpd._instances import one_concave, two_signs
from theory.afedpd._path import mean_square, path
from theory.afedpd._potential import descent, full_participation, gradient_constant, lagrangian, squared_gradient


def afedpd_descent_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Convex and nonconvex clients, near the end of the range and far inside."""
    rounds = 15 if quick else 60
    for f in (two_signs(), one_concave(10), indefinite(), quadratic(), logistic(), penalised_logistic()):
        for factor in (2.1, 4.0):
            yield ExpectedVerdict(federation(f, rho=factor * f.L, active=f.objective.n_clients, rounds=rounds))
    f = two_signs()
    yield ExpectedVerdict(federation(f, rho=1.9 * f.L, active=2, rounds=rounds), "outside assumptions")


@claim(
    source="Sun, Shen and Tao, Theorem 1: a proof for full participation",
    statement=r"$P = N$, exact local solutions, L-smooth $f_j$, $\rho > 2L$, from the second round on:"
    r" $\mathcal{L}^+ \le \mathcal{L} - \frac{(\rho-2L)(\rho+L)}{2\rho}\frac1N\sum_j|\theta_j^+ - \theta_j|^2"
    r" - \frac\rho2|\theta^+ - \theta|^2$, $|\nabla E(\bar\theta^+)|^2 \le C(\mathcal{L} - \mathcal{L}^+)$ with"
    r" $C = 2\rho + \frac{2L^2(L^2+\rho^2)}{\rho(\rho-2L)(\rho+L)}$, and"
    r" $\mathcal{L} \ge E(\theta) + \frac{\rho-L}2\frac1N\sum_j|\theta_j - \theta|^2$.",
    assumptions=full_participation,
    rounding=1e-8,
    cases=afedpd_descent_cases,
)
def afedpd_descent(case: Federation) -> Iterator[Inequality]:
    """Compare both inequalities in every round but the first, and the lower bound."""
    rho, L = case.rho, case.L
    c, C = descent(rho, L), gradient_constant(rho, L)
    for s in path(case)[1:]:
        fall = lagrangian(case, s.before) - lagrangian(case, s.chosen)
        moved = mean_square(s.chosen.points - s.before.points)
        steps = c * moved + 0.5 * rho * float(np.sum((s.chosen.theta - s.before.theta) ** 2))
        yield Inequality(s.n, steps, fall, "fall of the Lagrangian")
        yield Inequality(s.n, squared_gradient(case, s.chosen), C * fall, "|grad E|^2")
        apart = 0.5 * (rho - L) * mean_square(s.chosen.points - s.chosen.theta)
        energy = float(np.mean(case.objective.value(s.chosen.theta))) - case.lowest
        yield Inequality(s.n, energy + apart, lagrangian(case, s.chosen) - case.lowest, "lower bound")
