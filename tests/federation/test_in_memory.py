"""Sites and server as they are in a federation, connected by function calls: no package of others is needed."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt import Trace
from dualopt.engine import _protocol as protocol
from dualopt.engine import wire
from dualopt.engine.secure_sums import _messages as sums
from dualopt.federation import Project, SiteSettings
from dualopt.federation.answering import Answering
from dualopt.federation.engine import SitesEngine, UnreachableError
from dualopt.federation.questions import of_intercept
from dualopt.federation.seal import KEY_FILE, MARK, Seal, site_key
from dualopt.federation.serving import Serving
from tests.federation.problems import (
    METHODS,
    SITES,
    differing,
    elsewhere,
    in_one_process,
    plant,
    project_of,
    texts_in,
    write_shards,
)

KEYS = {site: site_key(b"the server's", site) for site in SITES}


class Memory:
    """All parties in one process. ``faults`` maps the number of a call to a site to what happens to it then."""

    def __init__(self, folder: Path, project: Project, **others: Project) -> None:
        self.folder, self.project = folder, project
        self.data = write_shards(folder, project.features)
        for site in SITES:
            (folder / site / "local").mkdir(parents=True)
            (folder / site / "startup").mkdir()
            (folder / site / KEY_FILE).write_bytes(KEYS[site])
            others.get(site, project).write(folder / site / "project.toml")
            SiteSettings(
                project=str(folder / site / "project.toml"),
                data=str(self.data[site]),
                state=str(folder / site / "state"),
            ).write(folder / site)
        self.sites = {site: Answering(folder / site, site) for site in SITES}
        self.calls = dict.fromkeys(SITES, 0)
        self.faults: dict[tuple[str, int], Any] = {}
        self.engines: list[SitesEngine] = []

    def restart(self, site: str) -> None:
        self.sites[site].close()
        self.sites[site] = Answering(self.folder / site, site)

    def ask(self, site: str, data: bytes, seconds: float) -> bytes:
        self.calls[site] += 1
        fault = self.faults.get((site, self.calls[site]))
        if fault is None:
            return self.sites[site](data)
        return fault(site, data)

    def serve(self) -> dict[str, Any]:
        import json

        engine = SitesEngine(self.project.sites, self.ask, keys=KEYS, deadline=self.project.deadline)
        self.engines.append(engine)
        try:
            Serving(self.project, self.folder / "server", self.folder / "result").run(engine)
        finally:
            engine.close()
        return json.loads((self.folder / "result" / "outcome.json").read_text())

    @property
    def trace(self) -> Trace:
        return Trace.from_npz(self.folder / "result" / "trace.npz")

    def close(self) -> None:
        for site in self.sites.values():
            site.close()


@contextmanager
def memory(folder: Path, project: Project, **others: Project) -> Iterator[Memory]:
    found = Memory(folder, project, **others)
    try:
        yield found
    finally:
        found.close()


@pytest.mark.parametrize("algorithm", METHODS)
def test_a_federation_is_one_process_bit_for_bit(tmp_path: Path, algorithm: str) -> None:
    project = project_of(algorithm)
    with memory(tmp_path, project) as m:
        outcome = m.serve()
        assert outcome["refused"] is None
        assert outcome["lost"] == []
        assert differing(m.trace, in_one_process(project)) == []


@pytest.mark.parametrize("algorithm", METHODS)
def test_no_file_of_the_server_has_a_number_of_the_data(tmp_path: Path, algorithm: str) -> None:
    with memory(tmp_path, project_of(algorithm)) as m:
        planted = plant(m.data["lyon"])
        assert m.serve()["refused"] is None
        files = [path for name in ("server", "result") for path in (tmp_path / name).rglob("*") if path.is_file()]
        assert {path.suffix for path in files} >= {".journal", ".npz", ".json"}
        texts = [text for path in files for text in texts_in(path)]
        own = texts_in(m.data["lyon"])
    assert not any(number in text for number in planted for text in texts)
    assert any(number in text for number in planted for text in own)


@pytest.mark.parametrize("kind", ["bytes", "text", "archive", "log"])
def test_a_row_that_is_at_another_party_is_found(tmp_path: Path, kind: str) -> None:
    """Were it not, the long tests could not fail of it."""
    row = np.load(write_shards(tmp_path)["basel"])["X"][3]
    for name in ("server", "basel", "bern"):
        (folder := tmp_path / "kits" / "trio" / "prod_00" / name).mkdir(parents=True)
        (folder / "empty").touch()
        match kind:
            case "bytes":
                (folder / "kept").write_bytes(b"journal" + row.tobytes())
            case "text":
                (folder / "kept").write_text(" ".join(f"{x:.8g}" for x in row))
            case "archive":
                with (folder / "kept").open("wb") as file:
                    np.savez_compressed(file, row)
            case _:
                (folder / "kept").write_text(f"could not convert {row.tolist()}")
    assert [path.parent.name for path in elsewhere(tmp_path)] == ["bern", "server"]


def test_every_field_that_leaves_a_site_has_a_row_on_the_page() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "security.md").read_text()
    table = page.partition("## What leaves a site")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
    told = [field for row in rows for field in re.findall(r"`(\w+\.\w+)`", row[1])]
    requests = protocol.ANSWERS | sums.ANSWERS
    answers = {kind for kinds in requests.values() for kind in (*kinds, protocol.Failed)}
    assert sorted(told) == sorted(f"{kind.__name__}.{name}" for kind in answers for name in kind._fields)
    assert all(len(row) == 5 and row[2].strip() and row[3].strip() for row in rows)


def test_what_the_page_names_as_shown_is_there() -> None:
    """Scenarios, tests by their functions, and files of tests."""
    from tests.federation.__main__ import SCENARIOS

    root = Path(__file__).parents[2]
    page = root.joinpath("docs", "security.md").read_text()
    functions = {
        name
        for path in root.joinpath("tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    names = [name for line in re.findall(r"scenarios? (`[^|]*)", page) for name in re.findall(r"`([a-z-]+)`", line)]
    tests, files = re.findall(r"`(test_\w+)`", page), re.findall(r"`(tests/\w[\w/]*\.py)`", page)
    assert all((names, tests, files))
    assert set(names) <= SCENARIOS.keys()
    assert set(tests) <= functions
    assert all(root.joinpath(file).is_file() for file in files)


def test_a_tolerance_is_met_in_the_same_round(tmp_path: Path) -> None:
    project = project_of(tol=1e-6, rounds=200)
    with memory(tmp_path, project) as m:
        assert m.serve()["status"] == "converged"
        assert differing(m.trace, in_one_process(project)) == []


def test_local_work_in_mixed_precision(tmp_path: Path) -> None:
    """Sites of a project solve in single precision, to a certificate that single precision has not."""
    project = project_of("feddyn", precision="mixed", tol=1e-10, rounds=300, participation="full")
    with memory(tmp_path, project) as m:
        assert m.serve()["status"] == "converged"
        assert differing(m.trace, in_one_process(project)) == []
        assert "theta" in differing(m.trace, in_one_process(replace(project, precision="double")))


def test_a_free_intercept_and_weights_of_classes(tmp_path: Path) -> None:
    """A certificate asks at two models more in a round, which a site allows."""
    changes: dict[str, Any] = {"intercept": "free", "class_weight": "1=3.0", "client_weights": "rows"}
    project = project_of("distributed-lbfgs", tol=1e-6, rounds=60, **changes)
    with memory(tmp_path, project) as m:
        assert m.serve()["status"] == "converged"
        assert differing(m.trace, in_one_process(project)) == []
        (asked,) = (tmp_path / "lyon").rglob("*.questions")
        in_a_round = Counter(line.split()[0] for line in asked.read_text().splitlines())
    assert max(in_a_round.values()) == 4  # where a round of L-BFGS begins, where it ends, and two more
    assert of_intercept(project) == 6
    assert of_intercept(project_of("distributed-lbfgs")) == 0
    three = project_of("distributed-lbfgs", loss="multinomial", classes=(0, 1, 2), intercept="free")
    assert of_intercept(three) == 9


def test_what_travels_is_the_trace_and_the_stated_overhead(tmp_path: Path) -> None:
    """Between certified rounds the arrays are those that the trace counts, and nothing else."""
    project = project_of(certify_every=100)
    with memory(tmp_path, project) as m:
        m.serve()
        (engine,), last, d = m.engines, m.trace.last, 21
    census, start = 3 * (3 + d), d  # mu, its rounding, L and the zero model of each site; one site's initial model
    first, last_one = 3 * (3 + d), 3 * (1 + 5 + 2 * d)  # value, gradient and two errors; at the end also dual points
    gradients = 3 * project.rounds  # how many each client has computed
    assert engine.numbers_up == 8 * (last["floats_up"] + gradients + census + start + first + last_one)
    plain = 3 * (project.rounds + 1)  # the momentum coefficient of each message is in the header
    models = 3 * 3 * d  # the first one, certified; the one to start from; the last one, certified
    assert engine.numbers_down == 8 * (last["floats_down"] - plain + models)
    messages = 3 * (project.rounds + 5) + 1
    assert engine.bytes_up - engine.numbers_up <= messages * wire.OVERHEAD
    assert engine.bytes_down - engine.numbers_down <= messages * wire.OVERHEAD


def answered(site: Answering, data: bytes, key: bytes = KEYS["lyon"]) -> Any:
    """What a site answers to something that carries the mark of the server."""
    seal = Seal(key)
    answer = site(sealed := seal.request(data))
    (found,) = wire.decode_answers(seal.opened_answer(sealed, answer) or b"", [protocol.Describe()])
    return found


def killed_before(m: Memory) -> Any:
    """The process of the site dies before the request arrives, comes back, and is asked again."""

    def fault(site: str, data: bytes) -> bytes:
        m.restart(site)
        raise UnreachableError(site)

    return fault


def killed_after(m: Memory) -> Any:
    """It dies after it has worked and saved its state: the reply is lost."""

    def fault(site: str, data: bytes) -> bytes:
        m.sites[site](data)
        m.restart(site)
        raise UnreachableError(site)

    return fault


def late(m: Memory) -> Any:
    def fault(site: str, data: bytes) -> bytes:
        m.sites[site](data)
        raise TimeoutError

    return fault


@pytest.mark.parametrize("algorithm", METHODS)
def test_a_site_that_falls_goes_on_bit_for_bit(tmp_path: Path, algorithm: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("dualopt.federation.engine.PAUSE", 0.0)
    project = project_of(algorithm)
    with memory(tmp_path, project) as m:
        m.faults = {("lyon", 7): killed_before(m), ("basel", 9): killed_after(m), ("bern", 12): killed_after(m)}
        assert m.serve()["lost"] == []
        assert differing(m.trace, in_one_process(project)) == []


class Killed(BaseException):
    """The server's process ends here."""


