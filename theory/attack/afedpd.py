"""Attacks on Theorem 1 of the A-FedPD paper, as printed and as corrected."""

from __future__ import annotations

from functools import partial

from dualopt.lab.attack import Parameters
from theory._cases import Case
from theory.afedpd._runs import afedpd_case
from theory.attack._forms import form
from theory.attack._quadratics import bounded_below

SIZES = ((2, 1), (3, 1), (3, 2))  # clients, dimensions


def large_rho(parameters: Parameters, N: int, d: int) -> Case:
    """Return any rho > 2L and any L."""
    f = bounded_below(parameters, N, d, L=parameters.magnitude(1e-2, 1e2))
    return _everybody(parameters, f, f.L * parameters.magnitude(2.001, 20.0))


def any_rho(parameters: Parameters, N: int, d: int) -> Case:
    """Return any rho that makes local problems convex; L = 1, as the printed constant has a scale of its own (A4)."""
    f = bounded_below(parameters, N, d, L=1.0)
    return _everybody(parameters, f, max(-f.mu, 0.0) + parameters.magnitude(1e-2, 1e1))


def _everybody(parameters: Parameters, f: Case, rho: float, rounds: int = 25) -> Case:
    theta0 = parameters.reals(*f.objective.shape)
    return afedpd_case(f, rho=rho, active=f.objective.n_clients, rounds=rounds, theta0=theta0)


ANY_RHO = [partial(any_rho, N=N, d=d) for N, d in SIZES]
LARGE_RHO = [partial(large_rho, N=N, d=d) for N, d in SIZES]

GENERATORS = {
    "afedpd_theorem_1": LARGE_RHO,
    "a1_range_of_rho": [partial(form, generator=generator, printed=True) for generator in ANY_RHO],
    "a1_range_of_rho:corrected": [partial(form, generator=generator, printed=False) for generator in LARGE_RHO],
}
