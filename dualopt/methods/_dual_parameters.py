"""The parameters of DualFL and OptimizedDualFL, and the rules that their theorems set for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from dualopt.arrays._checks import require, require_positive
from dualopt.arrays.xp import Array
from dualopt.methods._base import OPEN, Algorithm
from dualopt.methods._parameters import largest, require_local_gradients, smallest, within
from dualopt.methods._scales import constants, of_clients, require_scales, weights
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.objectives.local_problem import per_client
from dualopt.solvers._loop import is_smooth

__all__ = ["DualParameters"]


@dataclass(frozen=True, kw_only=True)
class DualParameters(Algorithm):
    """What the methods on the dual problem have in common: ``nu``, ``rho``, one ``nu_j`` for each client, restarts.

    Parameters and errors are those of :class:`dualopt.methods.DualFL`.
    """

    restarts: ClassVar[tuple[str, ...]] = ("gradient",)

    rho: float = OPEN
    nu: float = OPEN
    corrected: bool = False
    scaled: bool = False
    scales: tuple[float, ...] | None = None
    restart: str | None = None

    def __post_init__(self) -> None:
        require_scales(self.scales)
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
        """Fill in ``nu = min_j mu_j`` and ``rho = nu / max_j L_j``, the optimal choice, 0 with a restart; also scales.

        Where some ``L_j`` is not finite ``rho`` is 0. Kinks are no reason for a restart: by the gradient it loses
        the rate of Theorem 3.2, and rounds more often than it gains them (docs/no_tuning.md). Where nothing is known of
        the curvature there is no rate to lose, and the gradient restart is suggested.
        """
        nu = smallest(objective.mu) if self.nu is None else self.nu
        if nu <= 0:
            raise ValueError(f"nu cannot be suggested because mu is {nu:g}: give mu > 0 (Section 4 adds a ridge).")
        scales = self.scales
        if self.scaled and scales is None:
            require(smallest(objective.mu) > 0, "scaled must be False for clients that are not strongly convex")
            scales = tuple(mu / smallest(objective.mu) for mu, _ in constants(objective))
        unknown = is_smooth(objective) and not math.isfinite(largest(objective.L))
        restart = "gradient" if unknown and self.rho is None and self.restart is None else self.restart
        rho = self.rho
        if rho is None:
            limit = replace(self, nu=nu, scales=scales).limit(objective)
            rho = 0.0 if restart else min(limit, 1.0 - 1e-9)  # for mu = L any rho near 1 needs one round
        return replace(super().suggested(objective), nu=nu, rho=rho, scales=scales, restart=restart)

    def limit(self, objective: Objective) -> float:
        """Return the least ``nu_j/L_j``, for one ``nu`` ``nu / max_j L_j``: the largest ``rho`` of Theorem 3.3."""
        if self.scales is None:
            return self.nu / largest(objective.L)
        require_scales(self.scales, objective.n_clients)
        return min(self.nu * s / L for s, (_, L) in zip(self.scales, constants(objective), strict=True))

    def fits(self, objective: Objective) -> bool:
        """Tell whether every ``nu_j`` is at most ``mu_j``."""
        if self.scales is None:
            return within(self.nu, smallest(objective.mu))
        require_scales(self.scales, objective.n_clients)
        return all(within(self.nu * s, mu) for s, (mu, _) in zip(self.scales, constants(objective), strict=True))

    def check(self, objective: Objective) -> None:
        """Refuse ``nu > mu``, outside the theory: the dual problem is then not convex."""
        mu = smallest(objective.mu)
        unless = "unless check_assumptions is False (--no-check-assumptions on the command line)"
        times, own = ("", f"mu = {mu:g}") if self.scales is None else (" times scales", "every mu_j")
        require(self.fits(objective), f"nu = {self.nu:g}{times} must not exceed {own}, {unless}")

    @property
    def mean_nu(self) -> float:
        """The mean of the ``nu_j``."""
        return self.nu if self.scales is None else self.nu * sum(self.scales) / len(self.scales)

    def nu_of(self, round: Round, like: Array) -> float | Array:
        """Return ``nu``, or the ``nu_j`` of the clients of a round for arrays like ``like``."""
        return per_client(self.nu * of_clients(self.scales, round, like), like)

    def weighted(self, x: Array, round: Round) -> Array:
        """Return the ``x_j`` with the weights ``nu_j / mean(nu)``, for the plain mean at the server."""
        return x if self.scales is None else weights(self.scales, round, x) * x
