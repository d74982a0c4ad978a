"""Processes that have other options, data or code than the first are refused, all with one sentence, before they run.

Threads that call what processes do; ``test_mpi.py`` does some of it on processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
import pytest

from dualopt import run
from dualopt.app.cli.engine import OPTIONS_OF_ONE_PROCESS
from dualopt.engine import _agreement
from dualopt.engine._everywhere import OF_ONE, everywhere
from dualopt.methods import DualFL, FedPD
from dualopt.objectives import linear_model, mlp
from dualopt.problem import data
from dualopt.problem.build import build_problem
from dualopt.problem.options import PLACES, ProblemOptions
from dualopt.solvers import LBFGS
from tests.engine import test_blocks
from tests.engine.problems import problems
from tests.engine.test_blocks import options_of
from tests.engine.thread_communicator import on_each


def refused(processes: int, function: Callable[[Any], Any]) -> str:
    """The sentence with which all of them end."""

    def one(peers: Any) -> str:
        with pytest.raises(ValueError, match=r"^[^\n]*\.$") as found:
            function(peers)
        return str(found.value)

    (sentence,) = set(on_each(processes, one))
    return sentence


def test_what_differs_is_named_and_where_and_nothing_of_data() -> None:
    def told(peers: Any) -> None:
        rank = peers.rank
        labels = np.array([12345.0, 67890.0 + (rank > 0)])
        facts = {"rule": "iid", "seed": rank % 2, "labels": labels, "rows": (labels[:1], labels[:1]), "mu": [rank // 3]}
        peers.agree(facts if rank else {**facts, "further": 3})

    assert refused(4, told) == (
        "processes must agree, but seed is 0 in process 0 and 1 in processes 1, 3, and mu is [0] in process 0 and [1] "
        "in process 3, and further is 3 in process 0 and None in processes 1, 2, 3, and labels of processes 1, 2, 3 "
        "are not those of process 0."
    )


def test_what_is_the_same_passes() -> None:
    facts = {"seed": 0, "labels": np.array(["a", None, 1.5], dtype=object), "none": None, "bytes": b"x"}
    assert on_each(3, lambda peers: peers.agree(facts)) == [None] * 3


@pytest.mark.parametrize("name", ["dualopt", "NumPy", "Python", "sources"])
def test_versions_are_compared_whatever_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, own = _agreement._versions, local()

    def versions() -> Any:
        shown, code = right()
        known = {**shown, **code}
        (key,) = (key for key in known if name in key.split() and ("version" in key) == (name != "sources"))
        changed = {key: "0.0"} if own.rank == 2 else {}
        return {**shown, **(changed if key in shown else {})}, {**code, **(changed if key in code else {})}

    def told(peers: Any) -> None:
        own.rank = peers.rank
        peers.agree({})

    monkeypatch.setattr(_agreement, "_versions", versions)
    sentence = refused(3, told)
    assert name in sentence
    assert "process 2" in sentence
    assert "process 1" not in sentence


def other(value: Any) -> Any:
    """Another value of the kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return [*value, "x=1"] if isinstance(value, list) else f"{value or ''}x"


OPTIONS = [f.name for f in fields(ProblemOptions) if f.name not in PLACES]


@pytest.mark.parametrize("name", OPTIONS)
def test_a_process_with_another_option_of_the_problem(name: str) -> None:
    given = ProblemOptions(rows=100)

    def build(peers: Any) -> Any:
        own = replace(given, **{name: other(getattr(given, name))}) if peers.rank == 1 else given
        return build_problem(own, peers=peers)

    assert refused(2, build).startswith(
        f"processes must agree, but {name} is {getattr(given, name)!r} in process 0 and "
    )


def test_what_is_not_compared_changes_no_digit() -> None:
    """Where data are: they are compared themselves. Where results go. And what process 0 alone is given to watch."""
    assert set(PLACES) | {"out", "fresh", "keep_stale"} == set(OPTIONS_OF_ONE_PROCESS)
    assert set(OF_ONE) < set(signature(run).parameters)