@pytest.mark.parametrize(
    ("algorithm", "call"), [*((name, 16) for name in METHODS), *(("feddyn", call) for call in (8, 15, 17))]
)
def test_a_server_that_falls_goes_on_bit_for_bit(tmp_path: Path, algorithm: str, call: int) -> None:
    """Before it has asked the last site, and with the answers of the others at hand but not in its checkpoint."""
    project = project_of(algorithm)

    def fall(site: str, data: bytes) -> bytes:
        m.sites[site](data)
        raise Killed

    with memory(tmp_path, project) as m:
        m.faults = {("bern", call): fall}
        with pytest.raises(Killed):
            m.serve()
        for site in SITES:
            m.restart(site)
        m.faults = {}
        assert m.serve()["refused"] is None
        assert differing(m.trace, in_one_process(project)) == []


def test_another_project_file_is_refused(tmp_path: Path) -> None:
    project = project_of()
    other = replace(project, mu=0.2)
    with memory(tmp_path, project, basel=other) as m:
        refused = m.serve()["refused"]
    assert "basel" in refused
    assert project.fingerprint in refused
    assert other.fingerprint in refused


def test_a_site_that_is_late_stops_dualfl_and_not_feddyn(tmp_path: Path) -> None:
    for algorithm in ("dualfl", "feddyn"):
        folder = tmp_path / algorithm
        folder.mkdir()
        project = project_of(algorithm, rounds=80)
        with memory(folder, project) as m:
            m.faults = {("bern", n): late(m) for n in (9, 10, 11)}
            outcome = m.serve()
            if algorithm == "dualfl":
                assert "bern" in outcome["refused"]
                assert "nothing came within 30 s" in outcome["refused"]
                m.faults = {}
                assert m.serve()["refused"] is None  # the checkpoint was kept
                assert differing(m.trace, in_one_process(project)) == []
            else:
                assert outcome["refused"] is None
                assert outcome["lost"]
                exact = in_one_process(replace(project, rounds=400)).theta
                assert np.abs(m.trace.theta - exact).max() < 1e-8


