"""A run without an engine is a federation with one host, and what it can do other hosts of a process can do as well."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.tree import leaves
from dualopt.engine import Blocks, Host
from dualopt.engine import _protocol as protocol
from dualopt.engine._host import HostState
from dualopt.engine.rounds import advance, initial_state, iterate, on_engine, resolve
from dualopt.methods import AndersonFedSplit, DualFL, FedDyn, Scaffnew
from dualopt.methods.participation import Round, UniformSubset
from dualopt.methods.preparation import OneShotAverage, Prepared, SketchedMetric
from dualopt.runs.recording import run
from tests.engine.problems import CHANCE, problems
from tests.engine.test_equal import differences
from tests.engine.wired import elsewhere
from tests.problems import digits

PREPARATIONS: dict[str, Any] = {
    "one-shot": OneShotAverage(),
    "jackknife": OneShotAverage(jackknife=True),
    "sketch": SketchedMetric(rank=2),
    "both": (SketchedMetric(rank=2), OneShotAverage()),
}


def same(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(leaves(a), leaves(b), strict=True))


@pytest.mark.parametrize("prepare", PREPARATIONS.values(), ids=list(PREPARATIONS))
@pytest.mark.parametrize("method", [DualFL(), AndersonFedSplit()], ids=lambda m: type(m).__name__)
def test_preparations_work_on_several_hosts(method: Any, prepare: Any) -> None:
    """Hosts work in the coordinates of the preparation, and tell of values and local solutions in the user's."""
    for f in (problems()["smooth"], digits(rows=200)):
        whole = run(method, f, prepare=prepare, rounds=4, tol=1e-10)
        for number in (1, 2, 3):
            parts = run(method, f, prepare=prepare, rounds=4, tol=1e-10, engine=Blocks(number=number))
            assert differences(whole, parts) == []


def test_a_host_that_forgets_the_coordinates_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    f, prepare = problems()["smooth"], SketchedMetric(rank=2)
    whole = run(DualFL(), f, prepare=prepare, rounds=3, tol=1e-10)
    monkeypatch.setattr(Prepared, "solution_in_user_coordinates", lambda self, solution, objective: solution)
    wrong = run(DualFL(), f, prepare=prepare, rounds=3, tol=1e-10)
    assert "certificate" in differences(whole, wrong)
    assert np.array_equal(whole["energy"], wrong["energy"])


def test_preparations_need_the_data_in_this_process() -> None:
    clients = Blocks(number=2).clients(problems()["smooth"])
    sentence = r"^prepare must not be given where clients are elsewhere: it needs their data\.$"
    for prepare in (OneShotAverage(), SketchedMetric()):
        with pytest.raises(ValueError, match=sentence):
            run(DualFL(), clients, prepare=prepare)
        with pytest.raises(ValueError, match=sentence):
            iterate(DualFL(), clients, prepare=prepare)


@pytest.mark.parametrize("method", [DualFL(), FedDyn(), Scaffnew()], ids=lambda m: type(m).__name__)
def test_a_round_from_a_given_state_on_any_hosts(method: Any) -> None:
    f = problems()["quadratic"]
    method = resolve(method, f, CHANCE["skip"] if isinstance(method, Scaffnew) else None)
    everybody, some = tuple(range(6)), (1, 4)
    active = some if "partial" in method.supports else everybody
    rounds = [Round(n=n, n_clients=6, clients=c, communicate=True, seed=0) for n, c in ((0, everybody), (7, active))]
    places = {"blocks": Blocks(number=3).clients(f), "wired": elsewhere(f, [(1, 3), (0, 2, 4, 5)])}
    state = initial_state(method, f)
    for round in rounds:
        after, upload, _ = advance(method, f, state, round)
        for name, clients in places.items():
            found, there, _ = advance(method, clients, state, round)
            assert same(found, after), (name, round.n)
            assert same(there, upload), (name, round.n)
            again, _, _ = advance(method, clients, initial_state(method, clients) if round.n == 0 else state, round)
            assert same(again, after), (name, round.n)
        state = after


def test_the_first_round_of_hosts_is_that_of_a_run() -> None:
    f = problems()["smooth"]
    method = resolve(DualFL(), f)
    first = next(iterate(method, f))
    after, _, solution = advance(method, f, initial_state(method, f), first.round)
    assert same(after, first.state)
    assert solution is not None
    np.testing.assert_array_equal(solution.theta, first.local_models)


def test_states_of_the_host_of_this_process_stay_what_they_were() -> None:
    """Snapshots have live states, and later rounds do not change them; several hosts have the latest ones only."""
    f, who = problems()["quadratic"], UniformSubset(size=2)
    at_once = [(s, [np.array(x) for x in leaves(s.state)]) for s in islice(iterate(FedDyn(), f, participation=who), 5)]
    assert isinstance(at_once[0][0]._states, HostState)
    for snapshot, seen in at_once:
        assert same(snapshot.state, tuple(seen))
    blocks = list(islice(iterate(FedDyn(), f, participation=who, engine=Blocks(number=2)), 2))
    with pytest.raises(ValueError, match=r"^states after round 1 are gone: clients elsewhere have only the latest"):
        _ = blocks[0].clients
    assert same(blocks[1].clients, at_once[1][0].clients)


def test_what_fails_here_is_not_turned_into_a_sentence_about_a_host() -> None:
    class Mistaken(FedDyn):
        def local(self, c: Any, message: Any, oracle: Any, round: Any) -> Any:
            raise TypeError("a mistake of the user's")

    with pytest.raises(TypeError, match=r"^a mistake of the user's$"):
        next(iterate(Mistaken(), problems()["quadratic"]))


@pytest.mark.parametrize("engine", [None, Blocks(number=2)], ids=["one host", "blocks"])
@pytest.mark.parametrize("moment", ["work", "end", "_evaluate"])
def test_an_interrupt_inside_a_host_leaves_the_trace_so_far(
    moment: str, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the host was at: the rows before are those of a shorter run, and the last one is certified."""
    f, times = problems()["quadratic"], [0]
    step = getattr(Host, moment)

    def pressed(self: Host, *given: Any, **named: Any) -> Any:
        times[0] += 1
        if times[0] == 7:
            raise KeyboardInterrupt
        return step(self, *given, **named)

    plain = run(FedDyn(), f, rounds=9, certify_every=1)
    monkeypatch.setattr(Host, moment, pressed)
    found = run(FedDyn(), f, rounds=9, certify_every=1, engine=engine)
    assert found.status == "stopped"
    n = len(found)
    assert 2 <= n < len(plain)
    assert found["energy"].tolist() == plain["energy"][:n].tolist()
    assert np.isfinite(found["certificate"]).all()


def test_certificates_are_asked_for_by_runs_alone() -> None:
    """Rounds alone keep no local solutions, which would be as large as all models."""
    f = problems()["quadratic"]
    states: list[Any] = [on_engine(f, certified=c)[1] for c in (True, False)]
    for hosts in states:
        hosts.begin(resolve(FedDyn(), f), f.zeros())
    assert [hosts._host.state.latest is None for hosts in states] == [False, True]
    found = [hosts._host.answer([protocol.States(hosts._host.run, 0)])[0].latest for hosts in states]
    assert found == [None, None]  # before the first round
