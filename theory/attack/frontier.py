"""Attacks on theorems found with this package: DualFL whose momentum adapts."""

from __future__ import annotations

from functools import partial

from dualopt.lab.attack import Parameters
from theory._cases import Case
from theory.attack._quadratics import convex
from theory.frontier.adaptive_dualfl import adaptive

SIZES = ((2, 1), (2, 2), (3, 2), (3, 3))  # clients, dimensions


def adapting(parameters: Parameters, N: int, d: int, *, least: float, most: float, rounds: int = 40) -> Case:
    """Return AdaptiveDualFL with a first estimate of so many times sigma; no ``nu`` is the curvature of all clients."""
    f = convex(parameters, N, d, kappa=1e3)
    return adaptive(f, rounds, times=parameters.magnitude(0.1, 0.95), share=parameters.magnitude(least, most))


GENERATORS = {
    # held momentum is compared where the estimate is at most sigma, and refuted where it is more
    "adaptive_gap": [partial(adapting, N=N, d=d, least=0.01, most=1.0) for N, d in SIZES],
    "adaptive_rounds": [partial(adapting, N=N, d=d, least=1.0, most=1e4) for N, d in SIZES],
}
