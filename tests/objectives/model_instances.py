"""Linear models for every loss found by walking the package, and the double loop over clients and rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import dualopt.losses
from dualopt.objectives import LinearModel, linear_model
from dualopt.spec.discover import discover

EPS = float(np.finfo(np.float64).eps)


LOSSES: list[Any] = [kind(**kind.example) for kind in discover(dualopt.losses).values()]


class Rows(NamedTuple):
    """Rows and who holds them."""

    X: np.ndarray
    y: np.ndarray
    clients: list[list[int]]


def rows(loss: Any, sizes: tuple[int, ...] = (3, 7, 3, 1, 12, 7, 3), d: int = 4, seed: int = 0) -> Rows:
    """Draw rows, dealt to clients of the given sizes in no order."""
    rng = np.random.default_rng(seed)
    m = sum(sizes)
    X = rng.normal(size=(m, d)) * np.geomspace(0.5, 2.0, d)
    if loss.labels == "real":
        y = rng.normal(size=m)
        y = np.abs(y) if hasattr(loss, "label_domain") else y
    elif loss.labels == "binary":
        y = rng.choice([-1.0, 1.0], size=m)
    else:
        y = rng.integers(0, loss.outputs, size=m)
    order = rng.permutation(m).tolist()
    cuts = np.cumsum((0, *sizes))
    return Rows(X, y, [order[a:b] for a, b in pairwise(cuts)])


def lognormal_sizes(n: int, seed: int = 0) -> tuple[int, ...]:
    """Draw sizes as uneven as those of real federations."""
    return tuple(int(x) + 1 for x in np.random.default_rng(seed).lognormal(1.5, 1.0, size=n))


def model(loss: Any, data: Rows | None = None, *, mu: float = 0.3, **options: Any) -> LinearModel:
    data = rows(loss) if data is None else data
    return linear_model(data.X, data.y, loss=loss, mu=mu, clients=data.clients, **options)


def points(f: Any, seed: int = 1, scale: float = 0.5) -> np.ndarray:
    return scale * np.random.default_rng(seed).normal(size=(f.n_clients, *f.shape))


def on(backend: Callable[[np.ndarray], Any], data: Rows) -> Rows:
    """Move rows to another library."""
    return Rows(backend(data.X), backend(data.y), data.clients)


def literal(
    loss: Any,
    data: Rows,
    theta: np.ndarray,
    *,
    mu: float = 0.3,
    weights: np.ndarray | None = None,
    intercept: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Return values and gradients by a loop over clients and a loop over their rows."""
    values, gradients = [], []
    for j, part in enumerate(data.clients):
        value, gradient = 0.5 * mu * float(np.sum(theta[j] ** 2)), mu * theta[j]
        for i in part:
            x = np.append(data.X[i], 1.0) if intercept else data.X[i]
            weight = 1.0 / len(part) if weights is None else weights[i]
            z = np.atleast_1d(theta[j] @ x)  # (1,) for one output, (k,) otherwise
            z = z if loss.outputs == 1 else z[:, None]
            label = data.y[i : i + 1]
            slope = loss.gradient(z, label)
            value = value + weight * float(loss.value(z, label)[0])
            gradient = gradient + weight * (slope[0] * x if loss.outputs == 1 else slope * x)
        values.append(value)
        gradients.append(gradient)
    return np.stack(values), np.stack(gradients)


def assert_close(actual: np.ndarray, expected: np.ndarray, *, units: float = 64.0, eps: float = EPS) -> None:
    """Assert equality up to ``units`` of rounding of the largest entry."""
    assert actual.shape == expected.shape
    assert float(np.max(np.abs(actual - expected))) <= units * eps * float(np.max(np.abs(expected)))
