"""Requests to hosts, and answers that are none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
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


COMMIT = protocol.Commit("run", 3, True, None, 4, None)
MISFITS: dict[str, tuple[Any, Any]] = {
    "its theta has the shape (4,), not (3,)": (protocol.Initial(0), protocol.Model(np.zeros(4))),
    "its value has the shape (3,), not (2,)": (protocol.Value("run", 3, np.zeros(3)), protocol.Valued(np.zeros(3))),
    "its answer is of another run": (COMMIT, protocol.Committed("b", 3)),
    "its answer is of round 2": (COMMIT, protocol.Committed("run", 2)),
    "it answers commit by something else": (COMMIT, protocol.Started("run", 3)),
    "": (COMMIT, protocol.Committed("run", 3)),
}


@pytest.mark.parametrize("sentence", MISFITS)
def test_answers_fit_requests_and_clients(sentence: str) -> None:
    asked, answer = MISFITS[sentence]
    engine: Any = SimpleNamespace(hosts=["lyon"], call=lambda requests: {"lyon": [answer]})
    answers, faults = Session(engine, [(0, 1)], (3,)).exchange({0: [asked]}, 3)
    assert (answers, faults) == (({}, {0: sentence}) if sentence else ({0: [answer]}, {}))


@pytest.mark.parametrize("clients", [[(0, 1, 2)], [(0, 2), (1,)], [(2, 0), (1,)], [(1,), (0, 2)], [(2,), (1,), (0,)]])
def test_rows_are_put_in_the_order_of_the_clients(clients: list[tuple[int, ...]]) -> None:
    """Also where some of them are in their places."""
    engine: Any = SimpleNamespace(hosts=list(range(len(clients))))
    rows = Session(engine, clients).rows([np.array(own, dtype=float) for own in clients])
    assert rows.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("given", [7, frozenset({protocol.Committed("run", 3)}), {}, []])
def test_answers_come_in_the_order_of_the_requests(given: Any) -> None:
    engine: Any = SimpleNamespace(hosts=["lyon"], call=lambda requests: {"lyon": given})
    said = {0: "its answers are not those to the requests"}
    assert Session(engine, [(0,)]).exchange({0: [COMMIT]}, 3) == ({}, said)
