r"""FedAvg with more than one local step ends at a wrong point: two clients of one variable.

K steps of length s bring a client a fraction :math:`w_j = 1 - (1 - sa_j)^K` of the way to its minimum. With K = 1 that
is :math:`sa_j`, and the limit is the solution. With K = 2, :math:`w_j = sa_j(2 - sa_j)`, it is not, and shorter steps
make the bias smaller, of the order of s. For :math:`K \to \infty` every weight becomes 1, and curvatures do not count
any more: the limit is the plain mean of the minima.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualopt.algorithms import FedAvg
from dualopt.claims import Inequality, claim
from dualopt.solvers import Gradient
from dualopt.stopping import Steps
from dualopt.xp import Array
from theory._claims import ExpectedVerdict
from theory.counterexamples._recursion import Run, scalars
from theory.counterexamples._weighted import follow_weighted, minima, weighted


def fedavg_biased_point_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """One step, two, and more; equal curvatures; steps that are too long."""
    for s, K in ((0.3, 1), (0.3, 2), (0.03, 2), (0.3, 5), (0.3, 120), (0.5, 2)):
        yield ExpectedVerdict(averaged(s, K))
    yield ExpectedVerdict(averaged(0.3, 2, (2.0, 2.0)))
    yield ExpectedVerdict(averaged(0.7, 2), "outside assumptions")


@claim(
    source="FedAvg (McMahan et al. 2017), derived",
    statement=r"FedAvg with $K$ gradient steps of length $s < 2/L$ on $\frac{a_1}2(x - m_1)^2$ and"
    r" $\frac{a_2}2(x - m_2)^2$ converges to $\theta_\infty = \frac{w_1m_1 + w_2m_2}{w_1 + w_2}$, $w_j = 1 -"
    r" (1 - sa_j)^K$, by the factor $1 - \frac{w_1 + w_2}2$ per round. $\frac{\theta_\infty - \theta^*}{m_2 - m_1}$ is"
    r" 0 for $K = 1$, $\frac{s\,a_1a_2(a_1 - a_2)}{(a_1 + a_2)(2(a_1 + a_2) - s(a_1^2 + a_2^2))}$ for $K = 2$, and"
    r" tends to $\frac{a_1 - a_2}{2(a_1 + a_2)}$ for $K \to \infty$: zero for equal curvatures only.",
    assumptions=lambda run: [] if left(run.curvatures, run.algorithm.solver.step) < 1 else ["s < 2/L"],
    rounding=0.0,
    cases=fedavg_biased_point_cases,
)
def fedavg_biased_point(run: Run) -> Iterator[Inequality]:
    """Follow the model to the point with the bias of K steps."""
    s, K = run.algorithm.solver.step, run.algorithm.stop.steps
    return follow_weighted(run, weights(run.curvatures, s, K), bias(run, s, K))


def weights(a: Array, s: float, K: int) -> Array:
    """Return how much of the way to its minimum each client goes."""
    return 1.0 - (1.0 - s * a) ** K


def bias(run: Run, s: float, K: int) -> float | None:
    """Return the bias where it is simple: of one step, of two, and of so many that only rounding is left."""
    (a1, a2), (m1, m2) = run.curvatures, minima(run)
    if K == 1:
        return 0.0
    if K == 2:
        return (m2 - m1) * s * a1 * a2 * (a1 - a2) / ((a1 + a2) * (2.0 * (a1 + a2) - s * (a1**2 + a2**2)))
    return (m2 - m1) * 0.5 * (a1 - a2) / (a1 + a2) if left(run.curvatures, s) ** K < 1e-12 else None


def left(a: Array, s: float) -> float:
    """Return how much of its way a client has still to go after a step, at most."""
    return float(np.max(np.abs(1.0 - s * a)))


def averaged(s: float, K: int, curvatures: tuple[float, float] = (1.0, 3.0)) -> Run:
    """Return FedAvg with K steps on two clients whose minima are 0 and 1."""
    listed = ", ".join(f"{a:g}" for a in curvatures)
    return Run(
        label=f"curvatures {listed}, s = {s:g}, K = {K}",
        algorithm=FedAvg(solver=Gradient(step=s), stop=Steps(steps=K)),
        objective=scalars(curvatures, [0.0, 1.0]),
        limit=weighted(weights(np.array(curvatures), s, K), np.array([0.0, 1.0])),
        theta0=-1.0,
    )