@pytest.mark.parametrize("what", ["value", "label"])
@pytest.mark.parametrize("case", ["LIBSVM, sparse", "npz, natural", "npz by columns", "csv", "parquet"])
def test_a_process_with_an_old_copy_of_a_file(case: str, what: str, tmp_path: Path) -> None:
    """One value is another, in a row that process 1 need not have; a copy in another place is no other file."""
    for name in ("here", "copy", "old"):
        (tmp_path / name).mkdir()
    here, copy = (options_of(case, tmp_path / name) for name in ("here", "copy"))
    Path(copy.data).write_bytes(Path(here.data).read_bytes())
    together = on_each(2, lambda peers: build_problem((here, copy)[peers.rank], peers=peers).objective.n_clients)
    assert sum(together) == build_problem(here).objective.n_clients
    old = options_of(case, tmp_path / "old")
    changed(Path(old.data), what)
    for order in ((here, old), (old, here)):
        sentence = refused(2, lambda peers, order=order: build_problem(order[peers.rank], peers=peers))
        assert sentence.startswith("processes must agree, but ")
        assert "contents of the file of process 1 are not those of process 0" in sentence
        assert ("labels of process 1" in sentence) == (what == "label")


def changed(path: Path, what: str) -> None:
    """Change one value, or one label, of a file of `test_blocks`."""
    if path.suffix == ".npz":
        with np.load(path) as stored:
            arrays = dict(stored)
        if what == "label":
            arrays["y"][2] += 1
        else:
            arrays["X"][2, 1] += 1e-9
        np.savez(path, **{**arrays, "X": np.require(arrays["X"], requirements="F" if "columns" in path.name else "C")})
    elif path.suffix == ".parquet":
        from pyarrow import parquet

        table = parquet.read_table(path)
        name = "ill" if what == "label" else "height"
        values = table[name].to_pylist()
        values[2] = ("no" if values[2] == "yes" else "yes") if what == "label" else values[2] + 1e-9
        parquet.write_table(table.set_column(table.column_names.index(name), name, [values]), path)
    else:
        lines = path.read_text().splitlines()
        k = next(n for n, line in enumerate(lines) if n > 2 and line)
        if path.suffix == ".svm":
            label, rest = lines[k].split(" ", 1)
            lines[k] = f"{-int(label)} {rest}" if what == "label" else lines[k] + "1"
        else:
            cells = lines[k].split(",")
            cells[3 if what == "label" else 2] = ("no" if cells[3] == "yes" else "yes") if what == "label" else "0.5"
            lines[k] = ",".join(cells)
        path.write_text("\n".join(lines) + "\n")


