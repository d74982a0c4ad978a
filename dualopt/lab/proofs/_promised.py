"""What theorems of a method promise of a class of problems: a factor per round, and an error after some rounds."""

from __future__ import annotations

import math

import numpy as np

from dualopt.lab.proofs._setting import Setting
from dualopt.methods import Algorithm
from dualopt.methods._theorem import Known, Theorem

__all__ = ["claimed_bound", "claimed_factor", "promised"]

ROUNDING = 1e-9


def _theorems(method: Algorithm, known: Known) -> list[Theorem]:
    """Return the theorems that apply."""
    return [t for t in method.theorems if t.concerns(method, known) and not t.fails(method, known)]


def promised(method: Algorithm, known: Known) -> list[tuple[Theorem, float]]:
    """Return the theorems with a factor that apply, and their factors per round for squares of distances.

    Examples
    --------
    By gradient descent a distance falls by 0.9:

    >>> setting = Setting.of("gradient-descent", 1, 10, 2)
    >>> [round(factor, 2) for _, factor in promised(setting.algorithm, Known.of(setting.world(1)))]
    [0.81]
    """
    return [
        (theorem, theorem.factor(method, known) ** (2.0 / (theorem.power * theorem.rounds)))
        for theorem in _theorems(method, known)
        if theorem.factor is not None
    ]


def claimed_factor(setting: Setting) -> float | None:
    """Return the least factor per round that a theorem promises for the mean of its potential."""
    found = promised(setting.algorithm, Known.of(setting.world(1), setting.participation, setting.packs()))
    return min((factor for theorem, factor in found if theorem.potential is not None), default=None)


def claimed_bound(setting: Setting, rounds: int, start: tuple[float, float]) -> float | None:
    r"""Return the least bound of the squared distance that a theorem states for starts of size one.

    Bounds are functions of the minimiser and the gradients there. Those of the form :math:`A|\theta^*|^2 +
    B\sum_j|\nabla f_j(\theta^*)|^2` are seen from their values where all these vectors are orthogonal; others are left
    out. With a start (a, b) such a one is :math:`\max(A/a, B/b)`.
    """
    found = []
    for theorem in _theorems(setting.algorithm, Known.of(setting.world(1), setting.participation, setting.packs())):
        if theorem.bound is None:
            continue
        of_star, of_all, of_both = (_bound(setting, theorem, rounds, *sizes) for sizes in ((1, 0), (0, 1), (1, 1)))
        some = [_bound(setting, theorem, rounds, 0, 1, pair=(0, j)) for j in range(1, setting.n_clients)]
        ratios = [of_all[0] / of_all[1], *(value / squares for value, squares in some)] if some else [0.0]
        if math.isclose(of_both[0], of_star[0] + of_all[0], rel_tol=ROUNDING) and np.ptp(ratios) <= ROUNDING * max(
            ratios
        ):
            parts = zip((of_star[0], ratios[0]), start, strict=True)
            found.append(max(0.0 if A == 0 else math.inf if a == 0 else A / a for A, a in parts))
    return min(found, default=None)


def _bound(
    setting: Setting, theorem: Theorem, rounds: int, star: float, size: float, pair: tuple[int, int] | None = None
) -> tuple[float, float]:
    """Return a bound, and the sum of the squares of the gradients, of all or of two clients with weighted sum zero."""
    N = setting.n_clients
    f = setting.world(N + 1)
    theta, weights = star * f.ledger.vector(), setting.weights or (1.0,) * N
    gradients = np.zeros((N, N + 1))
    if pair is None:
        gradients[: N - 1, 1:N] = size * np.eye(N - 1)
        gradients[-1, 1:N] = -size * np.array(weights[:-1]) / weights[-1]
    else:
        gradients[list(pair), 1] = size / weights[pair[0]], -size / weights[pair[1]]
    for j, gradient in enumerate(gradients):
        f.ledger.set_gradient(j, theta, gradient)
    known = Known.of(f, setting.participation, setting.packs())
    assert theorem.bound is not None
    return theorem.bound(setting.algorithm, known, theta, rounds), float(np.sum(gradients**2))
