"""Hosts and servers that are killed: what the hosts' files and the checkpoint hold is enough, to the last bit."""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualopt.arrays import codec
from dualopt.arrays._files import SUFFIX
from dualopt.engine import Blocks, Host, LostError, RemoteClients, journal
from dualopt.engine import _protocol as protocol
from dualopt.engine._host_file import HostFile
from dualopt.engine.checkpoint import Checkpoint
from dualopt.engine.journal import known_types
from dualopt.engine.rounds import resolve
from dualopt.methods import CorrectedDualFL, FedAvg, FedDR, FedDyn, Scaffnew, Scaffold
from dualopt.methods.participation import Full, UniformSubset
from dualopt.objectives import Composite
from dualopt.runs.recording import run
from dualopt.runs.trace import Trace
from dualopt.solvers import SGD, Exact
from dualopt.solvers.stopping import Steps
from tests.engine.problems import CHANCE, problems
from tests.engine.test_equal import differences
from tests.engine.test_two_phases import without
from tests.engine.wired import Wired
from theory.identities._virtual_updates import VirtualUpdates

ROUNDS = 6
SHORT = 4  # where a kill is tried at every request
OPTIONS: dict[str, Any] = {"rounds": ROUNDS, "certify_every": 2, "measure_every": 1, "seed": 1}
RUNS: dict[str, tuple[Any, str, Any]] = {
    "dualfl": (CorrectedDualFL(), "smooth", None),
    "feddyn": (FedDyn(), "quadratic", UniformSubset(size=3)),
    "virtual updates": (VirtualUpdates(), "quadratic", UniformSubset(size=2)),  # inactive clients listen
    "scaffnew": (Scaffnew(), "quadratic", CHANCE["skip"]),
    "scaffold": (Scaffold(), "smooth", UniformSubset(size=3)),
    "fedavg": (FedAvg(solver=SGD(step=0.1, batch=2), stop=Steps(steps=3)), "smooth", CHANCE["bernoulli"]),
}


def with_rounds(rounds: int) -> dict[str, Any]:
    return OPTIONS | {"rounds": rounds}


class Killed(BaseException):
    """The process ended here."""


@dataclass
class Federation:
    """Hosts with files, which can be started again, and a server with a checkpoint."""

    folder: Path
    problem: str
    project: str = ""
    hosts: dict[int, Host] = field(default_factory=dict)
    engine: Any = None

    def __post_init__(self) -> None:
        f = problems()[self.problem]
        self.f = f.objective if isinstance(f, Composite) else f
        last = self.f.n_clients - 1
        self.blocks = [(0,), tuple(range(1, last)), (last,)]
        for h in range(3):
            self.restart(h)

    def file(self, h: int) -> Path:
        return self.folder / f"host{h}.journal"

    def restart(self, h: int) -> None:
        """A new process of a host, which knows what its file holds."""
        f = self.f.select(list(self.blocks[h]))
        self.hosts[h] = Host(f, self.blocks[h], file=self.file(h), types=(VirtualUpdates,), project=self.project)
        if self.engine is not None:
            self.engine.objects[h] = self.hosts[h]

    def run(self, method: Any, who: Any, trouble: Any = None, *, project: str = "", **options: Any) -> Trace:
        """Run, or go on from the checkpoint if there is one, as a new process of the server."""
        self.engine = Wired(list(self.hosts.values()), trouble)
        clients: Any = RemoteClients(self.engine, project=project)
        f = problems()[self.problem]
        clients = Composite(objective=clients, regulariser=f.regulariser) if isinstance(f, Composite) else clients
        checkpoint = Checkpoint(self.folder / "server.journal", resume=True)
        return run(method, clients, participation=who, checkpoint=checkpoint, **(OPTIONS | options))


def whole(name: str, rounds: int = ROUNDS) -> Trace:
    method, problem, who = RUNS[name]
    return run(method, problems()[problem], participation=who, **with_rounds(rounds))


