"""Small local problems on which solvers are tried, and their minimisers by other routes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.tree import leaves, tree_map
from dualopt.arrays.xp import to_numpy
from dualopt.lab.contracts.problems import moved
from dualopt.losses import (
    AbsoluteDeviation,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    Poisson,
    Quantile,
    SmoothedHinge,
    Squared,
)
from dualopt.methods.participation import Round
from dualopt.objectives import LinearModel, LocalProblem, Quadratic, linear_model
from dualopt.objectives.local_problem import Evaluation
from dualopt.solvers import LocalSolution


def is_quadratic(objective: Any) -> bool:
    """Tell whether the local problems are quadratic."""
    return isinstance(objective, Quadratic) or isinstance(objective.loss, Squared)


def quadratic(n: int = 5, d: int = 4, seed: int = 0, kappa: float = 30.0) -> Quadratic:
    """Return random quadratics whose condition numbers grow from client to client, up to ``kappa``."""
    rng = np.random.default_rng(seed)
    bases = np.linalg.qr(rng.normal(size=(n, d, d)))[0]
    spectra = np.stack([np.geomspace(1.0, kappa ** ((j + 1) / n), d) for j in range(n)])
    A = bases @ (spectra[:, :, None] * bases.swapaxes(1, 2))
    return Quadratic(A=0.5 * (A + A.swapaxes(1, 2)), b=rng.normal(size=(n, d)), c=rng.normal(size=n))


def labels(loss: Any, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw labels of the kind that the loss takes, related to ``z``."""
    noisy = z + rng.normal(size=z.shape)
    if loss.labels == "real":
        return np.abs(noisy) if hasattr(loss, "label_domain") else noisy
    return np.where(noisy > 0, 1.0, -1.0) if loss.labels == "binary" else rng.integers(0, loss.outputs, z.shape)


SIZES = (9, 4, 9, 2, 6)  # more and fewer rows than the four columns, equal sizes apart


def linear(loss: Any, *, sizes: tuple[int, ...] = SIZES, d: int = 3, mu: float = 0.2, seed: int = 0) -> LinearModel:
    """Return a linear model of clients of unequal sizes, each with features of its own scale."""
    rng = np.random.default_rng(seed)
    cuts = np.cumsum((0, *sizes))
    clients = [list(range(a, b)) for a, b in pairwise(cuts)]
    X = rng.normal(size=(cuts[-1], d))
    for j, part in enumerate(clients):
        X[part] *= 0.5 + 0.5 * j
    return linear_model(X, labels(loss, X[:, 0], rng), loss=loss, mu=mu, clients=clients)


OBJECTIVES: dict[str, Callable[[], Any]] = {
    "quadratic": quadratic,
    "squared": lambda: linear(Squared()),
    "logistic": lambda: linear(Logistic()),
    "multinomial": lambda: linear(Multinomial(classes=3)),
    "huber": lambda: linear(Huber(delta=0.5)),
    "smoothed_hinge": lambda: linear(SmoothedHinge(gamma=0.5)),
    "hinge": lambda: linear(Hinge()),
    "absolute_deviation": lambda: linear(AbsoluteDeviation()),
    "quantile": lambda: linear(Quantile(level=0.8)),
    "poisson": lambda: linear(Poisson()),
}


def local_problem(objective: Any, terms: str, seed: int = 1) -> LocalProblem:
    """Add nothing, a linear term, a proximal term of one weight and a shared center, or everything client by client."""
    rng = np.random.default_rng(seed)
    n, shape = objective.n_clients, objective.shape
    linear = rng.normal(size=(n, *shape))
    if terms == "plain":
        return LocalProblem(objective=objective)
    if terms == "linear":
        return LocalProblem(objective=objective, linear=linear)
    if terms == "weight":
        return LocalProblem(objective=objective, weight=0.7, center=rng.normal(size=shape))
    return LocalProblem(
        objective=objective,
        linear=linear,
        weight=rng.uniform(0.1, 2.0, size=n),
        center=rng.normal(size=(n, *shape)),
    )


