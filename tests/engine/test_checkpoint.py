"""Runs that are kept in a file and continued end with the same digits, and what is no checkpoint is refused."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import zlib
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import dualopt.methods
from dualopt import (
    L1,
    Bernoulli,
    CommunicateWithProbability,
    Composite,
    DualFL,
    FedAvg,
    FedDyn,
    FedPD,
    Full,
    Huber,
    Logistic,
    OneShotAverage,
    Quadratic,
    Scaffnew,
    SketchedMetric,
    UniformSubset,
    linear_model,
    run,
)
from dualopt.arrays import codec
from dualopt.arrays._files import SUFFIX
from dualopt.arrays.codec import Known
from dualopt.engine import checkpoint as checkpoints
from dualopt.engine import journal
from dualopt.engine.checkpoint import Checkpoint
from dualopt.engine.rounds import iterate
from dualopt.runs.certificates import LatestSolutions
from dualopt.runs.trace import Trace
from dualopt.solvers import LBFGS, Sarah
from dualopt.solvers.stopping import Steps
from dualopt.spec.discover import discover

ROUNDS = 9
METHODS: dict[str, Any] = dict(discover(dualopt.methods))


def clients(seed: int = 0, loss: Any = None, **options: Any) -> Any:
    """Six clients of three sizes, made anew for each run: nothing that one run keeps reaches another."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 4))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(40) > 0, 1.0, -1.0)
    parts = np.split(np.arange(40), [4, 8, 14, 20, 30])
    return linear_model(X, y, loss=loss or Logistic(), mu=0.1, clients=[p.tolist() for p in parts], **options)


def same(a: Trace, b: Trace) -> bool:
    columns = [name for name in a.columns if name != "seconds"]
    return (
        list(a.columns) == list(b.columns)
        and a.status == b.status
        and all(a[name].tobytes() == b[name].tobytes() for name in columns)
        and np.asarray(a.theta).tobytes() == np.asarray(b.theta).tobytes()
    )


def continued(path: Any, method: Any, after: int, build: Any = clients, **options: Any) -> Trace:
    """Run until a round, in which the callback stops it, and from the checkpoint to the end."""
    stop = {"callback": lambda _, row: row["round"] == after}
    half = run(method, build(), rounds=ROUNDS, checkpoint=Checkpoint(path), **stop, **options)
    assert (half.status, half.last["round"]) == ("stopped", after)
    kept = Checkpoint(path, resume=True)
    trace = run(method, build(), rounds=ROUNDS, checkpoint=kept, **options)
    assert kept.rounds == after
    return trace


@pytest.mark.parametrize("name", METHODS)
def test_every_method_ends_with_the_digits_of_an_unbroken_run(tmp_path, name):
    method = METHODS[name]()
    loss = Huber(delta=1.0) if name == "giant" else None

    def build() -> Any:
        return clients(loss=loss)

    participations: list[Any] = [Full()]
    participations += [UniformSubset(size=2), Bernoulli(probability=0.4)] if "partial" in method.supports else []
    participations += [CommunicateWithProbability(probability=0.5)] if "skip" in method.supports else []
    for who in participations:
        options: dict[str, Any] = {"participation": who, "certify_every": 2, "measure_every": 2, "seed": 3}
        options["check_assumptions"] = False
        whole = run(method, build(), rounds=ROUNDS, **options)
        for after in (1, 4, ROUNDS - 1):
            if after < whole.last["round"]:
                path = tmp_path / f"{after}.journal"
                assert same(continued(path, method, after, build, **options), whole), (who, after)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (FedDyn(solver=LBFGS(history=3)), {"participation": UniformSubset(size=2)}),
        (FedPD(solver=Sarah(gamma=0.1, refresh=3), stop=Steps(steps=4)), {}),
        (DualFL(), {"prepare": SketchedMetric(rank=2)}),
        (DualFL(), {"prepare": [SketchedMetric(rank=2), OneShotAverage()]}),
        (DualFL(), {"tol": 1e-12, "reference": 0.25, "reference_gap": math.inf}),
        (FedDyn(), {"tol": 1e-12, "participation": UniformSubset(size=3), "measure": {"size": lambda s: s.floats_up}}),
    ],
)
def test_solvers_preparations_and_columns_are_kept(tmp_path, method, options):
    whole = run(method, clients(), rounds=ROUNDS, **options)
    assert same(continued(tmp_path / "a.journal", method, 5, **options), whole)


