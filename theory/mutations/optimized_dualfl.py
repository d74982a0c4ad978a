"""Wrong variants of OptimizedDualFL."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualopt.methods import CorrectedOptimizedDualFL
from dualopt.methods.optimized_dualfl import coefficients
from theory.mutations._edits import Variant, edit, first_client, instead, parameters

__all__ = ["MUTATIONS"]

SENT = (CorrectedOptimizedDualFL, "server", "Message(mean, b, c)")


def late(method: Any, right: Any, server: Any, mean: Any, round: Any) -> Any:
    """Send the coefficients of the round before."""
    new, message = right(server, mean, round)
    A, b, c = 0.0, 0.0, 0.0
    for _ in range(max(round.n, 1)):
        A, b, c = coefficients(A, method.rho)
    return new, message._replace(b=b, c=c)


# The bound alone does not see the coefficients of the next round, nor the identity with ITEM parameters out of range.
ALL = "optimized_is_item optimized_potential optimized_theorem"
MUTATIONS: dict[str, Variant] = {
    "coefficients of the next round": edit(
        *(*SENT, "Message(mean, *coefficients(A, self.rho)[1:])"), caught="optimized_is_item optimized_potential"
    ),
    "coefficients of the last round": instead(CorrectedOptimizedDualFL, "server", late, ALL),
    "momentum dropped": edit(*SENT, "Message(mean, 0.0, 0.0)", caught=ALL),
    "c dropped": edit(*SENT, "Message(mean, b, 0.0)", caught=ALL),
    "sign of c": edit(*SENT, "Message(mean, b, -c)", caught=ALL),
    "b and c exchanged": edit(*SENT, "Message(mean, c, b)", caught=ALL),
    "one client for the average": instead(CorrectedOptimizedDualFL, "local", first_client, ALL),
    "sign of the step": edit(
        *(CorrectedOptimizedDualFL, "receive"),
        *("theta=c.sent), message)", "theta=-c.sent), message._replace(theta=-message.theta))"),
        caught=ALL,
    ),
    "nu = max mu_j": parameters(
        *(CorrectedOptimizedDualFL, lambda method, case: {"nu": float(np.max(case.objective.mu))}),
        "optimized_potential optimized_theorem",
    ),
    "rho = nu/min L_j": parameters(
        *(CorrectedOptimizedDualFL, lambda method, case: {"rho": method.nu / float(np.min(case.objective.L))}),
        "optimized_potential optimized_theorem",
    ),
}