def in_turn(pairs: Iterable[tuple[str, str]], options: Iterable[Any]) -> list[tuple[str, str, Any]]:
    """Give pairs of solver and objective one of the options in turn.

    Every pair occurs and every solver meets every option; another solver meets an objective with another option.
    """
    pairs, options = list(pairs), list(options)
    found = []
    for shift, solver in enumerate(dict.fromkeys(solver for solver, _ in pairs)):
        own = [objective for name, objective in pairs if name == solver]
        for k in range(max(len(own), len(options))):
            found.append((solver, own[k % len(own)], options[(k + shift) % len(options)]))
    return found


def first(clients: int | tuple[int, ...], n: int = 0) -> Round:
    """Return round ``n`` of a federation of ten in which these clients are called."""
    ids = tuple(range(clients)) if isinstance(clients, int) else clients
    return Round(n=n, n_clients=10, clients=ids, communicate=True, seed=7)


def starts(problem: LocalProblem, seed: int = 2) -> np.ndarray:
    """Return random points to start from."""
    return np.random.default_rng(seed).normal(size=(problem.n_clients, *problem.objective.shape))


def to_backend(tree: Any, backend: Callable[[np.ndarray], Any]) -> Any:
    """Move the arrays of a tree to another library; numbers and strings stay."""
    return tree_map(lambda x: backend(x) if isinstance(x, np.ndarray) else x, tree)


def move_problem(problem: LocalProblem, backend: Callable[[np.ndarray], Any]) -> LocalProblem:
    """Move a local problem, its data included, to another library."""
    fields = {name: moved(getattr(problem, name), backend) for name in ("objective", "linear", "weight", "center")}
    return LocalProblem(**fields)


def arrays(solution: Any) -> list[np.ndarray]:
    """Return the arrays of a solution, its state included, on the host."""
    return [to_numpy(leaf) for leaf in leaves(by_client(solution))]


def by_client(solution: LocalSolution) -> Any:
    """Return the parts of a solution that are arrays with a row for each client, its state included."""
    length = solution.length if hasattr(solution.length, "shape") else None  # one number for all has no rows
    found = solution.evaluation  # its parts may be computed when they are asked for
    return (
        solution.theta,
        None if found is None else tuple(getattr(found, part) for part in Evaluation._fields),
        solution.gap,
        length,
        solution.solver_state,
        solution.excess,
    )


def dot(x: Any, y: Any) -> np.ndarray:
    """Return inner products by client."""
    return np.sum((x * y).reshape(len(x), -1), axis=-1)


@cache
def minimisers(objective: str, terms: str) -> np.ndarray:
    """Return the minimisers of ``reference``, which several solvers are compared with."""
    return reference(local_problem(OBJECTIVES[objective](), terms))


def reference(problem: LocalProblem) -> np.ndarray:
    """Return minimisers from another route: closed form, quasi-Newton or an interior-point method."""
    f: Any = problem.objective
    shape = (problem.n_clients, *f.shape)
    if isinstance(f, Quadratic):
        shifted = f.A + np.asarray(problem.weight).reshape(-1, 1, 1) * np.eye(f.shape[0])
        return np.stack([np.linalg.solve(a, r) for a, r in zip(shifted, f.b - problem.linear_term(), strict=True)])
    if "hessian" not in f.offers:
        return interior_point(problem)
    optimize = pytest.importorskip("scipy.optimize")
    found = []
    for j in range(problem.n_clients):
        one = problem.select((j,))

        def both(x, one=one):
            there = one.evaluate(x.reshape(1, *one.objective.shape))
            return there.value[0], there.gradient.ravel()

        x = optimize.minimize(both, np.zeros(math.prod(f.shape)), jac=True, method="BFGS", options={"gtol": 1e-7}).x
        found.append(x)
    return np.stack(found).reshape(shape)


def interior_point(problem: Any) -> np.ndarray:
    """Return minimisers by Clarabel."""
    cp = pytest.importorskip("cvxpy")
    found = []
    linear_term = problem.linear_term()
    for j, (X, y, w) in enumerate(problem.objective.client_rows()):
        theta = cp.Variable(X.shape[1])
        z = X @ theta
        losses = problem.objective.loss.cvxpy(z, y)
        energy = w @ losses + linear_term[j] @ theta + 0.5 * problem.mu[j] * cp.sum_squares(theta)
        cp.Problem(cp.Minimize(energy)).solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        found.append(theta.value)
    return np.stack(found)
