"""Attacks on the theorems of the DualFL paper, and on the certificates that its duality gives."""

from __future__ import annotations

from functools import partial

from dualopt.lab.attack import Parameters
from dualopt.methods import FedDyn
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case, accurately
from theory.attack._quadratics import convex, unequal
from theory.dualfl._runs import exact, inexact

SIZES = ((2, 1), (2, 2), (3, 2), (3, 3))  # clients, dimensions
MOST_STEPS = 20  # of a local solver


def sublinear(parameters: Parameters, N: int, d: int, *, rounds: int = 12) -> Case:
    """Return a case of Theorem 3.2."""
    f = convex(parameters, N, d, kappa=1e4)
    return f.case(exact(f, rho=0.0, nu=f.mu * parameters.magnitude(0.1, 1.0)), rounds)


def linear(parameters: Parameters, N: int, d: int, *, rounds: int = 20) -> Case:
    """Return a case of Theorem 3.3."""
    f = convex(parameters, N, d, kappa=1e3)
    nu = f.mu * parameters.magnitude(0.1, 1.0)
    return f.case(exact(f, rho=nu / f.L * parameters.magnitude(1e-2, 1.0), nu=nu), rounds)


def few_steps(parameters: Parameters, N: int, d: int, *, smooth: bool, rounds: int = 8) -> Case:
    """Return a case of either theorem with a few gradient steps for local solutions."""
    f = convex(parameters, N, d, kappa=1e2)
    nu = f.mu * parameters.magnitude(0.1, 1.0)
    rho = nu / f.L * parameters.magnitude(1e-2, 1.0) if smooth else 0.0
    steps = Steps(steps=round(parameters.magnitude(1.0, MOST_STEPS)))
    return f.case(inexact(f, steps, rho=rho, nu=nu, solver=Gradient()), rounds)


def certified(parameters: Parameters, N: int, d: int, *, rounds: int = 4) -> Case:
    """Return a run to certify, on clients of which one may be flat or concave, with local solutions that are exact."""
    f = unequal(parameters, N, d, kappa=1e2)
    return f.case(FedDyn(alpha=parameters.magnitude(1.0, 1e2), **accurately(f.objective)), rounds)


GENERATORS = {
    "dual_certificate": [partial(certified, N=N, d=d) for N, d in SIZES],
    "gradient_certificate": [partial(certified, N=N, d=d) for N, d in SIZES],
    "theorem_3_2": [partial(sublinear, N=N, d=d) for N, d in SIZES],
    "theorem_3_3": [partial(linear, N=N, d=d) for N, d in SIZES],
    "theorem_3_2_inexact": [partial(few_steps, N=N, d=d, smooth=False) for N, d in SIZES[:2]],
    "theorem_3_3_inexact": [partial(few_steps, N=N, d=d, smooth=True) for N, d in SIZES[:2]],
}
