r"""FedProx ends at a wrong point: two clients of one variable.

The proximal step of weight w brings a client a fraction :math:`w_j = a_j/(a_j + w)` of the way to its minimum. A
stronger proximal term makes the bias smaller, of the order of 1/w, and the method slower by the same order: the factor
of a round is :math:`1 - \frac12\sum_j a_j/(a_j + w)`. There is no weight with which the limit is the solution.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import FedProx
from dualopt.claims import Inequality, claim
from dualopt.solvers import Exact
from dualopt.xp import Array
from theory._claims import ExpectedVerdict
from theory.counterexamples._recursion import Run, scalars
from theory.counterexamples._weighted import follow_weighted, minima, weighted


def fedprox_biased_point_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Weak and strong proximal terms, and equal curvatures."""
    for w in (0.1, 1.0, 10.0) if quick else (0.1, 1.0, 10.0, 100.0):
        yield ExpectedVerdict(near(w))
    yield ExpectedVerdict(near(10.0, (2.0, 2.0)))


@claim(
    source="FedProx (Li et al. 2020), derived",
    statement=r"FedProx with exact local solutions and the weight $w$ on $\frac{a_1}2(x - m_1)^2$ and"
    r" $\frac{a_2}2(x - m_2)^2$ converges to $\theta_\infty$ with $\frac{\theta_\infty - \theta^*}{m_2 - m_1} ="
    r" \frac{a_1a_2(a_1 - a_2)}{(a_1 + a_2)(2a_1a_2 + w(a_1 + a_2))}$, by the factor $1 - \frac12\sum_j"
    r" \frac{a_j}{a_j + w}$ per round. The bias is zero for equal curvatures only.",
    rounding=0.0,
    cases=fedprox_biased_point_cases,
)
def fedprox_biased_point(run: Run) -> Iterator[Inequality]:
    """Follow the model to the point with the bias of the weight."""
    w = run.algorithm.mu_prox
    return follow_weighted(run, weights(run.curvatures, w), bias(run, w))


def weights(a: Array, w: float) -> Array:
    """Return how much of the way to its minimum each client goes."""
    return a / (a + w)


def bias(run: Run, w: float) -> float:
    """Return by how much the limit misses the solution."""
    (a1, a2), (m1, m2) = run.curvatures, minima(run)
    return (m2 - m1) * a1 * a2 * (a1 - a2) / ((a1 + a2) * (2.0 * a1 * a2 + w * (a1 + a2)))


def near(w: float, curvatures: tuple[float, float] = (1.0, 3.0)) -> Run:
    """Return FedProx with exact local solutions on two clients whose minima are 0 and 1."""
    listed = ", ".join(f"{a:g}" for a in curvatures)
    return Run(
        label=f"curvatures {listed}, w = {w:g}",
        algorithm=FedProx(mu_prox=w, solver=Exact()),
        objective=scalars(curvatures, [0.0, 1.0]),
        limit=weighted(weights(np.array(curvatures), w), np.array([0.0, 1.0])),
        theta0=-1.0,
    )
