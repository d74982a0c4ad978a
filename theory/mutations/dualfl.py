"""Wrong variants of DualFL, of what is known about the problem, and of single formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dualopt.methods import CorrectedDualFL, DualFL
from dualopt.methods.dualfl import momentum
from dualopt.objectives import ObjectiveWrapper
from dualopt.runs.certificates import certificate, dual_point
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory.counterexamples.dualfl import FromCorrected
from theory.dualfl._fista import Fista
from theory.mutations._edits import Variant, becomes, change, edit, first_client, instead, parameters

__all__ = ["FISTA", "MUTATIONS", "certificate_with_greatest_mu", "dual_point_with_greatest_mu"]


def late(method: Any, right: Any, server: Any, mean: Any, round: Any) -> Any:
    """Send the beta of the round before."""
    new, message = right(server, mean, round)
    t, beta = 1.0, 0.0
    for _ in range(max(round.n, 1)):
        t, beta = momentum(t, method.rho)
    return new, message._replace(beta=beta)


@dataclass
class WrongMu(ObjectiveWrapper):
    """An objective that claims ``claimed(mu)`` of its convexity."""

    objective: Any
    claimed: Any

    @property
    def mu(self) -> Any:
        """What is claimed."""
        return self.claimed(self.objective.mu)

    def select(self, ids: Any) -> Any:
        """Return the clients ``ids``."""
        return WrongMu(self.objective.select(ids), self.claimed)


def with_greatest_mu(objective: Any) -> WrongMu:
    """Let every client claim the greatest ``mu_j``."""
    return WrongMu(objective, lambda mu: np.full_like(mu, np.max(mu)))


def certificate_with_greatest_mu(objective: Any, theta: Any, solution: Any = None) -> Any:
    """Put the greatest ``mu_j`` where the certificate has the mean; the dual points are right."""
    point = None if solution is None else dual_point(objective, solution)
    return certificate(with_greatest_mu(objective), theta, point)


def dual_point_with_greatest_mu(objective: Any, solution: Any) -> Any:
    """Put the greatest ``mu_j`` in the dual points and in their conjugates."""
    return dual_point(with_greatest_mu(objective), solution)


def overstated(case: Any) -> Any:
    """Let the objective claim to be four times as strongly convex as it is."""
    return replace(case, objective=WrongMu(case.objective, lambda mu: 4.0 * mu))


def noisier(method: Any, right: Any, f: Any) -> Any:
    """Make errors a thousand times those that are admitted."""
    return Fista(rho=method.rho, nu=method.nu, errors=lambda n: 1e3 * method.errors(n)).sequence(f)


# Envelopes do not see a beta of a neighbouring round: Lemma 6.5 does.
RATES = "theorem_3_2 theorem_3_2_inexact theorem_3_3"
OUTER = "theorem_4_2 theorem_4_2_rounds"
MUTATIONS: dict[str, Variant] = {
    "momentum dropped": edit(
        *(DualFL, "server", "Message(mean, beta", "Message(mean, 0.0"),
        caught=f"lemma_6_5 {RATES} theorem_3_3_inexact {OUTER}",
    ),
    "beta early": edit(
        *(DualFL, "server", "Message(mean, beta", "Message(mean, momentum(t, self.rho)[1]"), caught="lemma_6_5"
    ),
    "beta late": instead(CorrectedDualFL, "server", late, "lemma_6_5"),
    "one client for the average": instead(
        *(CorrectedDualFL, "local", first_client),
        f"lemma_6_4 lemma_6_5 relation_6_5 sum_zeta {RATES} theorem_3_3_inexact {OUTER}",
    ),
    "wrong sign in (3.3)": edit(
        *(CorrectedDualFL, "receive", "theta=c.sent)", "theta=c.sent, v=-c.v)"),
        caught=f"lemma_6_5 {RATES} theorem_4_1 theorem_4_2",
    ),
    "warm start from the corrected point": becomes(
        CorrectedDualFL, lambda: FromCorrected, "", "dual_certificate gradient_certificate theorem_3_3_inexact"
    ),
    "nu beyond mu": parameters(
        *(CorrectedDualFL, lambda method, case: {"nu": 2.0 * float(np.min(case.objective.mu))}),
        "gap_3_6 lemma_6_4 proposition_3_1 relation_6_5 theorem_3_2",
    ),
    "nu = max mu_j": parameters(
        *(CorrectedDualFL, lambda method, case: {"nu": float(np.max(case.objective.mu))}),
        f"gap_3_6 {RATES} theorem_3_3_inexact theorem_3_5_target",
    ),
    "rho = nu/min L_j": parameters(  # it must be below 1
        *(CorrectedDualFL, lambda method, case: {"rho": min(method.nu / float(np.min(case.objective.L)), 0.99)}),
        "theorem_3_3 theorem_3_3_inexact",
    ),
    # The bound is made of the errors that were made: it stays true and becomes empty.
    "loose local solutions": parameters(
        *(CorrectedDualFL, lambda method, case: {"solver": Gradient(), "stop": Steps(steps=1)}),
        *("", "theorem_3_2_inexact theorem_3_3_inexact"),
    ),
    "mu overstated": change(overstated, "gap_3_6 gradient_certificate dual_certificate"),
}
FISTA: dict[str, Variant] = {
    "momentum dropped in FISTA": instead(
        Fista, "momentum", lambda method, right, t: (right(t)[0], 0.0), "proposition_6_2 proposition_6_3"
    ),
    "larger errors in FISTA": instead(Fista, "sequence", noisier, "proposition_6_2 proposition_6_3"),
}
