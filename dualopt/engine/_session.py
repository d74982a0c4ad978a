"""A session with hosts: which clients they have, what they are asked, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dualopt.arrays.tree import take_rows
from dualopt.arrays.xp import Array
from dualopt.engine import _protocol as protocol
from dualopt.engine._answers import unsound
from dualopt.engine._errors import LostError
from dualopt.engine._rows import under_each_other

__all__ = ["Session"]


class Session:
    """Requests to hosts, and their answers.

    Parameters
    ----------
    engine : Engine
        How requests reach the hosts.
    clients : sequence of tuple of int
        The numbers of the clients of each host, in the order of ``engine.hosts``.
    shape : tuple of int
        Shape of the model.

    Examples
    --------
    >>> from dualopt import Quadratic
    >>> from dualopt.engine import Host
    >>> from dualopt.engine._inline import Inline
    >>> f = Quadratic(A=np.ones((3, 1, 1)), b=np.zeros((3, 1)))
    >>> session = Session(Inline([Host(f.select([0, 1])), Host(f.select([2]))]), [(2, 0), (1,)], (1,))
    >>> [info.n_clients for info in session.ask_all(protocol.Describe())]
    [2, 1]
    >>> session.rows([np.array([2.0, 0.0]), np.array([1.0])]).tolist()
    [0.0, 1.0, 2.0]
    """

    def __init__(
        self, engine: protocol.Engine, clients: Sequence[tuple[int, ...]], shape: tuple[int, ...] = ()
    ) -> None:
        self.engine, self.hosts, self.clients, self.shape = engine, list(engine.hosts), list(clients), shape
        self.n_clients, self.rounds = sum(map(len, self.clients)), 0
        self._pending: list[list[protocol.Commit]] = [[] for _ in self.hosts]
        self._committed = [0] * len(self.hosts)
        self._held = [-1] * len(self.hosts)  # which message each host holds

    @property
    def is_secure(self) -> bool:
        """Whether the numbers of a host are known in sums alone."""
        return getattr(self.engine, "secure", False)

    def ask_all(self, request: Any) -> list[Any]:
        """Return the answers of all hosts to one request, or to one for each of them.

        Raises
        ------
        LostError
            If a host does not answer.
        """
        each = request if isinstance(request, list) else [request] * len(self.hosts)
        answers, faults = self.exchange({h: [x] for h, x in enumerate(each)}, self.rounds)
        for h, reason in faults.items():
            raise LostError(f"{self._name(h)} did not answer in round {self.rounds}: {reason}.")
        return [answers[h][0] for h in range(len(self.hosts))]

    def exchange(self, requests: Mapping[int, list[Any]], n: int) -> tuple[dict[int, list[Any]], dict[int, str]]:
        """Ask hosts, each after its pending commits; return the answers, and why there are none, by host.

        Raises
        ------
        LostError
            If a host refuses for good.
        """
        batches, named, answers, faults = {}, {}, {}, {}
        for h, own in requests.items():
            batches[h] = named[self.hosts[h]] = [*self._pending[h], *own]
        found = self.engine.call(named)
        for h, batch in batches.items():
            answer = found.get(self.hosts[h])
            if (reason := self._fault(h, batch, answer)) is not None:
                if isinstance(answer, protocol.Failed) and answer.final:
                    raise LostError(f"{self._name(h)} refuses round {n}: {reason}.")
                faults[h], self._held[h] = reason, -1
                continue
            for sent in batch:
                if getattr(sent, "message", None) is not None:
                    self._held[h] = sent.made
            if self._pending[h]:
                self._committed[h], self._pending[h] = self._pending[h][-1].n + 1, []
            answers[h] = found[self.hosts[h]][len(batch) - len(requests[h]) :]
        return answers, faults

    def rows(self, parts: list[Array]) -> Array:
        """Return rows that the hosts have sent, in the order of all clients."""
        rows = under_each_other(parts)
        return rows if self._all_rows is None else take_rows(rows, self._all_rows)

    def drop(self, rounds: int) -> None:
        """Forget what hosts have not been told of rounds after the first ``rounds``: an interrupt has ended them."""
        self._pending = [[end for end in pending if end.n < rounds] for pending in self._pending]

    @cached_property
    def _all_rows(self) -> np.ndarray | None:
        """Where the clients are among the rows of all hosts; None where they are in order."""
        order = np.argsort(np.concatenate([np.asarray(own, dtype=np.int64) for own in self.clients]))
        return None if (order == np.arange(len(order))).all() else order

    @cached_property
    def _owner(self) -> np.ndarray:
        """The host of every client."""
        owner = np.zeros(self.n_clients, dtype=np.int64)
        for h, own in enumerate(self.clients):
            owner[list(own)] = h
        return owner

    def _fault(self, h: int, batch: Sequence[Any], answers: Any) -> str | None:
        """Say why these are not the answers of a host to a batch of requests."""
        return _fault(batch, answers, len(self.clients[h]), self.shape)

    def _name(self, h: int) -> str:
        return f"host {self.hosts[h]}"

    def _shares(self, clients: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
        """Return which of these clients each host has; hosts without any are left out."""
        if len(clients) == self.n_clients:
            return dict(enumerate(self.clients))
        ids = np.asarray(clients, dtype=np.int64)
        owners = self._owner[ids]
        found = {h: tuple(ids[owners == h].tolist()) for h in np.unique(owners).tolist()}
        return {h: self.clients[h] if len(own) == len(self.clients[h]) else own for h, own in found.items()}


def _fault(batch: Sequence[Any], answers: Any, n: int, shape: tuple[int, ...]) -> str | None:
    """Say why these are not the answers of ``n`` clients to a batch of requests."""
    if answers is None:
        return "no answer in time"
    if isinstance(answers, protocol.Failed):
        return answers.reason
    if isinstance(answers, Exception):
        return str(answers).rstrip(".") or type(answers).__name__
    if not isinstance(answers, Sequence) or len(answers) != len(batch):
        return "its answers are not those to the requests"
    for request, answer in zip(batch, answers, strict=True):
        if not isinstance(answer, protocol.ANSWERS[type(request)]):
            return f"it answers {type(request).__name__.lower()} by something else"
        if getattr(answer, "run", None) not in (None, getattr(request, "run", None)):
            return "its answer is of another run"
        if hasattr(answer, "n") and answer.n != request.n:
            return f"its answer is of round {answer.n}"
        if (reason := unsound(request, answer, n, shape)) is not None:
            return reason
    return None
