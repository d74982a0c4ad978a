"""Attacks on Theorem 1 of the FedPD paper."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dualopt.attack import Numbers
from dualopt.objectives import Quadratic
from theory.attack._quadratics import bounded_below
from theory.fedpd._instances import run_on
from theory.fedpd._run import Run

SIZES = ((2, 1), (2, 2), (3, 2))  # clients, dimensions
LIMIT = 0.999 * (math.sqrt(5.0) - 1.0) / 4.0  # of L eta: the range that Theorem 1 admits is open


def different(numbers: Numbers, N: int, d: int, *, least: float = 1e-2, rounds: int = 20) -> Run:
    """Return clients that differ, with any L from ``least`` on, and any start."""
    f = bounded_below(numbers, N, d, L=numbers.magnitude(least, 1e2)).objective
    return run_on(f"N = {N}, d = {d}", f, a=_step(numbers), rounds=rounds, theta0=numbers.reals(d))


def alike(numbers: Numbers, d: int, *, rounds: int = 20) -> Run:
    """Return two clients that share a convex function, so that a start without duals costs nothing extra."""
    L = numbers.magnitude(1e-2, 1e2)
    A = L * numbers.symmetric([1.0, *(numbers.magnitude(1e-2, 1.0) for _ in range(d - 1))])
    f = Quadratic(A=np.stack([A, A]), b=np.zeros((2, d)))
    return run_on(f"alike, d = {d}, L = {L:.3g}", f, a=_step(numbers), rounds=rounds, theta0=numbers.reals(d))


def _step(numbers: Numbers) -> float:
    return numbers.magnitude(1e-3, LIMIT)


FAMILIES = {"fedpd_theorem_1": [partial(different, N=N, d=d) for N, d in SIZES]}
