"""What a server knows of clients elsewhere is what they are, and what a request does not ask for is not done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualopt.engine import Blocks, Host, Inline, LostError, RemoteClients
from dualopt.engine import _protocol as protocol
from dualopt.engine._agreement import numbered
from dualopt.engine._errors import RefusedError
from dualopt.engine._host_data import with_max_rows
from dualopt.engine._remote import KnownRows
from dualopt.engine._rows import under_each_other
from dualopt.engine._server import Server
from dualopt.engine._uploads import UploadChecks
from dualopt.losses import Logistic
from dualopt.methods import DualFL, FedDyn
from dualopt.methods.participation import Schedule, first_round
from dualopt.objectives import linear_model
from dualopt.objectives._information import client_information
from dualopt.runs.recording import run
from tests.engine.problems import problems
from tests.engine.wired import Wired, elsewhere

INTERLEAVED = {"smooth": [(1, 3), (0, 2, 4)], "quadratic": [(1, 3), (0, 2, 4, 5)]}


@pytest.mark.parametrize("name", INTERLEAVED)
def test_a_census_says_what_the_clients_are(name: str) -> None:
    f, there = problems()[name], elsewhere(problems()[name], INTERLEAVED[name])
    assert there.n_clients == f.n_clients
    for known in ("shape", "weights", "offers", "gradient_cost", "usual_weight"):
        assert getattr(there, known) == getattr(f, known)
    for known in ("mu", "mu_rounding", "L"):
        np.testing.assert_array_equal(getattr(there, known), getattr(f, known))
    assert there.sizes == (tuple(f.sizes) if name == "smooth" else ())
    assert there.is_linear == (name == "smooth")
    assert getattr(there, "ridge", None) == getattr(f, "ridge", None)


@pytest.mark.parametrize("ask", ["value", "gradient", "value_and_gradient", "certificate_sums", "information"])
def test_clients_elsewhere_are_asked_for_one_model(ask: str) -> None:
    f = problems()["smooth"]
    there = elsewhere(f, INTERLEAVED["smooth"])
    if ask != "certificate_sums":  # which needs a run
        getattr(there, ask)(f.zeros())
    with pytest.raises(ValueError, match=r"^objective must be in this process: clients elsewhere are asked for one "):
        getattr(there, ask)(np.stack([f.zeros()] * 5))


def test_rows_are_asked_for_unless_sums_are() -> None:
    f = problems()["smooth"]
    host: Any = Host(f)
    method = '{"feddyn": {"alpha": 1.0, "solver": {"gradient": {}}}}'
    begin = protocol.Start("run", 0, 5, (0, 1, 2, 3, 4), method, f.zeros(), None, "", "")
    _, uploaded, rows, sums = host.answer(
        [
            begin,
            protocol.Propose("run", 0, 5, 0, True, None, 0, f.zeros()),
            protocol.Evaluate("run", 0, f.zeros(), False),
            protocol.Evaluate("run", 0, f.zeros(), False, True),
        ]
    )
    assert uploaded.upload.shape == (5, *f.shape)
    np.testing.assert_array_equal(rows.value, f.value(f.zeros()))
    np.testing.assert_allclose(sums.gradient, np.sum(rows.gradient, axis=0), rtol=1e-13)
    assert not Inline([host]).partial_sums
    assert protocol.Uploaded("run", 0, None, None).vectors == 0


def test_dual_points_are_asked_for_by_certificates_alone() -> None:
    there = elsewhere(problems()["smooth"], INTERLEAVED["smooth"])
    run(DualFL(), there, rounds=3)
    known = there.server.remote_state.hosts
    assert [(host.rounds, host.pending) for host in known] == [(3, ())] * 2  # the certificate was asked for after that
    there.value_and_gradient(there.zeros())
    assert all(answers[-1].dual is None for _, _, answers in there.engine.log[-2:])
    there.certificate_sums(there.zeros())
    assert not any(answers[-1].dual is None for _, _, answers in there.engine.log[-2:])


@pytest.mark.parametrize("sums", [False, True])
def test_hosts_whose_clients_were_not_yet_active_have_no_dual_points(sums: bool) -> None:
    options: dict[str, Any] = {"participation": Schedule(clients=((0,),)), "rounds": 1}  # a host of its own has it
    f = problems()["smooth"]
    alone, added = (run(FedDyn(), f, engine=e, **options) for e in (None, Blocks(number=3, partial_sums=sums)))
    np.testing.assert_allclose(added["certificate"], alone["certificate"], rtol=1e-12)


def test_rows_that_stand_under_each_other_are_seen_as_they_are() -> None:
    whole = np.array([np.arange(7.0)] * 2).T.copy()
    found = under_each_other([whole[2:4], whole[4:6]])
    assert np.shares_memory(found, whole)
    np.testing.assert_array_equal(found, whole[2:6])


def test_what_a_host_has_answered_is_in_its_file(tmp_path: Path) -> None:
    f, path = problems()["quadratic"], tmp_path / "host.journal"
    method = '{"feddyn": {"alpha": 1.0, "solver": {"exact": {}}}}'
    begin = protocol.Start("run", 0, 6, tuple(range(6)), method, f.zeros(), None, "", "")
    host = Host(f, file=path)
    host.answer([begin, protocol.Propose("run", 0, 6, 0, True, None, 0, f.zeros())])
    host.answer([protocol.Commit("run", 0, True, None, 1, f.zeros() + 1.0)])
    again = Host(f, file=path)
    (now,), (then,) = (some.answer([protocol.States("run", 1)]) for some in (host, again))
    np.testing.assert_array_equal(then.clients.gradient, now.clients.gradient)
    assert np.any(now.clients.gradient != 0)


def test_hosts_learn_more_classes() -> None:
    hosts = [Host(problems()["quadratic"], types=(FedDyn,)), Host(problems()["smooth"])]
    Inline(hosts).learn([int, float])
    assert [host.types for host in hosts] == [(FedDyn, int, float), (int, float)]


def test_a_refusal_is_final_unless_it_says_so_and_a_failure_is_not() -> None:
    assert not protocol.Failed("its disk is full").final
    refused = [RefusedError("it cannot", code="asked", **how) for how in ({}, {"final": True}, {"final": False})]
    assert [(str(error), error.code, error.final) for error in refused] == [
        ("it cannot", "asked", final) for final in (True, True, False)
    ]


@pytest.mark.parametrize(
    ("upload", "sums", "fault"),
    [
        (np.zeros((1, 3)), False, ""),
        (np.zeros((1, 7)), False, "its upload has the wrong shapes or types"),  # with none beside it
        (np.zeros(3), True, ""),
        (np.array([0.0, np.nan, 0.0]), True, "a sum with its upload is not finite"),
    ],
)
def test_an_upload_that_is_alone_looks_like_a_model(upload: Any, sums: bool, fault: str) -> None:
    engine: Any = SimpleNamespace(partial_sums=sums, in_process=False)
    faults: dict[int, str] = {}
    answer = protocol.Uploaded("run", 0, upload, None)
    kept = UploadChecks(engine, (3,)).sound({0: answer}, {0: (4,)}, first_round(5), faults)
    assert kept == ({} if fault else {0: (4,)})
    assert [why.startswith(fault) for why in faults.values()] == [True] * bool(fault)


def test_there_is_a_block() -> None:
    with pytest.raises(ValueError, match=r"^number must be at least 1, not 0\.$"):
        Blocks(number=0)


def _census() -> protocol.ClientInfo:
    (info,) = Host(problems()["smooth"]).answer([protocol.Describe()])
    return info


def test_clients_without_numbers_are_counted_through() -> None:
    found = [_census()._replace(clients=None, n_clients=n) for n in (2, 3, 1)]
    assert numbered(found, "abc") == [(0, 1), (2, 3, 4), (5,)]


# --- clients of which hosts say different things ---------------------------------------------------------------------


def hosts_of(f: Any, blocks: list[list[int]], **changes: Any) -> Inline:
    """An engine with hosts of these clients, the last of which have other fields."""
    parts = [f.select(block) for block in blocks]
    parts[-1] = replace(parts[-1], **changes)
    return Inline([Host(part, tuple(block)) for part, block in zip(parts, blocks, strict=True)], in_process=False)


def _with(first: int = 0, **changes: Any) -> Any:
    """Trouble of hosts, from this one on, that say other things of their clients."""
    return lambda call, h, batch, answers: [
        x._replace(**changes) if h >= first and isinstance(x, protocol.ClientInfo) else x for x in answers
    ]


def test_the_largest_client_of_all_is_told_to_all_if_they_do_not_know() -> None:
    f = problems()["smooth"]
    for known, aligned in (((40, 50), 2), ((60, 11), 2), ((40, 40), 0), ((50,), 0)):
        blocks = [(1, 3), (0, 2, 4)] if len(known) == 2 else [(4, 3, 2, 1, 0)]
        parts = [with_max_rows(f.select(list(block)), rows) for block, rows in zip(blocks, known, strict=True)]
        engine = Wired([Host(part, block) for part, block in zip(parts, blocks, strict=True)])
        there = RemoteClients(engine)
        words = [batch for _, batch, _ in engine.log if isinstance(batch[0], protocol.Align)]
        assert words == [[protocol.Align(max(known))]] * aligned
        assert there.rows == KnownRows(max(known), f.rows.n_features, False)
        before = there.server
        assert there.new_session().max_rows == before.max_rows == max(known)
        assert there.server is not before
        assert {host.objective.rows.max_rows for host in engine.objects.values()} == {max(known)}
    untold = elsewhere(f, [(0, 2), (1,), (3, 4)], _with(first=1, max_rows=None))
    assert untold.rows.max_rows == 40
    assert not hasattr(elsewhere(problems()["quadratic"], [(0, 1), (2, 3, 4, 5)]), "rows")


def test_weights_are_those_of_the_clients_and_one_where_a_host_names_none() -> None:
    f = problems()["smooth"]
    blocks = [[3, 1], [0, 2, 4]]
    assert RemoteClients(hosts_of(f, blocks)).weights == f.weights == (3.0, 40.0, 7.0, 22.0, 11.0)
    assert RemoteClients(hosts_of(f, blocks, weights=None)).weights == (1.0, 40.0, 1.0, 22.0, 1.0)
    assert RemoteClients(hosts_of(replace(f, weights=None), blocks)).weights is None
    assert RemoteClients(hosts_of(replace(f, weights=None), blocks, weights=(5.0, 6.0, 7.0))).weights == (5, 1, 6, 1, 7)


def test_a_run_starts_where_the_first_host_says() -> None:
    there = elsewhere(problems()["smooth"], INTERLEAVED["smooth"])
    there.engine.trouble = lambda call, h, batch, answers: [protocol.Model(np.full(5, batch[0].seed + 10.0 * h))]
    assert there.initial(3).tolist() == [3.0] * 5
    assert there.initial().tolist() == [0.0] * 5
    there.engine.trouble = lambda call, h, batch, answers: None
    with pytest.raises(LostError, match=r"^host 0 did not say where runs start: no answer in time\.$"):
        there.initial()


def test_a_free_intercept_has_no_convexity() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 3)), np.sign(rng.standard_normal(12))
    for loss, intercept in ((Logistic(), "free"), (Logistic(), True)):
        f = linear_model(X, y, loss=loss, mu=0.25, clients=3, intercept=intercept)
        there = elsewhere(f, [(0,), (2, 1)])
        assert there.mu.tolist() == f.mu.tolist() == [0.0 if intercept == "free" else 0.25] * 3
        assert there.partial_mu.tolist() == f.partial_mu.tolist() == [0.25] * 3
        for name in ("free_intercept", "shift_invariant", "nonnegative", "kink_at_label", "ridge"):
            assert getattr(there, name) == getattr(f, name)


def test_hosts_are_held_to_constants_that_are_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """To no convexity where the intercept is free."""
    seen: list[Any] = []
    monkeypatch.setattr(Server, "hold_to", lambda self, mu, L: seen.append((mu, L)))
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 3)), np.sign(rng.standard_normal(12))
    for intercept in ("free", True):
        f = linear_model(X, y, loss=Logistic(), mu=0.25, clients=3, intercept=intercept)
        elsewhere(f, [(0,), (2, 1)])
        np.testing.assert_array_equal(seen[-1][0], [0.0] * 3 if intercept == "free" else f.proven_mu)
        np.testing.assert_array_equal(seen[-1][1], f.L)
        assert (f.proven_mu != f.mu).all()
    assert len(seen) == 2


@pytest.mark.parametrize("blocks", [[(0, 1, 2, 3, 4)], [(3, 1), (0, 2, 4)]], ids=["one host", "two"])
def test_what_all_have_in_common_is_what_the_first_host_says(blocks: Any) -> None:
    """Also where it is the only one."""
    f = replace(problems()["smooth"], classes=("no", "yes"))
    changes: dict[str, Any] = {"usual_weight": 2.5, "gradient_cost": 3.0}
    there = elsewhere(f, blocks, _with(**changes))
    assert (there.usual_weight, there.gradient_cost, there.offers, there.classes) == (2.5, 3.0, f.offers, ["no", "yes"])
    np.testing.assert_array_equal(there.zeros(), f.zeros())
    theta = f.zeros() + 0.3
    np.testing.assert_array_equal(there.gradient(theta), f.gradient(theta))
    np.testing.assert_array_equal(there.value(theta), f.value(theta))


def test_rows_are_known_by_both_of_their_numbers() -> None:
    for name in ("n_features", "max_rows"):
        changes: dict[str, Any] = {name: None}
        assert not hasattr(elsewhere(problems()["smooth"], INTERLEAVED["smooth"], _with(**changes)), "rows")


def test_a_census_that_no_clients_can_have_is_refused() -> None:
    """`test_answers.py` has what no clients can have."""
    with pytest.raises(ValueError, match=r"^L of host 1 must be at least 0, and at least mu\.$"):
        elsewhere(problems()["smooth"], INTERLEAVED["smooth"], _with(first=1, L=np.full(3, -1.0)))


def test_nobody_else_can_be_had() -> None:
    there = elsewhere(problems()["smooth"], INTERLEAVED["smooth"])
    assert there.select(range(5)) is there
    for ids in (range(4), [0], [4, 3, 2, 1, 0], [0] * 5):
        with pytest.raises(
            ValueError, match=r"^objective must be in this process: clients elsewhere are asked for one "
        ):
            there.select(ids)


@pytest.mark.parametrize("blocks", [[(4, 3, 2, 1, 0)], [(1, 3), (0, 2, 4)], [(3,), (2, 0), (1, 4)]])
def test_what_standard_errors_are_made_from_is_that_of_all_rows(blocks: Any) -> None:
    f = problems()["smooth"]
    theta = f.zeros() + 0.1
    found, expected = elsewhere(f, blocks).information(theta), client_information(f, theta)
    for part, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-12)


def test_standard_errors_need_one_ridge() -> None:
    f = problems()["smooth"]

    def other(call: int, h: int, batch: Any, answers: Any) -> Any:
        if h != 2 or not isinstance(answers[0], protocol.InformationFound):
            return answers
        penalty = answers[0].penalty.copy()
        penalty[1] *= 2.0
        return [answers[0]._replace(penalty=penalty)]

    with pytest.raises(ValueError, match=r"^the ridge of host 2 must be that of host 0\.$"):
        elsewhere(f, [(0, 1), (2, 3), (4,)], other).information(f.zeros())


@pytest.mark.parametrize("name", INTERLEAVED)
def test_sums_over_hosts_are_those_of_the_rows(name: str) -> None:
    """With the weights of the clients, before the first round and after some."""
    f = problems()[name]
    w = np.array(f.weights or (1.0,) * f.n_clients)
    one, other = (elsewhere(f, INTERLEAVED[name], partial_sums=sums) for sums in (False, True))
    theta = f.zeros() + 0.1
    for rounds in (0, 3):
        for there in (one, other) if rounds else ():
            theta = run(DualFL(), there, rounds=rounds, certify_every=0).theta
        np.testing.assert_allclose(other.server.mean_value(theta), w @ f.value(theta) / w.sum(), rtol=1e-12)
        found, expected = other.certificate_sums(theta), one.certificate_sums(theta)
        assert (found.dual is None) == (expected.dual is None) == (rounds == 0)
        for part, of_rows in zip(found, expected, strict=True):
            if part is not None:
                np.testing.assert_allclose(part, of_rows, rtol=1e-9, atol=1e-12)


def test_what_the_first_host_says_of_its_kind_is_so_for_all() -> None:
    """Also where it is alone; hosts of another project are refused."""
    f = problems()["smooth"]
    assert elsewhere(f, [range(5)]).is_linear
    with pytest.raises(ValueError, match=r"^project must be the same everywhere"):
        RemoteClients(hosts_of(f, [[0, 1], [2, 3, 4]]), project="another")
