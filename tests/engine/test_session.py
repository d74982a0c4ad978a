"""Requests to hosts, and answers that are none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dualopt.engine import _protocol as protocol
from dualopt.engine._errors import LostError
from dualopt.engine._session import Session

FAULTS = {
    "no answer in time": None,
    "the disk is full": protocol.Failed("the disk is full"),
    "it has gone": OSError("it has gone."),
    "TimeoutError": TimeoutError(),
    "its answers are not those to the requests": [],
    "it answers initial by something else": [protocol.Aligned(3)],
}


@pytest.mark.parametrize("sentence", FAULTS)
def test_why_a_host_has_not_answered(sentence: str) -> None:
    answers = {} if FAULTS[sentence] is None else {"lyon": FAULTS[sentence]}
    engine: Any = SimpleNamespace(hosts=["lyon"], call=lambda requests: answers)
    with pytest.raises(LostError, match=rf"^host lyon did not answer in round 0: {sentence}\.$"):
        Session(engine, [(0,)]).ask_all(protocol.Initial(0))


@pytest.mark.parametrize("clients", [[(0, 1, 2, 3)], [(2, 0), (3, 1)], [(1,), (0,), (3, 2)]])
def test_shares_are_those_of_the_hosts_in_their_order(clients: list[tuple[int, ...]]) -> None:
    engine: Any = SimpleNamespace(hosts=list(range(len(clients))))
    session = Session(engine, clients)
    for asked in ((), (0,), (1, 3), (0, 1, 2, 3)):
        found = session._shares(asked)
        assert sorted(j for own in found.values() for j in own) == list(asked)
        assert all(own == clients[h] or set(own) < set(clients[h]) for h, own in found.items())
        assert all(found.values())
