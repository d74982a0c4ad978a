"""The exact worst case of DualFL, and of methods that differ in their momentum, over a whole class of problems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dualopt.methods import dualfl, optimized_dualfl
from theory.worst_case import _literal, _reduced
from theory.worst_case._semidefinite import Program, WorstCase

__all__ = ["WorstCase", "pairs", "worst_case"]

Pairs = tuple[tuple[float, float], ...]


def worst_case(
    n: int,
    *,
    n_clients: int = 2,
    kappa: float | None = None,
    rho: float | None = None,
    measure: str = "distance",
    start: str | None = None,
    momentum: str = "paper",
    coefficients: Sequence[tuple[float, float]] | None = None,
    literal: bool = False,
) -> WorstCase:
    r"""Return the largest error after ``n`` rounds over all problems of one class, in any dimension.

    With ``nu = mu = 1`` and exact local solutions a round is one proximal step of :math:`g_j = f_j - |\cdot|^2/2` per
    client. The class of all convex :math:`g_j` is described exactly by inequalities between the points, subgradients
    and values that the method meets (Taylor, Hendrickx and Glineur 2017), so the worst case is a semidefinite program
    in their Gram matrix. The value for N clients is 2/N times that for two: averaged over permutations, the Gram matrix
    splits into one block for means and one for deviations, neither of which knows N.

    Parameters
    ----------
    n : int
        Rounds.
    n_clients : int
        N, at least 2.
    kappa : float, optional
        L/mu; None for nonsmooth losses.
    rho : float, optional
        Momentum parameter; by default ``1/kappa``, or 0 for nonsmooth losses.
    measure : {"distance", "dual"}
        ``|theta^n - theta*|^2``, or ``E_d(xi^n) - E_d*`` with :math:`\xi_j^n = \nabla g_j(\theta_j^n)`.
    start : {"xi", "zeta", "energy"}, optional
        What is at most 1: ``|xi*|^2`` as in Theorem 3.2; ``|zeta*|^2 = |xi*|^2 - N |theta*|^2``, which measures how
        much clients differ and is enough, for a translation moves theta* to 0; or
        ``E_d(0) - E_d* + |xi*|^2/(2 (1 - rho))`` as in Theorem 3.3. By default what the theorem uses.
    momentum : {"paper", "none", "early", "late", "optimized"}
        beta of (3.4), 0, beta of one round before or after, or that of :class:`OptimizedDualFL`.
    coefficients : sequence of (float, float), optional
        Instead of ``momentum``: the pairs (b, c) of rounds 1 to n - 1 in
        :math:`\zeta^+ = v + b (v - v^{\text{prev}}) + c (v - \zeta)`.
    literal : bool
        Write down N functions with PEPit instead of the two blocks; feasible up to 8 rounds or so.

    Returns
    -------
    WorstCase
        Its bound is that of Theorem 3.2 (``rho = 0``) or 3.3, or that of :class:`OptimizedDualFL`, with explicit
        constants, whether or not ``rho`` lies in the range of the theorem.

    Raises
    ------
    ValueError
        If an argument is out of range.
    RuntimeError
        If the solver stops early, or its primal and dual values differ by more than 1e-5 of the value.

    Examples
    --------
    >>> worst = worst_case(2)
    >>> f"{worst.value:.4f} of {worst.bound:.4f}, {worst.status}"
    '0.0625 of 0.2222, optimal'
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}.")
    if n_clients < 2:
        raise ValueError(f"n_clients must be at least 2, not {n_clients}.")
    if kappa is not None and not 1 < kappa < math.inf:
        raise ValueError(f"kappa must be a finite number above 1, or None for nonsmooth losses, not {kappa}.")
    rho = (0.0 if kappa is None else 1.0 / kappa) if rho is None else rho
    if not 0 <= rho < 1:
        raise ValueError(f"rho must lie in [0, 1), not {rho}.")
    start = _usual_start(momentum, measure, rho) if start is None else start
    _check_name("measure", measure, ("distance", "dual"))
    _check_name("start", start, ("xi", "zeta", "energy"))
    chosen = pairs(n, rho=rho, momentum=momentum) if coefficients is None else tuple(coefficients)
    if len(chosen) != n - 1:
        raise ValueError(f"coefficients must hold {n - 1} pairs for n = {n}, not {len(chosen)}.")
    program = Program(coefficients=chosen, n_clients=n_clients, kappa=kappa, rho=rho, measure=measure, start=start)
    certified = (_literal if literal else _reduced).solve(program)
    promised = None if coefficients is not None else _bound(n, rho=rho, momentum=momentum, measure=measure, start=start)
    if promised is None:
        return certified
    return replace(certified, bound=promised / (n_clients if measure == "distance" else 1))


def pairs(n: int, *, rho: float, momentum: str = "paper") -> Pairs:
    """Return the pairs (b, c) that a method uses after rounds 1 to n - 1.

    Parameters
    ----------
    n : int
        Rounds.
    rho : float
        Momentum parameter.
    momentum : {"paper", "none", "early", "late", "optimized"}
        As in :func:`worst_case`.

    Raises
    ------
    ValueError
        If there is no such momentum.

    Examples
    --------
    >>> [round(b, 4) for b, c in pairs(4, rho=0.0)], [round(b, 4) for b, c in pairs(4, rho=0.0, momentum="early")]
    ([0.0, 0.2818, 0.434], [0.0, 0.0, 0.2818])
    """
    _check_name("momentum", momentum, ("paper", "none", "early", "late", "optimized"))
    if momentum == "none":
        return ((0.0, 0.0),) * (n - 1)
    if momentum == "optimized":
        A, chosen = 0.0, []
        for _ in range(n - 1):
            A, b, c = optimized_dualfl.coefficients(A, rho)
            chosen.append((b, c))
        return tuple(chosen)
    t, betas = 1.0, [0.0]
    for _ in range(n):
        t, beta = dualfl.momentum(t, rho)
        betas.append(beta)
    first = {"early": 0, "paper": 1, "late": 2}[momentum]
    return tuple((beta, 0.0) for beta in betas[first : first + n - 1])


def _usual_start(momentum: str, measure: str, rho: float) -> str:
    if momentum == "optimized":
        return "zeta"
    return "energy" if measure == "dual" and rho > 0 else "xi"


def _bound(n: int, *, rho: float, momentum: str, measure: str, start: str) -> float | None:
    """Return what the theorem says of ``N |theta^n - theta*|^2`` or of the dual error; None if it says nothing."""
    if momentum == "optimized":
        A = 0.0
        for _ in range(n):
            A = optimized_dualfl.growth(A, rho)
        promises_dual = measure == "dual" and rho == 0
        dual = 1.0 / A if start != "energy" and (measure == "distance" or promises_dual) else None
    elif rho == 0:
        dual = 2.0 / (n + 1) ** 2 if start != "energy" else None
    else:
        dual = (1.0 - math.sqrt(rho)) ** n if start == "energy" else None
    # theta^n is minus the mean of xi^n, and E_d grows like |.|^2/2 around its minimiser in that direction
    return dual if dual is None or measure == "dual" else 2.0 * dual


def _check_name(argument: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise ValueError(f"{argument} must be one of {', '.join(known)}; not {name!r}.")
