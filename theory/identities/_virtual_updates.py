"""A-FedPD as its box has it: inactive clients hear every message, and update their duals virtually."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dualopt.arrays.xp import Array, zeros_like
from dualopt.methods import AUTO, Algorithm
from dualopt.methods._parameters import ProximalWeight
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round

__all__ = ["VirtualUpdates"]


class Server(NamedTuple):
    """State of the server."""

    theta: Array  # theta^t
    dual: Array  # the mean of the duals of all clients


class Message(NamedTuple):
    """What the server sends."""

    theta: Array  # theta^{t+1}
    drift: Array  # bar^{t+1} - theta^t, with bar the mean of the active models


class Client(NamedTuple):
    """States of the clients."""

    dual: Array  # lambda_i^t


@dataclass(frozen=True, kw_only=True)
class VirtualUpdates(Algorithm):
    """Algorithm 1 of the A-FedPD paper, word by word, but that clients keep their duals in place of the server.

    Parameters
    ----------
    rho, solver, stop
        As in :class:`dualopt.methods.AFedPD`; ``stop`` as in :class:`dualopt.methods.Algorithm`.

    Examples
    --------
    >>> sorted(VirtualUpdates.receivers)
    ['inactive']
    """

    supports: ClassVar[frozenset[str]] = frozenset({"partial"})
    upload_reference: ClassVar[str] = "message"

    rho: ProximalWeight = AUTO

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """No duals."""
        zero, zeros = zeros_like(theta0), zeros_like(copies)
        return Server(theta0, zero), Message(theta0, zero), Client(zeros)

    def local(self, c: Client, message: Message, oracle: Oracle, round: Round) -> tuple[Client, Array]:
        """Minimise the augmented Lagrangian and update the dual."""
        theta = oracle.solve(start=message.theta, linear=c.dual, weight=self.rho, center=message.theta).theta
        theta = oracle.sent(theta)
        return Client(c.dual + self.rho * (theta - message.theta)), theta

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Average the active models and correct them by the mean dual."""
        drift = mean - server.theta
        dual = server.dual + self.rho * drift
        theta = mean + dual / self.rho
        return Server(theta, dual), Message(theta, drift)

    def receive_inactive(self, c: Client, message: Message) -> Client:
        """Update the dual virtually, as if the client had ended at the mean of the active models."""
        return Client(c.dual + self.rho * message.drift)
