"""Small federated problems that contract tests use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from dualopt.arrays.tree import tree_map
from dualopt.losses import Hinge, Logistic
from dualopt.objectives import LinearModel, Quadratic, linear_model
from dualopt.objectives.rows import ClientRows

__all__ = ["converted", "hinge", "logistic", "moved", "quadratic", "spd"]


def spd(rng: np.random.Generator, n: int, d: int, mu: float, L: float) -> np.ndarray:
    """Return symmetric matrices with eigenvalues exactly in [mu, L], both attained."""
    matrices = []
    for _ in range(n):
        q, _ = np.linalg.qr(rng.standard_normal((d, d)))
        eigenvalues = np.concatenate([[mu, L], rng.uniform(mu, L, d - 2)])
        matrix = q @ np.diag(eigenvalues) @ q.T
        matrices.append(0.5 * (matrix + matrix.T))
    return np.stack(matrices)


def quadratic(n: int = 5, d: int = 4, *, mu: float = 1.0, L: float = 20.0, seed: int = 0) -> Quadratic:
    """Return random quadratics with eigenvalues in [mu, L], both attained by every client."""
    rng = np.random.default_rng(seed)
    return Quadratic(A=spd(rng, n, d, mu, L), b=rng.standard_normal((n, d)), c=rng.uniform(1.0, 2.0, n))


def converted(objective: Quadratic, array: Callable[..., Any]) -> Quadratic:
    """Return the same quadratic in another array library."""
    return Quadratic(A=array(objective.A), b=array(objective.b), c=array(objective.c), weights=objective.weights)


def moved(x: Any, array: Callable[..., Any]) -> Any:
    """Return the same dataclass, such as an objective, with the arrays in its fields, and in theirs, in a library."""
    if isinstance(x, np.ndarray):
        return array(x)
    if isinstance(x, ClientRows):  # which client is where stays on the host
        groups = (replace(g, X=array(g.X), y=array(g.y), w=array(g.w), cache={}) for g in x.groups)
        return replace(x, groups=tuple(groups))
    if isinstance(x, tuple):
        return tree_map(lambda part: moved(part, array), x)
    if not is_dataclass(x) or isinstance(x, type):
        return x
    return replace(x, **{f.name: moved(getattr(x, f.name), array) for f in fields(x) if f.init})


def logistic(n: int = 4, rows: int = 60, d: int = 3, *, mu: float = 0.05, seed: int = 0) -> LinearModel:
    """Return logistic regression on random rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, d))
    y = np.sign(X[:, 0] - 0.3 * X[:, 1] + 0.5 * rng.standard_normal(rows))
    return linear_model(X, y, loss=Logistic(), mu=mu, clients=n)


def hinge(n: int = 4, rows: int = 60, d: int = 3, *, mu: float = 0.05, seed: int = 0) -> LinearModel:
    """Return a support vector machine on the same rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, d))
    y = np.sign(X[:, 0] - 0.3 * X[:, 1] + 0.5 * rng.standard_normal(rows))
    return linear_model(X, y, loss=Hinge(), mu=mu, clients=n)
