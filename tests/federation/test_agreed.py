"""What follows from the project alone: a site that lies about it is found out, and so is a server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt.arrays.tree import tree_map
from dualopt.engine import RefusedError, wire
from dualopt.engine import _protocol as protocol
from dualopt.engine.rounds import as_compressor, resolve
from dualopt.federation import Project, SiteSettings
from dualopt.federation.agreed import require_agreed_requests
from dualopt.federation.questions import NEEDED
from dualopt.federation.settings import objective_of
from dualopt.methods.participation import Schedule, as_participation
from dualopt.spec import Spec
from dualopt.spec.discover import discover
from tests.federation.problems import METHODS, SITES, differing, in_one_process, project_of, whole
from tests.federation.test_in_memory import KEYS, MARK, Memory, Seal, memory


def lying(m: Memory, change: Callable[[Any], Any]) -> Any:
    """A site whose own code changes what it answers, and marks it."""

    def fault(site: str, data: bytes) -> bytes:
        answers = wire.decode_answers(m.sites[site](data)[MARK:], wire.decode_requests(data[MARK:]))
        return Seal(KEYS[site]).answer(data, wire.encode([change(x) for x in answers]))

    return fault


def put(**fields: Any) -> Callable[[Any], Any]:
    return lambda info: info._replace(**fields)


LIES: dict[str, Callable[[Any], Any]] = {
    "mu": lambda x: x._replace(mu=x.mu + 1.0, L=x.L + 1.0),
    "mu by one unit": lambda x: x._replace(mu=np.nextafter(x.mu, 1.0)),
    "mu_rounding": lambda x: x._replace(mu_rounding=0.0 * x.mu),
    "mu_rounding that is negative": lambda x: x._replace(mu_rounding=x.mu_rounding - 1e6),
    "L": lambda x: x._replace(L=x.L + np.inf),
    "zero": lambda x: x._replace(zero=np.zeros(22)),
    "clients": put(clients=(2,)),
    "sizes": put(sizes=(71,), max_rows=71),
    "client weight": put(weights=(9.0,)),
    "weights that are no numbers": put(weights=("x",)),
    "gradient_cost": put(gradient_cost=2.0),
    "usual_weight": put(usual_weight=3.0),
    "linear_ridge": put(linear_ridge=0.2),
    "n_features": put(n_features=22),
    "offers": put(offers=("samples",)),
    "classes": put(classes='["HIV+", "HIV-"]'),
}


@pytest.mark.parametrize("name", LIES)
def test_a_census_that_does_not_follow_from_the_project_is_refused(name: str, tmp_path: Path) -> None:
    with memory(tmp_path, project_of(rows=(30, 70, 80))) as m:
        m.faults = {("basel", 1): lying(m, LIES[name])}
        refused = m.serve()["refused"]
    assert "basel" in refused or name == "clients"
    assert name.split()[0] in refused or "shape" in refused
    assert not (tmp_path / "server").exists() or not list((tmp_path / "server").glob("*.journal"))


def test_a_site_that_uploads_infinity_is_absent_in_that_round(tmp_path: Path) -> None:
    project = project_of("feddyn", participation="full")

    def infinite(answer: Any) -> Any:
        if not isinstance(answer, protocol.Uploaded):
            return answer
        return answer._replace(upload=tree_map(lambda x: x + np.inf, answer.upload))

    with memory(tmp_path, project) as m:
        m.faults = {("basel", n): lying(m, infinite) for n in (9, 10)}
        outcome = m.serve()
        rounds = [int(lost.split(":")[0].split()[1]) for lost in outcome["lost"]]
        assert rounds
        assert all("host basel" in lost and "is not finite" in lost for lost in outcome["lost"])
        absent = Schedule(clients=tuple((0, 2) if n in rounds else (0, 1, 2) for n in range(project.rounds)))
        assert differing(m.trace, in_one_process(project, absent)) == []


def test_two_sites_that_change_places_are_refused(tmp_path: Path) -> None:
    with memory(tmp_path, project_of()) as m:
        m.faults = {("lyon", 1): lying(m, put(clients=(1,))), ("basel", 1): lying(m, put(clients=(0,)))}
        assert "clients of site lyon must be its place among the sites, 0, not (1,)" in m.serve()["refused"]


def test_without_it_one_site_forges_the_certificate(tmp_path: Path, monkeypatch: Any) -> None:
    """Why: with the convexity that one of three claims, the run ends with a bound that is false, or with its name."""
    project = project_of(tol=1e-3, rounds=200)
    true = in_one_process(replace(project, tol=1e-12, rounds=400))
    energy, best = whole(project).value, whole(project).value(true.theta).mean()
    monkeypatch.setattr("dualopt.federation.serving.require_agreed_client_info", lambda *_: None)

    def forged(folder: str) -> Memory:
        (tmp_path / folder).mkdir()
        m = Memory(tmp_path / folder, project)
        m.faults = {("basel", 1): lying(m, lambda x: x._replace(mu=x.mu + 1e6, L=x.L + 1e6))}
        return m

    with closing(forged("compared")) as m:
        assert "host basel contradicts itself: its values and gradients" in m.serve()["refused"]
    monkeypatch.setattr("dualopt.engine._server.Server.hold_to", lambda *_: None)
    with closing(forged("believed")) as m:
        assert m.serve()["status"] == "converged"
        error = energy(m.trace.theta).mean() / best - 1.0
        assert error > 1.5 * m.trace.last["certified_error"]


CHOICES: dict[str, dict[str, Any]] = {
    **{name: {"algorithm": name} for name in discover(dualopt.methods)},
    "parameters": {"algorithm": "dualfl: rho=0.01, nu=suggested"},
    "a solver": {"algorithm": "feddyn: solver=lbfgs:history=5, alpha=0.3"},
    "a solver that is completed": {"algorithm": "scaffold: solver=gradient"},
    "a stop": {"algorithm": "fedpd: stop=reduction=0.1"},
    "a stop that is completed": {"algorithm": "dualfl: stop=gap=2"},
    "a compressor": {"algorithm": "fedsplit", "compressor": "natural"},
    "a regulariser": {"algorithm": "feddr", "regulariser": "l1=0.1"},
}


def started(project: Project, **changes: Any) -> protocol.Start:
    """What the server of a project sends to its second site."""
    f = whole(project)
    text = json.dumps(Spec.of(resolve(project.method, f), full=True).to_json())
    theta0 = np.zeros(f.shape)
    run = f"{project.run_name} 0123"
    packs = as_compressor(project.compressor_object, f)
    packs = None if packs is None else json.dumps(Spec.of(packs, full=True).to_json())
    start = protocol.Start(run, 0, 3, (1,), text, theta0, None, project.fingerprint, "s", compressor=packs)
    return start._replace(**changes)


@pytest.mark.parametrize("choice", CHOICES)
def test_what_the_server_of_a_project_asks_is_agreed(choice: str) -> None:
    project = project_of(**CHOICES[choice])
    require_agreed_requests(project, 1, [started(project)])
    with pytest.raises(RefusedError, match="the site is client 0 of 3"):
        require_agreed_requests(project, 0, [started(project)])


def test_a_start_of_something_else_is_refused() -> None:
    project = project_of("feddyn: alpha=0.3, solver=lbfgs:history=5, stop=reduction=0.1")
    others = {
        "method": "dualfl",
        "parameter": "feddyn: alpha=0.4, solver=lbfgs:history=5, stop=reduction=0.1",
        "solver": "feddyn: alpha=0.3, solver=newton, stop=reduction=0.1",
        "its parameter": "feddyn: alpha=0.3, solver=lbfgs:history=6, stop=reduction=0.1",
        "stop": "feddyn: alpha=0.3, solver=lbfgs:history=5, stop=gradient=1e-3",
        "its number": "feddyn: alpha=0.3, solver=lbfgs:history=5, stop=reduction=0.2",
    }
    other = {name: started(project_of(text)).method for name, text in others.items()}
    other |= {"words": "{}", "nobody": '{"subprocess:Popen": {}}'}
    for name, method in other.items():
        with pytest.raises(RefusedError, match="method is not that of the project") as raised:
            require_agreed_requests(project, 1, [started(project, method=method)])
        assert raised.value.code == "method", name
    default = started(project_of("anderson-fedsplit: step=0.1, memory=5")).method
    other_project = project_of("anderson-fedsplit: step=0.1")
    with pytest.raises(RefusedError, match="its memory is 5, not 10"):
        require_agreed_requests(other_project, 1, [started(other_project, method=default)])
    for changes, code in (
        ({"n_clients": 2}, "clients"),
        ({"clients": (0,)}, "clients"),
        ({"clients": (0, 1, 2)}, "clients"),
        ({"run": "another"}, "asked"),
        ({"scales": (2.0,)}, "asked"),
        ({"compressor": '{"natural": {}}'}, "asked"),
        ({"run": f"{project.run_name}x 0"}, "asked"),
    ):
        with pytest.raises(RefusedError) as raised:
            require_agreed_requests(project, 1, [started(project, **changes)])
        assert raised.value.code == code, changes


def test_requests_that_no_round_of_the_project_needs_are_refused() -> None:
    project = project_of()
    theta = np.zeros(21)
    work = protocol.Propose("run", 3, 3, project.seed, True, None, 3, None)
    require_agreed_requests(project, 1, [work, work._replace(clients=(1,)), protocol.Evaluate("run", 40, theta, True)])
    for request in (
        protocol.States("run", 3),
        protocol.Restore("run", 3, (), (), None),
        work._replace(seed=1),
        work._replace(n_clients=1),
        work._replace(clients=(0,)),
        work._replace(n=41),
        work._replace(n=-1),
        work._replace(partial_sums=True),
        protocol.Evaluate("run", 41, theta, True),
        protocol.Evaluate("run", 3, theta, True, True),
        protocol.Value("run", -1, theta),
    ):
        with pytest.raises(RefusedError) as raised:
            require_agreed_requests(project, 1, [protocol.Describe(), request])
        assert raised.value.code == "asked"


@pytest.mark.parametrize("participation", ["subset=2", "communicate=0.5", "bernoulli=0.4", "importance=1"])
def test_a_site_works_in_the_rounds_of_the_project_alone(participation: str) -> None:
    project = project_of("feddyn", client_weights="3,1,2")
    object.__setattr__(project, "participation", participation)
    who: Any = as_participation(participation)
    who = replace(who, weights=(3.0, 1.0, 2.0)) if participation == "importance=1" else who
    rounds = list(islice(who.rounds(3, project.seed), 12))
    assert len({(1 in round.clients, round.communicate) for round in rounds}) > 1
    for round in reversed(rounds):
        work = protocol.Propose("run", round.n, 3, project.seed, round.communicate, None, 3, None)
        if 1 in round.clients:
            require_agreed_requests(project, 1, [work])
            work = work._replace(communicate=not round.communicate)
        with pytest.raises(RefusedError, match=f"has no such round {round.n}") as raised:
            require_agreed_requests(project, 1, [work])
        assert raised.value.code == "asked"


def allow(m: Memory, number: int) -> None:
    for site in SITES:
        replace(SiteSettings.read(m.folder / site), questions=number).write(m.folder / site)


@pytest.mark.parametrize("algorithm", discover(dualopt.methods))
def test_no_method_asks_at_more_models_than_it_needs(algorithm: str, tmp_path: Path) -> None:
    """Nor does a run that is begun anew; with one model less it is refused."""
    kind = discover(dualopt.methods)[algorithm]
    who = "subset=2" if "partial" in kind.supports and "skip" not in kind.supports else "full"
    with memory(tmp_path, project_of(algorithm, rounds=3, participation=who)) as m:
        allow(m, NEEDED)
        assert m.serve()["refused"] is None
        shutil.rmtree(tmp_path / "server")
        assert m.serve()["refused"] is None


def test_a_server_that_asks_at_more_models_is_refused_for_good(tmp_path: Path) -> None:
    with memory(tmp_path, project_of()) as m:
        allow(m, 4)
        seal = Seal(KEYS["basel"])

        def ask(n: int, model: float) -> Any:
            request = protocol.Evaluate("", n, np.full(21, model), False)
            answer = m.sites["basel"](sealed := seal.request(wire.encode([request])))
            (found,) = wire.decode_answers(seal.opened_answer(sealed, answer) or b"", [request])
            return found

        for model in (1.0, 2.0, 3.0, 1.0, 4.0):
            assert isinstance(ask(2, model), protocol.Evaluated)
        for _ in range(2):
            assert ask(2, 5.0) == protocol.Failed("questions", True)
            assert isinstance(ask(2, 4.0), protocol.Evaluated)
            m.restart("basel")
        assert isinstance(ask(3, 5.0), protocol.Evaluated)


@pytest.mark.parametrize("algorithm", METHODS)
def test_a_server_that_leaves_the_project_gets_a_refusal_and_no_state_changes(tmp_path: Path, algorithm: str) -> None:
    project = project_of(algorithm)
    (tmp_path / "x").mkdir()
    with memory(tmp_path / "x", project) as m:
        seal = Seal(KEYS["basel"])
        for request, code in (
            (started(project, method=started(project_of("fedavg")).method), "method"),
            (protocol.States("run", 3), "asked"),
        ):
            answer = m.sites["basel"](sealed := seal.request(wire.encode([request])))
            (found,) = wire.decode_answers(seal.opened_answer(sealed, answer) or b"", [request])
            assert found == protocol.Failed(code, True)
        assert not (tmp_path / "x" / "basel" / "state" / f"{project.run_name}.journal").exists()


@pytest.mark.parametrize("weights", ["equal", "rows", "3,1,2"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "multinomial", "squared"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_constants_that_certificates_rest_on_do_not_depend_on_data(loss: str, weights: str, dtype: str) -> None:
    classes = {"squared": (), "multinomial": (0, 1, 2)}.get(loss, (0, 1))
    project = project_of(loss=loss, classes=classes, client_weights=weights, dtype=dtype)
    rng = np.random.default_rng(0)
    found = []
    for m in (2, 70):
        X = rng.standard_normal((m, 20)).astype(dtype)
        y = {"multinomial": rng.integers(0, 3, m)}.get(loss, np.sign(rng.standard_normal(m)).astype(dtype))
        f = objective_of(project, X, y)
        found.append((f.mu.tolist(), f.mu_rounding.tolist(), f.mu.dtype, f.offers, f.usual_weight, f.gradient_cost))
    assert found[0] == found[1]
