"""D2: the gap (3.6) of the DualFL paper, "observable by simple arithmetic operations"."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import linprog

from dualopt.claims import Inequality
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from dualopt.xp import Array
from theory._claims import ExpectedVerdict, Form
from theory._problems import breast_cancer
from theory.dualfl._methods import inexact
from theory.dualfl.gap_3_6 import gap_3_6


def d2_infinite_gap_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Ten gradient steps on real rows."""
    f = breast_cancer()
    method = inexact(f, Steps(steps=10), rho=f.mu / f.L, solver=Gradient())
    case = f.case(method, 2 if quick else 10, "ten gradient steps")
    yield ExpectedVerdict(Form(case, printed=True), "violated")
    yield ExpectedVerdict(Form(case, printed=False))


@gap_3_6.as_printed(
    source="DualFL (3.6)-(3.8)",
    statement=r"With nu = mu, $g_j^*(\nu(\zeta_j - \theta_j)) < \infty$ at inexact local solutions, so that"
    r" $\Gamma^{n,j}(\theta_j)$ can be evaluated. Printed: at $\theta_j$. Corrected: at the dual-corrected point"
    r" $\theta_j - r_j/\nu$, where the dual error is at most $|r_j|^2/(2\nu)$.",
    rounding=0.0,
    cases=d2_infinite_gap_cases,
)
def d2_infinite_gap(form: Form) -> Iterator[Inequality]:
    r"""Measure how far :math:`\nu(\zeta_j - \theta_j)` is from the domain of :math:`g_j^*`, client by client."""
    case, nu = form.case, form.case.algorithm.nu
    zeta = np.zeros_like(case.subgradients)
    for n, s in enumerate(case.snapshots(), start=1):
        points = s.clients.theta if form.printed else s.clients.sent
        for (X, y, w), xi in zip(case.objective.client_rows(), nu * (zeta - points), strict=True):
            yield Inequality(n, distance_to_domain(X, y, w, xi), 1e-9, "distance from dom g_j*")
        zeta = s.clients.zeta


def distance_to_domain(X: Array, y: Array, w: Array, xi: Array) -> float:
    r"""Return the relative distance of ``xi`` from :math:`\{-\sum_i w_i y_i s_i x_i : 0 \le s_i \le 1\}`.

    This is the domain of the conjugate of :math:`\sum_i w_i\log(1 + e^{-y_i\langle x_i,\cdot\rangle})`, or its closure.
    The distance, in the largest entry and relative to that of ``xi``, is the value of a linear program.

    Examples
    --------
    >>> one = np.ones(1)
    >>> [distance_to_domain(np.eye(1), one, one, np.array([xi])) for xi in (-0.5, 1.0)]
    [0.0, 1.0]
    """
    scale = float(np.max(np.abs(xi)))
    columns, side = -(w * y)[:, None].T * X.T / scale, np.ones((len(xi), 1))
    found = linprog(
        np.append(np.zeros(len(y)), 1.0),
        A_ub=np.block([[columns, -side], [-columns, -side]]),
        b_ub=np.concatenate([xi, -xi]) / scale,
        bounds=[(0.0, 1.0)] * len(y) + [(0.0, None)],
    )
    return float(found.fun)
