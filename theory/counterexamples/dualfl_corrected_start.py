r"""DualFL whose local solvers start from the corrected points: any fixed number of steps is too few for some kappa.

The theorems for inexact local solutions want the dual-corrected point :math:`\theta_j - r_j/\nu` to be uploaded, with
:math:`r_j` the local gradient at :math:`\theta_j`. It is tempting to go on from that point in the next round. On equal
clients :math:`\frac12\sum_i a_ix_i^2` all :math:`\zeta_j` stay zero, and K gradient steps of length s multiply
:math:`x_i` by :math:`(1 - sa_i)^K`. The correction is a gradient step of length :math:`1/\nu`, which multiplies it by
:math:`1 - a_i/\nu`. So with :math:`\nu = \mu` a round multiplies the uploaded :math:`x_i`

.. math:: \text{by } (1 - sa_i)^K(1 - a_i/\mu) \text{ from corrected points}, \qquad
          \text{by } (1 - sa_i)^K \text{ from plain ones}.

For steps of 1/(2L) and the curvatures mu and L the first is at most :math:`2^{-K}(\kappa - 1)`: K steps suffice for
:math:`\kappa < 1 + 2^K`. For steps of 1/L the curvature L is solved at once; the worst is
:math:`\frac{L + K\mu}{K + 1}`, with :math:`\frac{\kappa - 1}{K + 1}(\frac{K(\kappa - 1)}{(K + 1)\kappa})^K`, about
:math:`\frac\kappa{e(K+1)}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np

from dualopt.algorithms import DualFL
from dualopt.claims import Inequality, claim
from dualopt.objectives import Quadratic
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from theory._claims import ExpectedVerdict
from theory.counterexamples._recursion import Run, follow


class FromCorrected(DualFL):
    """Local solvers start from the points that were uploaded."""

    def local(self, c: Any, message: Any, oracle: Any, round: Any) -> Any:
        """Solve (3.1) and forget the plain points."""
        c, sent = super().local(c, message, oracle, round)
        return c._replace(theta=sent), sent


def dualfl_corrected_start_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield both sides of the largest kappa, corrected points and plain ones; 20 steps of 1/L."""
    for K in (1, 5):
        for multiple in (0.97, 1.03):
            yield ExpectedVerdict(started(FromCorrected, multiple * largest_kappa(K), K, half=True))
    for kappa in (71.0, 77.0, 100.0):
        yield ExpectedVerdict(started(FromCorrected, kappa, 20, half=False))
    for kind in (DualFL, FromCorrected):
        yield ExpectedVerdict(started(kind, 100.0, 5, half=True))
    yield ExpectedVerdict(started(DualFL, 100.0, 20, half=False))


@claim(
    source="Park and Xu, Theorem 3.2 with inexact local solutions: where they must not start",
    statement=r"DualFL with $\nu = \mu$ and $K$ gradient steps per round on equal quadratics, uploading dual-corrected"
    r" points. Local solvers that start from them: with steps of $\frac1{2L}$ and the curvatures $\mu, L$ the method"
    r" converges if and only if $\kappa < 1 + 2^K$; with steps of $\frac1L$ and the curvatures $\mu$, $\frac{L +"
    r" K\mu}{K + 1}$, $L$ if and only if $\frac{\kappa - 1}{K + 1}\bigl(\frac{K(\kappa - 1)}{(K +"
    r" 1)\kappa}\bigr)^K < 1$. Local solvers that start from the plain points: it converges always.",
    rounding=0.0,
    cases=dualfl_corrected_start_cases,
)
def dualfl_corrected_start(run: Run) -> Iterator[Inequality]:
    """Follow the coordinate of the worst curvature, which is the first one; mu is 1."""
    method = run.algorithm
    a = float(run.curvatures[0])
    rate = (1.0 - method.solver.step * a) ** method.stop.steps * (1.0 - a if isinstance(method, FromCorrected) else 1.0)
    # the start was not corrected
    return follow(run, repeat(np.array([1.0, -rate])), abs(rate), first=1)


def largest_kappa(K: int) -> float:
    """Return the kappa up to which K steps of 1/(2L) suffice."""
    return 1.0 + 2.0**K


def worst_curvature(kappa: float, K: int) -> float:
    """Return the curvature, in units of mu, that steps of 1/L and the correction make the most of."""
    return (kappa + K) / (K + 1)


def worst_factor(kappa: float, K: int) -> float:
    """Return the factor of this curvature."""
    return (kappa - 1.0) / (K + 1) * (K * (kappa - 1.0) / ((K + 1) * kappa)) ** K


def started(kind: type[DualFL], kappa: float, K: int, *, half: bool) -> Run:
    """Return DualFL on two equal clients with mu = 1, whose first coordinate has the worst curvature."""
    spectrum = [kappa, 1.0] if half else [worst_curvature(kappa, K), 1.0, kappa]
    step = (0.5 if half else 1.0) / kappa
    few = kappa > largest_kappa(K) if half else worst_factor(kappa, K) > 1.0
    start = "corrected" if kind is FromCorrected else "plain"
    return Run(
        label=f"from {start} points, kappa = {kappa:.4g}, K = {K}, s = 1/{'(2L)' if half else 'L'}",
        algorithm=kind(nu=1.0, rho=0.0, solver=Gradient(step=step), stop=Steps(steps=K), corrected=True),
        objective=Quadratic(A=np.stack([np.diag(spectrum)] * 2), b=np.zeros((2, len(spectrum)))),
        converges=kind is not FromCorrected or not few,
    )
