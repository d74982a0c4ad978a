"""Attacks on Theorem 1 of the FedPD paper."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dualopt.attack import Parameters
from dualopt.objectives import Quadratic
from theory.attack._quadratics import bounded_below
from theory.fedpd._instances import run_on
from theory.fedpd._run import Run

SIZES = ((2, 1), (2, 2), (3, 2))  # clients, dimensions
LIMIT = 0.999 * (math.sqrt(5.0) - 1.0) / 4.0  # of L eta: the range that Theorem 1 admits is open


def different(parameters: Parameters, N: int, d: int, *, least: float = 1e-2, rounds: int = 20) -> Run:
    """Return clients that differ, with any L from ``least`` on, and any start."""
    f = bounded_below(parameters, N, d, L=parameters.magnitude(least, 1e2)).objective
    return run_on(f"N = {N}, d = {d}", f, a=_step(parameters), rounds=rounds, theta0=parameters.reals(d))


def alike(parameters: Parameters, d: int, *, rounds: int = 20) -> Run:
    """Return two clients that share a convex function, so that a start without duals costs nothing extra."""
    L = parameters.magnitude(1e-2, 1e2)
    A = L * parameters.symmetric([1.0, *(parameters.magnitude(1e-2, 1.0) for _ in range(d - 1))])
    f = Quadratic(A=np.stack([A, A]), b=np.zeros((2, d)))
    return run_on(f"alike, d = {d}, L = {L:.3g}", f, a=_step(parameters), rounds=rounds, theta0=parameters.reals(d))


def _step(parameters: Parameters) -> float:
    return parameters.magnitude(1e-3, LIMIT)


GENERATORS = {"fedpd_theorem_1": [partial(different, N=N, d=d) for N, d in SIZES]}
