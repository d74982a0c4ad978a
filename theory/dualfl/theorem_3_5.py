"""Theorem 3.5: how many accelerated gradient steps a client needs with smoothness."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from dualopt.objectives import LocalProblem
from dualopt.objectives.local_problem import client_dot
from dualopt.stopping import LinearSchedule
from theory._claims import ExpectedVerdict
from theory._problems import breast_cancer, hard_quadratic, logistic, quadratic
from theory.dualfl._assumptions import linear_regime
from theory.dualfl._local_counts import accelerated_steps
from theory.dualfl._methods import exact

GAMMA = 0.1


def theorem_3_5_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics of increasing condition number, and data."""
    for instance in [quadratic(), hard_quadratic(), logistic()] + ([] if quick else [breast_cancer()]):
        yield ExpectedVerdict(instance.case(exact(instance), 40))


@claim(
    source="Park and Xu, Theorem 3.5; Nesterov 2004, Theorem 2.2.3",
    statement=r"Nesterov's method with constant momentum from $\theta_j^n$ at squared distance $D^2$ from the local"
    r" solution reaches the accuracy (3.8) of round $n$, $|r_j|^2/(2\mu) \le \frac1N(\frac{1-\sqrt\rho}{1+\gamma})^n$,"
    r" within $M_n \le 1 + \sqrt\kappa\,\bigl(\log\frac{\kappa(L+\mu)D^2}{2} + \log(N(1+\gamma)^n)"
    r" - n\log(1-\sqrt\rho)\bigr)_+$ steps (gamma = 0.1).",
    assumptions=linear_regime,
    rounding=0.0,
    cases=theorem_3_5_cases,
)
def theorem_3_5(case: Case) -> Iterator[Inequality]:
    """Count the steps on every local problem of an exact run, from where the client was."""
    rho, nu, f = case.algorithm.rho, case.algorithm.nu, case.objective
    admitted = LinearSchedule(rho=rho, gamma=GAMMA)
    zeta = start = np.zeros_like(case.subgradients)
    kappa = f.L / f.mu
    for s in case.snapshots():
        n = s.round.n
        distance = client_dot(s.clients.theta - start, s.clients.theta - start)
        shrinking = math.log(f.n_clients) + n * math.log((1.0 + GAMMA) / (1.0 - math.sqrt(rho)))
        first = np.log(np.maximum(0.5 * kappa * (f.L + f.mu) * distance, 1e-300))
        bounds = 1.0 + np.sqrt(kappa) * np.maximum(first + shrinking, 0.0)
        problem = LocalProblem(objective=f, linear=-nu * zeta)
        counts = accelerated_steps(problem, start, admitted(s.round), limit=int(2.0 * np.max(bounds)))
        for count, bound in zip(counts, bounds, strict=True):
            yield Inequality(n, float(count), float(bound), "M_n")
        zeta, start = s.clients.zeta, s.clients.theta