def test_sparse_rows_and_regularisers_are_kept(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")

    def rows() -> Any:
        rng = np.random.default_rng(1)
        X = sparse.random(30, 50, density=0.1, random_state=rng, format="csr")
        y = np.sign(rng.standard_normal(30))
        return linear_model(X, y, loss=Logistic(), mu=0.1, clients=3, storage="sparse", intercept=False)

    def composite() -> Any:
        return Composite(objective=clients(), regulariser=L1(weight=0.01))

    whole = run(DualFL(), rows(), rounds=ROUNDS, tol=1e-12)
    assert same(continued(tmp_path / "a.journal", DualFL(), 4, rows, tol=1e-12), whole)
    whole = run(dualopt.FedDR(), composite(), rounds=ROUNDS, tol=1e-12)
    assert same(continued(tmp_path / "b.journal", dualopt.FedDR(), 4, composite, tol=1e-12), whole)


def test_on_a_clock_too_and_more_than_once(tmp_path):
    path, options = tmp_path / "a.journal", {"participation": UniformSubset(size=2), "tol": 1e-12}
    whole = run(FedDyn(), clients(), rounds=ROUNDS, **options)
    for after in (2, 3, 7):
        kept = Checkpoint(path, seconds=1e-9, resume=True)

        def fail(_, row, after=after):
            if row["round"] == after:
                raise RuntimeError

        with pytest.raises(RuntimeError):  # no chance to write at the end
            run(FedDyn(), clients(), rounds=ROUNDS, checkpoint=kept, callback=fail, **options)
    assert same(run(FedDyn(), clients(), rounds=ROUNDS, checkpoint=Checkpoint(path, resume=True), **options), whole)


def test_a_run_may_be_continued_beyond_its_rounds(tmp_path):
    whole = run(DualFL(), clients(), rounds=12)
    continued(tmp_path / "a.journal", DualFL(), 5)
    assert same(run(DualFL(), clients(), rounds=12, checkpoint=Checkpoint(tmp_path / "a.journal", resume=True)), whole)
    with pytest.raises(ValueError, match=r"rounds must be at least the 5 that the checkpoint holds, not 3\."):
        run(DualFL(), clients(), rounds=3, checkpoint=Checkpoint(tmp_path / "a.journal", resume=True))


@pytest.mark.parametrize("forgotten", ["clients", "solver", "holding", "latest", "rounds", "still"])
def test_what_is_forgotten_is_noticed(tmp_path, monkeypatch, forgotten):
    """Each part of a checkpoint is needed: without it the digits differ."""
    method = FedDyn(solver=LBFGS(history=3), alpha=0.1)
    options = {"participation": UniformSubset(size=2), "tol": 1e-12, "measure_every": 1}
    f: Any = clients
    if forgotten == "still":  # a model that never moves: both clients have the minimiser zero
        method, options = DualFL(), {}
        f = partial(Quadratic, A=np.stack([np.eye(2), 2 * np.eye(2)]), b=np.zeros((2, 2)))
    whole = run(method, f(), rounds=12, **options)
    path = tmp_path / "a.journal"
    after = 6
    stop = {"callback": lambda _, row: row["round"] == after}
    run(method, f(), rounds=12, checkpoint=Checkpoint(path), **stop, **options)
    read = Checkpoint._read

    def forgetful(self, known, like):
        found: Any = read(self, known, like)
        *head, progress = found
        point, state = progress.resume_point, progress.resume_point.state
        start = next(iterate(method, f(), participation=options.get("participation"))).state
        changed = {
            "clients": lambda: progress._replace(
                resume_point=point._replace(state=state._replace(clients=start.clients))
            ),
            "solver": lambda: progress._replace(resume_point=point._replace(state=state._replace(solver=()))),
            "holding": lambda: progress._replace(resume_point=point._replace(holding=~point.holding)),
            "latest": lambda: progress._replace(latest=None),
            "rounds": lambda: progress._replace(resume_point=point._replace(rounds=0)),
            "still": lambda: progress._replace(still=0),
        }
        return *head, changed[forgotten]()

    def again() -> Trace:
        return run(method, f(), rounds=12, checkpoint=Checkpoint(path, resume=True), **options)

    assert same(again(), whole)
    monkeypatch.setattr(Checkpoint, "_read", forgetful)
    assert not same(again(), whole)


# What is refused.


def refusal(path: Any, method: Any = None, f: Any = None, **options: Any) -> str:
    with pytest.raises(ValueError, match=r"^checkpoint '.*\.$") as error:
        run(method or DualFL(), f or clients(), rounds=9, checkpoint=Checkpoint(path, resume=True), **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_another_run_is_refused(tmp_path):
    path = tmp_path / "a.journal"
    continued(path, DualFL(), 4)
    assert "is of another run: seed is 0 there and 1 here" in refusal(path, seed=1)
    assert "is of another run: algorithm is {" in refusal(path, FedAvg())
    assert "is of another run: participation is None there and {'full': {}} here" in refusal(path, participation=Full())
    assert "is of another run: reference is None there and 0.25 here" in refusal(path, reference=0.25)


def test_other_data_are_refused(tmp_path):
    path, method = tmp_path / "a.journal", DualFL(rho=0.1, nu=0.1)
    continued(path, method, 4, tol=1e-12)
    assert "is of other data: certificate is" in refusal(path, method, clients(1), tol=1e-12)


def test_other_code_is_refused_unless_it_is_wanted(tmp_path, monkeypatch):
    path = tmp_path / "a.journal"
    whole = continued(path, DualFL(), 4)
    monkeypatch.setattr(checkpoints, "sources", lambda parts: "other")
    assert "was written by other code" in refusal(path)
    kept = Checkpoint(path, resume=True, keep_stale=True)
    assert same(run(DualFL(), clients(), rounds=ROUNDS, checkpoint=kept), whole)
    assert kept.stale


def damaged(path: Any, change: Any) -> None:
    """Change the description of a checkpoint, or its arrays, and give it the right check sum again."""
    content = path.read_bytes()
    start, body = content[: journal.PREFIX - 4], content[journal.PREFIX :]
    header, arrays = codec.read(io.BytesIO(body), len(body), exact=True)
    tree, layout = json.loads(header)
    change(tree, layout, arrays)
    pieces = codec.chunks(codec.Packed(json.dumps([tree, layout]).encode(), arrays))
    path.write_bytes(start + journal._sum(pieces) + b"".join(pieces))


CHANGES = {
    "nothing": lambda tree, layout, arrays: None,
    "another kind": lambda tree, layout, arrays: tree.__setitem__(0, "host file"),
    "no state": lambda tree, layout, arrays: tree.__setitem__(3, None),
    "a part too many": lambda tree, layout, arrays: tree.append(None),
    "a missing array": lambda tree, layout, arrays: arrays.pop(),
    "an array that is not described": lambda tree, layout, arrays: layout.pop(),
    "one array more": lambda tree, layout, arrays: (layout.append(["<f8", [1]]), arrays.append(np.ones(1))),
    "a foreign type": lambda tree, layout, arrays: tree.__setitem__(3, {"os:system": {"command": "ls"}}),
    "other fields": lambda tree, layout, arrays: tree[3][PROGRESS].pop("still"),
    "another type of numbers": lambda tree, layout, arrays: layout[0].__setitem__(0, "<f4"),
    "another shape": lambda tree, layout, arrays: layout[0].__setitem__(1, [1]),
    "rows of other rounds": lambda tree, layout, arrays: tree[3][PROGRESS].update(columns=["round"]),
    "strides out of memory": lambda tree, layout, arrays: layout[0].extend([[0, 1], layout[0][1], [2**30, 1]]),
    "objects": lambda tree, layout, arrays: layout[0].__setitem__(0, "|O"),
}
PROGRESS = ".engine.checkpoint:RunProgress"


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_damaged_checkpoint_gives_one_sentence(tmp_path, change):
    path = tmp_path / "a.journal"
    continued(path, DualFL(), 4)
    damaged(path, change)
    if change is CHANGES["nothing"]:
        assert len(run(DualFL(), clients(), rounds=9, checkpoint=Checkpoint(path, resume=True))) == 10
    else:
        assert "is damaged, or no checkpoint of this method" in refusal(path)


@pytest.mark.parametrize("cut", ["empty", "half", "text", "flipped"])
def test_a_damaged_file_gives_one_sentence(tmp_path, cut):
    path = tmp_path / "a.journal"
    continued(path, DualFL(), 4)
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
    path.write_bytes({"empty": b"", "half": content[:middle], "text": b"no archive", "flipped": flipped}[cut])
    assert "is damaged" in refusal(path)


def test_a_file_that_ends_anywhere_else_is_damaged(tmp_path):
    path = tmp_path / "a.journal"
    whole = journal.Journal(path, "checkpoint")
    whole.write("a run", (1, 0.5))
    content = path.read_bytes()
    assert whole.read(Known()) == ["a run", (1, 0.5)]
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r" is damaged, or no checkpoint of this method\.$"):
            whole.read(Known())


def test_a_file_begins_as_it_is_described(tmp_path):
    path = tmp_path / "a.journal"
    journal.Journal(path, "checkpoint").write("a run")
    content = path.read_bytes()
    assert content[:16] == b"dualopt journal\x02"
    assert int.from_bytes(content[16:20], "little") == zlib.crc32(content[20:])


def test_nothing_stays_open(tmp_path):
    """The system gives the least number that is free to what is opened next."""

    def least() -> int:
        handle = os.open(os.devnull, os.O_RDONLY)
        os.close(handle)
        return handle

    before, file = least(), journal.Journal(tmp_path / "a.journal", "checkpoint")
    file.write("a run")
    assert file.read(Known()) == ["a run"]
    assert least() == before


def test_a_later_version_is_named(tmp_path):
    path = tmp_path / "a.journal"
    continued(path, DualFL(), 4)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"journal\x02", b"journal\x03", 1))
    assert "is of version 3, not 2" in refusal(path)


