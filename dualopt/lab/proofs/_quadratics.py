r"""The slowest quadratic clients that a search finds: no proof can be better than what happens on them.

Clients of a class that have equal curvatures can be exchanged, so that second moments of states have blocks: that of
the means (of the server, and of each kind of vectors over each group of such clients), and for each group one of the
deviations from its means, the same for all directions of these.

Of a vector v a compressor here makes :math:`(1 + t_j)v`: the errors :math:`t_jv` of unbiased ones have random signs,
:math:`t_j^2 = \omega`, and those of contractive ones :math:`|t_j|^2 = 1 - \delta`, complex for a rotation in the plane.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dualopt.arrays.tree import leaves, tree_map
from dualopt.engine.rounds import State, advance
from dualopt.lab.proofs._compressors import Unbiased
from dualopt.lab.proofs._setting import Setting
from dualopt.lab.proofs._states import begun, fixed_point
from dualopt.methods import Algorithm
from dualopt.objectives import Quadratic

__all__ = ["lower_bound", "mean_square_factor"]

CLIENTS = 20
CORNERS = 64
ORBITS = 128
"""Most clients of a search, most of its corners, and most rounds that differ by more than an exchange of clients."""
GRID = 5
"""Curvatures of a client that are tried: between mu and L in equal ratios."""
DIGITS = 9
"""After the point, of a factor; the first of those that agree counts, of equal clients where it can be."""
FAR = 1e5
"""How far curvatures reach, where L is infinite above mu, and where mu is 0 below L; from 1 where neither is there."""
PART = 1e-9
"""Of the largest singular value: what is smaller is taken for rounding."""
ANGLES = 9
"""Rotations of an error that are tried, from its own direction to the opposite one."""


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
    holds all starts and is mapped into itself, the factor is the spectral radius of the positive map :math:`S \mapsto
    \sum_wp_wA_wSA_w^\top`: its eigenvector is the mean of states times their transposes, and some start has a part in
    it. Exchanges of clients leave the map as it is, so that their mean of an eigenvector is one too: it is looked for
    among the S that they leave as they are, and one round stands for all that are the same up to an exchange.
    """
    N, groups = setting.n_clients, _groups(setting, curvatures)
    A, gamma = np.array(curvatures[:N])[:, None, None], curvatures[N:]
    starts = np.stack([_start(setting, A, gamma, theta0, b) for theta0, b in _beginnings(setting)], axis=1)
    n, method = len(starts), _method(setting, gamma)
    begin = _begin(setting, method, Quadratic(A=A, b=np.zeros((N, 1)), weights=setting.weights), np.ones(1))[0]
    sizes = [np.size(x) for x in leaves(begin) if _is_vector(x, N, 1)]
    many = Quadratic(A=A * np.eye(n), b=np.zeros((N, n)), weights=setting.weights)
    told, rows = iter(setting.limits.numbers), iter(np.split(np.eye(n), np.cumsum(sizes)[:-1]))

    def unit(x: Any) -> Any:
        return next(rows).reshape(*np.shape(x)[:-1], n) if _is_vector(x, N, 1) else next(told)

    state = tree_map(unit, begin)
    orbits = setting.orbits_of(groups)

    def done(round: Any, active: Sequence[int] = ()) -> np.ndarray:
        """Return the map of a round in which twice as much arrives of some clients."""
        packs = setting.plain and replace(setting.plain, times=tuple(2.0 if j in active else 1.0 for j in range(N)))
        return _flat(advance(method, many, state, round, packs)[0], N, n)

    found = [(p, done(round), round.clients) for p, round in orbits]
    maps = np.stack([M for _, M, _ in found])
    if setting.compressor is None:
        return _radius(_reached(_bases(sizes, groups), starts, maps), maps, [p for p, _ in orbits])
    errors = []  # in each round of the active clients of each group: how many, the error of one of them, and of all
    for (p, M, clients), (_, round) in zip(found, orbits, strict=True):
        active = [[j for j in own if j in clients] for own in groups]
        errors.append((p, M, [(len(own), done(round, own[:1]) - M, done(round, own) - M) for own in active]))
    every = np.concatenate([maps, *(np.stack([x for _, *own in e for x in own]) for *_, e in errors)])
    bases = _reached(_bases(sizes, groups), starts, every)
    laws = (_law(errors, t, signs) for t, signs in _laws(setting, len(groups)))
    return max(_radius(bases, np.stack(own), chances) for own, chances in laws)


