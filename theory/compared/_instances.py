"""Quadratic clients that agree on the minimiser, or on nothing."""

from __future__ import annotations

from functools import cache

import numpy as np

from dualopt.objectives import Quadratic
from theory._problems import Instance, quadratic, solved

__all__ = ["one_minimiser", "three_directions"]


@cache
def one_minimiser(*, L: float = 50.0) -> Instance:
    """Three clients with different Hessians and the same minimiser."""
    A = quadratic(L=L).objective.A
    minimiser = np.random.default_rng(1).standard_normal(A.shape[-1])
    return solved(f"one minimiser (kappa={L:g})", Quadratic(A=A, b=A @ minimiser))


@cache
def three_directions(*, L: float = 40.0) -> Instance:
    """Three clients in the plane, each with curvature L along one of three directions at 120 degrees and 1 across."""
    angles = 2.0 * np.pi * np.arange(3) / 3
    u = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    A = np.eye(2) + (L - 1.0) * u[:, :, None] * u[:, None, :]
    return solved(f"three directions (kappa={L:g})", Quadratic(A=A, b=u))
