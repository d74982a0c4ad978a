r"""FedADMM with a server step of 1: two clients that take turns, and the two regimes of dual drift.

Clients :math:`\frac a2(x - m_j)^2`. A client that has been active has :math:`\lambda_j = -a(\theta_j - m_j)`, so with
:math:`\alpha = \frac\rho{a+\rho}` its next solution is :math:`\theta_j^+ = (1 - \alpha)\theta_j + \alpha\theta`, and
:math:`\Delta_j = (1 - \frac a\rho)(\theta_j^+ - \theta_j)`. Let u and v be the distances from the model of the client
whose turn it is, and of the other one. With :math:`k = \eta_s\frac{\rho-a}{\rho+a}` a round makes of them

.. math:: (u, v) \mapsto (v + ku,\; (1 - \alpha + k)u), \qquad x^2 - kx - (1 - \alpha + k) = 0.

For :math:`\eta_s \le 1` both roots are real and above -1, and the larger one is below 1 as long as :math:`2k < \alpha`.
The fixed point solves :math:`\nabla E(\theta) = c(\theta - \theta^0)`, :math:`c = \rho(1 - \frac1{2\eta_s})`
(``fedadmm_dual_drift``), and :math:`2k < \alpha` is the same as :math:`c < a`: the method minimises
:math:`E - \frac c2|\cdot - \theta^0|^2`, as long as that has a minimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import numpy as np

from dualopt.algorithms import FedADMM
from dualopt.claims import Inequality, claim
from dualopt.participation import Schedule
from dualopt.solvers import Exact
from theory._claims import ExpectedVerdict
from theory.counterexamples._recursion import Run, follow, scalars


def fedadmm_two_clients_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both regimes of a server step of 1, close to their border and far from it; other steps; and the right one."""
    for rho in (0.5, 1.94, 2.06, 20.0) if quick else (0.5, 1.5, 1.96, 2.04, 20.0):
        yield ExpectedVerdict(in_turn(rho, 1.0))
    for rho in (2.7, 3.3):  # c = rho/3
        yield ExpectedVerdict(in_turn(rho, 0.75))
    yield ExpectedVerdict(in_turn(5.0, 0.25))
    for rho in (0.5, 20.0):
        yield ExpectedVerdict(in_turn(rho, 0.5))


@claim(
    source="Sun, Shen and Tao, Section 3.2 (dual drift), derived",
    statement=r"FedADMM from zero duals on $\frac a2(x - m_1)^2$ and $\frac a2(x - m_2)^2$, which are active in turn,"
    r" with $\eta_s \le 1$ and $c = \rho(1 - \frac1{2\eta_s})$: for $c < a$ the model converges to $\frac{a\theta^* -"
    r" c\theta^0}{a - c}$, the solution for $\eta_s = \frac12 = P/N$ only; for $c > a$ it diverges. With $\eta_s = 1$"
    r" these are $\rho < 2a$ and $\rho > 2a$. The factor of a round is the larger root of $x^2 - kx - (\frac a{a +"
    r" \rho} + k)$, $k = \eta_s\frac{\rho - a}{\rho + a}$.",
    assumptions=lambda run: [] if run.algorithm.server_step <= 1 else ["eta_s <= 1"],
    rounding=0.0,
    cases=fedadmm_two_clients_cases,
)
def fedadmm_two_clients(run: Run) -> Iterator[Inequality]:
    """Follow the model to the minimum of E - c|. - theta0|^2/2, or away from its stationary point."""
    a, rho, server_step = float(run.curvatures[0]), run.algorithm.rho, run.algorithm.server_step
    k = server_step * (rho - a) / (rho + a)
    roots = np.roots([1.0, -k, -(1.0 - rho / (a + rho) + k)])
    # both clients have been active after two rounds
    return follow(run, repeat(np.poly(roots)), float(np.max(np.abs(roots))), first=2)


def drift(rho: float, server_step: float) -> float:
    """Return c."""
    return rho * (1.0 - 0.5 / server_step)


def in_turn(rho: float, server_step: float) -> Run:
    """Return FedADMM on x^2/2 and (x - 2)^2/2, from 0; the solution is 1."""
    c = drift(rho, server_step)
    return Run(
        label=f"rho = {rho:g}, server step {server_step:g}",
        algorithm=FedADMM(rho=rho, server_step=server_step, solver=Exact()),
        objective=scalars([1.0, 1.0], [0.0, 2.0]),
        converges=c < 1.0,
        limit=1.0 / (1.0 - c),
        theta0=0.0,
        participation=Schedule(clients=((0,), (1,))),
    )