def _laws(setting: Setting, n_groups: int) -> list[tuple[Sequence[complex], str]]:
    """Return what errors may be: multiples of what is sent for each group, and whose signs are drawn."""
    kind = setting.compressor
    assert kind is not None
    size = math.sqrt(kind.part)
    if isinstance(kind, Unbiased):
        return [((size,) * n_groups, signs) for signs in ("own", *(() if kind.independent else ("common",)))]
    turned = [size * complex(math.cos(a), math.sin(a)) for a in np.linspace(0.0, math.pi, ANGLES)]
    corners = product((size, -size), repeat=n_groups) if n_groups <= 4 else ()
    found: list[tuple[Sequence[complex], str]] = [((t,) * n_groups, "none") for t in turned]
    return [*found, *((t, "none") for t in corners), *(((size,) * n_groups, signs) for signs in ("own", "common"))]


def _law(errors: Any, t: Sequence[complex], signs: str) -> tuple[list[np.ndarray], list[float]]:
    """Return maps and their weights, whose sum is the second moment after a round."""
    maps, chances = [], []
    for p, M, own in errors:
        together = sum((s * whole for s, (_, _, whole) in zip(t, own, strict=True)), 0.0 * M)
        maps.append(M + together if signs == "none" else M)
        chances.append(p)
        if signs == "common":
            maps.append(together)
            chances.append(p)
        elif signs == "own":
            maps += [s * one for s, (_, one, _) in zip(t, own, strict=True)]
            chances += [p * count for count, _, _ in own]
    return maps, chances


def _begin(setting: Setting, method: Algorithm, f: Any, theta0: np.ndarray) -> tuple[State, State]:
    """Return the state before the first round, and the fixed point."""
    fixed = fixed_point(method, f, np.zeros(1), compressed=setting.compressor is not None)
    return begun(method, f, theta0, fixed), fixed


def _groups(setting: Setting, curvatures: Sequence[float]) -> list[list[int]]:
    """Return the clients that can be exchanged."""
    found: dict[Any, list[int]] = {}
    for c, own in enumerate(setting.equals):
        for j in own.clients:
            found.setdefault((c, curvatures[j]), []).append(j)
    return list(found.values())


def _method(setting: Setting, gamma: tuple[float, ...], slope: Any = 0.0) -> Algorithm:
    return replace(setting.algorithm, regulariser=Parabola(gamma[0], slope)) if gamma else setting.algorithm


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
    begin, fixed = _begin(setting, method, f, np.full(1, theta0))
    return (_flat(begin, setting.n_clients, 1) - _flat(fixed, setting.n_clients, 1))[:, 0]


