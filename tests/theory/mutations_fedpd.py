"""Wrong variants of FedPD, of FedAvg, and of what is known about a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dualopt.algorithms import FedAvg, FedPD
from dualopt.engine import State
from theory.fedpd._local_steps import LocalSteps
from theory.fedpd._run import Branch, Run


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


class LongSteps(FedPD):
    """A step of 12 times the ``eta`` that the theory is told: far above its range."""

    def local(self, clients, message, oracle, round):
        eta = 12.0 * self.eta
        return FedPD(eta=eta, solver=self.solver, stop=self.stop).local(clients, message, oracle, round)


class SumForMean(FedPD):
    """Twice the average."""

    def server(self, server, mean, round):
        return super().server(server, 2.0 * mean, round)


class OwnCoins(Run):
    """One coin per client: some replace their copies by the average, and the others do not."""

    def branches(self, state: State, n: int) -> list[Branch]:
        told = super().branches(state, n)
        average, own = (branch.state for branch in (told[0], told[-1]))
        found = []
        for listens in product((True, False), repeat=self.objective.n_clients):
            probability = float(np.prod([1.0 - self.skip if listening else self.skip for listening in listens]))
            x0 = np.where(np.array(listens)[:, None], average.clients.x0, own.clients.x0)
            found.append(Branch(probability, own._replace(clients=own.clients._replace(x0=x0))))
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
    """Steps thirty times as long as the theory is told."""

    def algorithm(self, length: float, steps: int) -> FedAvg:
        return super().algorithm(30.0 * length, steps)


def attributes(case: Any) -> dict[str, Any]:
    return {field.name: getattr(case, field.name) for field in fields(case)}


def method(kind: type, run: Run) -> Run:
    """The same parameters in a wrong method."""
    return run.but(algorithm=kind(**attributes(run.algorithm)))


def case(kind: type, given: Any) -> Any:
    return kind(**attributes(given))


RUNS: dict[str, Callable[[Run], Run]] = {
    "sign of the dual": partial(method, WrongSign),
    "dual step dropped": partial(method, NoDualStep),
    "old for new dual": lambda run: run.but(algorithm=replace(run.algorithm, old_dual=True)),
    "proximal term mis-scaled": partial(method, MisscaledProximalTerm),
    "eta above its range": partial(method, LongSteps),
    "twice the average": partial(method, SumForMean),
    "one coin per client": partial(case, OwnCoins),
    "G understated": lambda run: run.but(dissimilarity=0.1 * run.dissimilarity),
}
LOCAL: dict[str, Callable[[LocalSteps], LocalSteps]] = {
    "uphill": partial(case, UphillSteps),
    "long local steps": partial(case, LongLocalSteps),
}
