"""What a server asks of its hosts, and what it keeps of what they have not heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualopt.engine import Failed
from dualopt.engine import _protocol as protocol
from dualopt.engine._server import Server
from dualopt.methods.participation import first_round

CLIENTS = [(0, 1), (2, 3), (4,)]


class Agreeable:
    """An engine whose hosts do all that they are asked, in words; some answer something else."""

    def __init__(self, *, in_process: bool = False) -> None:
        self.hosts: Sequence[Any] = ("lyon", "basel", "graz")
        self.in_process, self.partial_sums = in_process, False
        self.others: dict[str, Any] = {}
        self.log: list[dict[str, list[Any]]] = []

    def call(self, requests: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        self.log.append({host: list(batch) for host, batch in requests.items()})
        clients = dict(zip(self.hosts, CLIENTS, strict=True))
        return {h: self.others.get(h, [_agreed(x, clients[h]) for x in batch]) for h, batch in requests.items()}

    def asked(self) -> dict[str, list[Any]]:
        """What was asked since this was looked at."""
        found = {h: [x for batch in self.log for x in batch.get(h, ())] for h in self.hosts}
        self.log = []
        return {h: batch for h, batch in found.items() if batch}


def _agreed(request: Any, clients: tuple[int, ...]) -> Any:
    if isinstance(request, protocol.Start):
        return protocol.Started(request.run, request.rounds)
    if isinstance(request, protocol.Propose):
        P = len(clients if request.clients is None else request.clients)
        return protocol.Uploaded(request.run, request.n, np.ones((P, 2)) if request.communicate else None, (1.0,) * P)
    return protocol.Committed(request.run, request.n)


def new_server(receivers: Sequence[str] = (), supports: Sequence[str] = ("partial",), **options: Any) -> Server:
    """A server whose method is one word, and which is in a run."""
    server = Server(Agreeable(**options), CLIENTS, (2,))
    server.run, server.algorithm = "a run", SimpleNamespace(receivers=receivers, supports=supports, draws=False)  # pyright: ignore
    return server


def after(n: int, clients: tuple[int, ...], communicate: bool = True) -> Any:
    return replace(first_round(5), n=n, clients=clients, communicate=communicate)


def ends(server: Server) -> list[list[tuple[Any, ...]]]:
    """What hosts have not been told: by whom it counts, whether it communicated, which message that is, and this."""
    return [[(x.clients, x.communicate, x.made, x.message) for x in host.pending] for host in server.remote_state.hosts]


ACTIVE, INACTIVE = ["active"], ["inactive"]
NEW, SAME, NOBODY = (1, "new"), (1, None), (0, None)
ENDS: dict[str, tuple[Sequence[str], Any, Any, list[Any]]] = {  # who receives, who worked, who counts, and what is told
    "nobody listens": ((), (0, 1, 2), (0, 1, 2), [(None, True, *SAME), (None, True, *SAME), None]),
    "the active": (ACTIVE, (0, 1, 2), (0, 1, 2), [(None, True, *NEW), (None, True, *NEW), None]),
    "the others": (INACTIVE, (0, 1, 2), (0, 1, 2), [(None, True, *SAME), (None, True, *NEW), ((), True, *NEW)]),
    "all": (ACTIVE + INACTIVE, (0, 1, 2), (0, 1, 2), [(None, True, *NEW), (None, True, *NEW), ((), True, *NEW)]),
    "a part counts": (ACTIVE, (0, 1, 2), (0,), [((0,), True, *NEW), ((), True, *SAME), None]),
    "the others of a part": (INACTIVE, (0, 1, 2), (0,), [((0,), True, *NEW), ((), True, *NEW), ((), True, *NEW)]),
    "nobody counts": (ACTIVE + INACTIVE, (0, 1, 2), (), [((), False, *NOBODY), ((), False, *NOBODY), None]),
    "in silence": (ACTIVE + INACTIVE, (0, 4), None, [(None, False, *NOBODY), None, (None, False, *NOBODY)]),
}


@pytest.mark.parametrize("case", ENDS)
def test_hosts_are_told_whose_uploads_counted_and_get_the_message_that_they_listen_to(case: str) -> None:
    receivers, worked, counted, told = ENDS[case]
    server = new_server(receivers)
    round = after(7, worked, communicate=counted is not None)
    server.propose(round, "old")
    server.commit(round if counted is None else replace(round, clients=counted), "new")
    assert ends(server) == [[] if end is None else [end] for end in told]
    assert all(end.n == 7 and end.run == "a run" for host in server.remote_state.hosts for end in host.pending)
    assert (server.rounds, server.made) == (8, any(end is not None and end[1] for end in told))
