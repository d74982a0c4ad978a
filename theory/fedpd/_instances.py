"""Runs of FedPD on problems whose constants are known."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from dualopt.algorithms import FedPD
from dualopt.engine import State
from dualopt.losses import Logistic
from dualopt.objectives import LinearModel, NonconvexPenalty, Quadratic, linear_model
from dualopt.solvers import Exact, Gradient, LocalSolver, NewtonCG
from dualopt.stopping import GradientNorm
from dualopt.testing import random_quadratic
from theory._problems import solved
from theory.fedpd._dissimilarity import dissimilarity
from theory.fedpd._run import Run

__all__ = ["away", "concave", "equal_hessians", "heterogeneous", "logistic", "nonconvex", "penalised", "run_on"]

HALF = (math.sqrt(5.0) - 1.0) / 8.0  # L eta: half of what Theorem 1 admits


def run_on(
    name: str,
    objective: Any,
    *,
    rounds: int = 30,
    a: float = HALF,
    skip: float = 0.0,
    tol: float = 0.0,
    theta0: np.ndarray | None = None,
    lowest: float | None = None,
) -> Run:
    r"""Return FedPD with ``eta = a/L`` on an objective.

    Local solutions are exact up to rounding, or found by gradient steps until the gradient is at most ``tol``: the
    paper's Oracle I with :math:`\varepsilon_1` = ``tol**2``. ``lowest``, when not given, is
    computed for quadratics and strongly convex linear models, and is zero for other losses, which are not negative.
    """
    eta, stop = a / float(np.max(objective.L)), GradientNorm(tol=tol or 1e-13)
    algorithm = FedPD(eta=eta, solver=_solver(objective, tol), stop=stop)
    notes = [f"p = {skip:g}"] * (skip > 0) + [f"|e| <= {tol:g}"] * (tol > 0)
    return Run(
        name=", ".join([name, f"L eta = {a:.3g}", *notes]),
        algorithm=algorithm,
        objective=objective,
        theta0=away(objective) if theta0 is None else theta0,
        rounds=rounds,
        skip=skip,
        dissimilarity=dissimilarity(objective),
        lowest=_lowest(objective) if lowest is None else lowest,
    )


def _solver(objective: Any, tol: float) -> LocalSolver:
    if tol > 0:
        return Gradient()
    return Exact() if isinstance(objective, Quadratic) else NewtonCG()


def _lowest(objective: Any) -> float:
    if isinstance(objective, Quadratic):
        return float(np.mean(objective.value(objective.minimiser())))
    if isinstance(objective, LinearModel) and objective.ridge > 0:
        return float(np.mean(objective.value(solved("", objective).theta)))
    return 0.0


def away(objective: Any) -> np.ndarray:
    """Return a point of norm 2, the same for every problem of the same dimension."""
    point = np.random.default_rng(7).standard_normal(objective.shape)
    return 2.0 * point / np.linalg.norm(point)


@cache
def nonconvex(n: int = 4, *, L: float = 1.0) -> Quadratic:
    """Quadratics with curvatures of both signs on every client and a convex mean.

    Examples
    --------
    >>> f = nonconvex()
    >>> bool(np.all(f.mu < 0)), bool(np.linalg.eigvalsh(np.mean(f.A, axis=0))[0] > 0.1)
    (True, True)
    """
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((n, 3, 3))
    noise = noise + np.swapaxes(noise, 1, 2)
    noise -= np.mean(noise, axis=0)
    A = 0.15 * np.eye(3) + 0.8 * noise / np.max(np.abs(np.linalg.eigvalsh(noise)))
    A *= L / np.max(np.abs(np.linalg.eigvalsh(A)))
    return Quadratic(A=A, b=L * rng.standard_normal((n, 3)), c=np.ones(n))


@cache
def heterogeneous(n: int = 3, *, L: float = 4.0) -> Quadratic:
    """Strongly convex quadratics with Hessians and minimisers of their own."""
    return random_quadratic(seed=5, n_clients=n, dimension=3, mu=1.0, L=L, heterogeneity=1.0)


@cache
def equal_hessians(n: int = 4, *, G: float = 1.0, L: float = 1.0) -> Quadratic:
    """One Hessian for all, with eigenvalues L/4 to L, and gradients that differ by exactly ``G`` at most.

    Examples
    --------
    >>> round(dissimilarity(equal_hessians(G=0.25)), 12)
    0.25
    """
    b = np.random.default_rng(3).standard_normal((n, 3))
    b *= G / max(float(np.linalg.norm(x - y)) for x in b for y in b)
    return Quadratic(A=np.tile(np.diag(np.geomspace(0.25 * L, L, 3)), (n, 1, 1)), b=b, c=np.zeros(n))


@cache
def logistic(*, mu: float = 0.05, similar: float = 1.0) -> LinearModel:
    """Logistic regression on 60 rows of three clients; smaller features for a smaller ``similar``."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.sign(X[:, 0] - 0.3 * X[:, 1] + 0.5 * rng.standard_normal(60))
    return linear_model(similar * X, y, loss=Logistic(), mu=mu, clients=3)


@cache
def penalised() -> NonconvexPenalty:
    """Build the nonconvex penalised logistic loss of Section V."""
    return NonconvexPenalty(objective=logistic(mu=0.0))


def concave(*, p: float, a: float = 0.2) -> Run:
    r"""Return a run on which Lemma 2 is attained: two clients share :math:`-\frac12|\cdot|^2` and disagree in state."""
    f = Quadratic(A=-np.ones((2, 1, 1)), b=np.zeros((2, 1)))
    run = run_on("a concave function", f, rounds=1, a=a, skip=p, theta0=np.zeros(1), lowest=-np.inf)
    server, message, clients = run.first()[:3]
    theta, x0 = np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]])
    return run.but(start=State(server, message, clients._replace(theta=theta, x0=x0, dual=-f.gradient(theta))))
