"""Lemma 6.5: DualFL is FISTA on the dual problem."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from dualopt.claims import Case, Inequality, claim
from dualopt.objectives import Quadratic
from dualopt.xp import Array
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import hard_quadratic, quadratic
from theory.dualfl._assumptions import strongly_convex
from theory.dualfl._fista import Fista
from theory.dualfl._methods import exact

__all__ = ["dual_sequences", "lemma_6_5"]


def dual_sequences(case: Case, *, as_printed: bool = False) -> Iterator[tuple[Array, Array]]:
    r"""Yield :math:`\xi^{n}` (6.9a) and :math:`\eta^{n}` (6.9b) of a run, n = 1, 2, ...

    The paper prints the clients' points in (6.9b), where the server's belong:
    :math:`\eta_j^{n+1} = \nu(\zeta_j^{n+1} - (1 + \beta_n)\theta^{n+1} + \beta_n\theta^{n})`.
    """
    nu = case.algorithm.nu
    zeta = sent = np.zeros_like(case.subgradients)
    theta = np.zeros_like(case.theta)
    for s in case.snapshots():
        beta = s.message.beta
        new, old = (s.clients.sent, sent) if as_printed else (s.server.theta, theta)
        yield nu * (zeta - s.clients.sent), nu * (s.clients.zeta - (1.0 + beta) * new + beta * old)
        zeta, sent, theta = s.clients.zeta, s.clients.sent, s.server.theta


def lemma_6_5_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Quadratics, with momentum for either regime."""
    for instance in (quadratic(), quadratic(5, L=200.0, seed=1), hard_quadratic()):
        for rho in (0.0, 0.9 / instance.L):
            yield ExpectedVerdict(instance.case(exact(instance, rho=rho, nu=0.9), 25, f"rho = {rho:.2g}"))


@claim(
    source="Park and Xu, Lemma 6.5, with (6.9b) corrected",
    statement=r"$\xi_j^{n+1} = \nu(\zeta_j^n - \theta_j^{n+1})$ and $\eta_j^{n+1} = \nu(\zeta_j^{n+1} -"
    r" (1+\beta_n)\theta^{n+1} + \beta_n\theta^n)$ are the iterates of FISTA on (6.6) (checked to 1e-10).",
    assumptions=strongly_convex,
    rounding=0.0,
    cases=lemma_6_5_cases,
)
def lemma_6_5(case: Case, *, as_printed: bool = False) -> Iterator[Inequality]:
    """Compare both sequences with Algorithm 2, run on the dual problem itself."""
    assert isinstance(case.objective, Quadratic)  # Algorithm 2 is run in closed form
    fista = Fista(rho=case.algorithm.rho, nu=case.algorithm.nu).sequence(case.objective)
    pairs = zip(dual_sequences(case, as_printed=as_printed), islice(fista, case.rounds), strict=True)
    for n, ((xi, eta), iterate) in enumerate(pairs, start=1):
        yield Inequality(n, deviation(xi, iterate.xi), ROUNDING, "xi")
        yield Inequality(n, deviation(eta, iterate.eta), ROUNDING, "eta")
