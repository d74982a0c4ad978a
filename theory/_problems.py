"""Problems with known solutions.

Solutions come from closed forms, Newton's method or dual coordinate ascent on the pooled rows; each carries a
certificate of its accuracy, and none was found by the method under test.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import linprog

from dualopt.arrays.xp import Array
from dualopt.losses import AbsoluteDeviation, Hinge, Logistic, Loss, Multinomial
from dualopt.objectives import LinearModel, LocalProblem, NonconvexPenalty, Objective, Quadratic, linear_model
from dualopt.problem.data import by_label, encode_labels, load
from dualopt.runs.reference import NotOptimalError, newton
from dualopt.solvers import DualCoordinate, NewtonCG
from dualopt.solvers.stopping import Gap, Steps
from theory._cases import Case

__all__ = [
    "WEIGHTS",
    "a9a",
    "absolute_deviation",
    "breast_cancer",
    "breast_cancer_hinge",
    "digits",
    "flat_quadratic",
    "hard_quadratic",
    "hinge",
    "hinge_without_ridge",
    "indefinite",
    "logistic",
    "lopsided",
    "one_concave_client",
    "one_flat_client",
    "penalised_logistic",
    "quadratic",
    "regularised",
    "solved",
    "two",
    "weighed",
    "with_spectra",
]


def solved(name: str, objective: Objective) -> Case:
    """Complete a problem with its solution, by the route that suits it.

    Examples
    --------
    >>> from dualopt.objectives import Quadratic
    >>> solved("toy", Quadratic(A=np.ones((2, 1, 1)), b=np.array([[1.0], [3.0]]))).theta.tolist()
    [2.0]
    """
    if isinstance(objective, LinearModel) and not np.isfinite(objective.L).all():
        theta, subgradients = _pooled_dual_solution(objective)
    else:
        theta = objective.minimiser() if isinstance(objective, Quadratic) else _newton_solution(objective)
        subgradients = objective.gradient(theta)
    return Case(name=name, objective=objective, theta=theta, subgradients=subgradients)


@cache
def quadratic(n: int = 3, *, L: float = 50.0, seed: int = 0) -> Case:
    """Random quadratics in four dimensions with eigenvalues in [1, L], both attained by every client."""
    rng = np.random.default_rng(seed)
    matrices = []
    for _ in range(n):
        q, _ = np.linalg.qr(rng.standard_normal((4, 4)))
        matrix = q @ np.diag([1.0, L, *rng.uniform(1.0, L, 2)]) @ q.T
        matrices.append(0.5 * (matrix + matrix.T))
    b, c = rng.standard_normal((n, 4)), rng.uniform(1.0, 2.0, n)
    return solved(f"quadratics (N={n}, kappa={L:g})", Quadratic(A=np.stack(matrices), b=b, c=c))


@cache
def hard_quadratic(*, L: float = 1000.0) -> Case:
    """Equal Hessians with eigenvalues from 1 to L and different linear terms.

    In the dual, the differences between clients then see a proximal point method on an ill-conditioned quadratic,
    which is slow unless it is accelerated: the instance that shows lost momentum.
    """
    spectrum = np.geomspace(1.0, L, 6)
    b = np.random.default_rng(0).standard_normal((3, 6)) * np.sqrt(spectrum)
    f = Quadratic(A=np.repeat(np.diag(spectrum)[None], 3, axis=0), b=b, c=np.zeros(3))
    return solved(f"equal Hessians (kappa={L:g})", f)


@cache
def flat_quadratic() -> Case:
    """Quadratics of rank two in four dimensions: no client is strongly convex, E is."""
    rng = np.random.default_rng(3)
    factors = rng.standard_normal((3, 2, 4))
    b = rng.standard_normal((3, 4))
    return solved("quadratics of rank 2", Quadratic(A=np.swapaxes(factors, 1, 2) @ factors, b=b, c=np.zeros(3)))


@cache
def indefinite() -> Case:
    """Three clients in three dimensions, each with curvature of both signs; E has eigenvalues 0.1, 0.4 and 1."""
    rng = np.random.default_rng(5)
    parts = rng.standard_normal((3, 3, 3))
    parts = parts + np.swapaxes(parts, 1, 2)
    A = parts - np.mean(parts, axis=0) + np.diag([0.1, 0.4, 1.0])
    return solved("indefinite quadratics", Quadratic(A=A, b=rng.standard_normal((3, 3))))


def with_spectra(spectra: Sequence[Sequence[float]], *, seed: int = 0) -> Quadratic:
    """Return clients with the given eigenvalues, of which the first belongs to the first unit vector for every client.

    So the curvature of ``E`` along that vector is the mean of the first eigenvalues, and ``mu_j`` is exact where it is
    the first: the matrix is one number and a block.

    Examples
    --------
    >>> f = with_spectra([[1.0, 2.0, 5.0], [3.0, 4.0, 4.5]])
    >>> f.A[:, 0, 0].tolist(), f.L.round(9).tolist()
    ([1.0, 3.0], [5.0, 4.5])
    """
    rng = np.random.default_rng(seed)
    N, d = np.shape(spectra)
    A = np.zeros((N, d, d))
    for matrix, (first, *others) in zip(A, spectra, strict=True):
        q, _ = np.linalg.qr(rng.standard_normal((d - 1, d - 1)))
        block = q @ np.diag(others) @ q.T
        matrix[0, 0], matrix[1:, 1:] = first, 0.5 * (block + block.T)
    return Quadratic(A=A, b=3.0 * rng.standard_normal((N, d)), c=rng.uniform(10.0, 20.0, N))


@cache
def lopsided() -> Case:
    """Four clients with mu_j = 0.5, 1, 6, 0.8, whose mean 2.075 is the curvature of E, and L_j = 4, 20, 12, 10."""
    spectra = [[0.5, 1.0, 2.0, 4.0], [1.0, 2.0, 8.0, 20.0], [6.0, 7.0, 9.0, 12.0], [0.8, 3.0, 5.0, 10.0]]
    return solved("lopsided quadratics", with_spectra(spectra))


WEIGHTS = (5.0, 0.3, 1.0, 2.0)  # of four clients


def weighed(f: Case, *weights: float) -> Case:
    """Return quadratics with these weights of the clients, and the solution.

    Examples
    --------
    >>> weighed(lopsided(), 5.0, 1.0, 1.0, 0.1).objective.weights
    (5.0, 1.0, 1.0, 0.1)
    """
    name = f"{f.name}, weights {', '.join(f'{w:g}' for w in weights)}"
    return solved(name, replace(f.objective, weights=weights))


def two(weights: tuple[float, float] = (0.97, 0.03), curvatures: tuple[float, float] = (50.0, 1.0)) -> Case:
    """Return two clients of unequal weight whose Hessians are multiples of the identity."""
    A = np.stack([curvature * np.eye(2) for curvature in curvatures])
    f = Quadratic(A=A, b=np.array([[1.0, 2.0], [-3.0, 1.0]]), weights=weights)
    name = "two clients, weights {:g} and {:g}, curvatures {:g} and {:g}".format(*weights, *curvatures)
    return solved(name, f)


@cache
def one_flat_client() -> Case:
    """Four clients with mu_j = 0, 1, 3, 0.8: the first one is not strongly convex, E is."""
    return solved("one flat client", with_spectra([[0.0, 1.0, 2.0, 3.0], *_CONVEX]))


@cache
def one_concave_client() -> Case:
    """Four clients with mu_j = -1, 1, 3, 0.8: the first one is not convex, E is strongly convex."""
    return solved("one concave client", with_spectra([[-1.0, 1.0, 2.0, 3.0], *_CONVEX]))


_CONVEX = [[1.0, 1.5, 2.0, 4.0], [3.0, 3.2, 3.5, 3.8], [0.8, 1.0, 2.0, 2.5]]


def _separated(loss: Loss, mu: float, rows: int, clients: int, seed: int) -> LinearModel:
    """Noisy rows in three dimensions with labels that a hyperplane nearly separates."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 3))
    score = X[:, 0] - 0.3 * X[:, 1] + 0.5 * rng.standard_normal(rows)
    y = np.sign(score) if loss.labels == "binary" else score
    return linear_model(X, y, loss=loss, mu=mu, clients=clients)


