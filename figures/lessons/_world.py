"""The running example: clients in the plane whose minimisers the reader drags; all runs start at the origin."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from dualopt.objectives import Quadratic
from figures.lessons._parts import Dash, Drag, Shape, Valley
from theory._cases import Case
from theory._valleys import ellipse, own_minimisers, valleys

__all__ = [
    "DASHES",
    "INKS",
    "KAPPA",
    "OPEN",
    "SHAPES",
    "clients",
    "contour",
    "curvature",
    "dragged",
    "energy_lengths",
    "minimisers",
    "on_clients",
    "valleys_of",
]

KAPPA = 16.0  # of the steeper client
INKS = ("one", "two", "three", "four")  # of the clients, and what tells them apart without colours
SHAPES: tuple[Shape, ...] = ("square", "diamond", "triangle", "disc")
OPEN: tuple[Shape, ...] = ("open square", "open diamond")  # their models
DASHES: tuple[Dash, ...] = ("solid", "fine", "dotted", "dash-dot")


@cache
def curvature(n: int = 2, kappa: float = KAPPA, angle: float = 1.0) -> np.ndarray:
    """Return the Hessians of the clients, shape (n, 2, 2): long valleys in directions that differ by ``angle``."""
    return valleys(n, kappa=kappa, angle=angle).A


def clients(u: np.ndarray, n: int = 2, kappa: float = KAPPA, angle: float = 1.0) -> Quadratic:
    """Return the clients whose minimisers are the first ``n`` points of a position; their minima are 0.

    Examples
    --------
    >>> f = clients(np.array([3.0, 1.0, 0.0, 1.0]))
    >>> f.value(np.array([3.0, 1.0]))[0].round(12) == 0.0, float(f.L.max().round(9))
    (np.True_, 16.0)
    """
    A, own = curvature(n, kappa, angle), minimisers(u, n)
    b = np.einsum("jkl,jl->jk", A, own)
    return Quadratic(A=A, b=b, c=0.5 * np.sum(own * b, axis=1))


def on_clients(n: int = 2, kappa: float = KAPPA, angle: float = 1.0, *, rounds: int) -> Callable[..., Case]:
    """Return what runs a method of the reader's on these clients, all of whom take part.

    Examples
    --------
    >>> from dualopt.methods import DualAscent
    >>> on_clients(rounds=3)(DualAscent(), np.array([3.0, 1.0, 0.0, 1.0])).models().shape
    (3, 2)
    """
    return lambda method, u: Case.of(method, clients(u, n, kappa, angle), rounds=rounds)


def minimisers(u: np.ndarray, n: int = 2) -> np.ndarray:
    """Return the minimisers of the clients at a position, shape (n, 2)."""
    return np.reshape(u[: 2 * n], (n, 2))


def dragged(n: int = 2) -> tuple[Drag, ...]:
    """Return the minimisers as points that are dragged."""
    return tuple(
        Drag(
            name=f"m{j + 1}",
            label=f"client {j + 1}",
            spoken=f"where client {j + 1} is best",
            start=(float(x), float(y)),
            ink=INKS[j],
            shape=SHAPES[j],
        )
        for j, (x, y) in enumerate(own_minimisers(n).round(2))
    )


def valleys_of(n: int = 2, kappa: float = KAPPA, angle: float = 1.0) -> tuple[Valley, ...]:
    """Return two lines of constant height of each client."""
    A = curvature(n, kappa, angle)
    return tuple(
        Valley(at=f"m{j + 1}", outline=contour(A[j], level), ink=INKS[j], dash=DASHES[j])
        for j in range(n)
        for level in (0.2, 0.8)
    )


def contour(A: np.ndarray, level: float = 0.25) -> np.ndarray:
    """Return the points where a client is ``level`` above its minimum, around the origin."""
    return ellipse(A, np.zeros(2), level, points=48)


def energy_lengths(case: Case, models: np.ndarray) -> np.ndarray:
    r"""Return vectors of the squared length :math:`E(\theta) - E^*`, one for each model of shape (..., 2)."""
    mean = np.mean(case.objective.A, axis=0)
    return (models - case.theta) @ np.linalg.cholesky(0.5 * mean)