def test_a_full_disk_at_a_site_is_told(tmp_path: Path, monkeypatch: Any) -> None:
    project = project_of()
    with memory(tmp_path, project) as m:
        from dualopt.engine._host_file import HostFile

        keep, full = HostFile.keep, [True]

        def no_space(self: Any, start: Any, kept: Any) -> None:
            if full[0] and "basel" in str(self) and kept.rounds == 5:
                raise OSError(errno.ENOSPC, "No space left on device")
            keep(self, start, kept)

        monkeypatch.setattr(HostFile, "keep", no_space)
        outcome = m.serve()
        assert "basel" in outcome["refused"]
        assert "its disk is full" in outcome["refused"]
        full[0] = False
        assert m.serve()["refused"] is None
        assert differing(m.trace, in_one_process(project)) == []


def test_processes_of_one_phase_have_the_changed_host() -> None:
    """As ``python -m tests.federation`` starts them."""
    root = Path(__file__).parents[2]
    words = "import sys; from dualopt.engine import Host; sys.exit(Host._commit.__module__)"
    for path, module in (([root / "tests/federation/one_phase", root], "sitecustomize"), ([root], None)):
        own = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
        found = subprocess.run([sys.executable, "-c", words], env=own, capture_output=True, text=True, check=False)
        assert found.stderr.strip() == (module or "dualopt.engine._host")


