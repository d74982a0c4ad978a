"""All clients in one block of this process, asked by plain calls: the clients of an ordinary run."""

from __future__ import annotations

from typing import Any

from dualopt.arrays.client_states import ClientStates
from dualopt.engine._calls import Found
from dualopt.engine._steps import Pending, averaged, settled, weighed, worked
from dualopt.methods import Algorithm
from dualopt.methods.participation import Round
from dualopt.objectives import Objective
from dualopt.solvers import LocalSolution

__all__ = ["Here"]


class Here:
    """The two phases of a round where nothing can be lost: what `Calls` does with hosts, by the same functions.

    Parameters
    ----------
    algorithm : Algorithm
        The method, with no parameter open.
    objective : Objective
        The clients.
    clients, solver : tree of arrays
        Their states, and those of their solvers.
    """

    def __init__(self, algorithm: Algorithm, objective: Objective, clients: Any, solver: Any) -> None:
        self._algorithm, self._objective, self._n_clients = algorithm, objective, objective.n_clients
        self._pending: Pending | None = None
        self.clients, self.solver = ClientStates(clients, self._n_clients), ClientStates(solver, self._n_clients)

    @property
    def solution(self) -> LocalSolution | None:
        """The local solutions of the latest round; None if nobody was active."""
        return None if self._pending is None else self._pending.solution

    def work(self, round: Round, message: Any) -> Found:
        """Have the active clients work, and return what they upload."""
        ids = round.clients
        if not ids:
            self._pending = None
            return Found(round, None, None, None)
        found = worked(self._algorithm, self._objective, self.clients, self.solver, message, round, ids)
        self._pending = found
        if not round.communicate:
            return Found(round, None, None, None)
        weights = self._objective.unequal_weights
        return Found(
            weighed(round, weights), found.upload, averaged(self._algorithm, found.upload, round, weights), None
        )

    def settle(self, round: Round, message: Any) -> None:
        """End the round, which ended with this message."""
        if self._pending is not None:
            self.clients, self.solver = settled(
                self._algorithm,
                self.clients,
                self.solver,
                self._pending,
                self._n_clients,
                message,
                communicate=round.communicate,
            )
