r"""DualFL on two clients of one variable.

On :math:`\frac{a_j}2(x - m_j)^2` the errors of the :math:`\zeta_j`, which have sum zero, are e and -e, and with
:math:`q = \frac\nu2(\frac1{a_1} + \frac1{a_2})` the model's error is :math:`\frac\nu2(\frac1{a_1} - \frac1{a_2})e`, and

.. math:: e_{n+1} = (1 - q)\bigl((1 + \beta_n)e_n - \beta_n e_{n-1}\bigr), \qquad
          \beta_n \to \frac{1 - \sqrt\rho}{1 + \sqrt\rho}.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import DualFL
from dualopt.algorithms.dualfl import momentum
from dualopt.claims import Inequality
from dualopt.solvers import Exact
from dualopt.xp import Array
from theory.counterexamples._recursion import Run, follow, scalars

__all__ = ["dualised", "final_momentum", "follow_dual", "step_in_dual"]


def step_in_dual(run: Run) -> float:
    """Return q, the step nu in units of the inverse curvature of the dual problem."""
    return run.algorithm.nu * float(np.mean(1.0 / run.curvatures))


def final_momentum(rho: float) -> float:
    """Return what beta tends to."""
    return (1.0 - math.sqrt(rho)) / (1.0 + math.sqrt(rho))


def follow_dual(run: Run, factor: float) -> Iterator[Inequality]:
    """Follow the model by the recursion of every round."""
    recursions = _recursions(1.0 - step_in_dual(run), run.algorithm.rho)
    # all zeta_j start at zero, whatever theta0 is
    return follow(run, recursions, factor, first=1)


def _recursions(g: float, rho: float) -> Iterator[Array]:
    t, _ = momentum(1.0, rho)
    while True:
        t, beta = momentum(t, rho)
        yield np.array([1.0, -(1.0 + beta) * g, beta * g])


def dualised(nu: float, rho: float, curvatures: tuple[float, float], *, converges: bool = True) -> Run:
    """Return DualFL with exact local solutions on two clients whose minima are -1 and 1."""
    listed = ", ".join(f"{a:g}" for a in curvatures)
    return Run(
        label=f"curvatures {listed}, nu = {nu:.4g}, rho = {rho:.4g}",
        algorithm=DualFL(nu=nu, rho=rho, solver=Exact()),
        objective=scalars(curvatures, [-1.0, 1.0]),
        converges=converges,
        theta0=0.0,
    )