def test_bytes_of_a_stranger_are_refused(tmp_path: Path) -> None:
    with memory(tmp_path, project_of()) as m:
        for data in (b"", b"dualopt1", b"\x80\x04K\x01."):  # the last one is a pickle
            assert answered(m.sites["lyon"], data) == protocol.Failed("request")


def test_two_processes_of_a_site_do_not_share_a_state(tmp_path: Path) -> None:
    with memory(tmp_path, project_of()) as m:
        request = wire.encode([protocol.Describe()])
        assert isinstance(answered(m.sites["lyon"], request), protocol.ClientInfo)
        second = Answering(tmp_path / "lyon", "lyon")
        assert answered(second, request) == protocol.Failed("busy", False)
        second.close()


def test_only_the_server_is_answered(tmp_path: Path, caplog: Any) -> None:
    """Another site asks, forges and replays in the midst of a run; nothing is told, and nothing changes."""
    project = project_of()
    kept: dict[str, bytes] = {}
    with memory(tmp_path, project) as m:

        def hostile(site: str, data: bytes) -> bytes:
            honest = wire.decode_requests(Seal(KEYS["basel"]).opened_request(data) or b"")
            run = next(x.run for x in honest if hasattr(x, "run"))
            orders = [
                protocol.Describe(),
                protocol.Evaluate(run, 0, np.ones(21), True),
                protocol.States(run, 7),
                kept_start._replace(run="another", clients=(1,)),
            ]
            plain = [wire.encode([order]) for order in orders]
            lyon = Seal(KEYS["lyon"])
            forged = [*plain, *map(lyon.request, plain), *(lyon.answer(data, x) for x in plain)]
            forged += [kept["lyon"], data[:MARK] + plain[3], data[1:], data + b" ", b"", data[:MARK]]
            for sealed in forged:
                (found,) = wire.decode_answers(m.sites["basel"](sealed), [protocol.Describe()])
                assert found == protocol.Failed("caller", True)
            return m.sites[site](data)

        def noted(site: str, data: bytes) -> bytes:
            nonlocal kept_start
            kept[site] = data
            opened = wire.decode_requests(Seal(KEYS[site]).opened_request(data) or b"")
            kept_start = next((x for x in opened if isinstance(x, protocol.Start)), kept_start)
            return m.sites[site](data)

        kept_start: Any = None
        m.faults = {("lyon", n): noted for n in range(1, 9)} | {("basel", 11): hostile}
        assert m.serve()["refused"] is None
        assert differing(m.trace, in_one_process(project)) == []
    assert caplog.text.count("refused (caller)") == 18