def test_a_process_that_draws_or_loads_other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that are in memory as a whole are compared themselves; what is a digit of a row is not in the sentence."""
    from dualopt.problem.data import synthetic

    right, own = synthetic.load, local()

    def load(*arguments: Any, **options: Any) -> Any:
        raw = right(*arguments, **options)
        X = np.array(raw.X)
        X[5, 1] += own.rank * 1e-12
        return replace(raw, X=X)

    def build(peers: Any) -> Any:
        own.rank = peers.rank
        return build_problem(ProblemOptions(data="synthetic-logistic", clients=3), peers=peers)

    load.__signature__ = signature(right)  # pyright: ignore[reportFunctionMemberAccess]
    monkeypatch.setattr(synthetic, "load", load)
    assert refused(2, build) == "processes must agree, but features of process 1 are not those of process 0."
    assert data.load is not load


ROWS: dict[str, dict[str, Any]] = {
    "loss": {"loss": "huber"},
    "a parameter of the loss": {"loss": "huber:delta=0.3"},
    "mu": {"mu": 0.2},
    "client_weights": {"client_weights": "rows"},
    "intercept": {"intercept": False},
    "storage": {"storage": "dense"},
}


@pytest.mark.parametrize("changed", ROWS.values(), ids=ROWS)
def test_a_process_that_builds_other_clients_of_its_rows(changed: dict[str, Any]) -> None:
    X, y = np.eye(6, 3), np.arange(6.0)
    common = {"loss": "huber:delta=0.2" if "huber:" in str(changed) else "squared", "mu": 0.1, "clients": 2}

    def build(peers: Any) -> Any:
        return linear_model(X, y, **(common | changed if peers.rank else common), peers=peers)

    (name,) = changed
    assert refused(2, build).startswith(f"processes must agree, but {name} is ")
    assert "type of X is 'float32'" in refused(
        2, lambda p: linear_model(X.astype(["f4", "f8"][p.rank]), y, **common, peers=p)
    )
    layers = refused(2, lambda p: mlp(X, np.arange(6) % 2, layers=[3 + p.rank], classes=2, ridge=0.1, peers=p))
    assert layers.startswith("processes must agree, but layers is [3, 2] in process 0 and [4, 2] in process 1")


class Asks:
    """An engine of several processes that only compares what they are to run."""

    def __init__(self, peers: Any) -> None:
        self.peers = peers

    def run_everywhere(self, function: Any, block: Any, facts: Any) -> None:
        self.peers.agree(facts)


def asks(peers: Any) -> Any:
    return Asks(peers)


RUNS: dict[str, Any] = {
    "rounds": 7,
    "theta0": np.array([0.0, 0.0, 0.0, 1e-9]),
    "participation": "subset=2",
    "seed": 1,
    "tol": 1e-3,
    "atol": 1e-3,
    "certify_every": 2,
    "measure_every": 2,
    "check_assumptions": False,
    "threads": 2,
    "prepare": "one-shot",
    "compressor": "natural",
    "downlink": "natural",
    "scales": [1.0, 2.0, 0.5, 4.0, 1.5, 3.0],
}


@pytest.mark.parametrize("name", RUNS)
def test_a_process_with_another_option_of_the_run(name: str) -> None:
    f = problems()["quadratic"]
    given = {"theta0": f.zeros()}

    def ask(peers: Any) -> Any:
        return run("dualfl", f, engine=asks(peers), **(given | {name: RUNS[name]} if peers.rank else given))

    assert f"{name} " in refused(2, ask)
    assert "1e-09" not in refused(2, ask)


def test_every_option_of_a_run_is_compared_or_of_one_process() -> None:
    assert set(RUNS) | set(OF_ONE) | {"algorithm"} == set(signature(run).parameters)


@pytest.mark.parametrize(
    ("here", "there"),
    [("dualfl", "fedpd: eta=1"), (DualFL(rho=0.1), DualFL(rho=0.2)), (FedPD(eta=1.0), FedPD(eta=1.0, solver=LBFGS()))],
)
def test_a_process_with_another_method(here: Any, there: Any) -> None:
    def ask(peers: Any) -> Any:
        return run(there if peers.rank else here, problems()["quadratic"], engine=asks(peers))

    assert refused(2, ask).startswith("processes must agree, but algorithm is ")


def test_what_one_process_watches_is_its_own() -> None:
    """And an object that no text can describe is that of its type, whatever its address."""

    def ask(peers: Any) -> Any:
        own = {"callback": print, "measure": {"x": len}, "stop": all} if peers.rank == 0 else {}
        return run(DualFL(stop=object()), problems()["quadratic"], engine=asks(peers), **own)  # pyright: ignore[reportArgumentType]

    assert on_each(2, ask) == [None, None]


def test_an_option_that_is_given_as_its_default_is_no_other() -> None:
    default = signature(run).parameters["rounds"].default

    def ask(peers: Any) -> Any:
        return run("dualfl", problems()["quadratic"], engine=asks(peers), **({"rounds": default} if peers.rank else {}))

    assert on_each(2, ask) == [None, None]


@everywhere
def given(algorithm: Any, objective: Any, *, engine: Any = None, rounds: int = 5) -> Any:
    return algorithm, objective, engine, rounds


def test_the_process_that_runs_it_has_the_clients_of_all_and_no_engine() -> None:
    class Whole:
        def run_everywhere(self, function: Any, block: Any, facts: Any) -> Any:
            return function(["others", block]), facts

    whole = Whole()
    assert given("a", "own", engine=whole, rounds=7) == (
        ("a", ["others", "own"], None, 7),
        {"algorithm": "a", "rounds": 7},
    )
    assert given("a", "own", engine=3) == ("a", "own", 3, 5)  # an engine of one process is handed on


def test_data_are_read_once_more_and_not_at_all_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file once, whatever its format; in memory every array once."""
    files: list[str] = []
    right, hashed, sizes = hashlib.file_digest, _agreement._hash, []

    def file_digest(file: Any, kind: str) -> Any:
        files.append(file.name)
        return right(file, kind)

    def hash_of(x: Any) -> Any:
        found = hashed(x)
        sizes.append(sum(part.nbytes for part in (x if isinstance(x, tuple) else (x,)) if hasattr(part, "nbytes")))
        return found

    monkeypatch.setattr(hashlib, "file_digest", file_digest)
    monkeypatch.setattr(_agreement, "_hash", hash_of)
    for case in test_blocks.CASES:
        options = options_of(case, tmp_path)
        files.clear()
        build_problem(options)
        assert files == []
        sizes.clear()
        on_each(3, lambda peers, options=options: build_problem(options, peers=peers))
        names = ("label", "client", "sample_weight", "offset", "exposure")
        columns = {name: getattr(options, name) for name in names} if options.label else {}
        source, in_memory = data.load(options.data, **columns), not Path(options.data).exists()
        assert files == ([] if in_memory else [str(options.data)] * 3)
        arrays = [
            source.y,
            *(x for x in (source.clients, source.sample_weight, source.offset) if x is not None),
            *([source.X] if in_memory else []),
        ]
        assert sum(sizes) == 3 * sum(x.nbytes for x in arrays)