def test_a_file_of_the_first_version_is_refused_for_what_it_is(tmp_path):
    """It was an archive of NumPy."""
    path = tmp_path / "a.journal"
    with path.open("wb") as file:
        np.savez(file, head=np.array('{"format": "dualopt checkpoint", "version": 1}'))
    assert "is an archive, as version 1 was, and not of version 2" in refusal(path)


def test_half_a_file_of_a_killed_process_is_removed(tmp_path):
    path = tmp_path / "a.journal"
    continued(path, DualFL(), 4)
    half = tmp_path / f".a.journal.x{SUFFIX}"
    half.write_bytes(path.read_bytes()[:100])
    run(DualFL(), clients(), rounds=9, checkpoint=Checkpoint(path, resume=True))
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_costs_a_checkpoint_and_not_the_run(tmp_path):
    with pytest.warns(UserWarning, match=r"checkpoint .* cannot be written"):
        trace = run(DualFL(), clients(), rounds=3, checkpoint=Checkpoint(tmp_path / "no" / "a.journal", seconds=1e-9))
    assert len(trace) == 4


@dataclass(frozen=True, kw_only=True)
class Named(FedAvg):
    """Its server keeps what is no array, number or tuple."""

    class Server(NamedTuple):
        theta: Any
        words: Any

    def init(self, theta0, copies):
        return self.Server(theta0, {}), theta0, ()

    def server(self, server, mean, round):
        return self.Server(mean, {"a": 1}), mean