@pytest.mark.parametrize(
    ("name", "restarted"), [*((name, True) for name in RUNS), *((name, False) for name in list(RUNS)[::3])]
)
def test_a_server_may_be_killed_after_any_answer(name: str, restarted: bool, tmp_path: Path) -> None:
    """After each call in turn, when hosts have done what they were asked; and the hosts with it."""
    method, problem, who = RUNS[name]
    expected, kills = whole(name, SHORT), 0
    for last in range(2, 200):
        folder = tmp_path / str(last)
        folder.mkdir()
        federation = Federation(folder, problem)

        def trouble(call: int, h: int, batch: Any, answers: Any, last=last, federation=federation) -> Any:
            if call == last and h == max(federation.engine.asked):
                raise Killed
            return answers

        try:
            found = federation.run(method, who, trouble, rounds=SHORT)
        except Killed:
            kills += 1
            for h in range(3) if restarted else ():
                federation.restart(h)
            found = federation.run(method, who, rounds=SHORT)
        else:
            break
        assert differences(expected, found) == [], last
    assert kills >= 2 * SHORT
    assert differences(expected, found) == []


@pytest.mark.parametrize("moment", ["before", "during", "after"])
@pytest.mark.parametrize("name", RUNS)
def test_a_host_may_be_killed_at_any_request(
    name: str, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is started again with its file, and asked once more by the engine: the server notices nothing."""
    method, problem, who = RUNS[name]
    expected = whole(name, SHORT)
    for h in (1, 2):
        for when in range(1, 2 * SHORT, 2) if h == 1 else range(2, 2 * SHORT, 2):
            folder = tmp_path / f"{h}-{when}"
            folder.mkdir()
            federation = Federation(folder, problem)
            seen = [0]

            def around(host: int, batch: Any, answer: Any, seen=seen, h=h, when=when, federation=federation) -> Any:
                if host != h or isinstance(batch[0], protocol.Describe):
                    return answer(batch)
                seen[0] += 1
                if seen[0] != when:
                    return answer(batch)
                if moment == "during":
                    with monkeypatch.context() as patch:
                        patch.setattr(type(method), "local", _die)
                        with suppress(Killed):
                            answer(batch)
                elif moment == "after":
                    answer(batch)
                federation.restart(h)
                return federation.engine.answers(h, batch)

            found = _run_around(federation, method, who, around)
            assert differences(expected, found) == [], (h, when)


def _die(*_: Any) -> Any:
    raise Killed


def _run_around(federation: Federation, method: Any, who: Any, around: Any) -> Trace:
    class Surrounded(Wired):
        def reply(self, h: int, batch: Any) -> Any:
            return around(h, batch, lambda again: self.answers(h, again))

    federation.engine = Surrounded(list(federation.hosts.values()))
    clients = RemoteClients(federation.engine)
    return run(method, clients, participation=who, **with_rounds(SHORT))


def test_methods_that_need_everybody_go_on_when_the_run_is_started_again(tmp_path: Path) -> None:
    """A lost answer ends the run of DualFL in one sentence; its checkpoint is kept, and the next run is whole."""
    method, problem, who = RUNS["dualfl"]
    federation = Federation(tmp_path, problem)

    def trouble(call: int, h: int, batch: Any, answers: Any) -> Any:
        return None if h == 1 and isinstance(batch[-1], protocol.Propose) and batch[-1].n == 3 else answers

    with pytest.raises(LostError, match=r"^CorrectedDualFL needs every client, and host 1 did not count in round 3: "):
        federation.run(method, who, trouble)
    assert differences(whole("dualfl"), federation.run(method, who)) == []


def test_a_regulariser_and_the_latest_solutions_survive(tmp_path: Path) -> None:
    federation = Federation(tmp_path, "regularised")
    expected = run(FedDR(), problems()["regularised"], participation=UniformSubset(size=3), **OPTIONS)

    def trouble(call: int, h: int, batch: Any, answers: Any) -> Any:
        if isinstance(batch[-1], protocol.Propose) and batch[-1].n == 4:
            raise Killed
        return answers

    with pytest.raises(Killed):
        federation.run(FedDR(), UniformSubset(size=3), trouble)
    for h in range(3):
        federation.restart(h)
    assert differences(expected, federation.run(FedDR(), UniformSubset(size=3))) == []


def full_disk(monkeypatch: pytest.MonkeyPatch, path: Path, times: list[int]) -> None:
    """Let these writes of a file fail in the middle, as on a disk without room."""
    write, count = journal.write_atomically, [0]

    def failing(target: Any, function: Any, mode: str = "w") -> None:
        if Path(target) != path:
            return write(target, function, mode)
        count[0] += 1
        if count[0] not in times:
            return write(target, function, mode)

        def half(file: Any) -> None:
            file.write(b"half of it")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return write(target, half, mode)

    monkeypatch.setattr(journal, "write_atomically", failing)


def test_a_full_disk_of_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients whose states cannot be kept are absent in this round, or end the run; the earlier file stays whole."""
    f = problems()["quadratic"]
    method = resolve(FedDyn(solver=Exact()), f, Full())
    full_disk(monkeypatch, tmp_path / "host1.journal", [5])  # start, and one write for each request of one kind
    federation = Federation(tmp_path, "quadratic")
    found = federation.run(method, None, measure_every=ROUNDS, certify_every=0)
    (said,) = found.parameters["lost"]
    file = str(tmp_path / "host1.journal")
    reason = f"its file {file!r} cannot be written: No space left on device"
    assert said == f"round 3: host 1 (clients 1, 2, 3, 4) did not count: {reason}"
    absent = run(method, f, participation=without({1, 2, 3, 4}, ROUNDS), **OPTIONS)
    np.testing.assert_array_equal(found.theta, absent.theta)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "host0.journal",
        "host1.journal",
        "host2.journal",
        "server.journal",
    ]


