"""Problems for A-FedPD beyond those of :mod:`theory._problems`: E is bounded below, its clients need not be."""

from __future__ import annotations

from functools import cache

import numpy as np

from dualopt.objectives import Quadratic
from theory._problems import Instance, solved

__all__ = ["one_client", "one_concave", "pulled_apart", "two_signs"]


@cache
def one_client(curvature: float) -> Instance:
    """One client alone: nothing but proximal steps is left of the method."""
    f = Quadratic(A=np.full((1, 1, 1), curvature), b=np.zeros((1, 1)))
    return solved(f"one client of curvature {curvature:g}", f)


@cache
def two_signs() -> Instance:
    """Clients 3x^2/2 and -x^2/2: E has the curvature 1, every client is stationary at 0."""
    f = Quadratic(A=np.array([[[3.0]], [[-1.0]]]), b=np.zeros((2, 1)))
    return solved("3x^2/2 and -x^2/2", f)


@cache
def one_concave(n: int, *, excess: float = 0.1) -> Instance:
    """One client of curvature -1, all others of (1 + excess)/(n - 1): E is just convex, and L = 1 from n = 3 on."""
    curvature = np.append(np.full(n - 1, (1.0 + excess) / (n - 1)), -1.0)
    return solved(f"one concave of {n}", Quadratic(A=curvature[:, None, None], b=np.zeros((n, 1))))


@cache
def pulled_apart(n: int = 3) -> Instance:
    """Clients (x - b_j)^2/2 whose minima are spread around 1."""
    b = 1.0 + np.linspace(-2.0, 2.0, n)[:, None]
    return solved(f"{n} pulled apart", Quadratic(A=np.ones((n, 1, 1)), b=b))
