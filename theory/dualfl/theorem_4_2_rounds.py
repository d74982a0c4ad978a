"""Theorem 4.2, estimate (4.6): rounds until the gradient of the plain energy is small."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import numpy as np

from dualopt.claims import Case, Inequality, claim
from dualopt.engine import iterate
from theory._claims import ExpectedVerdict
from theory._problems import flat_quadratic, logistic
from theory.dualfl._regularised import plain_case, with_ridge
from theory.dualfl.theorem_4_2 import factor, parameters


def theorem_4_2_rounds_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Accuracies over two orders of magnitude."""
    for instance in (flat_quadratic(), logistic(mu=0.0)):
        for alpha in (0.1, 0.01) if quick else (0.1, 0.01, 0.001):
            yield ExpectedVerdict(plain_case(instance, alpha, 1, accelerated=True))


@claim(
    source="Park and Xu, Theorem 4.2, (4.6)",
    statement=r"With $\alpha = \epsilon/(2R_0)$, $R_0 = |\theta^*|$, $|\nabla E(\theta^n)| \le \epsilon$ is reached"
    r" within $M \le 1 + \bigl(1 + 2\sqrt{1 + 2LR_0/\epsilon}\bigr)\bigl(\log\frac1\epsilon + \log 2C\bigr)_+$ rounds,"
    r" $C$ from (4.5), which depends on epsilon through alpha.",
    assumptions=parameters,
    cases=theorem_4_2_rounds_cases,
)
def theorem_4_2_rounds(case: Case) -> Iterator[Inequality]:
    """Count the rounds to the accuracy that belongs to alpha."""
    ridge, f = with_ridge(case), case.objective
    radius = float(np.linalg.norm(case.theta))  # |theta^alpha| <= |theta*| for every alpha
    epsilon = 2.0 * radius * case.algorithm.nu
    condition = math.sqrt(1.0 + 2.0 * float(np.max(f.L)) * radius / epsilon)
    # a logarithm below zero belongs to an accuracy that the start has already
    decades = max(math.log(1.0 / epsilon) + math.log(2.0 * factor(case, ridge)), 0.0)
    bound = 1.0 + (1.0 + 2.0 * condition) * decades
    rounds = islice(iterate(case.algorithm, ridge.objective), math.ceil(bound))
    norms = (np.linalg.norm(np.mean(f.gradient(s.server.theta), axis=0)) for s in rounds)
    needed = next((n for n, norm in enumerate(norms, start=1) if norm <= epsilon), math.inf)
    yield Inequality(math.ceil(bound), float(needed), bound, f"rounds to |grad E| <= {epsilon:.3g}")
