"""Wrong variants of Scaffnew, FedSplit, FedDR and 5GCS, which the papers compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from dualopt.methods import FedDR, FedSplit, FiveGCS, Scaffnew
from dualopt.methods.participation import CommunicateWithProbability, UniformSubset
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory._cases import Case
from theory.mutations._becomes import becomes, only

__all__ = ["MUTATIONS"]


class ControlAdded(Scaffnew):
    """``grad f_j + h_j``."""

    def local(self, clients, message, oracle, round):
        turned = clients._replace(control=-clients.control)
        new, upload = super().local(turned, message, oracle, round)
        return new._replace(control=clients.control), upload


class ControlStepTurned(Scaffnew):
    """``h_j - (p/s)(x_j - xhat_j)``."""

    def receive(self, clients, message):
        new = super().receive(clients, message)
        return new._replace(control=2 * clients.control - new.control)


class ControlWithoutP(Scaffnew):
    """``h_j + (1/s)(x_j - xhat_j)``."""

    def receive(self, clients, message):
        new = super().receive(clients, message)
        return new._replace(control=clients.control + (new.control - clients.control) / self.probability)


class NoControlStep(Scaffnew):
    def receive(self, clients, message):
        return super().receive(clients, message)._replace(control=clients.control)


class Relaxed(FedSplit):
    """``z_j + prox - theta``, half of the step."""

    def local(self, clients, message, oracle, round):
        new, change = super().local(clients, message, oracle, round)
        return new._replace(z=clients.z + 0.5 * change), 0.5 * change


class Unreflected(FedSplit):
    """The proximal step at ``theta`` for ``2 theta - z_j``."""

    def local(self, clients, message, oracle, round):
        new, _ = super().local(clients._replace(z=0 * clients.z + message), message, oracle, round)
        change = 2.0 * (oracle.solution.theta - message)
        return new._replace(z=clients.z + change), change


class Overrelaxed(FedDR):
    """``y_j + 1.2 a (theta - x_j)``."""

    def local(self, clients, message, oracle, round):
        turned = clients._replace(y=clients.y + 0.2 * self.relaxation * (message - clients.x))
        return super().local(turned, message, oracle, round)


class Undoubled(FedDR):
    """``x_j`` for ``2 x_j - y_j``."""

    def local(self, clients, message, oracle, round):
        new, _ = super().local(clients, message, oracle, round)
        return new._replace(reflected=new.x), new.x - clients.reflected


class ActiveOnly(FedDR):
    """The mean of the active points for that of all."""

    def server(self, server, mean, round):
        return super().server(server, mean / round.fraction, round)


class FractionForgotten(FiveGCS):
    """``gamma sum`` for ``gamma (N/C) sum``."""

    def server(self, server, mean, round):
        dual = server.dual + round.n_active * mean
        new = self._with_next(server.xhat - self.gamma * round.n_active * mean, dual)
        return new, new.xhat


class NoModelStep(FiveGCS):
    """``x+ = xhat``."""

    def server(self, server, mean, round):
        new = self._with_next(server.xhat, server.dual + round.n_active * mean)
        return new, new.xhat


class DualUnscaled(FiveGCS):
    """A dual N times too large."""

    def local(self, clients, message, oracle, round):
        new, _ = super().local(clients, message, oracle, round)
        dual = round.n_clients * new.dual
        return new._replace(dual=dual), dual - clients.dual


class WrongSignOfDual(FiveGCS):
    """``xhat - u_m/tau``."""

    def local(self, clients, message, oracle, round):
        turned = clients._replace(dual=-clients.dual)
        new, _ = super().local(turned, message, oracle, round)
        return new, new.dual - clients.dual


def another_coin(case: Case) -> Case:
    """Communication half as often as the update believes."""
    p = only(Scaffnew, case).probability
    return case.but(participation=CommunicateWithProbability(probability=0.5 * p))


def one_fewer(case: Case) -> Case:
    """Let a client be missing."""
    return case.but(algorithm=only(FedSplit, case), participation=UniformSubset(size=case.n_clients - 1))


def longer(case: Case) -> Case:
    """Three times the step of FedSplit."""
    method = only(FedSplit, case)
    return case.but(algorithm=replace(method, step=3.0 * method.step))


def few_steps(case: Case) -> Case:
    """Local problems of 5GCS that are far from solved."""
    method = replace(only(FiveGCS, case), solver=Gradient(step=1e-4), stop=Steps(steps=1))
    return case.but(algorithm=method)


MUTATIONS: dict[str, Callable[[Case], Case]] = {
    "Scaffnew: control added": partial(becomes, ControlAdded, base=Scaffnew),
    "Scaffnew: control step turned": partial(becomes, ControlStepTurned, base=Scaffnew),
    "Scaffnew: 1/s for p/s": partial(becomes, ControlWithoutP, base=Scaffnew),
    "Scaffnew: no control step": partial(becomes, NoControlStep, base=Scaffnew),
    "Scaffnew: another coin": another_coin,
    "FedSplit: half the step": partial(becomes, Relaxed, base=FedSplit),
    "FedSplit: no reflection": partial(becomes, Unreflected, base=FedSplit),
    "FedSplit: three times the step": longer,
    "FedSplit: a client missing": one_fewer,
    "FedDR: 1.2 times the relaxation": partial(becomes, Overrelaxed, base=FedDR),
    "FedDR: points not reflected": partial(becomes, Undoubled, base=FedDR),
    "FedDR: 1/P for 1/N": partial(becomes, ActiveOnly, base=FedDR),
    "5GCS: N/C forgotten": partial(becomes, FractionForgotten, base=FiveGCS),
    "5GCS: model not corrected": partial(becomes, NoModelStep, base=FiveGCS),
    "5GCS: dual N times too large": partial(becomes, DualUnscaled, base=FiveGCS),
    "5GCS: wrong sign of the dual": partial(becomes, WrongSignOfDual, base=FiveGCS),
    "5GCS: far from local solutions": few_steps,
}