def _bases(sizes: Sequence[int], groups: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Return an orthonormal basis of each block, of shape (rows of a state, kinds, directions)."""
    firsts = np.cumsum([0, *sizes]).tolist()
    n, many = firsts.pop(), [first for first, size in zip(firsts, sizes, strict=True) if size > 1]
    means = []
    for first in firsts:
        for own in groups if first in many else [[0]]:
            means.append(np.zeros(n))
            means[-1][[first + j for j in own]] = len(own) ** -0.5
    found = [np.stack(means, axis=1)[:, :, None]]
    for own in groups:
        away = np.linalg.svd(np.ones((1, len(own))))[2][1:].T
        found.append(np.zeros((n, len(many), len(own) - 1)))
        for k, first in enumerate(many):
            found[-1][[first + j for j in own], k] = away
    return found


def _images(left: np.ndarray, maps: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return maps from one block to another, of shape (maps, kinds, directions, kinds, directions)."""
    n = len(left)
    flat = (B.reshape(n, math.prod(B.shape[1:])) for B in (left, right))
    found = next(flat).T @ maps @ next(flat)
    return found.reshape(len(maps), *left.shape[1:], *right.shape[1:])


def _reached(bases: Sequence[np.ndarray], starts: np.ndarray, maps: np.ndarray) -> list[np.ndarray]:
    """Return orthonormal bases of the smallest subspace that holds all starts and is mapped into itself."""
    scale = float(np.linalg.norm(starts))
    found = [_span(B, np.einsum("nkc,ns->kcs", B, starts), scale) for B in bases]
    scale = max(1.0, float(np.linalg.norm(maps, axis=(1, 2)).max()))
    while True:
        wider = []
        for B, own in zip(bases, found, strict=True):
            columns = [np.einsum("nkc,nqd->kcqd", B, own), *(np.moveaxis(_images(B, maps, C), 1, 0) for C in found)]
            flat = [x.reshape(len(x), math.prod(x.shape[1:])) for x in columns]
            wider.append(_span(B, np.concatenate(flat, axis=1), scale))
        if [x.shape for x in wider] == [x.shape for x in found]:
            return found
        found = wider


def _span(basis: np.ndarray, kinds: np.ndarray, scale: float) -> np.ndarray:
    """Return an orthonormal basis of the combinations of kinds that are the columns of an array."""
    U, sizes, _ = np.linalg.svd(kinds.reshape(len(kinds), math.prod(kinds.shape[1:])), full_matrices=False)
    return np.einsum("nkc,kq->nqc", basis, U[:, : int(np.sum(sizes > PART * scale))])


def _radius(bases: Sequence[np.ndarray], maps: np.ndarray, chances: Sequence[float]) -> float:
    """Return the spectral radius of the mean of S -> ASA' on blocks, each a matrix for all directions."""

    def block(B: np.ndarray, C: np.ndarray) -> np.ndarray:
        T = _images(B, maps, C)
        found = np.einsum("w,waukv,wbulv->abkl", chances, T, T.conj(), optimize=True)
        return found.reshape(B.shape[1] ** 2, C.shape[1] ** 2) / B.shape[2]

    second = np.block([[block(B, C) for C in bases] for B in bases])
    return float(np.abs(np.linalg.eigvals(second)).max(initial=0.0))


def _is_vector(x: Any, n_clients: int, dimension: int) -> bool:
    return np.shape(x) in ((dimension,), (n_clients, dimension))


def _flat(state: State, n_clients: int, dimension: int) -> np.ndarray:
    """Return the vectors of a state as rows."""
    return np.concatenate([x.reshape(-1, dimension) for x in leaves(state) if _is_vector(x, n_clients, dimension)])


def lower_bound(setting: Setting) -> tuple[float | None, tuple[float, ...]]:
    """Return the largest factor that a search among quadratic clients finds, and whose it is; None for too many."""
    corners = math.prod(len(own) + 1 for own in setting.equals)
    if setting.n_clients > CLIENTS or corners > CORNERS:
        return None, ()
    candidates = _candidates(setting)
    if max(len(setting.orbits_of(_groups(setting, h))) for h in candidates) > ORBITS:
        return None, ()
    factors = [round(mean_square_factor(setting, h), DIGITS) for h in candidates]
    return max(zip(factors, candidates, strict=True), key=lambda found: found[0])


def _candidates(setting: Setting) -> list[tuple[float, ...]]:
    """Return curvatures to try: the same place between mu and L for all clients, and all corners but for exchanges."""
    bounds = [*zip(setting.mu, setting.L, strict=True), *((own.mu, own.L) for own in setting.others)]
    grids = [np.geomspace(*_ends(m, M), GRID).tolist() for m, M in bounds]
    found, regulariser = dict.fromkeys(zip(*grids, strict=True)), grids[setting.n_clients :]
    for counts in product(*(range(len(own) + 1) for own in setting.equals)):
        low = {j for own, n in zip(setting.equals, counts, strict=True) for j in own.clients[:n]}
        clients = [grid[0 if j in low else -1] for j, grid in enumerate(grids[: setting.n_clients])]
        for ends in product(*((grid[0], grid[-1]) for grid in regulariser)):
            found[*clients, *ends] = None
    return list(found)


def _ends(mu: float, L: float) -> tuple[float, float]:
    """Return the least and the largest curvature that is tried.

    >>> _ends(1.0, 10.0), _ends(0.0, 10.0), _ends(1.0, math.inf), _ends(0.0, math.inf)
    ((1.0, 10.0), (0.0001, 10.0), (1.0, 100000.0), (1e-05, 100000.0))
    """
    unit = L if math.isfinite(L) else mu or 1.0
    return mu or unit / FAR, L if math.isfinite(L) else (mu or 1.0) * FAR
