"""The server's side of a session with one host that is an object of this process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dualopt.arrays.tree import everybody
from dualopt.engine._host import Host, HostState
from dualopt.engine._inline import LocalHost
from dualopt.engine._server import RoundResult, Server
from dualopt.engine._steps import Proposed, averaged, weighed
from dualopt.methods.participation import Round

__all__ = ["LocalServer"]


class LocalServer(Server):
    """A session whose rounds call the host itself.

    Nothing can be lost, sent again, or be another's answer, so that neither answers are checked nor messages numbered.

    Parameters
    ----------
    host : Host
        All clients.
    """

    def __init__(self, host: Host) -> None:
        f = host.objective
        super().__init__(LocalHost(host), [everybody(f.n_clients)], f.shape, weights=f.weights)
        self._host, self._adds = host, True
        self._proposed: Proposed | None = None

    def _sendable(self, x: Any) -> Any:
        return x

    def _fault(self, h: int, batch: Any, answers: Any) -> None:
        """Say that nothing is wrong with the answers."""

    @property
    def described(self) -> dict[str, Any]:
        """Nothing: a trace tells of hosts elsewhere."""
        return {}

    def propose(self, round: Round, message: Any) -> RoundResult:
        """Have the active clients work, and return what they upload."""
        if not round.clients:
            return RoundResult(round, None, None, None)
        assert self.algorithm is not None
        told = round
        if round.inclusion is not None or round.kept != self.kept:
            told = replace(round, inclusion=None, kept=self.kept)  # as clients see it
        clients = None if len(round.clients) == self.n_clients else round.clients
        found = self._proposed = self._host.work(told, message, clients)
        if not round.communicate:
            return RoundResult(round, None, None, found.solution)
        mean = averaged(self.algorithm, found.upload, round, self.weights)
        round = weighed(round, self.weights, self.kept)
        return RoundResult(round, found.upload, mean, found.solution, found.vectors)

    def commit(self, round: Round, message: Any) -> None:
        """End the round with this message."""
        if round.clients:
            self._host.end(self._proposed, None, message, self.made, communicate=round.communicate)

    def states(self, round: Round) -> HostState:
        """Return the states after a round, which are at hand."""
        return self._host.state

    @property
    def solutions(self) -> Any:
        """The latest local solutions, as a checkpoint has them."""
        latest = self._host.state.latest
        return latest and latest.kept
