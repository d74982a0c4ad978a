"""Wrong variants of FedPD, of FedAvg, and of what is known about a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dualopt.methods import FedAvg, FedPD
from dualopt.methods.participation import Round
from theory._chance import Outcome
from theory.fedpd._runs import FedPDCase
from theory.fedpd.fedavg import LocalSteps
from theory.mutations._becomes import becomes

__all__ = ["LOCAL", "MUTATIONS"]


class WrongSign(FedPD):
    """The dual falls where it should rise."""

    def local(self, clients, message, oracle, round):
        new, _ = super().local(clients, message, oracle, round)
        dual = 2.0 * clients.dual - new.dual
        x0 = new.theta + self.eta * dual
        return new._replace(dual=dual, x0=x0), x0


class NoDualStep(FedPD):
    def local(self, clients, message, oracle, round):
        new, _ = super().local(clients, message, oracle, round)
        x0 = new.theta + self.eta * clients.dual
        return new._replace(dual=clients.dual, x0=x0), x0


class MisscaledProximalTerm(FedPD):
    """1/(N eta) in the local problem, 1/eta in the dual step."""

    def local(self, clients, message, oracle, round):
        weight = 1.0 / (len(round.clients) * self.eta)
        theta = oracle.solve(start=clients.theta, linear=clients.dual, weight=weight, center=clients.x0).theta
        dual = clients.dual + (theta - clients.x0) / self.eta
        x0 = theta + self.eta * dual
        return clients._replace(theta=theta, dual=dual, x0=x0), x0


class OldDualWhenSkipping(FedPD):
    """The copy that is kept in a round without communication takes the dual of before the round."""

    def local(self, clients, message, oracle, round):
        new, upload = super().local(clients, message, oracle, round)
        return (new if round.communicate else new._replace(x0=new.theta + self.eta * clients.dual)), upload


class StartAtTheCopy(FedPD):
    """Local solvers go on from the copy of the global model, not from the client's own model."""

    def local(self, clients, message, oracle, round):
        return super().local(clients._replace(theta=clients.x0), message, oracle, round)


class LongSteps(FedPD):
    """A step of 12 times the ``eta`` in the bounds: far above its range."""

    def local(self, clients, message, oracle, round):
        eta = 12.0 * self.eta
        return FedPD(eta=eta, solver=self.solver, stop=self.stop).local(clients, message, oracle, round)


class SumForMean(FedPD):
    """Twice the average."""

    def server(self, server, mean, round):
        return super().server(server, 2.0 * mean, round)


@dataclass(frozen=True, kw_only=True)
class CoinsRound(Round):
    """A round with one coin per client."""

    coins: tuple[bool, ...]


class OwnCoins(FedPD):
    """Some clients replace their copies by the average, and the others do not."""

    def server(self, server, mean, round: Any):
        server, average = super().server(server, mean, round)
        return server, (average, np.array(round.coins)[:, None])

    def receive(self, clients, message):
        average, listens = message
        return clients._replace(x0=np.where(listens, average, clients.x0))


class OwnCoinsCase(FedPDCase):
    """The rounds for it: they communicate if some client does."""

    def outcomes(self, n: int = 0) -> list[Outcome]:
        found, everybody = [], tuple(range(self.n_clients))
        for coins in product((True, False), repeat=self.n_clients):
            probability = float(np.prod([1.0 - self.skip if coin else self.skip for coin in coins]))
            known = {"n": n, "n_clients": self.n_clients, "clients": everybody, "seed": self.seed}
            found.append(Outcome(probability, CoinsRound(communicate=any(coins), coins=coins, **known)))
        return found


class Reflected(FedAvg):
    """Clients upload the wrong side of the model: their steps lead uphill."""

    def local(self, clients, message, oracle, round):
        clients, theta = super().local(clients, message, oracle, round)
        return clients, 2.0 * message - theta


class UphillSteps(LocalSteps):
    def algorithm(self, length: float, steps: int) -> FedAvg:
        return Reflected(**attributes(super().algorithm(length, steps)))


class LongLocalSteps(LocalSteps):
    """Steps thirty times as long as in the bounds."""

    def algorithm(self, length: float, steps: int) -> FedAvg:
        return super().algorithm(30.0 * length, steps)


def attributes(case: Any) -> dict[str, Any]:
    return {field.name: getattr(case, field.name) for field in fields(case)}


def method(kind: type, case: Any) -> Any:
    """Put a wrong method in the place of the right one, with the same parameters."""
    if not isinstance(case, FedPDCase):
        return case._replace(run=method(kind, case.run))
    return becomes(kind, case)


def one_coin_per_client(case: FedPDCase) -> FedPDCase:
    """Two rounds, of all the outcomes of N coins."""
    return OwnCoinsCase(**attributes(method(OwnCoins, case))).but(rounds=min(case.rounds, 2))


def local(kind: type, case: LocalSteps) -> LocalSteps:
    return kind(**attributes(case))


MUTATIONS: dict[str, Callable[[FedPDCase], FedPDCase]] = {
    "sign of the dual": partial(method, WrongSign),
    "dual step dropped": partial(method, NoDualStep),
    "old dual when skipping": partial(method, OldDualWhenSkipping),
    "local start at the copy": partial(method, StartAtTheCopy),
    "old for new dual": lambda case: case.but(algorithm=replace(case.algorithm, old_dual=True)),
    "proximal term mis-scaled": partial(method, MisscaledProximalTerm),
    "eta above its range": partial(method, LongSteps),
    "twice the average": partial(method, SumForMean),
    "one coin per client": one_coin_per_client,
    "G understated": lambda case: case.but(dissimilarity=0.1 * case.dissimilarity),
}
LOCAL: dict[str, Callable[[LocalSteps], LocalSteps]] = {
    "uphill": partial(local, UphillSteps),
    "long local steps": partial(local, LongLocalSteps),
}