@cache
def logistic(*, mu: float = 0.05) -> Case:
    """Logistic regression on 60 synthetic rows."""
    return solved("logistic (synthetic)", _separated(Logistic(), mu, 60, 4, seed=0))


@cache
def penalised_logistic() -> Case:
    """Logistic regression with a nonconvex penalty on every weight; its solution is that without the penalty."""
    convex = logistic()
    f = NonconvexPenalty(objective=convex.objective, lam=0.5)
    return Case(
        name="logistic with a nonconvex penalty", objective=f, theta=convex.theta, subgradients=f.gradient(convex.theta)
    )


@cache
def hinge(*, mu: float = 0.2) -> Case:
    """Support vector machine on 40 synthetic rows."""
    return solved("hinge (synthetic)", _separated(Hinge(), mu, 40, 4, seed=1))


@cache
def hinge_without_ridge() -> Case:
    """Support vector machine on 40 synthetic rows without a ridge, solved as a linear program."""
    objective = _separated(Hinge(), 0.0, 40, 4, seed=1)
    X, y, w = (np.concatenate(parts) for parts in zip(*objective.client_rows(), strict=True))
    N = objective.n_clients
    m, p = X.shape
    # min (1/N) sum w_i s_i over s_i >= 0 and s_i >= 1 - y_i <x_i, theta>
    found = linprog(
        np.concatenate([np.zeros(p), w / N]),
        A_ub=np.hstack([-y[:, None] * X, -np.eye(m)]),
        b_ub=-np.ones(m),
        bounds=[(None, None)] * p + [(0.0, None)] * m,
    )
    pulls = N * (found.ineqlin.marginals * y)[:, None] * X
    parts = np.split(pulls, np.cumsum(objective.sizes)[:-1])
    subgradients = np.stack([np.sum(part, axis=0) for part in parts])
    return Case(name="hinge without ridge", objective=objective, theta=found.x[:p], subgradients=subgradients)


