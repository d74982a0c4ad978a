"""Attacks on Theorem 1 of the FedPD paper, as printed and corrected."""

from __future__ import annotations

from functools import partial

import numpy as np

from dualopt.lab.attack import Parameters
from dualopt.objectives import Quadratic
from theory._cases import Case
from theory.attack._forms import form
from theory.attack._quadratics import bounded_below
from theory.fedpd._runs import LIMIT, fedpd_case

SIZES = ((2, 1), (2, 2), (3, 2))  # clients, dimensions
LARGEST = 0.999 * LIMIT  # L eta: the range that Theorem 1 admits is open


def different(parameters: Parameters, N: int, d: int, *, least: float = 1e-2, rounds: int = 20) -> Case:
    """Return clients that differ, with any L from ``least`` on, and any start."""
    f = bounded_below(parameters, N, d, L=parameters.magnitude(least, 1e2)).objective
    return fedpd_case(f"N = {N}, d = {d}", f, a=_step(parameters), rounds=rounds, theta0=parameters.reals(d))


def alike(parameters: Parameters, d: int, *, rounds: int = 20) -> Case:
    """Return two clients with the same convex function, so that a start without duals costs nothing extra."""
    L = parameters.magnitude(1e-2, 1e2)
    A = L * parameters.symmetric([1.0, *(parameters.magnitude(1e-2, 1.0) for _ in range(d - 1))])
    f = Quadratic(A=np.stack([A, A]), b=np.zeros((2, d)))
    return fedpd_case(f"alike, d = {d}, L = {L:.3g}", f, a=_step(parameters), rounds=rounds, theta0=parameters.reals(d))


def _step(parameters: Parameters) -> float:
    return parameters.magnitude(1e-3, LARGEST)


ALIKE = [partial(alike, d=d) for d in (1, 2)]
LARGE_L = [partial(different, N=N, d=d, least=1.0) for N, d in SIZES]  # L >= 1, where P1 does not matter

GENERATORS = {
    "fedpd_theorem_1": [partial(different, N=N, d=d) for N, d in SIZES],
    "p1_scale_of_constants": [partial(form, generator=generator, printed=True) for generator in ALIKE],
    "p1_scale_of_constants:corrected": [partial(form, generator=generator, printed=False) for generator in ALIKE],
    "p8_initial_duals": [partial(form, generator=generator, printed=True) for generator in LARGE_L],
    "p8_initial_duals:corrected": [partial(form, generator=generator, printed=False) for generator in LARGE_L],
}
