"""The parameters of DualFL and OptimizedDualFL, and the rules that their theorems set for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from dualopt.arrays._checks import require, require_positive
from dualopt.arrays.xp import to_numpy
from dualopt.methods._base import AUTO, Algorithm
from dualopt.methods._dual_theorems import NU, RHO
from dualopt.methods._parameters import largest, require_local_gradients, smallest
from dualopt.methods._theorem import Known
from dualopt.objectives import Objective
from dualopt.solvers._loop import is_smooth

__all__ = ["DualParameters"]


@dataclass(frozen=True, kw_only=True)
class DualParameters(Algorithm):
    """What the methods on the dual problem have in common: ``nu``, ``rho``, restarts.

    Parameters and errors are those of :class:`dualopt.methods.DualFL`.
    """

    restarts: ClassVar[tuple[str, ...]] = ("gradient",)

    rho: float = AUTO
    nu: float = AUTO
    corrected: bool = False
    restart: str | None = None

    def __post_init__(self) -> None:
        if self.rho is not None and not 0 <= self.rho < 1:
            raise ValueError(f"rho must lie in [0, 1), not {self.rho}.")
        require_positive(nu=self.nu)
        if self.restart is not None:
            known = " or ".join(map(repr, self.restarts))
            require(self.restart in self.restarts, f"restart must be {known} or None", self.restart)
            require(not self.rho, "rho must be 0 with a restart, which takes its place", self.rho)
        if self.corrected or self.restart == "gap":
            require_local_gradients(self.solver)

    def suggested(self, objective: Objective) -> Self:
        """Fill in ``nu = min_j mu_j`` and ``rho = nu / max_j L_j``, the optimal choice, 0 with a restart.

        Where some ``L_j`` is not finite ``rho`` is 0. Kinks are no reason for a restart: by the gradient it loses
        the rate of Theorem 3.2, and rounds more often than it gains them (docs/no_tuning.md). Where nothing is known of
        the curvature there is no rate to lose, and the gradient restart is suggested.
        """
        nu = smallest(objective.mu) if self.nu is None else self.nu
        if nu <= 0:
            raise ValueError(f"nu cannot be suggested because mu is {nu:g}: give mu > 0 (Section 4 adds a ridge).")
        unknown = is_smooth(objective) and not math.isfinite(largest(objective.L))
        restart = "gradient" if unknown and self.rho is None and self.restart is None else self.restart
        rho = self.rho
        if rho is None:
            assert RHO.limit is not None
            limit = RHO.limit(replace(self, nu=nu), Known.of(objective))
            rho = 0.0 if restart else min(limit, 1.0 - 1e-9)  # for mu = L any rho near 1 needs one round
        return replace(super().suggested(objective), nu=nu, rho=rho, restart=restart)

    def suggested_scales(self, objective: Objective) -> tuple[float, ...]:
        """Return the ``mu_j``: every client then has the largest ``nu_j`` that is admitted, ``mu_j`` itself."""
        require(smallest(objective.mu) > 0, "scales must be none or numbers for clients that are not strongly convex")
        return tuple(map(float, to_numpy(objective.mu)))

    def check(self, objective: Objective) -> None:
        """Refuse ``nu > mu``, outside the theory: the dual problem is then not convex."""
        known = Known.of(objective)
        unless = "unless check_assumptions is False (--no-check-assumptions on the command line)"
        require(NU.holds(self, known), f"nu = {self.nu:g} must not exceed mu = {known.mu:g}, {unless}")
