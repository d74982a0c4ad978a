"""Wrong variants of FedDyn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dualopt.methods import FedDyn
from theory.feddyn._runs import FedDynCase
from theory.mutations._becomes import becomes

__all__ = ["MUTATIONS", "RIGHT"]


class Parameters(FedDyn):
    """A method whose server and local problem can be changed one term at a time."""

    def h(self, server: Any, mean: Any, round: Any) -> Any:
        return server.h - self.alpha * round.fraction * (mean - server.theta)

    def model(self, mean: Any, h: Any) -> Any:
        return mean - h / self.alpha

    def server(self, server, mean, round):
        h = self.h(server, mean, round)
        theta = self.model(mean, h)
        return server._replace(theta=theta, h=h), theta

    def linear(self, clients: Any) -> Any:
        return -clients.gradient

    def weight(self) -> float:
        return self.alpha

    def remembered(self, clients: Any, theta: Any, message: Any) -> Any:
        return clients.gradient - self.alpha * (theta - message)

    def local(self, clients, message, oracle, round):
        theta = oracle.solve(start=message, linear=self.linear(clients), weight=self.weight(), center=message).theta
        return clients._replace(gradient=self.remembered(clients, theta, message)), theta


class ParenthesisDropped(Parameters):
    """(alpha/N) (sum theta_j) - theta for (alpha/N) sum (theta_j - theta)."""

    def h(self, server, mean, round):
        return server.h - (self.alpha * round.fraction * mean - server.theta)


class ThetaOnce(Parameters):
    """(alpha/N) ((sum theta_j) - theta), as the box can be read."""

    def h(self, server, mean, round):
        return server.h - self.alpha * (round.fraction * mean - server.theta / round.n_clients)


class ActiveForAll(Parameters):
    """1/P for 1/N."""

    def h(self, server, mean, round):
        return server.h - self.alpha * (mean - server.theta)


class NoServerState(Parameters):
    def h(self, server, mean, round):
        return server.h


class WrongSignOfServerState(Parameters):
    def model(self, mean, h):
        return mean + h / self.alpha


class ServerStateUnscaled(Parameters):
    """h for h/alpha."""

    def model(self, mean, h):
        return mean - h


class OldServerState(Parameters):
    """The old h where the new one belongs."""

    def server(self, server, mean, round):
        theta = self.model(mean, server.h)
        return server._replace(theta=theta, h=self.h(server, mean, round)), theta


class WrongSignOfMemory(Parameters):
    def linear(self, clients):
        return clients.gradient


class NoMemory(Parameters):
    """The dual step dropped on the clients."""

    def remembered(self, clients, theta, message):
        return clients.gradient


class HalfMemory(Parameters):
    def remembered(self, clients, theta, message):
        return clients.gradient - 0.5 * self.alpha * (theta - message)


class WeakProximalTerm(Parameters):
    """A tenth of the proximal term, with the memory step unchanged."""

    def weight(self):
        return 0.1 * self.alpha


class OneClient(Parameters):
    """The first active client's model for the mean."""

    def local(self, clients, message, oracle, round):
        clients, sent = super().local(clients, message, oracle, round)
        return clients, np.broadcast_to(sent[:1], sent.shape)


RIGHT: Callable[[FedDynCase], FedDynCase] = partial(becomes, Parameters)  # from which the others are made
MUTATIONS: dict[str, Callable[[FedDynCase], FedDynCase]] = {
    "parenthesis of h dropped": partial(becomes, ParenthesisDropped),
    "theta once in h": partial(becomes, ThetaOnce),
    "1/P for 1/N in h": partial(becomes, ActiveForAll),
    "no h": partial(becomes, NoServerState),
    "wrong sign of h": partial(becomes, WrongSignOfServerState),
    "h for h/alpha": partial(becomes, ServerStateUnscaled),
    "old h": partial(becomes, OldServerState),
    "wrong sign of the memory": partial(becomes, WrongSignOfMemory),
    "no memory": partial(becomes, NoMemory),
    "half the memory": partial(becomes, HalfMemory),
    "a tenth of the proximal term": partial(becomes, WeakProximalTerm),
    "one client for the mean": partial(becomes, OneClient),
}