def test_a_full_disk_ends_a_run_that_needs_everybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method, problem, who = RUNS["dualfl"]
    with monkeypatch.context() as patch:
        full_disk(patch, tmp_path / "host1.journal", [5])
        federation = Federation(tmp_path, problem)
        with pytest.raises(LostError, match=r"file '.*host1\.journal' cannot be written: No space left on device\.$"):
            federation.run(method, who)
    federation.restart(1)
    assert differences(whole("dualfl"), federation.run(method, who)) == []


def interrupted(tmp_path: Path, when: int = 3, problem: str = "quadratic") -> Federation:
    """A federation whose server was killed in a round of FedDyn."""
    federation = Federation(tmp_path, problem)

    def trouble(call: int, h: int, batch: Any, answers: Any) -> Any:
        if isinstance(batch[-1], protocol.Propose) and batch[-1].n == when and h == 2:
            raise Killed
        return answers

    with pytest.raises(Killed):
        federation.run(FedDyn(), None, trouble)
    return federation


def test_a_host_that_lost_its_file_is_refused(tmp_path: Path) -> None:
    federation = interrupted(tmp_path)
    federation.file(1).unlink()
    federation.restart(1)
    with pytest.raises(LostError, match=r"^host 1 refuses round 3: it has no states of this run.*lost.*\.$"):
        federation.run(FedDyn(), None)


def test_a_host_with_an_old_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    federation = Federation(tmp_path, "quadratic")
    path = federation.file(1)

    def trouble(call: int, h: int, batch: Any, answers: Any) -> Any:
        if isinstance(batch[-1], protocol.Propose) and h == 1 and batch[-1].n == 1:
            shutil.copy(path, tmp_path / "old" / "host.journal")
        if isinstance(batch[-1], protocol.Propose) and batch[-1].n == 4 and h == 2:
            raise Killed
        return answers

    with pytest.raises(Killed):
        federation.run(FedDyn(), None, trouble)
    shutil.copy(tmp_path / "old" / "host.journal", path)
    federation.restart(1)
    with pytest.raises(LostError, match=r"^host 1 .*\.$"):
        federation.run(FedDyn(), None)


def test_a_server_with_an_old_checkpoint_is_refused(tmp_path: Path) -> None:
    federation = Federation(tmp_path, "quadratic")
    checkpoint = tmp_path / "server.journal"

    def trouble(call: int, h: int, batch: Any, answers: Any) -> Any:
        if isinstance(batch[-1], protocol.Propose) and batch[-1].n == 2 and h == 2:
            shutil.copy(checkpoint, tmp_path / "old.journal")
        if isinstance(batch[-1], protocol.Propose) and batch[-1].n == 4 and h == 2:
            raise Killed
        return answers

    with pytest.raises(Killed):
        federation.run(FedDyn(), None, trouble)
    shutil.copy(tmp_path / "old.journal", checkpoint)
    with pytest.raises(LostError, match=r"^host 0 refuses round 2: .* the server's checkpoint is older than .*\.$"):
        federation.run(FedDyn(), None)