@cache
def absolute_deviation(*, mu: float = 0.2) -> Case:
    """Least absolute deviations on 40 synthetic rows."""
    return solved("absolute deviation (synthetic)", _separated(AbsoluteDeviation(), mu, 40, 4, seed=2))


def _rows_of(name: str, loss: Loss) -> tuple[Array, Array]:
    data = load(name)
    return data.X, encode_labels(data.y, loss.labels)


@cache
def breast_cancer(*, mu: float = 1e-2) -> Case:
    """Logistic regression on the 569 standardised rows of breast_cancer, sorted by label."""
    X, y = _rows_of("breast_cancer", Logistic())
    order = np.argsort(y, kind="stable")
    return solved("logistic (breast_cancer)", linear_model(X[order], y[order], loss=Logistic(), mu=mu, clients=8))


@cache
def breast_cancer_hinge(*, mu: float = 0.1) -> Case:
    """Support vector machine on breast_cancer."""
    X, y = _rows_of("breast_cancer", Hinge())
    return solved("hinge (breast_cancer)", linear_model(X, y, loss=Hinge(), mu=mu, clients=8))


@cache
def digits(*, rows: int = 320, mu: float = 1e-2) -> Case:
    """Multinomial logistic regression on digits dealt out by label, pixels divided by 16."""
    data = load("digits")
    loss = Multinomial(classes=10)
    X, y = data.X[:rows], encode_labels(data.y, loss.labels)[:rows]
    parts = [part.tolist() for part in by_label(y, 8)]
    return solved("multinomial (digits)", linear_model(X, y, loss=loss, mu=mu, clients=parts))


def a9a(*, mu: float = 1e-2) -> Iterable[Case]:
    """Logistic regression on the 32561 rows of a9a, where ``DUALOPT_DATA_HOME`` holds them; else nothing."""
    if not os.environ.get("DUALOPT_DATA_HOME"):
        return []
    X, y = _rows_of("a9a", Logistic())
    return [solved("logistic (a9a)", linear_model(X, y, loss=Logistic(), mu=mu, clients=8, storage="dense"))]


def regularised(objective: Any, alpha: float) -> Any:
    """Return the ``f_j + (alpha/2)|.|^2`` of (4.1).

    Examples
    --------
    >>> float(regularised(quadratic().objective, 0.5).mu[0].round(9))
    1.5
    """
    if isinstance(objective, LinearModel):
        return replace(objective, ridge=objective.ridge + alpha)
    return replace(objective, A=objective.A + alpha * np.eye(objective.shape[0]))


def _pooled(objective: LinearModel) -> LinearModel:
    """Put all rows in one place: ``E`` as the function of a single client."""
    X, y, w = (np.concatenate(parts) for parts in zip(*objective.client_rows(), strict=True))
    weights = w / objective.n_clients
    return linear_model(X, y, loss=objective.loss, mu=objective.ridge, weights=weights, intercept=False)


def _newton_solution(objective: Any) -> Array:
    """Take one Newton step beyond the certified solution, down to gradients of rounding alone."""
    tol = 1e-14 if objective.ridge > 0 else 1e-11  # of the energy error; of the gradient without a ridge
    start = newton(objective, tol=tol).theta[None]
    return NewtonCG()(LocalProblem(objective=_pooled(objective)), start, Steps(steps=1)).theta[0]


def _pooled_dual_solution(objective: LinearModel, tol: float = 1e-12) -> tuple[Array, Array]:
    """Solve a nonsmooth problem with all rows in one place, to a certified gap."""
    pooled = _pooled(objective)
    solver, stop = DualCoordinate(max_iter=200_000), Gap(schedule=lambda _: tol)
    found = solver(LocalProblem(objective=pooled), pooled.zeros()[None], stop)
    if not found.gap[0] <= tol:
        raise NotOptimalError(f"dual coordinate ascent is certified only to {found.gap[0]:.2e}, not {tol:.2e}.")
    parts = np.split(found.solver_state[0][0], np.cumsum(objective.sizes)[:-1])
    pulls = [(w * u) @ X for (X, _, w), u in zip(objective.client_rows(), parts, strict=True)]
    theta = found.theta[0]
    return theta, np.stack(pulls) + objective.ridge * theta
