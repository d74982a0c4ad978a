r"""Methods that need no local work: gradient descent, L-BFGS and Newton's method, all of it done by the server on E.

:math:`E = \frac1N\sum_j f_j` is strongly convex with the mean :math:`\bar\mu` of the :math:`\mu_j` and smooth with the
mean :math:`\bar L` of the :math:`L_j`. The two others have no rate with constants that say anything; what is claimed is
that sending values, gradients and Hessian products gives the points of the same method in one place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, ClassVar

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from dualopt.methods import DistributedLBFGS, DistributedNewtonCG, GradientDescent
from dualopt.objectives import LocalProblem, ObjectiveWrapper, Quadratic, linear_model
from dualopt.solvers import LBFGS, NewtonCG
from dualopt.solvers.stopping import Steps
from theory._cases import Case
from theory._claims import ROUNDING, ExpectedVerdict, deviation
from theory._problems import flat_quadratic, hard_quadratic, logistic, lopsided, quadratic
from theory.baselines._runs import baseline_case

ROUNDS = 15


# Gradient descent.


def descent_case(f: Case, times: float = 1.0, *, attained: bool = False) -> Case:
    r"""Return gradient descent with ``times`` the step :math:`1/\bar L`, away from the minimiser at first."""
    method = GradientDescent(step=times / float(np.mean(f.objective.L)))
    start = f.theta + np.random.default_rng(1).standard_normal(f.theta.shape)
    return baseline_case(f, method, ROUNDS, f"s = {times:g}/L", theta0=start, attained=attained)


def descends(case: Case) -> list[str]:
    r"""Return what fails: a strongly convex and smooth mean, and a step below :math:`2/\bar L`."""
    mu, L = float(np.mean(case.objective.mu)), float(np.mean(case.objective.L))
    convex = [] if mu > 1e-12 * L and math.isfinite(L) else ["E smooth and strongly convex by the mean of mu_j"]
    return convex + ([] if case.algorithm.step * L < 2.0 else ["step < 2/L"])


def gradient_descent_contraction_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Short and long steps; clients of unequal constants, and a loss of another kind; a step that is too long."""
    for times in (0.3, 1.0, 1.9):
        yield ExpectedVerdict(descent_case(hard_quadratic(), times, attained=True))
        yield ExpectedVerdict(descent_case(lopsided(), times))
    yield ExpectedVerdict(descent_case(logistic()))
    yield ExpectedVerdict(descent_case(quadratic(), 2.1), "outside assumptions")
    yield ExpectedVerdict(descent_case(flat_quadratic()), "outside assumptions")


@claim(
    source="Nesterov 2004, Theorem 2.1.14 (recalled), for the mean of the clients",
    statement=r"For $\bar\mu > 0$ and a step $s < 2/\bar L$, the means of the $\mu_j$ and $L_j$:"
    r" $|\theta^+ - \theta^*| \le \max(|1 - s\bar\mu|, |1 - s\bar L|)\,|\theta - \theta^*|$ always. Quadratics with"
    r" equal Hessians attain it.",
    assumptions=descends,
    rtol=ROUNDING,
    cases=gradient_descent_contraction_cases,
)
def gradient_descent_contraction(case: Case) -> Iterator[Inequality]:
    r"""Gradient descent: its linear rate.

    :math:`\theta^+ - \theta^* = (I - sH)(\theta - \theta^*)` with the mean Hessian H between the two points, whose
    eigenvalues lie in :math:`[\bar\mu, \bar L]`.

    Compare distances along a run, and the norm of :math:`I - sH` where the clients are quadratic (``n = 0``).
    """
    mu, L, s = float(np.mean(case.objective.mu)), float(np.mean(case.objective.L)), case.algorithm.step
    factor = max(abs(1.0 - s * mu), abs(1.0 - s * L))
    distances = [math.dist(np.ravel(x), np.ravel(case.theta)) for x in _models(case)]
    for n, (before, after) in enumerate(pairwise(distances), start=1):
        yield Inequality(n, after, factor * before, "distance after a round")
    if isinstance(case.objective, Quadratic):
        H = np.mean(case.objective.A, axis=0)
        growth = float(np.linalg.norm(np.eye(len(H)) - s * H, 2))
        yield Inequality(0, growth, factor, "worst growth")
        if case.attained:
            yield Inequality(0, factor, growth, "factor and the worst growth")