def test_an_answer_that_another_gave_does_not_count(tmp_path: Path) -> None:
    """Neither that of another site, nor an earlier one of the same site, nor one without a mark."""
    answers: dict[str, bytes] = {}

    def earlier(site: str, data: bytes) -> bytes:
        answers["earlier"] = m.sites[site](data)
        return answers["earlier"]

    for name in ("earlier", "another's", "plain"):
        (tmp_path / name).mkdir()
        with memory(tmp_path / name, project_of()) as m:
            wrong = {
                "earlier": lambda site, data: answers["earlier"],
                "another's": lambda site, data: Seal(KEYS["lyon"]).answer(data, m.sites[site](data)[MARK:]),
                "plain": lambda site, data: m.sites[site](data)[MARK:],
            }
            m.faults = {("basel", 8): earlier, ("basel", 9): wrong[name]}
            refused = m.serve()["refused"]
        assert "host basel" in refused
        assert "does not carry its mark" in refused


def test_data_may_take_longer_to_load_than_an_answer(tmp_path: Path) -> None:
    seconds: list[float] = []
    with memory(tmp_path, project_of(deadline=2.0, rounds=1)) as m:
        ask_site = m.ask

        def noted(site: str, data: bytes, left: float) -> bytes:
            seconds.append(left)
            return ask_site(site, data, left)

        m.ask = noted  # pyright: ignore[reportAttributeAccessIssue]
        assert m.serve()["refused"] is None
    assert min(seconds[:3]) > 3000
    assert max(seconds[3:]) <= 2.0


def test_a_server_can_reconstruct_dual_variables_and_gradients(tmp_path: Path) -> None:
    """What docs/federation.md says of DualFL: (3.3) needs nothing but messages and uploads."""
    project = project_of()
    v = zeta = np.zeros((3, 21))
    uploads: dict[str, np.ndarray] = {}
    with memory(tmp_path, project) as m:
        ask_site, heard = m.ask, dict.fromkeys(SITES, 0)

        def listening(site: str, data: bytes, seconds: float) -> bytes:
            nonlocal v, zeta
            requests = wire.decode_requests(data[MARK:])
            for request in requests:
                if isinstance(request, protocol.Commit):
                    heard[site] += 1
                    if set(heard.values()) == {heard[site]}:  # the last site to hear of the end of the round
                        sent = np.concatenate([uploads[name] for name in SITES])
                        old, v = v, zeta + request.message.theta - sent
                        zeta = v + request.message.beta * (v - old)
            answer = ask_site(site, data, seconds)
            for found in wire.decode_answers(answer[MARK:], requests):
                if isinstance(found, protocol.Uploaded):
                    pending[site] = found.upload
            if len(pending) == 3:
                uploads.update(pending)
                pending.clear()
            return answer

        pending: dict[str, np.ndarray] = {}
        m.ask = listening  # pyright: ignore[reportAttributeAccessIssue]
        m.serve()
        hosts: Any = [m.sites[site]._host for site in SITES]
        own = np.concatenate([host.state.clients.tree.zeta for host in hosts])
        gradients = np.concatenate([host.objective.gradient(uploads[s]) for s, host in zip(SITES, hosts, strict=True)])
    assert np.abs(zeta - own).max() < 1e-13
    assert np.abs(project.mu * zeta - gradients).max() < 1e-5 * np.abs(gradients).max()
