"""What a host answers, what it refuses, and what it is after that: requests in order, again, late, or for another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.xp import broadcast, to_numpy
from dualopt.engine import Failed, Host, answered
from dualopt.engine import _protocol as protocol
from dualopt.engine._errors import RefusedError
from dualopt.methods import FedAvg
from dualopt.methods.preparation import SketchedMetric, prepared_by
from dualopt.objectives import reweighted
from dualopt.solvers import Exact
from tests.engine.problems import problems
from theory.identities._virtual_updates import Message, VirtualUpdates

CLIENTS = (2, 5, 3)  # of six
METHOD = '{"theory.identities._virtual_updates:VirtualUpdates": {"rho": 3.0, "solver": {"exact": {}}}}'
ZERO = np.zeros(4)


def new_host(file: Path | None = None, **options: Any) -> Host:
    f = problems()["quadratic"].select(list(CLIENTS))
    return Host(f, CLIENTS, file=file, types=(VirtualUpdates,), **options)


def start(**changes: Any) -> protocol.Start:
    return protocol.Start("a run", 0, 6, CLIENTS, METHOD, ZERO, None, "", "first server")._replace(**changes)


def message(made: int) -> Message:
    return Message(np.arange(4.0) + made, np.arange(4.0) - made**2)


def propose(n: int, made: int, clients: tuple[int, ...] | None = None, **changes: Any) -> protocol.Propose:
    return protocol.Propose("a run", n, 6, 1, True, clients, made, message(made))._replace(**changes)


def commit(n: int, made: int, clients: tuple[int, ...] | None = None, **changes: Any) -> protocol.Commit:
    return protocol.Commit("a run", n, True, clients, made, message(made))._replace(**changes)


RUN: list[Any] = [
    start(),
    propose(0, 0),
    commit(0, 1),
    propose(1, 1, (5, 2), message=None),  # it came with the end of the round before
    commit(1, 2, (2,)),  # one of two was counted, and the others listen
    commit(2, 3, ()),  # nobody was asked
    commit(4, 5, ()),
    propose(6, 7, (3, 2)),
    commit(6, 7, (), message=None),  # nobody was counted, so that nothing is new
    propose(7, 7, message=None),
    commit(7, 8),
]


ENDS = [k for k, request in enumerate(RUN) if isinstance(request, protocol.Commit)]


def begin_of(end: int) -> int:
    """The first request of the round of which this is the last."""
    return end if isinstance(RUN[end - 1], protocol.Commit) else end - 1


def same(a: Any, b: Any) -> bool:
    """Whether two answers are of one kind, and equal in every bit."""
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, tuple):
        return type(a) is type(b) and same([*a], [*b])
    return np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) else a == b


def states(host: Host) -> Any:
    return host.answer([protocol.States("a run", 0)])[0]._replace(local_models=None)  # those are of a process


def goes_on(host: Host, done: int) -> bool:
    """Whether the rest of the run is what it is for a host that was asked for nothing else."""
    undisturbed = new_host()
    expected = undisturbed.answer(RUN)[done:]
    return same(host.answer(RUN[done:]), expected) and same(states(host), states(undisturbed))


def at(done: int, file: Path | None) -> Host:
    """A host that has done the beginning of the run, each request of which came by itself."""
    host = new_host(file)
    for request in RUN[:done]:
        host.answer([request])
    return host


@pytest.fixture(params=["with a file", "without a file"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "host.journal" if request.param == "with a file" else None


def test_a_round_changes_the_states_of_those_who_counted_when_it_ends() -> None:
    """Inactive clients are changed by the message alone."""
    host = at(3, None)
    duals = states(host).clients.dual
    begun, uploaded = host.answer([RUN[0], RUN[3]])
    assert (begun.run, begun.rounds, uploaded.run, uploaded.n) == ("a run", 1, "a run", 1)
    assert same(states(host).clients.dual, duals)
    assert host.answer([RUN[4]]) == [protocol.Committed("a run", 1)]
    after = states(host).clients.dual
    np.testing.assert_allclose(after[0] - duals[0], 3.0 * (uploaded.upload[1] - message(1).theta), rtol=1e-12)
    np.testing.assert_allclose(after[1:] - duals[1:], [3.0 * message(2).drift] * 2, rtol=1e-12)
    host.answer([RUN[5]])
    np.testing.assert_allclose(states(host).clients.dual - after, [3.0 * message(3).drift] * 3, rtol=1e-12)


@pytest.mark.parametrize("done", range(1, len(RUN) + 1))
def test_requests_that_come_again_or_late_change_nothing(done: int, file: Path | None) -> None:
    """The latest one is answered as before, and earlier ones are answered as before or refused."""
    host, answers = at(done, file), new_host().answer(RUN)
    for k, request in enumerate(RUN[:done]):
        found = answered(host, [request])
        assert isinstance(found, Failed) or isinstance(request, protocol.Start) or same(found, [answers[k]])
    assert same(host.answer([RUN[done - 1]]), [answers[done - 1]])
    assert goes_on(host, done)


@pytest.mark.parametrize("done", range(1, len(RUN) + 1))
def test_a_host_that_was_killed_goes_on_from_its_file(done: int, tmp_path: Path) -> None:
    """After any request, and twice; it takes its numbers from the file if nobody has said them."""
    file = tmp_path / "host.journal"
    at(done, file)
    new_host(file)
    f = problems()["quadratic"].select(list(CLIENTS))
    assert goes_on(Host(f, file=file, types=(VirtualUpdates,)), done)


STATES, ORDER, ASKED, OLD = "it has no states of this run", "order", "asked", "checkpoint"
REFUSED: dict[str, tuple[int, Any, str, str]] = {  # what was done before, the request, the sentence, its code
    "no run yet": (0, propose(0, 0), f"{STATES}: their file is lost", "states"),
    "no run yet, an end": (0, commit(0, 1), STATES, "states"),
    "no run yet, states": (0, protocol.States("", 0), STATES, "states"),
    "no run yet, a state": (0, protocol.Restore("", 0, (), (), None), STATES, "states"),
    "lost states": (0, start(rounds=2), f"{STATES}, which is at round 2: their file is lost or of another", "states"),
    "a project": (0, start(project="mine"), "its project is '', and that of the server 'mine'", "project"),
    "too few clients": (0, start(clients=(2, 5)), "it has 3 clients, not 2", "clients"),
    "too many clients": (0, start(clients=(2, 5, 3, 4)), "it has 3 clients, not 4", "clients"),
    "a method": (0, start(method='{"no-such": {}}'), r"the method cannot be read: .*no-such.*[^.]", "method"),
    "a compressor": (0, start(compressor='{"no-such": {}}'), r"the method cannot be read: .*no-such", "method"),
    "a large compressor": (
        0,
        start(compressor='{"rand-k": {"size": 9}}'),
        "the method cannot be read: size of the",
        "method",
    ),
    "scales": (0, start(scales=(1.0, 0.0, 1.0)), "scales must be positive finite numbers", ASKED),
    "too few scales": (0, start(scales=(1.0,)), "scales must be 3 numbers, one for each client, not 1$", ASKED),
    "rows to prepare": (0, protocol.Prepare("", 0, None, ""), "it has clients, whose rows are prepared", ASKED),
    "inference": (1, protocol.Information("a run", 0, ZERO), "standard errors need clients with linear models", ASKED),
    "another run": (2, propose(0, 0, run="b"), STATES, "states"),
    "the end of another run": (2, commit(0, 1, run="b"), STATES, "states"),
    "states of another run": (5, protocol.States("b", 2), STATES, "states"),
    "a state of another run": (5, protocol.Restore("b", 1, (), (), None), STATES, "states"),
    "another run that has begun": (5, start(run="b", rounds=2), f"{STATES}, which is at round 2", "states"),
    "another project in a run": (5, start(project="mine", rounds=2), "its project is ''", "project"),
    "no message yet": (1, propose(0, 0, message=None), "it does not hold message 0", "message"),
    "another first message": (1, propose(0, 1, message=None), "it does not hold message 1", "message"),
    "the next message": (3, propose(1, 2, message=None), "it does not hold message 2", "message"),
    "the message before": (3, propose(1, 0, message=None), "it does not hold message 0", "message"),
    "a round in a round": (2, propose(1, 1), "it was not told how round 0 ended before round 1", ORDER),
    "the end of the next round": (2, commit(1, 1, ()), "it was not told how round 0 ended before round 1", ORDER),
    "clients of another host": (1, propose(0, 0, (2, 4)), "it is asked for clients that are not its own", "clients"),
    "a client twice": (3, propose(1, 1, (5, 5)), "it is asked for clients that .* or for one twice", "clients"),
    "the end of a round of others": (2, commit(0, 1, (4,)), "it is asked for clients that are not its own", "clients"),
    "no work": (1, commit(0, 1), "it has not worked in round 0", ORDER),
    "no work after a round": (3, commit(1, 1, (5,)), "it has not worked in round 1", ORDER),
    "a round that is over": (6, propose(0, 0), "its clients have finished round 2, and are asked for round 0", ORDER),
    "a round without it": (6, propose(2, 2), "its clients have finished round 2, and are asked for round 2", ORDER),
    "an old server": (5, start(session="b"), "its clients are at round 1, and the server at 0: the", OLD),
    "an older server": (6, start(rounds=1, session="b"), "its clients are at round 2, and the server at 1", OLD),
    "a server before the work": (4, start(session="b"), "its clients are at round 1, and the server at 0", OLD),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_follow_is_refused_and_changes_nothing(case: str, file: Path | None) -> None:
    done, request, sentence, code = REFUSED[case]
    host = at(done, file)
    for _ in range(2):
        with pytest.raises(RefusedError, match=f"^{sentence}") as raised:
            host.answer([request])
        assert (raised.value.code, raised.value.final) == (code, code != "message")
        assert answered(host, [request]) == Failed(str(raised.value), code != "message")
    if done - 1 in ENDS:  # it can still be taken back
        n, done = RUN[done - 1].n, begin_of(done - 1)
        assert host.answer([start(rounds=n, session="another server")]) == [protocol.Started("a run", n)]
    assert goes_on(host, done)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("killed", [False, True])
def test_another_server_takes_a_host_back_by_one_round(end: int, killed: bool, file: Path | None) -> None:
    """If it has not kept the round; the same server does not, nor one that has kept it."""
    n, first = RUN[end].n, begin_of(end)
    host = at(end + 1, file)
    if killed and file is not None:
        host = new_host(file)
    for session, rounds in (("first server", n), ("another server", n + 1)):
        assert host.answer([start(rounds=rounds, session=session)]) == [protocol.Started("a run", n + 1)]
        assert same(states(host), states(at(end + 1, None)))
    host.answer([start(rounds=n + 1)])
    for _ in range(2):
        assert host.answer([start(rounds=n, session="another server")]) == [protocol.Started("a run", n)]
        assert same(states(host), states(at(first, None)))
    if killed and file is not None:
        host = new_host(file)
    assert goes_on(host, first)


# --- beside rounds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clients", "numbers"), [(None, None), (0, (0, 1, 2)), (2, (2, 3, 4)), ([5, 1, 3], (5, 1, 3)), (CLIENTS, CLIENTS)]
)
def test_clients_have_the_numbers_that_they_are_given(clients: Any, numbers: Any) -> None:
    f = problems()["quadratic"].select(list(CLIENTS))
    assert Host(f, clients).answer([protocol.Describe()])[0].clients == numbers
    with pytest.raises(ValueError, match=r"^clients must be 2 numbers, one for each client of the objective\.$"):
        Host(f.select([0, 1]), CLIENTS)


def test_clients_are_reweighted_by_the_server_alone() -> None:
    f = problems()["quadratic"]
    with pytest.raises(ValueError, match=r"^objective must not be reweighted on a host: give scales\.$"):
        Host(reweighted(f, [1.0, 2.0, 3.0, 1.0, 1.0, 1.0]))
    local = f.select(list(CLIENTS))
    for scales in (None, (1.0, 2.0, 3.0)):  # minimise f_j / s_j + rho |. - theta|^2 / 2
        upload = new_host().answer([start(scales=scales), propose(0, 0)])[1].upload
        gradient = local.gradient(upload) / np.array(scales or [1.0])[:, None]
        np.testing.assert_allclose(gradient, -3.0 * (upload - message(0).theta), rtol=1e-10)


@pytest.mark.parametrize("word", ["Align", "Start"])
def test_the_rows_of_the_largest_client_of_all_are_known(word: str, tmp_path: Path) -> None:
    f, method = problems()["smooth"].select([0, 2]), '{"fedavg": {"solver": {"gradient": {}}}}'
    begin = protocol.Start("a run", 0, 5, (0, 2), method, f.zeros(), 99, "", "")
    host = Host(f, file=tmp_path / "host.journal")
    host.answer([protocol.Align(99) if word == "Align" else begin])
    assert host.answer([protocol.Describe()])[0].max_rows == 99
    if word == "Start":
        again = Host(f, file=tmp_path / "host.journal")
        assert again.answer([protocol.Describe()])[0].max_rows == 99


@pytest.mark.parametrize("name", ["smooth", "quadratic"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_have_the_weights_of_clients_where_those_of_all_differ(name: str, weighted: bool) -> None:
    """Clients without weights have 1 each."""
    f = problems()[name].select([1, 2])
    host, theta = Host(f), f.zeros() + 0.5
    w = f.weights if weighted and f.weights is not None else (1.0, 1.0)
    (sums,) = host.answer([protocol.Evaluate("", 0, theta, False, True, weighted)])
    np.testing.assert_allclose(sums.columns[0], w @ f.value(theta), rtol=1e-12)
    np.testing.assert_allclose(sums.gradient, w @ f.gradient(theta), rtol=1e-12)
    assert (sums.dual, len(sums.columns)) == (None, 5)


def test_dual_points_are_those_of_the_run_that_is_asked_for() -> None:
    host = at(3, None)
    found = host.answer([protocol.Evaluate(run, 1, ZERO, dual) for run in ("a run", "b") for dual in (True, False)])
    assert [answer.dual is None for answer in found] == [False, True, True, True]


def test_a_host_without_certificates_keeps_no_local_solutions(tmp_path: Path) -> None:
    hosts = [new_host(tmp_path / f"{certified}.journal", certified=certified) for certified in (True, False)]
    for host in hosts:
        host.answer(RUN[:3])
    again = [new_host(tmp_path / f"{certified}.journal", certified=certified) for certified in (True, False)]
    for some in (hosts, again):
        latest = [states(host).latest for host in some]
        assert latest[1] is None
        assert latest[0] is not None
        assert same(latest[0], states(hosts[0]).latest)


@pytest.mark.parametrize(
    ("error", "sentence", "final"),
    [
        (
            OSError(28, "No space left", "/x/host.journal"),
            "its file '/x/host.journal' cannot be written: No space",
            False,
        ),
        (OSError(28, "No space left"), "its file cannot be written: No space left", False),
        (OSError("the disk is gone"), "its file cannot be written: the disk is gone", False),
        (ValueError("k must be 1."), "k must be 1", True),
        (TypeError("no number."), "no number", True),
        (RefusedError("not now", code="message", final=False), "not now", False),
        (RefusedError("never", code="order"), "never", True),
    ],
)
def test_why_there_are_no_answers(error: Exception, sentence: str, final: bool) -> None:
    def answer(requests: Any) -> Any:
        raise error

    failed: Any = answered(SimpleNamespace(answer=answer), [])  # pyright: ignore[reportArgumentType]
    assert failed.reason.startswith(sentence)
    assert not failed.reason.endswith(".")
    assert failed.final == final


def test_arrays_of_a_host_are_those_of_its_data() -> None:
    """Whatever the server has: states and answers are of the library of the data, and have the same numbers."""
    f = problems()["quadratic"].select(list(CLIENTS))
    xp = pytest.importorskip("array_api_strict")
    strict = Host(replace(f, A=xp.asarray(f.A), b=xp.asarray(f.b), c=xp.asarray(f.c)), CLIENTS, types=(VirtualUpdates,))
    plain = new_host()
    for request in RUN:
        (found,), (expected,) = strict.answer([request]), plain.answer([request])
        if isinstance(found, protocol.Uploaded):
            assert type(found.upload) is type(xp.asarray(0.0))
            np.testing.assert_allclose(to_numpy(found.upload), expected.upload, rtol=1e-12)
    np.testing.assert_allclose(to_numpy(states(strict).clients.dual), states(plain).clients.dual, rtol=1e-12)


def test_states_that_a_server_has_kept_are_taken_up(file: Path | None) -> None:
    """Those of a checkpoint, with the round after them and no message; from then on the file has them."""
    kept, expected = states(at(3, None)), at(len(RUN), None)
    host = new_host(file)
    given = protocol.Restore("a run", 0, kept.clients, kept.solver, kept.latest, kept.memory)
    assert host.answer([start(theta0=None)]) == [protocol.Started("a run", 0)]
    for _ in range(2):
        assert host.answer([given]) == [protocol.Committed("a run", 0)]
    host = host if file is None else new_host(file)
    assert same(states(host), kept)
    for made in (-2, 0, 1):
        failed = Failed(f"it does not hold message {made}")
        assert answered(host, [propose(1, made, message=None)]) == failed
    with pytest.raises(RefusedError, match=r"^its clients have finished round 0, and are asked for round 0$"):
        host.answer([propose(0, 0)])
    host.answer([propose(1, 1, (5, 2)), *RUN[4:]])
    assert same(states(host), states(expected))


def test_samplers_have_no_local_solutions_of_which_some_count() -> None:
    f = problems()["smooth"].select([0, 2])
    method = '{"fedavg": {"solver": {"sgd": {"step": 0.1, "batch": 2}}, "stop": {"steps": {"steps": 3}}}}'
    begin = protocol.Start("a run", 0, 5, (0, 2), method, f.zeros(), None, "", "")
    host = Host(f, (0, 2))
    host.answer([begin, protocol.Propose("a run", 0, 5, 1, True, None, 0, f.zeros()), commit(0, 1, (2,), message=None)])
    assert states(host).latest is None


def test_prepared_clients_learn_of_the_largest_one_in_both_coordinates() -> None:
    f = problems()["smooth"].select([0, 2])
    found = prepared_by(SketchedMetric(rank=2), f, f.zeros())
    begin = protocol.Start("a run", 0, 5, (0, 2), '{"fedavg": {"solver": {"gradient": {}}}}', f.zeros(), None, "", "")
    asked = [begin, protocol.Propose("a run", 0, 5, 1, True, None, 0, f.zeros() + 0.1)]
    plain, told = Host(f, (0, 2), prepared=found), Host(f, (0, 2), prepared=found)
    told.answer([protocol.Align(99)])
    np.testing.assert_array_equal(told.answer(asked)[1].upload, plain.answer(asked)[1].upload)
    assert [host._worked_on.rows.max_rows for host in (plain, told)] == [40, 99]


class Repeating(FedAvg):
    """A method whose clients compute nothing."""

    def local(self, c: Any, message: Any, oracle: Any, round: Any) -> Any:
        return c, broadcast(message, (len(round.clients), *message.shape))


def test_of_clients_that_computed_nothing_some_count() -> None:
    host = Host(problems()["quadratic"].select(list(CLIENTS)), CLIENTS)
    begin = start(method=Repeating(solver=Exact()))  # in one process it is the method itself
    work = propose(0, 0, message=ZERO)
    _, found, ended = host.answer([begin, work, commit(0, 1, (2,), message=None)])
    assert (found.gradients, found.upload.tolist()) == (None, [[0.0] * 4] * 3)
    assert ended == protocol.Committed("a run", 0)
    assert states(host).latest is None


def test_in_silent_rounds_there_are_no_sums_either() -> None:
    ones = ((1.0,) * 3, (2.0,) * 3)
    for weights in ((), ones[:1], ones):
        host = at(1, None)
        silent = propose(0, 0, communicate=False, partial_sums=True, weights=weights)
        assert host.answer([silent])[0].upload is None
        (found,) = at(1, None).answer([propose(0, 0, partial_sums=True, weights=weights)])
        rows = at(1, None).answer([propose(0, 0)])[0].upload
        sums = found.upload if weights else (found.upload,)
        for own, total in zip(weights or ones[:1], sums, strict=True):
            np.testing.assert_allclose(total, own @ rows, rtol=1e-12)


def test_uploads_arrive_as_the_compressor_leaves_them() -> None:
    """One coordinate of each step, four times as long and shrunk to a quarter of it, and what a client does with it."""
    begin = start(compressor='{"rand-k": {"size": 1}}')
    plain, packed = (new_host().answer([first, propose(0, 0)])[1] for first in (start(), begin))
    assert (plain.vectors, packed.vectors) == (0, 1)
    steps = packed.upload - message(0).theta  # uploads are told by their distance from the message
    assert np.count_nonzero(steps, axis=1).tolist() == [1, 1, 1]
    np.testing.assert_allclose(steps[steps != 0], (plain.upload - message(0).theta)[steps != 0], rtol=1e-12)
    host = new_host()
    host.answer([begin, propose(0, 0), commit(0, 1)])
    np.testing.assert_allclose(states(host).clients.dual, 3.0 * steps, rtol=1e-12)


@pytest.mark.parametrize("done", range(1, len(RUN) + 1))
def test_another_run_begins_anew(done: int, file: Path | None) -> None:
    """Wherever the one before was left: nothing of it is left, and it cannot be gone on with."""
    host = at(done, file)
    again = [request._replace(run="b") for request in RUN]
    host.answer(again[:1])
    host = host if file is None else new_host(file)
    assert same([x._replace(run="a run") for x in host.answer(again[1:])], new_host().answer(RUN)[1:])
    assert same(host.answer([protocol.States("b", 0)])[0]._replace(local_models=None), states(at(len(RUN), None)))
    with pytest.raises(RefusedError, match=f"^{STATES}"):
        host.answer([RUN[done - 1]._replace(rounds=3) if done == 1 else RUN[done - 1]])


def test_a_file_is_written_where_something_has_changed_and_not_else(tmp_path: Path) -> None:
    file = tmp_path / "host.journal"
    host = at(3, file)
    file.unlink()
    host.answer([protocol.Value("a run", 1, ZERO), protocol.States("a run", 1), RUN[2]])
    assert not file.exists()
    host.answer([RUN[3]])
    assert file.exists()
