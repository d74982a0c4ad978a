"""When a client stops working on its local problem.

A rule looks at the progress of every client and answers client by client; it never mixes them, so that a
client's result does not depend on who else is in the call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from dualopt.arrays._checks import Typed, require, require_positive
from dualopt.arrays.streams import Round
from dualopt.arrays.xp import Array, array_namespace, chosen
from dualopt.objectives.local_problem import gap_bound

__all__ = [
    "RULES",
    "SCHEDULES",
    "Gap",
    "GapSchedule",
    "GradientNorm",
    "GradientReduction",
    "LinearSchedule",
    "Progress",
    "RelativeEnergy",
    "Steps",
    "Stop",
    "SublinearSchedule",
]


class Progress(NamedTuple):
    """What a solver tells a stopping rule after ``steps`` steps; arrays have shape ``(N,)``."""

    steps: int
    round: Round
    value: Array  # F_j at the current points
    previous: Array  # F_j one step earlier (inf before the first step)
    mu: Array  # strong convexity constants of F_j
    gradient_norm: Array  # |grad F_j|
    first_gradient_norm: Array  # the same at the start

    @property
    def gap(self) -> Array:
        """An upper bound of ``F_j - min F_j``; infinite for ``mu = 0``."""
        return gap_bound(self.gradient_norm * self.gradient_norm, self.mu)


class Stop(Protocol):
    """A stopping rule of the local solvers."""

    def finished(self, progress: Progress) -> Array:
        """Return a boolean for each client, shape ``(N,)``."""
        ...


@dataclass(frozen=True, kw_only=True)
class Steps(Typed):
    """Stop after a fixed number of steps.

    Examples
    --------
    >>> Steps(steps=10)
    Steps(steps=10)
    """

    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps must be at least 1, not {self.steps}.")

    def finished(self, progress: Progress) -> Array:
        """Return True everywhere once the number of steps is reached."""
        xp = array_namespace(progress.value)
        return xp.ones_like(progress.value, dtype=xp.bool) & (progress.steps >= self.steps)


@dataclass(frozen=True, kw_only=True)
class GradientNorm(Typed):
    """Stop when the norm of the local gradient is at most ``tol``."""

    tol: float

    def __post_init__(self) -> None:
        require_positive(tol=self.tol)

    def finished(self, progress: Progress) -> Array:
        """Compare ``|grad F_j|`` with ``tol``."""
        return progress.gradient_norm <= self.tol


@dataclass(frozen=True, kw_only=True)
class GradientReduction(Typed):
    r"""Stop when the local gradient has shrunk by ``factor`` since the start of this call.

    With warm starts the gradient at the start is what the last round changed, ``nu |zeta^n - zeta^{n-1}|`` for DualFL.
    The rule is therefore as accurate as the present round deserves, needs no constant of the problem, and is
    invariant under scaling of ``f``.

    Parameters
    ----------
    factor : float, default 0.1
        Factor of every round but the first.
    first : float, default 1e-3
        Factor of round 0, where the gradient at the start still measures the distance from an arbitrary point.
    """

    factor: float = 0.1
    first: float = 1e-3

    def __post_init__(self) -> None:
        for name, value in (("factor", self.factor), ("first", self.first)):
            require(0 < value < 1, f"{name} must lie strictly between 0 and 1", value)

    def finished(self, progress: Progress) -> Array:
        """Compare ``|grad F_j|`` with a multiple of its first value."""
        factor = chosen(progress.round.n == 0, self.first, self.factor)
        return progress.gradient_norm <= factor * progress.first_gradient_norm


@dataclass(frozen=True, kw_only=True)
class RelativeEnergy(Typed):
    """Stop when a step changes the local energy by at most ``tol`` relative to it (Section 7 of the DualFL paper)."""

    tol: float = 1e-12

    def __post_init__(self) -> None:
        require_positive(tol=self.tol)

    def finished(self, progress: Progress) -> Array:
        """Compare ``|F_j - F_j previous|`` with ``tol |F_j|``."""
        xp = array_namespace(progress.value)
        small = xp.abs(progress.previous - progress.value) <= self.tol * xp.abs(progress.value)
        return small | (progress.gradient_norm == 0)


class GapSchedule(Protocol):
    """The largest gap that is admitted in a round."""

    def __call__(self, round: Round, /) -> float:
        """Return the admitted gap."""
        ...


@dataclass(frozen=True, kw_only=True)
class Gap(Typed):
    """Stop when the local suboptimality is at most a schedule of the round.

    Parameters
    ----------
    scale : float, default 1
        Of the schedule that a run chooses where none is given: (3.7) if the method's ``rho`` is 0, and (3.8) otherwise.
    schedule : callable, optional
        Maps a ``Round`` to the largest admitted gap; :class:`SublinearSchedule` (3.7), :class:`LinearSchedule` (3.8),
        or any function.

    Examples
    --------
    >>> Gap(scale=2.0).scheduled(nu=0.1, rho=0.25)
    Gap(scale=2.0, schedule=LinearSchedule(rho=0.25, gamma=0.1, scale=2.0))
    """

    scale: float = 1.0
    schedule: GapSchedule | None = None

    def __post_init__(self) -> None:
        require_positive(scale=self.scale)

    def scheduled(self, *, nu: float, rho: float) -> Gap:
        """Return the rule with a schedule for these parameters of a method, unless it has one."""
        if self.schedule is not None:
            return self
        given: Any = SublinearSchedule(nu=nu) if rho == 0 else LinearSchedule(rho=rho)
        return replace(self, schedule=replace(given, scale=self.scale))

    def finished(self, progress: Progress) -> Array:
        """Compare the bound ``|grad F_j|^2 / (2 (mu + weight))`` with the schedule."""
        require(self.schedule is not None, "stop needs a schedule here: pass Gap(schedule=...)")
        assert self.schedule is not None
        return progress.gap <= self.schedule(progress.round)


@dataclass(frozen=True, kw_only=True)
class SublinearSchedule(Typed):
    r"""Accuracy for Theorem 3.2, equation (3.7).

    It is :math:`\text{scale} / (N \nu (n+1)^{4+\gamma})` in round ``n``.
    The paper has ``scale = 1``, which is not invariant when the ``f_j`` are multiplied by a number; ``scale`` repairs
    it.

    Examples
    --------
    >>> r = Round(n=1, n_clients=2, clients=(0, 1), communicate=True, seed=0)
    >>> SublinearSchedule(nu=0.5, gamma=1.0)(r)
    0.03125
    """

    nu: float
    gamma: float = 0.1
    scale: float = 1.0

    def __post_init__(self) -> None:
        require_positive(nu=self.nu, gamma=self.gamma, scale=self.scale)

    def __call__(self, round: Round) -> float:
        """Return the admitted gap."""
        return self.scale / (round.n_clients * self.nu * (round.n + 1.0) ** (4.0 + self.gamma))


@dataclass(frozen=True, kw_only=True)
class LinearSchedule(Typed):
    r"""Accuracy for Theorem 3.3, equation (3.8).

    It is :math:`\frac{\text{scale}}{N} \left(\frac{1-\sqrt\rho}{1+\gamma}\right)^n` in round ``n``.

    Examples
    --------
    >>> r = Round(n=2, n_clients=4, clients=(0, 1, 2, 3), communicate=True, seed=0)
    >>> LinearSchedule(rho=0.25, gamma=1.0)(r)
    0.015625
    """

    rho: float
    gamma: float = 0.1
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.rho < 1:
            raise ValueError(f"rho must lie in [0, 1), not {self.rho}.")
        require_positive(gamma=self.gamma, scale=self.scale)

    def __call__(self, round: Round) -> float:
        """Return the admitted gap."""
        return self.scale / round.n_clients * ((1.0 - math.sqrt(self.rho)) / (1.0 + self.gamma)) ** round.n


RULES: dict[str, Any] = {
    "steps": Steps,
    "gradient": GradientNorm,
    "reduction": GradientReduction,
    "energy": RelativeEnergy,
    "gap": Gap,
}
"""The rules by name."""

SCHEDULES: dict[str, Any] = {"sublinear": SublinearSchedule, "linear": LinearSchedule}
"""The schedules of ``Gap`` by name."""
