"""Lemma 6.4: the proximal problem of FISTA falls apart into the clients' dual problems."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.claims import Case, Inequality, claim
from dualopt.xp import Array
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import hard_quadratic, logistic, quadratic
from theory.dualfl._assumptions import strongly_convex
from theory.dualfl._dual import conjugates, local_dual
from theory.dualfl._methods import exact
from theory.dualfl.lemma_6_5 import dual_sequences


def lemma_6_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics with conjugates in closed form, logistic losses with conjugates by Newton's method."""
    for instance in (quadratic(), hard_quadratic(), logistic()):
        yield ExpectedVerdict(instance.case(exact(instance, nu=0.5 * instance.mu), 10, "nu = mu/2"))


@claim(
    source="Park and Xu, Lemma 6.4 and (6.11)",
    statement=r"$E_d^n(\xi) = \sum_j \bigl(g_j^*(\xi_j) + \frac{1}{2\nu}|\xi_j - \eta_j + \frac1N\sum_i\eta_i|^2\bigr)"
    r" + $ constant, so that local errors $\delta/N$ add up to $\delta$; in DualFL"
    r" $\nu\zeta_j = \eta_j - \frac1N\sum_i \eta_i$ (checked to 1e-10).",
    assumptions=strongly_convex,
    rounding=0.0,
    cases=lemma_6_4_cases,
)
def lemma_6_4(case: Case) -> Iterator[Inequality]:
    r"""Compare differences of both sides between two points, and the centres with :math:`\nu\zeta_j` (6.11)."""
    nu, f = case.algorithm.nu, case.objective
    rng = np.random.default_rng(0)
    followed = zip(dual_sequences(case), case.snapshots(), strict=True)
    for n, ((xi, eta), s) in enumerate(followed, start=1):
        centre = eta - np.mean(eta, axis=0)
        yield Inequality(n, deviation(centre, nu * s.clients.zeta), ROUNDING, "eta_j - mean eta and nu zeta_j")
        whole, parts = [], []
        for point in (xi, xi + rng.standard_normal(xi.shape)):
            conjugate = conjugates(f, nu, point)
            whole.append(_proximal(point, conjugate, eta, nu))
            parts.append(float(np.sum(local_dual(conjugate, point, centre, nu))))
        scale = max(map(abs, whole + parts))
        yield Inequality(n, deviation(whole[0] - whole[1], parts[0] - parts[1], scale=scale), ROUNDING, "energies")


def _proximal(xi: Array, conjugate: Array, eta: Array, nu: float) -> float:
    """Return ``E_d^n(xi)`` of (6.7)."""
    slope = np.sum(eta, axis=0) / (len(eta) * nu)
    return float(np.sum(slope * (xi - eta)) + np.sum((xi - eta) ** 2) / (2.0 * nu) + np.sum(conjugate))
