r"""A search for better methods: two families around FedDyn and FedSplit, and their best factors per round.

``python -m theory.proofs --search`` minimises the factor that some quadratic clients need (the lower bound, which is
cheap) over the numbers of a family, by Nelder and Mead's method from those of the method that it extends, and asks
:func:`dualopt.lab.proofs.prove` what is provable at the end. A family wins where the proved factor is below that of the
method at its own best number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.lab.proofs import Rate, prove
from dualopt.lab.proofs._best import fastest
from dualopt.lab.proofs._quadratics import lower_bound
from dualopt.lab.proofs._setting import Setting
from dualopt.methods import FedDyn, FedSplit
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round, UniformSubset
from dualopt.solvers import Exact

__all__ = ["CASES", "FAMILIES", "ExtrapolatedFedSplit", "Family", "Found", "RelaxedFedDyn", "best", "search"]

EVALUATIONS = 220
"""Most lower bounds of a search."""


@dataclass(frozen=True, kw_only=True)
class RelaxedFedDyn(FedDyn):
    r"""FedDyn with relaxed memories, models and corrections; all three are one in FedDyn.

    .. math::
        g_j^+ &= g_j - \rho\alpha(\theta_j - \theta), \qquad
        h^+ = h - \rho\tfrac\alpha N\textstyle\sum(\theta_j - \theta) \\
        \theta^+ &= \theta + \sigma\bigl(\tfrac1P\textstyle\sum\theta_j - \theta\bigr) - \tau h^+/\alpha
    """

    supports = frozenset({"partial"})
    theorems = ()
    memory: float = 1.0
    model: float = 1.0
    correction: float = 1.0

    def local(self, c: Any, message: Array, oracle: Oracle, round: Round) -> tuple[Any, Array]:
        """Follow the gradient by more or less than FedDyn does."""
        theta = oracle.solve(start=message, linear=-c.gradient, weight=self.alpha, center=message).theta
        return c._replace(gradient=c.gradient - self.memory * self.alpha * (theta - message)), theta

    def server(self, server: Any, means: Any, round: Round) -> tuple[Any, Array]:
        """Go from the old model towards the average, and correct it."""
        moved = means.mean - server.theta
        h = server.h - self.memory * self.alpha * round.fraction * moved
        theta = server.theta + self.model * moved - self.correction * h / self.alpha
        return server._replace(theta=theta, h=h), theta


@dataclass(frozen=True, kw_only=True)
class ExtrapolatedFedSplit(FedSplit):
    r"""FedSplit with another relaxation, and with momentum at the server; two and zero in FedSplit.

    .. math::
        z_j^+ = z_j + r(x_j - m), \qquad m^+ = \bar z^+ + \beta(\bar z^+ - \bar z)
    """

    supports = frozenset({"partial"})
    theorems = ()
    relaxation: float = 2.0
    momentum: float = 0.0

    def local(self, c: Any, message: Array, oracle: Oracle, round: Round) -> tuple[Any, Array]:
        """Go to the proximal point, or beyond it."""
        x = oracle.solve(start=c.x, weight=1.0 / self.step, center=2.0 * message - c.z).theta
        change = self.relaxation * (x - message)
        return c._replace(z=c.z + change, x=x), change

    def server(self, server: Any, mean: Array, round: Round) -> tuple[Any, Array]:
        """Extrapolate the mean of all."""
        consensus = server.consensus + round.fraction * mean
        model = consensus + self.momentum * (consensus - server.consensus)
        return server._replace(theta=model, consensus=consensus), model


class Family(NamedTuple):
    """A method that has numbers, the first of which is positive, and where a search for them begins."""

    build: Callable[..., Any]
    start: Callable[[float], tuple[float, ...]]  # of kappa


FAMILIES = {
    "FedDyn": Family(lambda alpha: FedDyn(alpha=alpha, solver=Exact()), lambda kappa: (math.sqrt(kappa),)),
    "FedDyn, relaxed": Family(
        lambda alpha, rho, sigma, tau: RelaxedFedDyn(
            alpha=alpha, memory=rho, model=sigma, correction=tau, solver=Exact()
        ),
        lambda kappa: (math.sqrt(kappa), 1.0, 1.0, 1.0),
    ),
    "FedSplit": Family(lambda step: FedSplit(step=step, solver=Exact()), lambda kappa: (kappa**-0.5,)),
    "FedSplit, extrapolated": Family(
        lambda step, r, beta: ExtrapolatedFedSplit(step=step, relaxation=r, momentum=beta, solver=Exact()),
        lambda kappa: (kappa**-0.5, 2.0, 0.0),
    ),
}
CASES = ((4, 4, 100.0), (2, 4, 100.0), (1, 4, 100.0), (1, 4, 10.0), (1, 6, 1000.0))
"""Active clients, clients, and kappa."""


class Found(NamedTuple):
    """The best member of a family, by its lower bound."""

    family: str
    active: int
    clients: int
    kappa: float
    numbers: tuple[float, ...]
    rate: Rate

    def cells(self) -> dict[str, str]:
        """Return a row of a table."""
        needed = self.rate.lower_bound
        return {
            "family": self.family,
            "active": f"{self.active} of {self.clients}",
            "kappa": f"{self.kappa:g}",
            "numbers": ", ".join(f"{x:.4g}" for x in self.numbers),
            "proved": f"{self.rate.factor:.5f}" if self.rate.proved else "not",
            "needed by some clients": "-" if needed is None else f"{needed:.5f}",
        }


def best(family: str, active: int, clients: int, kappa: float, evaluations: int = EVALUATIONS) -> Found:
    """Return the member of a family whose slowest quadratic clients are fastest, and what is provable of it."""
    build, start = FAMILIES[family]
    who = UniformSubset(size=active) if active < clients else None

    def member(x: Any) -> Any:
        return build(math.exp(x[0]), *map(float, x[1:]))

    def slowest(x: Any) -> float:
        bound, _ = lower_bound(Setting.of(member(x), 1.0, kappa, clients, who, None))
        return math.inf if bound is None else bound

    first, *others = start(kappa)
    x = fastest(slowest, [math.log(first), *others], evaluations)
    rate = prove(member(x), mu=1.0, L=kappa, clients=clients, participation=who)
    return Found(family, active, clients, kappa, (math.exp(x[0]), *map(float, x[1:])), rate)


def search() -> Iterator[Found]:
    """Search all families in all cases."""
    for case in CASES:
        for family in FAMILIES:
            yield best(family, *case)
