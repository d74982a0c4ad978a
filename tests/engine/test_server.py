"""What a server asks of its hosts, and what it keeps of what they have not heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualopt.engine import Failed, LostError
from dualopt.engine import _protocol as protocol
from dualopt.engine._errors import ContradictionError
from dualopt.engine._server import HostRecord, RemoteState, Server
from dualopt.engine.rounds import State
from dualopt.methods import FedAvg
from dualopt.methods.compressors import RandK
from dualopt.methods.participation import first_round
from dualopt.solvers import Exact
from dualopt.spec import Spec

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
        upload: Any = np.ones((P, 2)) if request.communicate else None
        if request.partial_sums:
            upload = tuple(np.ones(2) for _ in request.weights) or np.ones(2)
        return protocol.Uploaded(request.run, request.n, upload, (1.0,) * P)
    of_clients = np.array(clients, dtype=float)
    if isinstance(request, protocol.Value):
        return protocol.Valued(of_clients)
    if isinstance(request, protocol.Evaluate):
        return protocol.Evaluated(of_clients, np.ones((len(clients), 2)), of_clients, of_clients, None, None, None)
    if isinstance(request, protocol.Information):
        n = len(clients)
        return protocol.InformationFound(np.ones((n, 2)), np.ones((2, 2)), np.ones(2), np.ones((n, 8)))
    if isinstance(request, protocol.States):
        return protocol.StatesFound(of_clients, (), None, None)
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


def test_a_host_that_does_not_answer_is_told_later_what_it_has_not_heard() -> None:
    """Each host is sent the messages that it does not hold, and ends of rounds until it has answered."""
    server = new_server(ACTIVE)
    engine: Any = server.engine

    def asked_in(n: int) -> dict[str, list[tuple[Any, ...]]]:
        found = server.propose(after(n, (0, 1, 2, 3, 4)), f"message {n}")
        server.commit(found.round, f"message {n + 1}")
        told = engine.asked()
        return {h: [(type(x).__name__, x.n, x.clients, x.made, x.message) for x in told[h]] for h in told}

    first, begun = ("Propose", 0, None, 0, "message 0"), ("Commit", 0, None, 1, "message 1")
    assert asked_in(0) == {host: [first] for host in engine.hosts}
    engine.others = {"basel": None}
    assert asked_in(1) == {host: [begun, ("Propose", 1, None, 1, None)] for host in engine.hosts}
    assert server.lost == ["round 1: host basel (clients 2, 3) did not count: no answer in time"]
    assert [(host.rounds, len(host.pending)) for host in server.remote_state.hosts] == [(1, 1), (0, 2), (1, 1)]
    engine.others = {"graz": Failed("its disk is full")}
    heard = [("Commit", 1, None, 2, "message 2"), ("Propose", 2, None, 2, None)]
    missed = [begun, ("Commit", 1, (), 2, None), ("Propose", 2, None, 2, "message 2")]
    assert asked_in(2) == {"lyon": heard, "basel": missed, "graz": heard}
    assert server.lost[1:] == ["round 2: host graz (clients 4) did not count: its disk is full"]
    assert [(host.rounds, len(host.pending)) for host in server.remote_state.hosts] == [(2, 1), (2, 1), (1, 2)]
    engine.others = {"graz": Failed("it has no states of this run", True)}
    with pytest.raises(LostError, match=r"^host graz refuses round 3: it has no states of this run\.$"):
        asked_in(3)


def test_a_method_that_needs_everybody_ends_with_the_first_that_is_lost() -> None:
    server = new_server(supports=())
    server.engine.others = {"basel": None}  # pyright: ignore[reportAttributeAccessIssue]
    sentence = r"^SimpleNamespace needs every client, and host basel did not count in round 4: no answer in time\.$"
    with pytest.raises(LostError, match=sentence):
        server.propose(after(4, (0, 1, 2, 3, 4)), "old")
    assert server.lost == []


def test_hosts_that_live_and_die_with_the_server_are_told_at_once() -> None:
    server = new_server(INACTIVE, in_process=True)
    engine: Any = server.engine
    engine.others = {"graz": None}
    server.propose(after(0, (0, 1)), "old")
    assert len(engine.log) == 1
    server.commit(after(0, (0, 1)), "new")
    assert [(x.n, x.clients, x.message) for x in engine.log[1]["basel"]] == [(0, (), "new")]
    assert server.lost == ["round 0: host graz was not told how it ended: no answer in time"]
    assert [(host.rounds, len(host.pending)) for host in server.remote_state.hosts] == [(1, 0), (1, 0), (0, 1)]
    engine.others, engine.log = {}, []
    server.propose(after(1, ()), "new")
    server.commit(after(1, ()), "new")
    assert [set(batch) for batch in engine.log] == [{"graz"}]  # who had not heard of round 0
    server.commit(after(2, ()), "new")
    assert len(engine.log) == 1  # nobody has anything to hear


# --- the beginning of a run -----------------------------------------------------------------------------------------

METHOD = FedAvg(solver=Exact())


def test_a_run_begins_with_what_hosts_need_to_know() -> None:
    server = Server(Agreeable(), CLIENTS, (2,), name="mine", project="ours", max_rows=7)
    engine: Any = server.engine
    server.begin(METHOD, np.zeros(2), compressor=RandK(size=1))
    told = {host: batch[0] for host, batch in engine.asked().items()}
    assert [x.clients for x in told.values()] == CLIENTS
    (run,) = {x.run for x in told.values()}
    assert run.startswith("mine ")
    (session,) = {x.session for x in told.values()}
    for x in told.values():
        assert (x.rounds, x.n_clients, x.max_rows, x.project, x.scales) == (0, 5, 7, "ours", None)
        assert Spec.from_json(x.method).build("algorithm", ()) == METHOD
        assert Spec.from_json(x.compressor, "compressor").build("compressor", ()) == RandK(size=1)
        np.testing.assert_array_equal(x.theta0, np.zeros(2))
    assert (server.made, server.rounds, server.kept) == (0, 0, 0.5)
    server.begin(METHOD, np.zeros(2))
    assert {x.compressor for (x,) in engine.asked().values()} == {None}
    other = Server(Agreeable(), CLIENTS, (2,), name="mine")
    other.begin(METHOD, np.zeros(2))
    (start,) = other.engine.asked()["lyon"]  # pyright: ignore[reportAttributeAccessIssue]
    assert start.run != run
    assert start.session != session


def kept(rounds: Sequence[int], pending: Sequence[protocol.Commit] = (), made: int = 2) -> Any:
    """A state with what a checkpoint holds of hosts that keep their states."""
    hosts = tuple(HostRecord(n, tuple(pending)) for n in rounds)
    return State(None, "message 2", RemoteState("a run", made, hosts, ("graz was late",)))


def test_a_run_goes_on_with_what_hosts_have_not_heard() -> None:
    end = protocol.Commit("a run", 2, True, None, 2, "message 2")
    server = Server(Agreeable(), CLIENTS, (2,))
    server.begin(METHOD, np.zeros(2), kept([2, 1, 2], [end]), 3)
    told = server.engine.asked()  # pyright: ignore[reportAttributeAccessIssue]
    assert all((x.run, x.rounds) == ("a run", 3) for (_, x) in told.values())
    assert all(first == end for first, _ in told.values())


def test_hosts_of_another_checkpoint_are_refused() -> None:
    for records, sentence in (
        ([3, 4], r"checkpoint is of 2 hosts, and here are 3\."),
        ([3, 4, 3], r"host basel has the states of its clients after round 3 and had reached round 4: its file is an "),
    ):
        server = Server(Agreeable(), CLIENTS, (2,))
        with pytest.raises(LostError, match=f"^{sentence}"):
            server.begin(METHOD, np.zeros(2), kept(records), 3)


@pytest.mark.parametrize("communicate", [True, False])
def test_a_host_that_was_lost_is_sent_the_message_again(communicate: bool) -> None:
    """Whether or not there is a new one; the others hold it."""
    server = new_server()
    engine: Any = server.engine
    engine.others = {"basel": None}
    server.propose(after(0, (0, 1, 2, 3)), "message 0")
    server.commit(after(0, (0, 1), communicate), "message 1")
    engine.others = {"basel": None}
    engine.asked()
    server.propose(after(1, (0, 1, 2, 3)), "message")
    told = {host: batch[-1].message for host, batch in engine.asked().items()}
    assert told == {"lyon": "message" if communicate else None, "basel": "message"}


def test_a_server_that_goes_on_sends_the_message_to_all() -> None:
    for made in range(3):
        server = Server(Agreeable(), CLIENTS, (2,))
        server.begin(METHOD, np.zeros(2), kept([2, 2, 2], made=made), 2)
        server.engine.asked()  # pyright: ignore[reportAttributeAccessIssue]
        server.propose(after(2, (0, 1, 2, 3, 4)), "message")
        asked = server.engine.asked()  # pyright: ignore[reportAttributeAccessIssue]
        assert [(batch[0].made, batch[0].message) for batch in asked.values()] == [(made, "message")] * 3


@pytest.mark.parametrize("rounds", range(4))
def test_an_interrupt_ends_what_hosts_have_not_been_told(rounds: int) -> None:
    server = new_server(INACTIVE)
    for n in range(3):
        server.commit(after(n, (4,)), f"message {n + 1}")
    server.drop(rounds)
    assert [[end.n for end in host.pending] for host in server.remote_state.hosts] == [[*range(rounds)][:3]] * 3


def test_with_secure_sums_single_numbers_are_not_asked_for() -> None:
    for supports in (["partial"], []):
        server = Server(Agreeable(), CLIENTS, (2,))
        assert not server.is_secure
        assert not server.tolerant  # nobody has said which method it is
        engine: Any = server.engine
        engine.secure = True
        with pytest.raises(ValueError, match=r"^inference must not be asked for with secure sums: it needs single H"):
            server.information(np.zeros(2))
        method: Any = FedAvg(solver=Exact())
        object.__setattr__(method, "supports", frozenset(supports))
        with pytest.raises(
            ValueError, match=r"^compressor must not be given with secure sums: a masked number has 64 b"
        ):
            server.begin(method, np.zeros(2), compressor=RandK(size=1))
        server.begin(method, np.zeros(2))
        assert engine.tolerant == server.tolerant == bool(supports)


def test_a_trace_says_of_hosts_what_matters_for_its_numbers() -> None:
    yes, no = "yes", "no: a sum does not tell what each client says"
    for secure, sums, reduce, compared in (
        (False, False, "client order", yes),
        (False, True, "fast", no),
        (True, True, "secure sums", no),
    ):
        server = new_server()
        engine: Any = server.engine
        engine.secure, engine.partial_sums = secure, sums
        assert server.described == {"hosts": 3, "reduce": reduce, "contradictions_looked_for": compared}
    server.lost.append("graz was late")
    assert server.described["lost"] == ["graz was late"]


def test_another_run_on_the_same_hosts_knows_what_does_not_change() -> None:
    server = Server(
        Agreeable(), CLIENTS, (2,), name="mine", project="ours", max_rows=7, weights=(1.0, 2.0, 1.0, 1.0, 3.0)
    )
    server.hold_to(np.ones(5), np.ones(5))
    server.begin(METHOD, np.zeros(2))
    other = server.anew()
    for name in ("engine", "clients", "shape", "name", "project", "max_rows", "own_weights", "weights"):
        assert getattr(other, name) is getattr(server, name) or getattr(other, name) == getattr(server, name)
    assert other._contradictions is server._contradictions
    assert len(other._contradictions) == 3
    assert (other.run, other.made, other.rounds, other.lost, other.kept) == ("", 0, 0, [], 1.0)
    assert ends(other) == [[], [], []]


# --- what is asked --------------------------------------------------------------------------------------------------


def told(server: Server) -> dict[str, Any]:
    """The last request to each host since this was looked at."""
    return {host: batch[-1] for host, batch in server.engine.asked().items()}  # pyright: ignore[reportAttributeAccessIssue]


def test_requests_say_which_round_it_is_and_of_which_clients() -> None:
    server = new_server()
    for n, seed, communicate in ((0, 3, True), (4, 5, False)):
        found = server.propose(replace(after(n, (0, 2, 3), communicate), seed=seed), "message")
        asked = told(server)
        assert {host: x.clients for host, x in asked.items()} == {"lyon": (0,), "basel": None}
        for x in asked.values():
            assert (x.run, x.n, x.n_clients, x.seed, x.communicate, x.made) == ("a run", n, 5, seed, communicate, 0)
            assert (x.partial_sums, x.weights) == (False, ())
        assert found.solution is not None
        assert found.solution.gradients == (1.0, 1.0, 1.0)
        assert (found.upload is None) == (not communicate)


@pytest.mark.parametrize(
    ("weights", "draws", "lyon", "basel"),
    [
        (None, False, (), ()),
        ((1.0, 2.0, 3.0, 4.0, 5.0), False, ((1.0,),), ((3.0, 4.0),)),
        (None, True, ((1.0,), (2.0,)), ((1.0, 1.0), (1.0, 4.0))),
        ((1.0, 2.0, 3.0, 4.0, 5.0), True, ((1.0,), (2.0,)), ((3.0, 4.0), (3.0, 16.0))),
    ],
)
def test_hosts_that_add_are_told_the_weights_of_their_clients(weights: Any, draws: bool, lyon: Any, basel: Any) -> None:
    """Where the method asks for it also those over the chances of the clients to be drawn."""
    server = new_server()
    server.weights, server.algorithm.draws = weights, draws  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
    server.engine.partial_sums = server._checks._sums = True
    server.propose(replace(after(0, (0, 2, 3)), inclusion=(0.5, 0.1, 1.0, 0.25, 1.0)), "message")
    assert {host: (x.partial_sums, x.weights) for host, x in told(server).items()} == {
        "lyon": (True, lyon),
        "basel": (True, basel),
    }


ASKED: dict[str, tuple[Any, type]] = {
    "value": (lambda server: server.value(np.ones(2)), protocol.Value),
    "value and gradient": (lambda server: server.value_and_gradient(np.ones(2)), protocol.Evaluate),
    "certificate": (lambda server: server.certificate_sums(np.ones(2)), protocol.Evaluate),
    "information": (lambda server: server.information(np.ones(2)), protocol.Information),
    "states": (lambda server: server.states(after(6, (0,))).clients, protocol.States),
    "solutions": (lambda server: server.solutions, protocol.States),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_is_asked_beside_rounds_says_after_which(what: str) -> None:
    ask, kind = ASKED[what]
    server = new_server(in_process=True)
    server.rounds, server.max_rows = 7, 9
    ask(server)
    asked = told(server)
    assert len(asked) == 3
    for x in asked.values():
        assert type(x) is kind
        assert (x.run, x.n) == ("a run", 7)
        if kind is not protocol.States:
            np.testing.assert_array_equal(x.theta, np.ones(2))
        if kind is protocol.Evaluate:
            assert (x.dual, x.partial_sums, x.weighted, x.max_rows) == (what == "certificate", False, False, 9)


def test_before_a_run_there_are_no_dual_points() -> None:
    server = Server(Agreeable(), CLIENTS, (2,), weights=(1.0, 1.0, 1.0, 1.0, 2.0))
    server.certificate_sums(np.ones(2))
    assert {(x.run, x.dual, x.weighted) for x in told(server).values()} == {("", False, True)}


def test_states_of_a_checkpoint_are_given_to_their_hosts() -> None:
    """Rows of the clients of each, the last round that they have seen, and no model to begin with."""
    server = Server(Agreeable(in_process=True), CLIENTS[::-1], (2,))
    numbers = np.arange(5.0)
    latest = (numbers, numbers, numbers, None), None, True
    server.begin(METHOD, np.zeros(2), State(None, None, (numbers,), (10.0 + numbers,), (20.0 + numbers,)), 3, latest)
    engine: Any = server.engine
    asked = engine.asked()
    for host, own in zip(engine.hosts, CLIENTS[::-1], strict=True):
        begun, restored = asked[host]
        assert (begun.rounds, begun.clients, begun.theta0, begun.session) == (0, own, None, "")
        assert (restored.run, restored.n) == (server.run, 2)
        found = [restored.clients[0], restored.solver[0] - 10.0, restored.memory[0] - 20.0, restored.latest[0][0]]
        assert [x.tolist() for x in found] == [[*map(float, own)]] * 4
    assert (server.made, server.rounds) == (3, 3)


def test_who_contradicts_himself_is_named_with_the_client() -> None:
    for h, sentence in ((0, "host lyon contradicts itself on client 1"), (2, "host graz contradicts itself")):
        server = new_server()
        seen: Any = [SimpleNamespace(by=lambda *given: None) for _ in CLIENTS]
        server._contradictions = seen
        seen[h].by = lambda rounds, theta, answer: (len(answer.value) - 1, f"{theta[0]:g} is no {rounds}")
        with pytest.raises(ContradictionError, match=rf"^{sentence}: 1 is no 0\.$"):
            server.value_and_gradient(np.ones(2))
