r"""Fenchel-Rockafellar duality: Proposition 6.1 of the DualFL paper (Section 6.1).

It is checked where both problems can be solved by hand: a quadratic F and a weighted sum of absolute values G. For the
dual problem (6.4) itself, with the clients of this folder, it is ``relation_6_5``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.lab.claims import Inequality, claim
from theory._claims import ROUNDING, ExpectedVerdict, deviation


@dataclass(frozen=True, kw_only=True, eq=False)
class Composition:
    r"""The problem :math:`\min_x F(x) + G(Kx)` with F a quadratic and G a sum of absolute values.

    Attributes
    ----------
    name : str
        For tables.
    Q, c : array, shape (d, d) and (d,)
        :math:`F(x) = \frac12 x^\top Qx - c^\top x`, Q positive definite.
    K : array, shape (m, d)
        The operator.
    w, a : array, shape (m,)
        :math:`G(y) = \sum_i w_i|y_i - a_i|`, ``w`` positive.
    """

    name: str
    Q: Array
    c: Array
    K: Array
    w: Array
    a: Array

    def smooth(self, x: Array) -> float:
        """Return ``F(x)``."""
        return float(0.5 * x @ self.Q @ x - self.c @ x)

    def nonsmooth(self, y: Array) -> float:
        """Return ``G(y)``."""
        return float(np.sum(self.w * np.abs(y - self.a)))

    def smooth_conjugate(self, p: Array) -> float:
        r"""Return :math:`F^*(p) = \frac12(c+p)^\top Q^{-1}(c+p)`."""
        return float(0.5 * (self.c + p) @ np.linalg.solve(self.Q, self.c + p))

    def nonsmooth_conjugate(self, y: Array) -> float:
        r"""Return :math:`G^*(y) = a^\top y` where :math:`|y_i| \le w_i` for all i, else infinity."""
        inside = np.all(np.abs(y) <= self.w * (1.0 + 1e-12))
        return float(self.a @ y) if inside else np.inf

    def primal(self, x: Array) -> float:
        """Return ``F(x) + G(Kx)``."""
        return self.smooth(x) + self.nonsmooth(self.K @ x)

    def dual(self, y: Array) -> float:
        r"""Return :math:`F^*(-K^\top y) + G^*(y)`."""
        return self.smooth_conjugate(-self.K.T @ y) + self.nonsmooth_conjugate(y)

    def primal_solution(self) -> Array:
        """Return the best stationary point over all signs of ``Kx - a``, zeros among them."""
        return min((self._stationary(np.array(signs)) for signs in self._patterns()), key=self.primal)

    def dual_solution(self) -> Array:
        """Return the best stationary point over all faces of the box that is the domain of ``G*``."""
        return min((self._on_face(np.array(signs)) for signs in self._patterns()), key=self.dual)

    def _patterns(self) -> Iterator[tuple[int, ...]]:
        return product((-1, 0, 1), repeat=len(self.w))

    def _stationary(self, signs: Array) -> Array:
        kinks = self.K[signs == 0]
        k, d = len(kinks), len(self.c)
        system = np.block([[self.Q, kinks.T], [kinks, np.zeros((k, k))]])
        right = np.concatenate([self.c - self.K.T @ (signs * self.w), self.a[signs == 0]])
        return np.linalg.lstsq(system, right, rcond=1e-12)[0][:d]

    def _on_face(self, signs: Array) -> Array:
        y = signs * self.w
        free = self.K[signs == 0]
        at_bounds = self.c - self.K.T @ y
        inverse = np.linalg.inv(self.Q)
        slope = free @ inverse @ at_bounds - self.a[signs == 0]
        y[signs == 0] = np.linalg.lstsq(free @ inverse @ free.T, slope, rcond=1e-12)[0]
        return y


def random_composition(d: int, m: int, seed: int) -> Composition:
    """Return a problem with normal data; the weights are such that some terms are at their kinks.

    Examples
    --------
    >>> problem = random_composition(2, 3, seed=0)
    >>> x, y = problem.primal_solution(), problem.dual_solution()
    >>> abs(problem.primal(x) + problem.dual(y)) < 1e-12
    True
    """
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((d, d))
    return Composition(
        name=f"d = {d}, m = {m}, seed {seed}",
        Q=root @ root.T + np.eye(d),
        c=3.0 * rng.standard_normal(d),
        K=rng.standard_normal((m, d)),
        w=rng.uniform(0.2, 2.0, m),
        a=rng.standard_normal(m),
    )


def clients(weights: list[float], places: list[float], nu: float) -> Composition:
    r"""Return (6.3) for the clients :math:`w_j|\theta - a_j| + \frac\nu2\theta^2`: K repeats the model."""
    N = len(weights)
    return Composition(
        name=f"(6.3), N = {N}, nu = {nu:g}",
        Q=np.array([[N * nu]]),
        c=np.zeros(1),
        K=np.ones((N, 1)),
        w=np.array(weights),
        a=np.array(places),
    )


def proposition_6_1_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Fewer terms than variables, and more; the problem (6.3) of clients with unequal weights."""
    for seed in range(3 if quick else 20):
        yield ExpectedVerdict(random_composition(3, 2, seed))
        yield ExpectedVerdict(random_composition(2, 4, seed))
    yield ExpectedVerdict(clients([1.0, 0.3, 2.0, 0.7], [1.0, -2.0, 0.5, 3.0], 0.4))


@claim(
    source="Park and Xu, Proposition 6.1; Rockafellar 1970, Corollary 31.2.1",
    statement=r"$\min_x F(x) + G(Kx) = -\min_y F^*(-K^\top y) + G^*(y)$, $-K^\top y^* \in \partial F(x^*)$ and"
    r" $y^* \in \partial G(Kx^*)$, that is $Kx^* \in \partial G^*(y^*)$; for $F(x) = \frac12x^\top Qx - c^\top x$ and"
    r" $G(y) = \sum_i w_i|y_i - a_i|$, where both problems are solved by enumeration (checked to 1e-10).",
    cases=proposition_6_1_cases,
)
def proposition_6_1(case: Composition) -> Iterator[Inequality]:
    """Proposition 6.1: both problems have opposite values, and each solution gives the other.

    Compare the values, weak duality at points that are no solutions, and both relations (6.2).
    """
    x, y = case.primal_solution(), case.dual_solution()
    primal, dual = case.primal(x), case.dual(y)
    scale = abs(case.smooth(x)) + case.nonsmooth(case.K @ x) + 1.0
    yield Inequality(0, deviation(primal, -dual, scale=scale), ROUNDING, "values")
    slopes = deviation(-case.K.T @ y, case.Q @ x - case.c, scale=scale)
    yield Inequality(0, slopes, ROUNDING, "-K'y* and grad F(x*)")
    values = case.nonsmooth(case.K @ x) + case.nonsmooth_conjugate(y)
    yield Inequality(0, deviation(values, float(y @ case.K @ x), scale=scale), ROUNDING, "y* and dG(Kx*)")
    for n in range(1, 6):
        gap = primal + case.dual((1.0 - n / 5.0) * y)  # at a point of the domain that is no solution
        yield Inequality(n, scale, (1.0 + ROUNDING) * scale + gap, "weak duality")
