"""Algorithm 2 of the paper: inexact FISTA on the dual of a quadratic problem, from its definition alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.objectives import Quadratic

__all__ = ["Fista", "Iterate"]


class Iterate(NamedTuple):
    """The iterates after a step."""

    xi: Array  # xi^(n+1)
    eta: Array  # eta^(n+1)
    dual_value: float  # E_d(xi^(n+1))


def _none(n: int) -> float:
    return 0.0


@dataclass(frozen=True, kw_only=True)
class Fista:
    r"""FISTA on :math:`E_d(\xi) = \sum_j g_j^*(\xi_j) + |\sum_j \xi_j|^2/(2N\nu)` for quadratic ``f_j``.

    Every proximal step (6.7) is perturbed in a random direction, so that its error is exactly the admitted one.

    Parameters
    ----------
    rho, nu : float
        Momentum parameter and step size.
    errors : callable, optional
        Maps ``n`` to ``delta_n``; exact when not given.
    """

    rho: float
    nu: float
    errors: Callable[[int], float] = _none

    def momentum(self, t: float) -> tuple[float, float]:
        """Return ``t_{n+1}`` and ``beta_n`` as printed in (3.4)."""
        rho = self.rho
        t_next = (1 - rho * t**2 + math.sqrt((1 - rho * t**2) ** 2 + 4 * t**2)) / 2
        return t_next, (t - 1) / t_next * (1 - t_next * rho) / (1 - rho)

    def sequence(self, f: Quadratic) -> Iterator[Iterate]:
        r"""Yield the iterates.

        Examples
        --------
        >>> f = Quadratic(A=np.full((2, 1, 1), 2.0), b=np.array([[1.0], [3.0]]))
        >>> for iterate in zip(range(60), Fista(rho=0.5, nu=1.0).sequence(f)):
        ...     pass
        >>> iterate[1].xi.round(6).tolist()  # theta* = 1, and grad g_j = theta - b_j there
        [[0.0], [-2.0]]
        """
        nu, (N, d) = self.nu, f.b.shape
        # g_j*(xi) = (xi + b)' inverse (xi + b)/2 - c
        inverse = np.linalg.inv(f.A - nu * np.eye(d))
        curvature = inverse + np.eye(d) / nu
        constant = 0.0 if f.c is None else float(np.sum(f.c))
        rng = np.random.default_rng(0)
        xi, eta, t, n = np.zeros((N, d)), np.zeros((N, d)), 1.0, 0
        while True:
            forward = eta - nu * np.sum(eta, axis=0) / (N * nu)  # eta - nu grad F_d(eta)
            right = forward / nu - np.einsum("jkl,jl->jk", inverse, f.b)
            noise = rng.standard_normal((N, d))
            cost = 0.5 * np.einsum("jk,jkl,jl->", noise, curvature, noise)
            last, xi = xi, np.linalg.solve(curvature, right[..., None])[..., 0]
            xi = xi + math.sqrt(self.errors(n) / cost) * noise  # E_d^n(xi) - min E_d^n is errors(n)
            t, beta = self.momentum(t)
            eta = (1 + beta) * xi - beta * last  # (6.8)
            shifted = xi + f.b
            value = 0.5 * np.einsum("jk,jkl,jl->", shifted, inverse, shifted) - constant
            yield Iterate(xi, eta, float(value + np.sum(np.sum(xi, axis=0) ** 2) / (2 * N * nu)))
            n += 1
