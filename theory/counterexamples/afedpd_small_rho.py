r"""A-FedPD with small rho: two clients of opposite curvature, all of them active.

With two clients the trace of a round (``_reflections``) is 1, and the determinant is :math:`\frac14(1 - r_1r_2)`: the
characteristic roots are :math:`\frac12(1 \pm \sqrt{r_1r_2})`. Real ones stay below 1, as :math:`r_1r_2 < 1` for
:math:`a_1 + a_2 > 0`. Complex ones have the modulus :math:`\frac12\sqrt{1 - r_1r_2}`, so the method converges if and
only if :math:`r_1r_2 > -3`, which is :math:`\rho^2 + \frac{a_1 + a_2}2\rho + a_1a_2 > 0`. For :math:`\frac32x^2` and
:math:`-\frac12x^2` that means :math:`\rho > \frac{\sqrt{13} - 1}2 = 1.303`; the local problems have solutions for all
:math:`\rho > 1`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat

import numpy as np

from dualopt.algorithms import AFedPD
from dualopt.claims import Inequality, claim
from dualopt.solvers import Exact
from theory._claims import ExpectedVerdict
from theory.counterexamples._recursion import Run, follow, scalars


def assumptions(run: Run) -> list[str]:
    """Return what fails: E is convex, one client is not, and the local problems are strongly convex."""
    a1, a2 = run.curvatures
    signs = [] if a1 + a2 > 0 > a2 else ["a_1 > -a_2 > 0"]
    return signs + ([] if run.algorithm.rho > -a2 else ["rho > -a_2"])


def afedpd_small_rho_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both sides of the least rho for two pairs of clients; a rho with which a local problem has no solution."""
    for multiple in (0.97, 1.03, 4.0) if quick else (0.8, 0.99, 1.01, 4.0):
        yield ExpectedVerdict(opposed(multiple * least_rho(3.0, -1.0)))
    for multiple in (0.97, 1.03):
        yield ExpectedVerdict(opposed(multiple * least_rho(1.5, -1.0), (1.5, -1.0)))
    yield ExpectedVerdict(opposed(0.9), "outside assumptions")


@claim(
    source="Sun, Shen and Tao, Theorem 1: what small rho does",
    statement=r"A-FedPD with exact local solutions and all clients active on $\frac{a_1}2x^2$ and $\frac{a_2}2x^2$,"
    r" $a_1 > -a_2 > 0$, $\rho > -a_2$: the model obeys a recursion of the roots $\frac12(1 \pm \sqrt{r_1r_2})$, $r_j ="
    r" \frac{\rho - a_j}{\rho + a_j}$, and converges if and only if $\rho^2 + \frac{a_1 + a_2}2\rho + a_1a_2 > 0$. For"
    r" $\frac32x^2$ and $-\frac12x^2$: $\rho > \frac{\sqrt{13} - 1}2$.",
    assumptions=assumptions,
    rounding=0.0,
    cases=afedpd_small_rho_cases,
)
def afedpd_small_rho(run: Run) -> Iterator[Inequality]:
    """Follow the model by the roots of two clients."""
    a1, a2 = (float(a) for a in run.curvatures)
    rho = run.algorithm.rho
    rooted = np.emath.sqrt((rho - a1) / (rho + a1) * (rho - a2) / (rho + a2))
    roots = 0.5 * np.array([1.0 + rooted, 1.0 - rooted])
    # the first model is not yet what a round makes of the duals
    return follow(run, repeat(np.real(np.poly(roots))), float(np.max(np.abs(roots))), first=1)


def least_rho(a1: float, a2: float) -> float:
    """Return the rho from which on the method converges."""
    half = 0.25 * (a1 + a2)
    return math.sqrt(half**2 - a1 * a2) - half


def opposed(rho: float, curvatures: tuple[float, float] = (3.0, -1.0)) -> Run:
    """Return A-FedPD with exact local solutions on two clients."""
    return Run(
        label=f"curvatures {curvatures[0]:g}, {curvatures[1]:g}, rho = {rho:.4g}",
        algorithm=AFedPD(rho=rho, solver=Exact()),
        objective=scalars(curvatures),
        converges=rho > least_rho(*curvatures),
    )
