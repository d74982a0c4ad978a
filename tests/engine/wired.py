"""Engines for tests: hosts in this process that talk by packed messages, and whose answers can go wrong."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dualopt.arrays.codec import Known, chunks, pack, read, unpack
from dualopt.arrays.tree import tree_map
from dualopt.arrays.xp import is_array, to_numpy
from dualopt.engine import Failed, Host, RemoteClients, answered
from dualopt.objectives import Composite
from dualopt.objectives.composite import without_regulariser

__all__ = ["Wired", "elsewhere", "sent"]


def sent(tree: Any) -> Any:
    """What arrives of a tree that is sent as a header in JSON and raw arrays: new arrays, row after row in memory."""
    data = b"".join(chunks(pack([tree_map(_in_rows, tree)])))
    return unpack(read(io.BytesIO(data), len(data)), Known(), np.zeros(0))[0]


def _in_rows(x: Any) -> Any:
    return np.ascontiguousarray(to_numpy(x)) if is_array(x) and not isinstance(x, np.generic) and x.ndim else x


class Wired:
    """An engine whose hosts have data of their own, and to which everything goes through a description in JSON.

    ``trouble(number of the call, host, requests, answers)`` may return other answers, None for none that came, or raise
    as a host does that is killed.
    """

    def __init__(self, hosts: Sequence[Host], trouble: Callable[..., Any] | None = None, *, partial_sums: bool = False):
        self.objects = dict(enumerate(hosts))
        self.hosts: Sequence[Any] = tuple(range(len(hosts)))
        self.in_process, self.partial_sums = False, partial_sums
        self.trouble, self.calls, self.asked = trouble, 0, []
        self.log: list[tuple[int, Any, Any]] = []  # host, requests, answers

    def learn(self, types: Any) -> None:
        for host in self.objects.values():
            host.types = (*host.types, *types)

    def call(self, requests: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        self.calls += 1
        self.asked, found = list(requests), {}
        for h, batch in requests.items():
            answers = self.reply(h, batch)
            self.log.append((h, batch, answers))
            found[h] = answers if self.trouble is None else self.trouble(self.calls, h, batch, answers)
        return {h: answers for h, answers in found.items() if answers is not None}

    def reply(self, h: int, batch: Sequence[Any]) -> Any:
        """What comes back from a host; a subclass may have it killed meanwhile."""
        return self.answers(h, batch)

    def answers(self, h: int, batch: Sequence[Any]) -> Any:
        """What a host answers."""
        answers = answered(self.objects[h], sent(tuple(batch)))
        return answers if isinstance(answers, Failed) else list(sent(tuple(answers)))


def elsewhere(objective: Any, blocks: Sequence[Sequence[int]], trouble: Any = None, **options: Any) -> Any:
    """The objective with its clients on hosts of an engine that talks by messages, each with these clients."""
    f = without_regulariser(objective)
    hosts = [Host(pickle.loads(pickle.dumps(f.select(list(ids)))), tuple(ids)) for ids in blocks]
    clients = RemoteClients(Wired(hosts, trouble, **options))
    return Composite(objective=clients, regulariser=objective.regulariser) if f is not objective else clients
