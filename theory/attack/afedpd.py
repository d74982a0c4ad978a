"""Attacks on Theorem 1 of the A-FedPD paper."""

from __future__ import annotations

from functools import partial

from dualopt.attack import Numbers
from theory._instances import Instance
from theory.afedpd._cases import Federation, federation
from theory.attack._quadratics import bounded_below

SIZES = ((2, 1), (3, 1), (3, 2))  # clients, dimensions


def large_rho(numbers: Numbers, N: int, d: int) -> Federation:
    """Return any rho > 2L and any L."""
    f = bounded_below(numbers, N, d, L=numbers.magnitude(1e-2, 1e2))
    return _everybody(numbers, f, f.L * numbers.magnitude(2.001, 20.0))


def any_rho(numbers: Numbers, N: int, d: int) -> Federation:
    """Return any rho that makes local problems convex; L = 1, as the printed constant has a scale of its own (A4)."""
    f = bounded_below(numbers, N, d, L=1.0)
    return _everybody(numbers, f, max(-f.mu, 0.0) + numbers.magnitude(1e-2, 1e1))


def _everybody(numbers: Numbers, f: Instance, rho: float, rounds: int = 25) -> Federation:
    theta0 = numbers.reals(*f.objective.shape)
    return federation(f, rho=rho, active=f.objective.n_clients, rounds=rounds, theta0=theta0)


FAMILIES = {"afedpd_theorem_1": [partial(large_rho, N=N, d=d) for N, d in SIZES]}
