r"""Clients in the plane whose valleys are nearly parallel: problems that are hard enough to be seen.

Quadratics in the plane with freely rotated axes are easy for every method on the dual: their mean is well-conditioned,
and what one client does not know another does. Where the valleys are nearly parallel, the steep directions agree and
the dual problem is ill-conditioned along the common flat one.
"""

from __future__ import annotations

import numpy as np

from dualopt.objectives import Quadratic

__all__ = ["ellipse", "own_minimisers", "valleys"]

DIRECTION = 0.4  # of the valleys, in radians
CENTRE = (2.0, 1.0)


def valleys(clients: int = 4, *, kappa: float = 30.0, apart: float = 1.0, angle: float = 0.5) -> Quadratic:
    r"""Return quadratics in the plane with :math:`\mu_j = 1`, the largest :math:`L_j` being ``kappa``.

    Client j has the curvatures 1 along its valley and :math:`\kappa^{1 - a u_j/2}` across it, with ``a = apart``
    and :math:`u_j` from 1 for the first client to 0 for the last; the directions of the valleys spread over ``apart``
    times ``angle``, and the minimisers of the clients over a circle of radius :math:`\frac32 a`.
    Minima are 0.

    Parameters
    ----------
    clients : int, default 4
        Number of clients.
    kappa : float, default 30
        Largest condition number, at least 1.
    apart : float, default 1
        How much the clients differ, in [0, 2]; 0 makes them all equal.
    angle : float, default 0.5
        Between the first and the last valley where ``apart`` is 1, in radians; with more than a half the valleys are
        no longer nearly parallel.

    Raises
    ------
    ValueError
        If ``clients`` or ``kappa`` is less than 1, or ``apart`` outside [0, 2].

    Examples
    --------
    >>> f = valleys(3, kappa=20.0)
    >>> f.mu.round(9).tolist(), float(f.L.max().round(9))
    ([1.0, 1.0, 1.0], 20.0)
    """
    if clients < 1:
        raise ValueError(f"clients must be at least 1, not {clients}.")
    if not kappa >= 1:
        raise ValueError(f"kappa must be at least 1, not {kappa}.")
    if not 0 <= apart <= 2:
        raise ValueError(f"apart must lie in [0, 2], not {apart}.")
    spread = np.linspace(-0.5, 0.5, clients) if clients > 1 else np.array([0.5])
    turned = DIRECTION + angle * apart * spread
    along = np.stack([np.cos(turned), np.sin(turned)], axis=1)
    across = np.stack([-np.sin(turned), np.cos(turned)], axis=1)
    steep = kappa ** (1.0 - 0.5 * apart * (0.5 - spread))
    A = along[:, :, None] * along[:, None, :] + steep[:, None, None] * across[:, :, None] * across[:, None, :]
    own = own_minimisers(clients, apart=apart)
    b = np.einsum("jkl,jl->jk", A, own)
    return Quadratic(A=A, b=b, c=0.5 * np.sum(own * b, axis=1))


def own_minimisers(clients: int, *, apart: float = 1.0) -> np.ndarray:
    """Return where the clients of :func:`valleys` have their minima, shape (clients, 2)."""
    turn = 2.0 * np.pi * np.arange(clients) / clients
    return np.array(CENTRE) + 1.5 * apart * np.stack([np.cos(turn), np.sin(turn)], axis=1)


def ellipse(A: np.ndarray, centre: np.ndarray, level: float, *, points: int = 64) -> np.ndarray:
    r"""Return the contour :math:`\frac12\langle x - c, A(x - c)\rangle = l` as points, shape (points + 1, 2).

    Examples
    --------
    >>> ellipse(np.diag([2.0, 8.0]), np.zeros(2), 1.0, points=4).round(6).tolist()
    [[1.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [-0.0, -0.5], [1.0, -0.0]]
    """
    angle = np.linspace(0.0, 2.0 * np.pi, points + 1)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    curvature, axes = np.linalg.eigh(A)
    return centre + np.sqrt(2.0 * level) * circle @ (axes / np.sqrt(curvature)).T
