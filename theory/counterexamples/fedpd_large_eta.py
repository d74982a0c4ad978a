r"""FedPD with large eta: one concave client among convex ones, whose local problem is still strongly convex.

Take N - 1 clients of curvature :math:`\frac2{N-1}` and one of curvature -1: E is :math:`\frac1{2N}x^2`, L is 1, and
all local problems are strongly convex for :math:`\eta < 1`. For clients of any curvatures :math:`a_j` a round of FedPD
(``_reflections``) has the characteristic root -1 if

.. math:: \sum_j \frac{2 + \eta a_j}{1 + 2\eta a_j} = 0,

which needs :math:`\eta > 1/(2L)`. Here it is the first root to leave the unit circle; in :math:`\rho = 1/\eta` the
equation is :math:`2N\rho^2 - (4N - 5 - \frac8{N-1})\rho - \frac{4N}{N-1} = 0`. Three clients, :math:`\frac12x^2` twice
and :math:`-\frac12x^2`, converge up to :math:`\eta = (\sqrt{17} - 1)/4 = 0.781`, where Theorem 1 asks for
:math:`\eta < (\sqrt5 - 1)/4 = 0.309`; for many clients the limit tends to 1/2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat

import numpy as np

from dualopt.algorithms import FedPD
from dualopt.claims import Inequality, claim
from dualopt.solvers import Exact
from theory._claims import ROUNDING, ExpectedVerdict
from theory.counterexamples._recursion import Run, follow, scalars
from theory.counterexamples._reflections import polynomial


def fedpd_large_eta_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Both sides of the largest eta, and the range of Theorem 1; local problems that are not convex."""
    for multiple in (0.97, 1.03) if quick else (0.99, 1.01):
        for N in (3, 5, 20):
            yield ExpectedVerdict(one_concave(multiple * largest_eta(N), N))
    yield ExpectedVerdict(one_concave(0.3))
    yield ExpectedVerdict(one_concave(0.95))
    yield ExpectedVerdict(one_concave(1.1), "outside assumptions")


@claim(
    source="Zhang et al., Theorem 1: what large eta does",
    statement=r"FedPD with exact local solutions, communication in every round, on $N - 1$ clients"
    r" $\frac{x^2}{N - 1}$ and one $-\frac{x^2}2$, $N \ge 3$, $\eta < 1 = 1/L$: it converges if and only if $\eta <"
    r" \eta_N$, $2N = (4N - 5 - \frac8{N - 1})\eta_N + \frac{4N}{N - 1}\eta_N^2$. $\eta_3 = \frac{\sqrt{17} - 1}4$, and"
    r" $\eta_N$ decreases to $\frac12$.",
    assumptions=lambda run: [] if run.algorithm.eta < 1 else ["eta < 1/L"],
    rounding=0.0,
    cases=fedpd_large_eta_cases,
)
def fedpd_large_eta(run: Run) -> Iterator[Inequality]:
    """Compare the largest eta with the equation that it solves, and follow the model."""
    N, eta, end = run.objective.n_clients, run.algorithm.eta, largest_eta(run.objective.n_clients)
    terms = (2.0 + end * run.curvatures) / (1.0 + 2.0 * end * run.curvatures)
    yield Inequality(0, float(abs(np.sum(terms)) / np.max(np.abs(terms))), ROUNDING, "equation of the root -1")
    recursion = polynomial(1.0 / eta, (2.0 / (N - 1), -1.0), 1.0 - 1.0 / N)
    factor = float(np.max(np.abs(np.roots(recursion))))
    # the first model is not yet what a round makes of the duals
    yield from follow(run, repeat(recursion), factor, first=1)


def largest_eta(N: int) -> float:
    """Return the eta up to which the method converges."""
    linear, constant = 4.0 * N - 5.0 - 8.0 / (N - 1), 4.0 * N / (N - 1)
    return 4.0 * N / (linear + math.sqrt(linear**2 + 8.0 * N * constant))


def one_concave(eta: float, N: int = 3) -> Run:
    """Return FedPD with exact local solutions on the N clients."""
    return Run(
        label=f"N = {N}, eta = {eta:.4g}",
        algorithm=FedPD(eta=eta, solver=Exact()),
        objective=scalars([2.0 / (N - 1)] * (N - 1) + [-1.0]),
        converges=eta < largest_eta(N),
    )
