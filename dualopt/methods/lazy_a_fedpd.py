"""A-FedPD with a server that stores two vectors, whatever the number of clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dualopt.arrays.xp import Array
from dualopt.methods.a_fedpd import AFedPD, Server
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import Round

__all__ = ["LazyAFedPD"]


class Message(NamedTuple):
    """What the server sends to those who take part."""

    theta: Array  # theta^t
    dual: Array  # the mean dual


class Client(NamedTuple):
    """States of the clients."""

    dual: Array  # lambda_i as it was after the client's latest round
    seen: Array  # the mean dual at that time


@dataclass(frozen=True, kw_only=True)
class LazyAFedPD(AFedPD):
    r"""The iterates of A-FedPD with O(1) vectors on the server and no messages to inactive clients.

    Every virtual update adds :math:`\rho(\bar\theta - \theta)`, which is exactly what the round adds to the mean of all
    duals. A client that takes part again therefore catches up by the change of the mean dual since its latest round:

    .. math:: \lambda_j \mathrel{+}= \bar\lambda_{\text{now}} - \bar\lambda_{\text{seen}}

    The paper names the storage of all duals on the server as a limitation; nothing of it is left. In the mean a round
    sends :math:`P(2 - P/N)` messages of two vectors; telling the inactive clients takes :math:`N - P + P^2/N`, which is
    more for :math:`P < N/2`. Parameters and start are those of :class:`dualopt.methods.AFedPD`.

    Examples
    --------
    >>> LazyAFedPD(rho=0.1).rho
    0.1
    """

    receivers: ClassVar[frozenset[str]] = frozenset({"active"})
    theorems = AFedPD.theorems  # of the same iterates

    def init(self, theta0: Array, copies: Array) -> tuple[Server, Message, Client]:
        """No duals."""
        server, message, c = super().init(theta0, copies)
        return server, Message(*message), Client(c.dual, c.dual)

    def local(self, c: Any, message: Any, oracle: Oracle, round: Round) -> tuple[Any, Array]:
        """Catch up with the rounds that were missed, then do what A-FedPD does."""
        return super().local(c._replace(dual=c.dual + (message.dual - c.seen)), message, oracle, round)

    def server(self, server: Server, mean: Array, round: Round) -> tuple[Server, Message]:
        """Average and correct as A-FedPD does; the message carries the mean dual."""
        server, _ = super().server(server, mean, round)
        return server, Message(server.theta, server.dual)

    def receive(self, c: Client, message: Message) -> Client:
        """Remember the mean dual."""
        return c._replace(seen=message.dual)