def _models(case: Case) -> Iterator[Array]:
    assert case.theta0 is not None
    yield case.theta0
    yield from (s.server.theta for s in case.snapshots())


# L-BFGS and Newton's method are those in one place.

STEPS = 8  # accepted points that are compared: L-BFGS magnifies rounding in later ones


def central_case(f: Case, method: DistributedLBFGS | DistributedNewtonCG, note: str) -> Case:
    """Return a method from a point where steps of one are too long."""
    return baseline_case(f, method, 200, note, theta0=np.random.default_rng(2).standard_normal(f.objective.shape))


def central_cases(method: DistributedLBFGS | DistributedNewtonCG, note: str) -> Iterator[ExpectedVerdict]:
    """Quadratics and a loss of another kind."""
    for f in (quadratic(), lopsided(), logistic()):
        yield ExpectedVerdict(central_case(f, method, note))


def accepted(case: Case) -> Iterator[Array]:
    """Yield the points at which the model arrives, one after the other; the start is not one of them."""
    assert case.theta0 is not None
    last = case.theta0
    for s in case.snapshots():
        if not np.array_equal(s.server.theta, last):
            last = s.server.theta
            yield last


@dataclass
class InOnePlace(ObjectiveWrapper):
    """``E`` as the function of one client that has all the data and no preconditioner."""

    forwarded: ClassVar[frozenset[str]] = frozenset({"hessian"})

    objective: Any


def in_one_place(f: Any) -> InOnePlace:
    """Put the data of all clients in one place.

    Examples
    --------
    >>> f = in_one_place(quadratic().objective)
    >>> f.n_clients, f.offers
    (1, frozenset({'hessian'}))
    """
    if isinstance(f, Quadratic):
        c = None if f.c is None else np.mean(f.c)[None]
        return InOnePlace(Quadratic(A=np.mean(f.A, axis=0)[None], b=np.mean(f.b, axis=0)[None], c=c))
    X, y, w = (np.concatenate(parts) for parts in zip(*f.client_rows(), strict=True))
    return InOnePlace(linear_model(X, y, loss=f.loss, mu=f.ridge, weights=w / f.n_clients, intercept=False))


def central(case: Case, solver: LBFGS | NewtonCG) -> Iterator[Array]:
    """Yield the points of the solver on ``E``, one step after the other."""
    assert case.theta0 is not None
    problem, theta, state = LocalProblem(objective=in_one_place(case.objective)), case.theta0[None], ()
    while True:
        found = solver(problem, theta, Steps(steps=1), state)
        theta, state = found.theta, found.solver_state
        yield theta[0]


def agree(case: Case, solver: LBFGS | NewtonCG) -> Iterator[Inequality]:
    """Compare the points of the method with those of the solver."""
    points = islice(accepted(case), STEPS)
    for n, (theta, expected) in enumerate(zip(points, central(case, solver), strict=False), start=1):
        yield Inequality(n, deviation(theta, expected), ROUNDING, "difference of the points")


def lbfgs_is_central_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """More pairs than are compared, and so few that old ones are dropped."""
    for history in (40, 3):
        yield from central_cases(DistributedLBFGS(history=history), f"{history} pairs")


@claim(
    source="Liu and Nocedal 1989 (recalled)",
    statement=r"The accepted points of DistributedLBFGS are those of L-BFGS on $E$ in one place, with the same history,"
    r" the same line search and no preconditioner (compared: eight of them, to 1e-10).",
    cases=lbfgs_is_central_cases,
)
def lbfgs_is_central(case: Case) -> Iterator[Inequality]:
    """Server L-BFGS is L-BFGS.

    Compare with the local solver on all the data.
    """
    return agree(case, LBFGS(history=case.algorithm.history, precondition=False))


def newton_cg_is_central_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """As many products as are needed, and two."""
    for most in (200, 2):
        yield from central_cases(DistributedNewtonCG(max_cg=most), f"{most} products")


@claim(
    source="Eisenstat and Walker 1996 (recalled)",
    statement=r"The accepted points of DistributedNewtonCG are those of Newton's method with conjugate gradients on $E$"
    r" in one place, without a preconditioner (compared: eight of them, to 1e-10).",
    cases=newton_cg_is_central_cases,
)
def newton_cg_is_central(case: Case) -> Iterator[Inequality]:
    """Server Newton-CG is Newton-CG.

    Compare with the local solver on all the data.
    """
    return agree(case, NewtonCG(max_cg=case.algorithm.max_cg))
