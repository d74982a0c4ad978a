"""Wrong variants of DualFL, of what is known about the problem, and of single formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dualopt.methods import DualFL
from dualopt.methods.dualfl import momentum
from dualopt.objectives import ObjectiveWrapper
from dualopt.runs.certificates import certificate, dual_point
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case
from theory.counterexamples.dualfl import FromCorrected
from theory.dualfl._fista import Fista
from theory.mutations._becomes import becomes

__all__ = [
    "FISTA",
    "MUTATIONS",
    "LateMomentum",
    "NoFistaMomentum",
    "NoMomentum",
    "NoisierFista",
    "OneClient",
    "Overstated",
    "ShiftedMomentum",
    "WrongSign",
    "becomes",
    "certificate_with_greatest_mu",
    "dual_point_with_greatest_mu",
]


class NoMomentum(DualFL):
    """Beta is 0."""

    def server(self, server: Any, mean: Any, round: Any) -> Any:
        """Send no momentum."""
        new, message = super().server(server, mean, round)
        return new, message._replace(beta=0.0)


class ShiftedMomentum(DualFL):
    """Beta of another round: ``shift`` is 1 for early, -1 for late."""

    shift = 1

    def server(self, server: Any, mean: Any, round: Any) -> Any:
        """Send the beta of round ``n + shift``."""
        new, message = super().server(server, mean, round)
        t, beta = 1.0, 0.0
        for _ in range(max(round.n + self.shift, 0) + 1):
            t, beta = momentum(t, self.rho)  # pyright: ignore[reportArgumentType]
        return new, message._replace(beta=beta)


class LateMomentum(ShiftedMomentum):
    """Beta of the round before."""

    shift = -1


class OneClient(DualFL):
    """The first client's point where the average belongs."""

    def local(self, clients: Any, message: Any, oracle: Any, round: Any) -> Any:
        """Upload the first client's point for all."""
        clients, sent = super().local(clients, message, oracle, round)
        return clients, np.broadcast_to(sent[:1], sent.shape)


class WrongSign(DualFL):
    """The second bracket of (3.3) added, not subtracted."""

    def receive(self, clients: Any, message: Any) -> Any:
        """Add what is to be subtracted."""
        v = clients.zeta + message.theta - clients.sent
        return clients._replace(zeta=(1 + message.beta) * v + message.beta * clients.v, v=v)


class NoFistaMomentum(Fista):
    """FISTA with beta = 0."""

    def momentum(self, t: float) -> tuple[float, float]:
        """Return ``t`` of the next iteration and 0."""
        return super().momentum(t)[0], 0.0


class NoisierFista(Fista):
    """Errors a thousand times those that are admitted."""

    def sequence(self, f: Any) -> Any:
        """Yield the iterates."""
        errors = self.errors
        return Fista(rho=self.rho, nu=self.nu, errors=lambda n: 1e3 * errors(n)).sequence(f)


@dataclass
class Overstated(ObjectiveWrapper):
    """An objective that claims to be four times as strongly convex as it is."""

    objective: Any

    @property
    def mu(self) -> Any:
        """Four times the constants."""
        return 4.0 * self.objective.mu

    def select(self, ids: Any) -> Any:
        """Return the clients ``ids``."""
        return Overstated(self.objective.select(ids))


@dataclass
class GreatestMu(ObjectiveWrapper):
    """An objective of which every client claims the greatest ``mu_j``."""

    objective: Any

    @property
    def mu(self) -> Any:
        """The greatest constant, for every client."""
        return np.full_like(self.objective.mu, np.max(self.objective.mu))

    def select(self, ids: Any) -> Any:
        """Return the clients ``ids``."""
        return GreatestMu(self.objective.select(ids))


def certificate_with_greatest_mu(objective: Any, theta: Any, solution: Any = None) -> Any:
    """Put the greatest ``mu_j`` where the certificate has the mean; the dual points are right."""
    point = None if solution is None else dual_point(objective, solution)
    return certificate(GreatestMu(objective), theta, point)


def dual_point_with_greatest_mu(objective: Any, solution: Any) -> Any:
    """Put the greatest ``mu_j`` in the dual points and in their conjugates."""
    return dual_point(GreatestMu(objective), solution)


def nu_beyond_mu(case: Case) -> Case:
    """Give nu twice the least mu_j."""
    return replace(case, algorithm=replace(case.algorithm, nu=2.0 * float(np.min(case.objective.mu))))


def greatest_mu(case: Case) -> Case:
    """Give nu the greatest mu_j."""
    return replace(case, algorithm=replace(case.algorithm, nu=float(np.max(case.objective.mu))))


def least_smoothness(case: Case) -> Case:
    """Give rho the value nu/min L_j."""
    rho = min(case.algorithm.nu / float(np.min(case.objective.L)), 0.99)  # it must be below 1
    return replace(case, algorithm=replace(case.algorithm, rho=rho))


def loose(case: Case) -> Case:
    """Give every client one gradient step."""
    return replace(case, algorithm=replace(case.algorithm, solver=Gradient(), stop=Steps(steps=1)))


def overstated(case: Case) -> Case:
    """Let the objective claim too much convexity."""
    return replace(case, objective=Overstated(case.objective))


MUTATIONS: dict[str, Callable[[Case], Case]] = {
    "momentum dropped": partial(becomes, NoMomentum),
    "beta early": partial(becomes, ShiftedMomentum),
    "beta late": partial(becomes, LateMomentum),
    "one client for the average": partial(becomes, OneClient),
    "wrong sign in (3.3)": partial(becomes, WrongSign),
    "warm start from the corrected point": partial(becomes, FromCorrected),
    "nu beyond mu": nu_beyond_mu,
    "nu = max mu_j": greatest_mu,
    "rho = nu/min L_j": least_smoothness,
    "loose local solutions": loose,
    "mu overstated": overstated,
}
FISTA: dict[str, Callable[[Case], Case]] = {
    "momentum dropped in FISTA": partial(becomes, NoFistaMomentum),
    "larger errors in FISTA": partial(becomes, NoisierFista),
}
