"""What DualFL and its kin share: parameters, with the rules that their theorems set for them, scales, fixed points."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any

from dualopt.arrays._checks import interval, require, require_positive
from dualopt.arrays.xp import Array, to_numpy
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._dual_theorems import NU, RHO
from dualopt.methods._parameters import Checked, Suggested, early_stop, largest, smallest
from dualopt.methods._theorem import Known
from dualopt.objectives import Objective
from dualopt.solvers.stopping import Stop

__all__ = ["Dual", "Duality", "EarlyStop", "Momentum"]


def least_mu(method: Any, objective: Objective, name: str) -> float:
    """Return ``min_j mu_j``."""
    mu = smallest(objective.mu)
    unless = "with a free intercept no client is strongly convex: penalise it, or use distributed-lbfgs"
    require(mu > 0 or not objective.free_intercept, f"{name} cannot be suggested: {unless}")
    require(mu > 0, f"{name} cannot be suggested because mu is {mu:g}: give mu > 0 (Section 4 adds a ridge)")
    return mu


def require_convex_dual(method: Any, objective: Objective, name: str) -> None:
    """Refuse ``nu > mu``, outside the theory: the dual problem is then not convex, and steps of ``1/nu`` too long."""
    known = Known.of(objective)
    unless = "unless check_assumptions is False (--no-check-assumptions on the command line)"
    require(NU.holds(method, known), f"{name} = {method.nu:g} must not exceed mu = {known.mu:g}, {unless}")


def best_momentum(method: Any, objective: Objective, name: str) -> float:
    """Return ``nu / max_j L_j``, the optimal choice; 0 for clients without an ``L``.

    Where neither ``mu`` nor ``L`` is known it is asked for: a restart needs none.
    """
    unknown = largest(objective.mu) == -math.inf and not math.isfinite(largest(objective.L))
    require(not unknown, f"{name} must be given: L is not known; restarted-dualfl needs neither")
    method = replace(method, nu=least_mu(method, objective, "nu")) if method.nu is None else method
    assert RHO.limit is not None
    return min(RHO.limit(method, Known.of(objective)), 1.0 - 1e-9)  # for mu = L any rho near 1 needs one round


Duality = Annotated[float, require_positive, Suggested(least_mu), Checked(require_convex_dual)]
Momentum = Annotated[float, interval("[0, 1)"), Suggested(best_momentum)]
EarlyStop = Annotated[Stop, early_stop(0.3)]


@dataclass(frozen=True, kw_only=True)
class Dual(Algorithm):
    """DualFL and its kin: methods with momentum, that the scales ``mu_j`` suit best."""

    rho: Momentum = AUTO
    nu: Duality = AUTO

    def suggested_scales(self, objective: Objective) -> tuple[float, ...]:
        """Return the ``mu_j``: every client then has the largest ``nu_j`` that is admitted, ``mu_j`` itself."""
        require(smallest(objective.mu) > 0, "scales must be none or numbers for clients that are not strongly convex")
        return tuple(map(float, to_numpy(objective.mu)))

    def fixed_point(self, objective: Objective, theta: Array) -> Any:
        """At the minimiser ``nu zeta_j = grad f_j(theta*)``, and every local solution is ``theta*``."""
        zeta = objective.gradient(theta) / self.nu
        server, message, clients = self.start_with(theta, zeta=zeta, v=zeta)
        return server._replace(theta=theta), message._replace(theta=theta), clients
