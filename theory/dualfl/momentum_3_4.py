"""Momentum (3.4): the numbers that make the rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dualopt.algorithms.dualfl import momentum
from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict


class Recursion(NamedTuple):
    """The recursion for one rho; ``momentum(t, rho)`` returns the next t and beta."""

    name: str
    rho: float
    rounds: int
    momentum: Callable[[float, float], tuple[float, float]] = momentum


def momentum_3_4_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """From no strong convexity to almost none of anything else."""
    for rho in (0.0, 1e-4, 1e-2, 0.3, 0.99):
        yield ExpectedVerdict(Recursion(f"rho = {rho:g}", rho, 300))


@claim(
    source="Park and Xu, equation (3.4); Chambolle and Pock 2016, Appendix B",
    statement=r"$t_{k+1}(t_{k+1}-1) = (1-\rho t_{k+1})t_k^2$ from $t_0 = 1$,"
    r" $t_{k+1}\beta_k = (t_k-1)(1-\nu m(t_{k+1}-1))$ with $\nu m = \rho/(1-\rho)$, $t_k \le \rho^{-1/2}$,"
    r" and $R_n = \prod_{k=1}^{n-1}(1-1/t_k) \le \min\{(1-\sqrt\rho)^{n-1}, 4/(n+1)^2\}$.",
    rounding=0.0,
    cases=momentum_3_4_cases,
)
def momentum_3_4(case: Recursion) -> Iterator[Inequality]:
    """Check what the proof needs of t and beta, and the product that is the rate."""
    rho, t, product = case.rho, 1.0, 1.0
    strength = rho / (1.0 - rho)  # strong convexity times step size
    for n in range(1, case.rounds + 1):
        t_next, beta = case.momentum(t, rho)
        telescoping = t_next * (t_next - 1.0) - (1.0 - rho * t_next) * t * t
        yield Inequality(n, abs(telescoping) / (t_next * t_next), 1e-12, "t'(t'-1) - (1 - rho t')t^2")
        matching = t_next * beta - (t - 1.0) * (1.0 - strength * (t_next - 1.0))
        yield Inequality(n, abs(matching) / t_next, 1e-12, "t' beta - (t-1)(1 - nu m (t'-1))")
        yield Inequality(n, math.sqrt(rho) * t_next, 1.0 + 1e-14, "sqrt(rho) t")
        product *= 1.0 - 1.0 / t_next
        yield Inequality(n, product, min((1.0 - math.sqrt(rho)) ** n, 4.0 / (n + 2.0) ** 2), "R_{n+1}")
        t = t_next
