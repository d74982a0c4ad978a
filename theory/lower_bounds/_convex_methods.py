"""Methods on convex chains, all of them from zero, and what their theorems say there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, Self

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.methods import (
    AUTO,
    Algorithm,
    ConsensusFedSplit,
    DualFL,
    FedAvg,
    FedPD,
    OptimizedDualFL,
    Scaffnew,
    Scaffold,
)
from dualopt.methods.optimized_dualfl import growth
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import CommunicateWithProbability, Full, Participation, Round
from dualopt.objectives import Objective
from dualopt.solvers import Gradient
from theory._cases import Case
from theory.dualfl._runs import dual_optimum
from theory.lower_bounds._convex_chain import Chain

__all__ = ["ConjugateGradients", "chain_case", "distances", "runs", "theorem"]

SELDOM = 0.1  # the probability of communication where none is suggested
SHORT = 0.1  # a step on absolute values, times their slope


class State(NamedTuple):
    """State of the server; the clients have none."""

    theta: Array
    residual: Array  # -grad E(theta)
    direction: Array
    start: Array  # -grad E(0)


@dataclass(frozen=True, kw_only=True)
class ConjugateGradients(Algorithm):
    """Conjugate gradients on a quadratic E: a round asks every client for its gradient at one point.

    The first round asks at zero. Each later one asks along the direction, and then the model is the least point of E in
    the span of all gradients before: after ``n`` rounds no method is lower within the first ``n - 1`` coordinates.
    """

    solver: None = None

    def suggested(self, objective: Objective) -> Self:
        """Leave nothing open."""
        return self

    def init(self, theta0: Array, copies: Array) -> tuple[State, Array, tuple[()]]:
        """Return zeros."""
        zero = np.zeros_like(theta0)
        return State(zero, zero, zero, zero), zero, ()

    def local(self, c: tuple[()], message: Array, oracle: Oracle, round: Round) -> tuple[tuple[()], Array]:
        """Return the gradients."""
        return (), oracle.evaluate(message).grad_f

    def server(self, server: State, mean: Array, round: Round) -> tuple[State, Array]:
        """Go to the least point along the direction, and find the next one."""
        if round.n == 0:
            return State(server.theta, -mean, -mean, -mean), -mean
        curved = mean + server.start  # hess E times the direction
        square = np.sum(server.residual**2)
        length = square / np.sum(server.direction * curved)
        residual = server.residual - length * curved
        direction = residual + np.sum(residual**2) / square * server.direction
        return State(server.theta + length * server.direction, residual, direction, server.start), direction


def chain_case(
    instance: Case, method: Any, rounds: int, *, seldom: float | None = None, remember: bool = False
) -> Case:
    """Put a method on a chain, with its suggested parameters; it may communicate ``seldom``, with a probability.

    With ``remember`` its run is computed once.

    Examples
    --------
    >>> from theory.lower_bounds._convex_chain import geometric
    >>> chain_case(geometric(9.0, 8), DualFL(), 3).name
    'geometric chain (kappa=9, d=8), DualFL'
    """
    name = type(method).__name__
    rule: Participation = CommunicateWithProbability(probability=seldom) if seldom else Full()
    note = f"{name}, p = {seldom:.3g}" if seldom else name
    more = {"participation": rule, "remember": remember}
    return instance.case(method.suggested(instance.objective), rounds, note, silent=False, **more)


def runs(instance: Case, rounds: int) -> Iterator[Case]:
    """Yield a chain with every method that can be run on it.

    DualFL and its relative need a ridge, conjugate gradients a quadratic. Steps on absolute values are short, and
    nothing more: the bounds do not depend on how well a method works.
    """
    f: Chain = instance.objective
    smooth = bool(np.isfinite(f.L).all())
    step = 1.0 / float(np.max(f.L)) if smooth else SHORT / f.weight
    rho: Any = AUTO if smooth else 0.0
    rarely = float(np.sqrt(f.ridge / np.max(f.L))) if smooth and f.ridge > 0 else SELDOM
    if f.ridge > 0:
        yield chain_case(instance, DualFL(rho=rho), rounds)
        yield chain_case(instance, OptimizedDualFL(rho=rho), rounds)
    if smooth:
        yield chain_case(instance, ConjugateGradients(), rounds)
    yield chain_case(instance, ConsensusFedSplit(), rounds)
    yield chain_case(instance, FedPD(), rounds)
    yield chain_case(instance, FedPD(), rounds, seldom=SELDOM)
    yield chain_case(instance, FedAvg(solver=Gradient(step=step)), rounds)
    yield chain_case(instance, Scaffold(solver=Gradient(step=step / 10)), rounds)  # ten of them
    yield chain_case(instance, Scaffnew(probability=rarely, solver=Gradient(step=step)), rounds, seldom=rarely)


def distances(case: Case) -> Iterator[float]:
    r"""Yield :math:`|\theta^n - \theta^*|^2` after every round."""
    return (case.distance(s.server.theta) for s in case.snapshots())


def theorem(case: Case) -> Iterator[float]:
    r"""Yield the bounds that are proved of :math:`|\theta^n - \theta^*|^2`, without end.

    Of DualFL :math:`(1-\sqrt\rho)^{n-1} |\xi^*|^2/(N\nu^2)` (Theorem 3.3), for :math:`\rho = 0`
    :math:`4|\xi^*|^2/(N\nu^2(n+1)^2)` (Theorem 3.2); of OptimizedDualFL :math:`2|\zeta^*|^2/(N A_n)`.
    """
    method = case.algorithm
    rho, scale = method.rho, 1.0 / (case.objective.n_clients * method.nu**2)
    if isinstance(method, OptimizedDualFL):
        A, size = 0.0, 2.0 * scale * float(np.sum(case.subgradients**2))
        while True:
            A = growth(A, rho)
            yield size / A
    size = scale * float(np.sum(dual_optimum(case) ** 2))
    for n in count(1):
        yield size * (4.0 / (n + 1.0) ** 2 if rho == 0 else (1.0 - math.sqrt(rho)) ** (n - 1))