def test_wrong_projects_methods_and_files_are_refused(tmp_path: Path) -> None:
    federation = Federation(tmp_path, "quadratic", project="logistic loss, mu = 0.1")
    with pytest.raises(ValueError, match=r"^project must be the same everywhere, .* on host 0\.$"):
        federation.run(FedDyn(), None, project="logistic loss, mu = 0.2")
    federation.run(FedDyn(), None, project="logistic loss, mu = 0.1")
    federation.file(0).write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"^host file '.*host0.journal' is damaged, or no host file of this method\.$"):
        federation.restart(0)
    with pytest.raises(ValueError, match=r"^host file '.*host1.journal' is of other clients\.$"):
        Host(federation.f.select([0, 1, 2, 3]), (0, 1, 2, 3), file=federation.file(1))

    class Unknown(FedDyn):
        pass

    engine = Wired([Host(problems()["quadratic"])])
    engine.learn = lambda types: None  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=r"^host 0 refuses round 0: .*Unknown', which is not known here.*\.$"):
        run(Unknown(), RemoteClients(engine), rounds=1)


def test_host_files_of_other_things_or_code_are_refused(tmp_path: Path) -> None:
    federation = interrupted(tmp_path)
    file = HostFile(federation.file(1))
    found: Any = file.read(known_types((FedDyn,)))
    code, start, kept = found
    for parts, why in (
        ((code, start, start), r"is damaged, or no host file of this method\.$"),
        ((code, kept, kept), r"is damaged, or no host file of this method\.$"),
        (("of yesterday", start, kept), "was written by other code of dualopt, .*: start over"),
    ):
        file.write(*parts)
        with pytest.raises(ValueError, match=rf"^host file '.*host1.journal' {why}"):
            federation.restart(1)
    file.write(code, start, kept)
    federation.restart(1)


def test_hosts_that_do_not_fit_together_are_refused() -> None:
    f, g = problems()["quadratic"], problems()["smooth"]
    with pytest.raises(ValueError, match=r"^clients must agree on shape, but it is \(4,\) on host 0 and \(5,\) on "):
        RemoteClients(Wired([Host(f), Host(g)]))
    with pytest.raises(ValueError, match=r"^clients of all hosts together must have the numbers 0 to 11, each once\.$"):
        RemoteClients(Wired([Host(f, 0), Host(f, 5)]))
    with pytest.raises(ValueError, match=r"^clients of host 1 have no numbers, and those of others have\.$"):
        RemoteClients(Wired([Host(f, 0), Host(f)]))


def test_nothing_in_a_file_is_pickled(tmp_path: Path) -> None:
    interrupted(tmp_path)
    paths = list(tmp_path.glob("*.journal"))
    assert len(paths) == 4
    for path in paths:
        with path.open("rb") as file:
            file.seek(journal.PREFIX)
            found = codec.read(file, path.stat().st_size - journal.PREFIX, exact=True)
        json.loads(found.header)
        assert all(x.dtype.kind in "biuf" for x in found.arrays)


def test_blocks_are_kept_in_the_checkpoint_of_one_process(tmp_path: Path) -> None:
    """A run is begun with three blocks, continued with two, and finished in one process: one unbroken run."""
    for name in ("dualfl", "feddyn", "virtual updates"):
        method, problem, who = RUNS[name]
        f, path = problems()[problem], tmp_path / f"{name}.journal"
        for engine, until in ((Blocks(number=3), 2), (Blocks(number=2), 4), (None, ROUNDS)):
            found = run(
                method,
                f,
                participation=who,
                engine=engine,
                checkpoint=Checkpoint(path, resume=True),
                callback=lambda s, row, until=until: row["round"] == until,
                **OPTIONS,
            )
        assert differences(run(method, f, participation=who, **OPTIONS), found) in ([], ["status"])


def test_checkpoints_of_hosts_with_files_are_for_these(tmp_path: Path) -> None:
    federation = interrupted(tmp_path)
    with pytest.raises(ValueError, match="is of another run: hosts is"):
        run(FedDyn(), federation.f, checkpoint=Checkpoint(tmp_path / "server.journal", resume=True), **OPTIONS)


def test_a_host_that_was_killed_while_it_wrote_leaves_nothing_behind(tmp_path: Path) -> None:
    """Half a file under another name is removed when the host starts again; the earlier file is whole."""
    federation = interrupted(tmp_path)
    before = federation.file(1).read_bytes()
    half = tmp_path / f".host1.journal.abc{SUFFIX}"
    half.write_bytes(before[: len(before) // 2])
    (tmp_path / f".host1.journal.def{SUFFIX}").touch()
    federation.restart(1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "host0.journal",
        "host1.journal",
        "host2.journal",
        "server.journal",
    ]
    assert federation.file(1).read_bytes() == before
    expected = run(FedDyn(), federation.f, **OPTIONS)
    assert differences(expected, federation.run(FedDyn(), None)) == []
