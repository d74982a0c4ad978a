"""Answers that are lost, late, repeated or wrong: clients count as absent, or the run ends in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt.arrays.tree import tree_map
from dualopt.engine import Failed, Host, LostError, RemoteClients, answered
from dualopt.engine import _protocol as ask
from dualopt.engine.rounds import complete
from dualopt.methods import AFedPD, DualFL, FedDyn, Scaffnew
from dualopt.methods.participation import Full, Schedule
from dualopt.runs.recording import run
from dualopt.solvers import Exact
from dualopt.spec.discover import discover
from tests.engine.problems import CHANCE, problems
from tests.engine.test_equal import differences
from tests.engine.wired import Wired, elsewhere
from tests.problems import quadratic

BLOCKS = [(0, 1), (2, 3, 4), (5,)]
WHEN = 3  # the round in which something goes wrong
TOLERANT = {name: kind for name, kind in discover(dualopt.methods).items() if "partial" in kind.supports}


def changed(change: Callable[[ask.Worked], Any], host: int = 1, when: int = WHEN) -> Callable[..., Any]:
    """Trouble with the upload of one host in one round."""

    def trouble(call: int, h: int, batch: Any, answers: Any) -> Any:
        if h != host or isinstance(answers, Failed) or not isinstance(answers[-1], ask.Worked) or answers[-1].n != when:
            return answers
        return change(answers)

    return trouble


def uploading(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda answers: [*answers[:-1], answers[-1]._replace(upload=tree_map(function, answers[-1].upload))]


def not_a_number(x: np.ndarray) -> np.ndarray:
    """The second client of the host sends NaN in one place."""
    x = x.copy()
    x[1, ...].flat[-1] = np.nan
    return x


def without(clients: set[int], rounds: int, n_clients: int = 6) -> Schedule:
    """Everybody takes part, but for some clients in one round."""
    everybody = tuple(range(n_clients))
    rest = tuple(j for j in everybody if j not in clients)
    return Schedule(clients=tuple(rest if n == WHEN else everybody for n in range(rounds)))


WRONG = {
    "lost": lambda answers: None,
    "an error": lambda answers: ConnectionError("the line is dead"),
    "failed": lambda answers: Failed("it is out of memory"),
    "of an earlier round": lambda answers: [*answers[:-1], answers[-1]._replace(n=WHEN - 1)],
    "of another run": lambda answers: [*answers[:-1], answers[-1]._replace(run="another")],
    "another answer": lambda answers: [*answers[:-1], ask.Valued(np.zeros(3))],
    "too few answers": lambda answers: [],
    "not a sequence": lambda answers: 7,
    "wrong shape": uploading(lambda x: x[..., :-1]),
    "too few rows": uploading(lambda x: x[:-1]),
    "wrong type": uploading(lambda x: x.astype(np.float32)),
    "nothing": lambda answers: [*answers[:-1], answers[-1]._replace(upload=None)],
    "wrong counts": lambda answers: [*answers[:-1], answers[-1]._replace(gradients=(1.0,))],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_answer_that_does_not_count_is_an_absence(wrong: str) -> None:
    """All of the trace is that of a run in which these clients are absent in this round, in every bit."""
    f = problems()["quadratic"]
    method = complete(FedDyn(solver=Exact()), f, Full())
    absent = run(method, f, rounds=8, participation=without({2, 3, 4}, 8))
    trouble = changed(WRONG[wrong])
    found = run(method, elsewhere(f, BLOCKS, trouble), rounds=8, measure_every=1)
    assert differences(absent, found) == []
    (said,) = found.parameters["lost"]
    assert said.startswith(f"round {WHEN}: host 1 (clients 2, 3, 4) did not count: ")


@pytest.mark.parametrize("name", TOLERANT)
def test_every_method_that_admits_absence_goes_on(name: str) -> None:
    f = problems()["quadratic"]
    method = complete(TOLERANT[name](), f, Full())
    absent = run(method, f, rounds=8, participation=without({2, 3, 4}, 8), tol=1e-13, check_assumptions=False)
    trouble = changed(WRONG["lost"])
    found = run(method, elsewhere(f, BLOCKS, trouble), rounds=8, tol=1e-13, check_assumptions=False)
    assert differences(absent, found) == []


def test_one_client_that_sends_no_number_is_left_out_alone() -> None:
    f = problems()["quadratic"]
    method = complete(FedDyn(solver=Exact()), f, Full())
    absent = run(method, f, rounds=8, participation=without({3}, 8))
    found = run(method, elsewhere(f, BLOCKS, changed(uploading(not_a_number))), rounds=8, measure_every=1)
    assert differences(absent, found) == []
    assert found.parameters["lost"] == [
        f"round {WHEN}: host 1 (clients 3) did not count: the upload of client 3 is not finite"
    ]


def test_nobody_answers_in_a_round() -> None:
    """A round without any answer leaves the model where it is; the next ones are those of the rounds before."""
    f = problems()["quadratic"]
    method = complete(FedDyn(solver=Exact()), f, Full())
    everybody = tuple(range(6))
    schedule = Schedule(clients=tuple(() if n == WHEN else everybody for n in range(8)))
    silent = run(method, f, rounds=8, participation=schedule)
    troubles = [changed(WRONG["lost"], host) for host in range(3)]

    def trouble(call: int, h: int, batch: Any, answers: Any) -> Any:
        return troubles[h](call, h, batch, answers)

    found = run(method, elsewhere(f, BLOCKS, trouble), rounds=8, measure_every=1)
    assert differences(silent, found) == []


@pytest.mark.parametrize("wrong", WRONG)
def test_methods_that_need_everybody_stop_in_one_sentence(wrong: str) -> None:
    f = problems()["quadratic"]
    with pytest.raises(LostError) as raised:
        run(DualFL(), elsewhere(f, BLOCKS, changed(WRONG[wrong])), rounds=8)
    sentence = str(raised.value)
    assert sentence.startswith(f"DualFL needs every client, and host 1 did not count in round {WHEN}: ")
    assert sentence.endswith(".")
    assert sentence.count("\n") == 0


class Forgetful(Host):
    """A client that keeps its new state although its upload was not counted: one phase in place of two."""

    def _settle(self, request: ask.Settle) -> ask.Settled:
        return super()._settle(request._replace(clients=None))


def distance(host: type[Host], rounds: int) -> float:
    """How far from the solution FedDyn is after one lost answer."""
    f = quadratic(6, L=4.0)
    hosts = [host(f.select(list(ids)), ids) for ids in BLOCKS]
    clients = RemoteClients(Wired(hosts, changed(WRONG["lost"])))
    return float(np.abs(run(FedDyn(solver=Exact()), clients, rounds=rounds).theta - f.minimiser()).max())


def test_one_phase_would_leave_the_solution_for_good() -> None:
    """FedDyn's memory on the server no longer matches its clients, and nothing repairs it; two phases are at rounding.

    250 rounds are those after which partial participation is at the minimiser to 1e-13 by the contract of methods.
    """
    assert distance(Host, 250) < 1e-13
    assert distance(Forgetful, 250) > 1e-3


@pytest.mark.parametrize("method", [DualFL(), FedDyn(), AFedPD(), Scaffnew()], ids=lambda m: type(m).__name__)
def test_requests_may_be_sent_again(method: Any) -> None:
    """Each batch arrives twice, and before and between some of those that came earlier: nothing changes."""
    f, rng = problems()["quadratic"], np.random.default_rng(0)
    clients = elsewhere(f, BLOCKS)
    engine = clients.engine
    earlier: dict[int, list[Any]] = {h: [] for h in engine.hosts}

    def trouble(call: int, h: int, batch: Any, answers: Any) -> Any:
        for k in rng.integers(len(earlier[h]) + 1, size=3) if earlier[h] else ():
            answered(engine.objects[h], ([*earlier[h], batch])[k])
        earlier[h].append(batch)
        return answered(engine.objects[h], batch)

    engine.trouble = trouble
    skip: dict[str, Any] = {"participation": CHANCE["skip"]} if isinstance(method, Scaffnew) else {}
    whole = run(method, f, rounds=8, certify_every=2, **skip)
    assert differences(whole, run(method, clients, rounds=8, certify_every=2, measure_every=1, **skip)) == []


def test_energies_that_do_not_arrive_are_not_zero() -> None:
    """A method that admits absence goes on without a certificate in that row, and ends with one."""
    f = problems()["quadratic"]

    def trouble(call: int, h: int, batch: Any, answers: Any) -> Any:
        lost = isinstance(batch[-1], ask.Evaluate) and batch[-1].n == WHEN and h == 2
        return None if lost else answers

    found = run(FedDyn(), elsewhere(f, BLOCKS, trouble), rounds=6, certify_every=1)
    assert np.flatnonzero(np.isnan(found["energy"])).tolist() == [WHEN]
    assert found.status == "max_rounds"
    whole = run(FedDyn(), f, rounds=6, certify_every=1)
    np.testing.assert_array_equal(found["certificate"][WHEN + 1 :], whole["certificate"][WHEN + 1 :])
    with pytest.raises(LostError, match=r"host 2 did not answer in round 3: no answer in time\."):
        run(DualFL(), elsewhere(f, BLOCKS, trouble), rounds=6, certify_every=1)
