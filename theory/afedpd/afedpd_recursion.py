"""The recursion behind Theorem 2: models, local models and duals of the two runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dualopt.claims import Inequality, claim
from theory._claims import ExpectedVerdict
from theory.afedpd._neighbours import Neighbours
from theory.afedpd._stability import assumptions, gamma, small_trees
from theory.afedpd._tree import Level, levels


class Distances(NamedTuple):
    """Expected distances of the two runs before a round, and of what all clients would do in it (Table 8)."""

    Delta: float  # models
    sigma: float  # duals, mean over the clients
    pi: float  # local updates
    delta: float  # local models


def distances(level: Level) -> Distances:
    """Return the expectations over everything that happened before the round."""
    p = np.array([node.probability for node in level.nodes])
    Delta = [float(np.linalg.norm(np.subtract(*node.models()))) for node in level.nodes]
    sigma = [float(np.mean(np.linalg.norm(np.subtract(*node.duals()), axis=-1))) for node in level.nodes]
    pi, delta = ([float(np.mean(x)) for x in xs] or [0.0] * len(p) for xs in (level.moved, level.apart))
    return Distances(*(float(p @ x) for x in (Delta, sigma, pi, delta)))


def regime(case: Neighbours) -> list[str]:
    """Return the assumptions that the case fails; the last bound is for steps up to 1/(K L)."""
    short = case.algorithm.solver.step * case.local_steps * case.L <= 1.0
    return assumptions(case) + ([] if short else ["eta <= 1/(K L)"])


def recursion_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Constant and decayed steps."""
    yield from map(ExpectedVerdict, small_trees(quick))


@claim(
    name="afedpd_recursion",
    source="Sun, Shen and Tao, Appendix B.3.2",
    statement=r"$\Delta^{t+1} \le \delta^{t+1} + \sigma^{t+1}/\rho$, $\sigma^{t+1} \le \sigma^t + \rho\pi^{t+1}$,"
    r" $\delta^{t+1} \le \pi^{t+1} + \Delta^t$, $\pi^{t+1} \le \eta KL\Delta^t + \eta K\sigma^t + 2\eta KG/(NS)$, with"
    r" $\delta$ and $\pi$ over all clients, active or not; hence $\Psi^{t+1} \le (1+\gamma\eta KL)\Psi^t +"
    r" 2\gamma\eta KG/(NS)$ for $\Psi = \Delta + (\alpha-1/\rho)\sigma$, $\gamma = 1 + \alpha\rho = 1 + x_+$, and"
    r" $\Psi^T \le 2G(1+\gamma)^T/(LNS)$ for constant $\eta \le 1/(KL)$. Expectations over clients and rows, exact.",
    assumptions=regime,
    rtol=1e-12,
    cases=recursion_cases,
)
def recursion(case: Neighbours) -> Iterator[Inequality]:
    """Compare the four inequalities and what they add up to, round by round."""
    K, L, rho = case.local_steps, case.L, case.rho
    c3 = 2.0 * K * case.G / (case.n_clients * case.size)
    g = gamma(case)
    weight = (g - 2.0) / rho  # alpha - 1/rho
    for level, (old, new) in zip(levels(case), pairwise(map(distances, levels(case))), strict=False):
        n, eta = level.n, case.algorithm.solver.length(level.n)
        yield Inequality(n, new.Delta, old.delta + new.sigma / rho, "Delta")
        yield Inequality(n, new.sigma, old.sigma + rho * old.pi, "sigma")
        yield Inequality(n, old.delta, old.pi + old.Delta, "delta")
        yield Inequality(n, old.pi, eta * (K * (L * old.Delta + old.sigma) + c3), "pi")
        before, after = (d.Delta + weight * d.sigma for d in (old, new))
        yield Inequality(n, after, (1.0 + g * eta * K * L) * before + g * eta * c3, "Delta + (alpha - 1/rho) sigma")
        if not case.algorithm.solver.decayed:
            yield Inequality(n, after, c3 / (K * L) * (1.0 + g) ** (n + 1), "2 G (1 + gamma)^T / (L N S)")
