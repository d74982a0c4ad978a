"""The slowest quadratic clients that a search finds: no proof can be better than what happens on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dualopt.arrays.tree import leaves, tree_map
from dualopt.engine.rounds import State, advance, initial_state
from dualopt.lab.proofs._setting import Setting
from dualopt.lab.proofs._states import fixed_point
from dualopt.methods import Algorithm
from dualopt.objectives import Quadratic

__all__ = ["lower_bound", "mean_square_factor"]

CLIENTS = 6
EVENTS = 64
"""Most clients of a search, and most things that may happen in a round."""
GRID = 5
"""Curvatures of a client that are tried: between mu and L in equal ratios."""
FAR = 1e5
"""How far curvatures reach, where L is infinite above mu, and where mu is 0 below L; from 1 where neither is there."""
PART = 1e-9
"""Of the largest singular value: what is smaller is taken for rounding."""


@dataclass(frozen=True)
class Parabola:
    r"""The regulariser :math:`\gamma x^2/2 + sx`."""

    gamma: float
    slope: Any = 0.0

    def prox(self, theta: np.ndarray, step: float) -> np.ndarray:
        """Return the proximal point."""
        return (theta - step * self.slope) / (1.0 + step * self.gamma)


def mean_square_factor(setting: Setting, curvatures: tuple[float, ...]) -> float:
    r"""Return the factor per round of the mean square of the states in late rounds on clients :math:`h_jx^2/2 - b_jx`.

    With a regulariser there is one curvature more.

    A round is a linear map :math:`A_w` of the state less the fixed point, one of a few. On the smallest subspace that
    holds all starts and is mapped into itself, the factor is the spectral radius of :math:`\sum_w p_w A_w \otimes A_w`:
    its eigenvector is the mean of states times their transposes, and some start has a part in it.
    """
    N = setting.n_clients
    A, gamma = np.array(curvatures[:N])[:, None, None], curvatures[N:]
    starts = [_start(setting, A, gamma, theta0, b) for theta0, b in _beginnings(setting)]
    n = len(starts[0])
    method = _method(setting, gamma)
    begin = initial_state(method, Quadratic(A=A, b=np.zeros((N, 1)), weights=setting.weights), np.ones(1))
    sizes = [np.size(x) for x in leaves(begin) if _is_vector(x, N, 1)]
    many = Quadratic(A=A * np.eye(n), b=np.zeros((N, n)), weights=setting.weights)
    told, rows = iter(setting.limits.numbers), iter(np.split(np.eye(n), np.cumsum(sizes)[:-1]))

    def unit(x: Any) -> Any:
        return next(rows).reshape(*np.shape(x)[:-1], n) if _is_vector(x, N, 1) else next(told)

    state = tree_map(unit, begin)
    maps = [(p, _flat(advance(method, many, state, round)[0], N, n)) for p, round in setting.events()]
    Q = _reached(np.stack(starts, axis=1), [M for _, M in maps])
    second = sum(p * np.kron(Q.T @ M @ Q, Q.T @ M @ Q) for p, M in maps)
    return float(np.abs(np.linalg.eigvals(second)).max(initial=0.0))


def _method(setting: Setting, gamma: tuple[float, ...], slope: Any = 0.0) -> Algorithm:
    return replace(setting.algorithm, regulariser=Parabola(*gamma, slope)) if gamma else setting.algorithm


def _beginnings(setting: Setting) -> list[tuple[float, np.ndarray]]:
    """Return first models and linear terms that span all: the minimiser is zero, so that all linear terms cancel."""
    weights = np.array(setting.weights or (1.0,) * setting.n_clients)
    found = [(1.0, np.zeros(len(weights)))]
    for j in range(1 if setting.regulariser is None else 0, len(weights)):
        b = np.zeros(len(weights))
        b[j] = -1.0 / weights[j]
        if setting.regulariser is None:
            b[0] = 1.0 / weights[0]
        found.append((0.0, b))
    return found


def _start(setting: Setting, A: np.ndarray, gamma: tuple[float, ...], theta0: float, b: np.ndarray) -> np.ndarray:
    """Return where a run starts, less the fixed point."""
    f = Quadratic(A=A, b=b[:, None], weights=setting.weights)
    method = _method(setting, gamma, f.mean(f.b))
    begin = initial_state(method, f, np.full(1, theta0))
    fixed = fixed_point(method, f, np.zeros(1))
    return (_flat(begin, setting.n_clients, 1) - _flat(fixed, setting.n_clients, 1))[:, 0]


def _reached(S: np.ndarray, maps: list[np.ndarray]) -> np.ndarray:
    """Return an orthonormal basis of the smallest subspace that holds the columns of S and is mapped into itself."""
    while True:
        U, sizes, _ = np.linalg.svd(np.concatenate([S, *(M @ S for M in maps)], axis=1), full_matrices=False)
        Q = U[:, : int(np.sum(sizes > PART * sizes[0]))]
        if Q.shape[1] == S.shape[1]:
            return Q
        S = Q


def _is_vector(x: Any, n_clients: int, dimension: int) -> bool:
    return np.shape(x) in ((dimension,), (n_clients, dimension))


def _flat(state: State, n_clients: int, dimension: int) -> np.ndarray:
    """Return the vectors of a state as rows."""
    return np.concatenate([x.reshape(-1, dimension) for x in leaves(state) if _is_vector(x, n_clients, dimension)])


def lower_bound(setting: Setting) -> tuple[float | None, tuple[float, ...]]:
    """Return the largest factor that a search among quadratic clients finds, and whose it is; None for too many."""
    if setting.n_clients > CLIENTS or len(setting.events()) > EVENTS:
        return None, ()
    return max((mean_square_factor(setting, h), h) for h in _candidates(setting))


def _candidates(setting: Setting) -> list[tuple[float, ...]]:
    """Return curvatures to try: the same place between mu and L for all clients, and all corners."""
    bounds = [*zip(setting.mu, setting.L, strict=True), *((own.mu, own.L) for own in setting.others)]
    grids = [np.geomspace(*_ends(m, M), GRID).tolist() for m, M in bounds]
    corners = product(*((grid[0], grid[-1]) for grid in grids))
    return list(dict.fromkeys([*zip(*grids, strict=True), *corners]))


def _ends(mu: float, L: float) -> tuple[float, float]:
    """Return the least and the largest curvature that is tried.

    >>> _ends(1.0, 10.0), _ends(0.0, 10.0), _ends(1.0, math.inf), _ends(0.0, math.inf)
    ((1.0, 10.0), (0.0001, 10.0), (1.0, 100000.0), (1e-05, 100000.0))
    """
    unit = L if math.isfinite(L) else mu or 1.0
    return mu or unit / FAR, L if math.isfinite(L) else (mu or 1.0) * FAR
