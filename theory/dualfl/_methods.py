"""DualFL in the configurations that the claims speak about."""

from __future__ import annotations

import math

from dualopt.algorithms import DualFL
from dualopt.objectives import Quadratic
from dualopt.solvers import LBFGS, DualCoordinate, Exact, LocalSolver, NewtonCG
from dualopt.stopping import Gap, GradientNorm, Stop
from theory._problems import Instance

__all__ = ["exact", "inexact"]


def exact(instance: Instance, *, rho: float | None = None, nu: float | None = None) -> DualFL:
    """Return DualFL with local solutions that are exact up to rounding.

    Quadratics are solved in closed form; smooth losses by Newton's method to a gradient of 1e-12; others by dual
    coordinate ascent to a gap of 1e-13, which answers with dual-corrected points.
    """
    nu = instance.mu if nu is None else nu
    rho = nu / instance.L if rho is None else rho
    solver, stop = _exact_solver(instance)
    return DualFL(rho=rho, nu=nu, solver=solver, stop=stop, corrected=True)


def inexact(
    instance: Instance, stop: Stop, *, rho: float, nu: float | None = None, solver: LocalSolver | None = None
) -> DualFL:
    """Return the dual-corrected DualFL whose local solver, L-BFGS when not given, is stopped by a rule."""
    nu = instance.mu if nu is None else nu
    return DualFL(rho=rho, nu=nu, solver=solver or LBFGS(precondition=False), stop=stop, corrected=True)


def _exact_solver(instance: Instance) -> tuple[LocalSolver, Stop]:
    if isinstance(instance.objective, Quadratic):
        return Exact(), GradientNorm(tol=1e-12)
    if math.isfinite(instance.L):
        return NewtonCG(), GradientNorm(tol=1e-12)
    return DualCoordinate(max_iter=20_000), Gap(schedule=lambda _: 1e-13)