def test_a_state_that_cannot_be_kept_is_refused_in_the_first_round(tmp_path):
    rounds = []
    options: Any = {"checkpoint": Checkpoint(tmp_path / "a.journal"), "callback": lambda _, row: rounds.append(row)}
    with pytest.raises(ValueError, match=r"^state must consist of what .*, but a dict cannot be written: .*\."):
        run(Named(), clients(), rounds=3, **options)
    assert len(rounds) == 1


def test_what_is_in_a_file_is_on_the_disk_before_its_name(tmp_path, monkeypatch):
    path, seen, right = tmp_path / "a.journal", [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append(path.exists()), right(handle)))
    journal.Journal(path, "checkpoint").write("a run")
    assert seen == [False, True]  # the file, and the folder


def test_a_slow_disk_has_a_twentieth_of_the_time(tmp_path, monkeypatch):
    """A file is written after ten seconds, or twenty times what the last one took; without a time, when it is said."""
    clock, took, written = [0.0], 0.25, []
    progress: Any = tuple

    def write(self, *parts):
        written.append(clock[0])
        clock[0] += took

    monkeypatch.setattr(checkpoints, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(Checkpoint, "write", write)
    kept, never = (Checkpoint(tmp_path / "a.journal", seconds=seconds) for seconds in (10.0, 0.0))
    for second in range(1, 60):
        clock[0], took = max(clock[0], float(second)), 0.25 if second < 30 else 1.0
        kept.keep(progress)
        never.keep(progress)
    assert written == [10.0, 21.0, 32.0, 53.0]
    never.keep(progress, now=True)
    assert len(written) == 5


# Interrupts.


@pytest.mark.parametrize("where", ["round", "measure", "callback", "certificate"])
def test_an_interrupt_returns_the_trace_so_far(monkeypatch, where):
    def press(n: int) -> None:
        if n == 4:
            signal.raise_signal(signal.SIGINT)

    class Pressing(UniformSubset):
        def rounds(self, n_clients, seed):
            for round in super().rounds(n_clients, seed):
                if where == "round":
                    press(round.n + 1)
                yield round

    if where == "certificate":
        update = LatestSolutions.update

        def half_done(self, ids, solution):
            self.calls = getattr(self, "calls", 0) + 1
            press(self.calls)
            update(self, ids, solution)

        monkeypatch.setattr(LatestSolutions, "update", half_done)
    options: dict[str, Any] = {
        "participation": Pressing(size=2),
        "callback": lambda _, row: press(row["round"]) if where == "callback" else False,
        "measure": {"n": lambda s: (where == "measure" and press(s.round.n + 1)) or 1.0},
    }
    trace = run(FedDyn(), clients(), rounds=9, **options)
    rounds = 4 if where == "callback" else 3
    plain = run(FedDyn(), clients(), rounds=rounds, participation=UniformSubset(size=2), measure={"n": lambda s: 1.0})
    assert trace.status == "stopped"
    assert trace.last["round"] == rounds
    assert trace["energy"].tolist() == plain["energy"].tolist()
    np.testing.assert_array_equal(trace.theta, plain.theta)
    assert trace["gradients"].tolist() == plain["gradients"].tolist()
    assert np.isfinite(trace["certificate"][-1])
    if where != "callback":
        monkeypatch.undo()
        where = "round"
        with pytest.raises(KeyboardInterrupt):
            run(FedDyn(), clients(), rounds=9, interruptible=False, **options)


def test_scaffnew_skips_and_keeps_its_coin(tmp_path):
    options = {"participation": CommunicateWithProbability(probability=0.5), "check_assumptions": False}
    whole = run(Scaffnew(), clients(), rounds=ROUNDS, **options)
    assert len(set(whole["communications"])) < ROUNDS
    assert same(continued(tmp_path / "a.journal", Scaffnew(), 5, **options), whole)
