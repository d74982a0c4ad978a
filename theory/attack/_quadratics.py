"""Small quadratic clients made of parameters."""

from __future__ import annotations

import numpy as np

from dualopt.lab.attack import Parameters
from dualopt.objectives import Quadratic
from theory._cases import Case
from theory._problems import solved

__all__ = ["bounded_below", "convex", "unequal"]


def convex(parameters: Parameters, N: int, d: int, *, kappa: float, attained: bool = False) -> Case:
    """Return clients with eigenvalues in [1, kappa], in directions of their own, and any linear terms.

    With ``attained`` both ends are eigenvalues, of the first and of the last client.

    Examples
    --------
    >>> f = convex(Parameters(np.zeros(10)), 2, 2, kappa=100.0)
    >>> f.mu, f.L
    (10.0, 10.0)
    """
    eigenvalues = np.reshape([parameters.magnitude(1.0, kappa) for _ in range(N * d)], (N, d))
    if attained:
        eigenvalues[0, 0], eigenvalues[-1, -1] = 1.0, kappa
    A = np.stack([parameters.symmetric(own.tolist()) for own in eigenvalues])
    return solved(f"quadratics (N={N}, d={d})", Quadratic(A=A, b=parameters.reals(N, d), c=np.zeros(N)))


def bounded_below(parameters: Parameters, N: int, d: int, *, L: float) -> Case:
    """Return clients with curvatures of both signs, the largest of size L, whose mean is strongly convex.

    Examples
    --------
    >>> f = bounded_below(Parameters([0.5, -1.0, 0.0, 1.0, -1.0]), 2, 1, L=3.0)
    >>> round(f.L, 12), round(f.mu, 12), float(np.mean(f.objective.A)) > 0
    (3.0, -2.294117647059, True)
    """
    parts = np.stack([parameters.symmetric(parameters.reals(d).tolist()) for _ in range(N)])
    mean = parameters.symmetric([parameters.magnitude(1e-2, 1.0) for _ in range(d)])
    A = parts - np.mean(parts, axis=0) + mean
    A *= L / np.max(np.abs(np.linalg.eigvalsh(A)))
    f = Quadratic(A=A, b=L * parameters.reals(N, d), c=np.zeros(N))
    return solved(f"quadratics of both signs (N={N}, d={d})", f)


def unequal(parameters: Parameters, N: int, d: int, *, kappa: float) -> Case:
    """Return clients whose least eigenvalues differ: the first one's lies in [-0.9, 0.9], those of others above 1.

    So the first client may be concave, flat or convex, and the mean of the least eigenvalues is positive in any case.
    The largest lie within a factor ``kappa`` above.

    Examples
    --------
    >>> f = unequal(Parameters([-np.pi / 2, 0.0, 0.3, -0.3]), 2, 1, kappa=100.0)
    >>> f.objective.mu.round(12).tolist()
    [-0.9, 10.0]
    """
    A = []
    for j in range(N):
        least = parameters.between(-0.9, 0.9) if j == 0 else parameters.magnitude(1.0, kappa)
        others = [least + parameters.magnitude(1.0 / kappa, kappa) for _ in range(d - 1)]
        A.append(parameters.symmetric([least, *others]))
    return solved(
        f"unequal quadratics (N={N}, d={d})", Quadratic(A=np.stack(A), b=parameters.reals(N, d), c=np.zeros(N))
    )
