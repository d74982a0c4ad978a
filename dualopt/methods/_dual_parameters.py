"""The parameters of DualFL and OptimizedDualFL, and the rules that their theorems set for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from dualopt.arrays._checks import require, require_positive
from dualopt.arrays.xp import to_numpy
from dualopt.methods._base import OPEN, Algorithm
from dualopt.methods._dual_theorems import NU, RHO
from dualopt.methods._parameters import largest, smallest
from dualopt.methods._theorem import Known
from dualopt.objectives import Objective
from dualopt.solvers._loop import is_smooth

__all__ = ["DualParameters"]


@dataclass(frozen=True, kw_only=True)
class DualParameters(Algorithm):
    """What the methods on the dual problem have in common: ``nu`` and ``rho``.

    Parameters and errors are those of :class:`dualopt.methods.DualFL`.
    """

    rho: float = OPEN
    nu: float = OPEN

    def __post_init__(self) -> None:
        if self.rho is not None and not 0 <= self.rho < 1:
            raise ValueError(f"rho must lie in [0, 1), not {self.rho}.")
        require_positive(nu=self.nu)

    def suggested(self, objective: Objective) -> Self:
        """Fill in ``nu = min_j mu_j`` and ``rho = nu / max_j L_j``, the optimal choice; 0 for clients with kinks.

        Where nothing is known of the curvature of smooth clients ``rho`` is asked for: a restart needs none.
        """
        nu = smallest(objective.mu) if self.nu is None else self.nu
        if nu <= 0:
            raise ValueError(f"nu cannot be suggested because mu is {nu:g}: give mu > 0 (Section 4 adds a ridge).")
        filled, rho = replace(super().suggested(objective), nu=nu), self.rho
        if rho is not None:
            return filled
        unknown = is_smooth(objective) and not math.isfinite(largest(objective.L))
        require(not unknown, "rho must be given: L is not known; restarted-dualfl needs neither")
        assert RHO.limit is not None
        limit = RHO.limit(filled, Known.of(objective))
        return replace(filled, rho=min(limit, 1.0 - 1e-9))  # for mu = L any rho near 1 needs one round

    def suggested_scales(self, objective: Objective) -> tuple[float, ...]:
        """Return the ``mu_j``: every client then has the largest ``nu_j`` that is admitted, ``mu_j`` itself."""
        require(smallest(objective.mu) > 0, "scales must be none or numbers for clients that are not strongly convex")
        return tuple(map(float, to_numpy(objective.mu)))

    def check(self, objective: Objective) -> None:
        """Refuse ``nu > mu``, outside the theory: the dual problem is then not convex."""
        known = Known.of(objective)
        unless = "unless check_assumptions is False (--no-check-assumptions on the command line)"
        require(NU.holds(self, known), f"nu = {self.nu:g} must not exceed mu = {known.mu:g}, {unless}")
