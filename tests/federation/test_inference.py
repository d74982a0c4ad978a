"""Standard errors in a federation: a site tells its Hessian once, if the project says so, and not otherwise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt import Quadratic, inference, linear_model
from dualopt.arrays.codec import Known, pack, unpack
from dualopt.engine import Blocks, Host, Inline, RefusedError, RemoteClients, SecureBlocks, SecureHost
from dualopt.engine import _protocol as protocol
from dualopt.engine._answers import unsound
from dualopt.engine.wire import decode_answers, encode
from dualopt.federation import Project
from dualopt.federation.agreed import require_agreed_requests
from dualopt.federation.questions import Questions
from tests.federation.problems import project_of, rows, whole
from tests.federation.test_in_memory import memory


def project(**changes: Any) -> Project:
    return project_of(client_weights="rows", inference=True, **changes)


def in_one_place(of: Project, theta: np.ndarray, **options: Any) -> Any:
    X, y, cuts = rows(of.features)
    f = linear_model(
        X, 2.0 * y - 1.0, loss=of.loss_object, mu=of.mu, clients=[cut.tolist() for cut in cuts], client_weights="rows"
    )
    return inference(f, theta, **options)


def test_sites_and_one_process_give_the_same(tmp_path: Path) -> None:
    agreed = project(feature_names=tuple(f"f{i}" for i in range(20)))
    with memory(tmp_path, agreed) as m:
        outcome = m.serve()
        assert outcome["refused"] is None
        assert "no_summary" not in outcome
        record = json.loads((tmp_path / "result" / "summary.json").read_text())
        expected = in_one_place(agreed, m.trace.theta, gap=m.trace.last["certificate"])
    assert [row["name"] for row in record["coefficients"]] == [*agreed.feature_names, "intercept"]
    for name, values in expected.columns().items():
        np.testing.assert_allclose([row[name] for row in record["coefficients"]], values, rtol=1e-9)
    assert record["aic"] == pytest.approx(expected.aic, rel=1e-12)
    assert record["distance"] == pytest.approx(expected.distance, rel=1e-12)
    assert (record["kind"], record["rows"], record["clients"]) == ("likelihood", 180, 3)


def test_by_default_a_site_refuses(tmp_path: Path) -> None:
    agreed = project_of()
    assert not agreed.inference
    asked = [protocol.Information("run", 3, np.zeros(21))]
    with pytest.raises(RefusedError, match="inference = false") as error:
        require_agreed_requests(agreed, 0, asked)
    assert error.value.code == "asked"
    require_agreed_requests(replace(agreed, inference=True), 0, asked)
    with memory(tmp_path, agreed) as m:
        assert m.serve()["refused"] is None
        assert not (tmp_path / "result" / "summary.json").exists()


def test_a_server_that_asks_all_the_same_gets_a_word(tmp_path: Path) -> None:
    """Its project says that it may, and that of a site does not: they are no party of one project."""
    with memory(tmp_path, project(), basel=project_of(client_weights="rows")) as m:
        assert "fingerprint" in m.serve()["refused"] or "project" in m.serve()["refused"]


def test_hessians_are_asked_for_at_one_model_of_a_run(tmp_path: Path) -> None:
    file = tmp_path / "asked"
    first, other = (protocol.Information("run", 5, np.full(3, x)) for x in (1.0, 2.0))
    Questions(file, 9).require_few([first, first])
    Questions(file, 9).require_few([first._replace(n=6)])
    for n in (5, 7):
        with pytest.raises(RefusedError, match="Hessians at more than one model") as error:
            Questions(file, 9).require_few([other._replace(n=n)])
        assert error.value.code == "questions"
    asked = Questions(file, 2)  # it is one of the models of its round
    asked.require_few([protocol.Value("run", 5, np.zeros(3))])
    with pytest.raises(RefusedError, match="more than 2 models in round 5"):
        asked.require_few([protocol.Value("run", 5, np.full(3, 3.0))])


def test_a_summary_that_cannot_be_had_leaves_the_run_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The site at which the connection is cut right after the last round."""
    asked = RemoteClients.information

    def cut(self: RemoteClients, theta: Any) -> Any:
        self.engine.deadline = 0.1  # type: ignore[attr-defined]
        m.faults = {("basel", m.calls["basel"] + 1): late}
        return asked(self, theta)

    def late(site: str, data: bytes) -> bytes:
        raise TimeoutError

    monkeypatch.setattr(RemoteClients, "information", cut)
    with memory(tmp_path, project()) as m:
        outcome = m.serve()
    assert outcome["refused"] is None
    assert outcome["no_summary"] == "host basel did not answer in round 40: nothing came within 0.1 s."
    assert (tmp_path / "result" / "trace.npz").exists()
    assert not (tmp_path / "result" / "summary.json").exists()


def test_with_secure_sums_there_are_none() -> None:
    with pytest.raises(ValueError, match="inference must be false with secure sums"):
        project(secure="sum")
    with pytest.raises(ValueError, match="Hinge has kinks"):
        project(loss="hinge")
    with pytest.raises(ValueError, match="regulariser must be L2 or none"):
        project(regulariser="l1=0.1", algorithm="feddr")
    pytest.importorskip("cryptography")
    f: Any = whole(project_of())
    with pytest.raises(ValueError, match="secure sums"):
        inference(SecureBlocks(number=3).clients(f), f.zeros(), like=f)
    host = SecureHost(Host(f.select([0]), 0), "a", ["a", "b", "c"])
    with pytest.raises(RefusedError, match="sums alone"):
        host.answer([protocol.Information("run", 0, f.zeros())])


def test_what_travels_is_sound_or_refused() -> None:
    f: Any = whole(project_of())
    request = protocol.Information("run", 0, f.zeros())
    (answer,) = decode_answers(encode(Host(f).answer([request])), [request])
    assert unsound(request, answer, 3, f.shape) is None
    ((told,),) = unpack(pack([(answer,)], exact=True), Known(), f.zeros(), exact=True)  # between processes of MPI
    assert all(np.array_equal(getattr(told, name), getattr(answer, name)) for name in answer._fields)
    for name, shape in {"gradient": (3, 20), "hessian": (20, 21), "penalty": (20,), "sums": (3, 7)}.items():
        wrong = answer._replace(**{name: np.zeros(shape)})
        assert f"its {name} has the shape" in str(unsound(request, wrong, 3, f.shape))
    hosts = Blocks(number=3).hosts(f)
    clients = RemoteClients(Inline(hosts))
    hosts[1].objective = replace(hosts[1].objective, ridge=0.7)
    with pytest.raises(ValueError, match="the ridge of host 1 must be that of host 0"):
        inference(clients, f.zeros(), like=f)


def test_clients_without_linear_models_refuse() -> None:
    f = Quadratic(A=np.stack([np.eye(2)]), b=np.zeros((1, 2)))
    with pytest.raises(RefusedError, match="standard errors need clients with linear models"):
        Host(f).answer([protocol.Information("run", 0, np.zeros(2))])
