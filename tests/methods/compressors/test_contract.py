"""Every method with every compressor: what is counted, what both ends know, and where the clients are.

Methods and compressors are discovered, and none is named: a new file is tested by itself, and so are the plug-ins of
packages that are installed. ``mpi_contract.py`` compares the same runs where the clients are on MPI processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

import dualopt.methods
import dualopt.methods.compressors
from dualopt import iterate, run
from dualopt.arrays.tree import leaves
from dualopt.engine import Blocks
from dualopt.engine.checkpoint import Checkpoint
from dualopt.engine.traffic import of_message
from dualopt.methods.compressors import Identity, Rounding, Uplink
from dualopt.methods.oracle import Oracle
from dualopt.methods.participation import CommunicateWithProbability, Participation, UniformSubset
from dualopt.spec import KINDS, Spec, names
from dualopt.spec.discover import discover
from dualopt.spec.plugins import entry_points
from tests.engine.problems import problems
from tests.engine.wired import elsewhere
from tests.problems import quadratic


def everything(kind: str, package: Any) -> dict[str, Any]:
    """Return the classes of a kind by name: those of this package, and the plug-ins of packages that are installed."""
    own = discover(package)
    others = [name for name in entry_points(KINDS[kind].plug_ins) if name not in names(kind)]
    return {**own, **{name: Spec(name).target(kind) for name in others}}


METHODS = everything("algorithm", dualopt.methods)
COMPRESSORS = {
    name: kind(**getattr(kind, "example", {}))
    for name, kind in everything("compressor", dualopt.methods.compressors).items()
}
LOSSY = [name for name, c in COMPRESSORS.items() if not isinstance(c, Identity)]
PAIRS = [(name, c) for name in METHODS for c in LOSSY]
SCALES: dict[str, Any] = {"none": None, "suggested": "suggested", "numbers": (1.0, 2.0, 0.5, 4.0, 1.5, 3.0)}
ROUNDS = 4

pairs = pytest.mark.parametrize(("name", "compressor"), PAIRS)
methods = pytest.mark.parametrize("name", METHODS)


def objective() -> Any:
    """Six quadratic clients of unequal mu_j and L_j, and models of four numbers."""
    return problems()["quadratic"]


def chance(name: str) -> Participation | None:
    """Who takes part: not everybody, or not in every round, where the method admits it."""
    supports = METHODS[name].supports
    if "partial" in supports:
        return UniformSubset(size=4)
    return CommunicateWithProbability(probability=0.6) if "skip" in supports else None


def recorded(name: str, f: Any, compressor: Any, **options: Any) -> Any:
    """All that a run is, round by round: states, memories, and what is counted; or why there is none."""
    try:
        snapshots = iterate(METHODS[name](), f, compressor=compressor, seed=2, **options)
    except ValueError as error:
        return str(error)
    found = []
    for s in islice(snapshots, ROUNDS):
        arrays = [np.asarray(x) for x in leaves((s.server, s.message, s.clients, s.solver, s.memory))]
        counts = s.round.clients, s.floats_up, s.floats_down, s.bits_up, s.bits_down
        found.append((counts, [] if s.solution is None else list(s.solution.gradients), arrays))
    return found


def assert_equal_runs(one: Any, other: Any) -> None:
    if isinstance(one, str):
        assert one == other
        return
    assert len(one) == len(other) == ROUNDS
    for (counts, gradients, arrays), (their_counts, their_gradients, their_arrays) in zip(one, other, strict=True):
        assert counts == their_counts
        assert list(map(float, gradients)) == list(map(float, their_gradients))
        assert len(arrays) == len(their_arrays)
        for x, y in zip(arrays, their_arrays, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


def ways(f: Any) -> dict[str, tuple[Any, Any]]:
    """Three unequal blocks of this process, and hosts that talk by messages and have clients that are no neighbours."""
    N = f.n_clients
    return {
        "blocks": (f, Blocks(number=3)),
        "wired": (elsewhere(f, [(1, 3), tuple(j for j in range(N) if j not in (1, 3))]), None),
    }


@pytest.mark.parametrize("scales", SCALES)
@pairs
def test_wherever_the_clients_are_it_is_the_same_run(name: str, compressor: str, scales: str) -> None:
    f, packs = objective(), COMPRESSORS[compressor]
    options = {"participation": chance(name), "scales": SCALES[scales]}
    whole, placements = recorded(name, f, packs, **options), ways(f)
    if SCALES[scales] is not None:
        del placements["blocks"]  # which are hosts too: they stand beside the others without scales
    for placed, engine in placements.values():
        assert_equal_runs(whole, recorded(name, placed, packs, engine=engine, **options))


@methods
def test_identity_is_no_compressor(name: str) -> None:
    f, options = objective(), {"participation": chance(name)}
    plain = recorded(name, f, None, **options)
    for compressor in COMPRESSORS.values():
        if isinstance(compressor, Identity):
            assert_equal_runs(plain, recorded(name, f, compressor, **options))


@methods
def test_a_compressor_that_changes_nothing_leaves_the_run_as_it_is_up_to_rounding(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what is sent is what is to be sent: it is a map of differences, and r + (x - r) is x but for rounding."""

    def in_double(self: Uplink, x: Any) -> Any:
        self._done = True
        return x

    monkeypatch.setattr(Uplink, "in_single", in_double)
    f, options = objective(), {"participation": chance(name)}
    kind: Any = type("Whole", (), {k: v for k, v in vars(Identity).items() if k != "__dict__"})
    plain, other = recorded(name, f, None, **options), recorded(name, f, kind(), **options)
    for (counts, _, arrays), (their_counts, _, their_arrays) in zip(plain, other, strict=True):
        assert counts == their_counts
        for x, y in zip(arrays, their_arrays, strict=False):  # the memories are last
            np.testing.assert_allclose(y, x, rtol=1e-7, atol=1e-9)


# What a spy sees of the way up.


class Call:
    """One call of a compressor: what went in, what came out, in which round."""

    def __init__(self, x: Any, step: Any, round: Any) -> None:
        self.x, self.step, self.round = np.array(x), np.array(step), round


@contextmanager
def spied(compressor: Any) -> Iterator[tuple[Any, list[Call], list[Any]]]:
    """A compressor that tells what it is asked, and what the oracle told the clients."""
    kind, calls, told = type(compressor), [], []

    def compress(self: Any, x: Any, round: Any) -> Any:
        step = kind.compress(self, x, round)
        calls.append(Call(x, step, round))
        return step

    spy = type(kind.__name__, (kind,), {"compress": compress})
    right: Any = Oracle.sent

    def sent(self: Any, x: Any, *arguments: Any, **known: Any) -> Any:
        found = right(self, x, *arguments, **known)
        own = bool(arguments) or known.get("since") is not None
        told.extend((leaf, own) for leaf in leaves(found))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Oracle, "sent", sent)
        yield spy(**{f.name: getattr(compressor, f.name) for f in fields(compressor)}), calls, told


def uploads(name: str, f: Any, compressor: Any, see: Callable[[Any, Any, list[Call], list[Any]], None]) -> None:
    """Run the method, and look at every round: what the host uploads, and the calls of the compressor."""
    from dualopt.engine import _host

    right: Any = _host.propose
    seen: list[Any] = []

    def propose(*arguments: Any) -> Any:
        seen.append(right(*arguments))
        return seen[-1]

    with spied(compressor) as (spy, calls, told), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_host, "propose", propose)
        for s in islice(iterate(METHODS[name](), f, compressor=spy, seed=2, participation=chance(name)), ROUNDS):
            see(s, seen[-1] if seen else None, calls, told)
            calls.clear()
            told.clear()
            seen.clear()


def is_vector(x: Any, f: Any) -> bool:
    return x.ndim > 1 and x.shape[1:] == f.shape


@pairs
def test_every_vector_goes_through_it_once_and_is_counted(name: str, compressor: str) -> None:
    """Vectors once and nothing else; what is counted is what the compressor says of them, and the rest in full."""
    f, packs = objective(), COMPRESSORS[compressor]
    rounds = []

    def see(s: Any, found: Any, calls: list[Call], told: list[Any]) -> None:
        if not s.round.communicate:
            assert not calls
            assert (s.floats_up, s.bits_up) == (0, 0)
            return
        sent = leaves(found.upload)
        vectors = [x for x in sent if is_vector(x, f)]
        for call in calls:
            assert call.x.shape == (s.round.n_active, *f.shape)
        assert len(calls) == found.vectors
        assert found.vectors == len(vectors) or len(told) == 0  # what is told in full has the shape of a vector
        outputs = [call.step for call in calls]
        for k, call in enumerate(calls):  # never what it has made
            assert not any(np.array_equal(call.x, step) and step.any() for step in outputs[:k])
        full = of_message(tuple(x[0, ...] for x in sent)).times(s.round.n_active)
        d = int(np.prod(f.shape)) * s.round.n_active
        numbers, bits = packs.numbers(f.shape, s.round), packs.bits(f.shape, 64, s.round)
        assert s.floats_up == full.numbers + found.vectors * (numbers - d)
        assert s.bits_up == full.bits + found.vectors * (bits - 64 * d)
        rounds.append(found.vectors)

    uploads(name, f, packs, see)
    assert any(rounds)


@pairs
def test_the_server_can_make_what_arrives(name: str, compressor: str) -> None:
    """It is a compressed step, whole or the part 1/(1 + omega) of it, from what the server has; memories follow it."""
    f, packs = objective(), COMPRESSORS[compressor]
    part = 1.0 / (1.0 + packs.omega(f.shape, f.n_clients))
    N, reference = f.n_clients, METHODS[name].upload_reference
    known: list[Any] = [np.zeros((N, *f.shape))]  # a row for each client, whoever sent it
    start = METHODS[name]().suggested(f).init(f.zeros(), np.zeros((N, *f.shape)))
    memory: list[Any] = []
    message: list[Any] = [start[1]]

    def see(s: Any, found: Any, calls: list[Call], told: list[Any]) -> None:
        ids = list(s.round.clients)
        common = [np.broadcast_to(np.asarray(x), (N, *f.shape)) for x in leaves(message[-1]) if x_is_model(x, f)]
        arrived = [np.asarray(x) for x in leaves(found.upload) if is_vector(np.asarray(x), f)] if calls else []
        told_of = [(np.asarray(x), own) for x, own in told if is_vector(np.asarray(x), f)]
        new = []
        for k, call in enumerate(calls):
            received, own = told_of[k] if k < len(told_of) else (arrived[k], False)
            ends = [r[ids] + t * call.step for r in (*known, *common, *memory) for t in (part, 1.0)]
            scale = 1.0 + np.abs(received).max()
            assert min(np.abs(received - end).max() for end in ends) <= 1e-12 * scale
            if reference == "memory" and not own:
                row = np.asarray(s.memory[k])
                np.testing.assert_allclose(row[ids], received, rtol=0, atol=1e-12 * scale)
            if reference == "errors" and not own:
                row = np.asarray(s.memory[k])
                np.testing.assert_allclose(row[ids], call.x - received, rtol=0, atol=1e-12 * scale)
            latest = np.array(known[0]) if k >= len(memory) else memory[k].copy()
            latest[ids] = received
            new.append(latest)
        memory[: len(new)] = new
        known.extend(new)
        known.extend(common)
        known.extend(np.broadcast_to(np.asarray(x), (N, *f.shape)) for x in leaves(s.server) if x_is_model(x, f))
        message.append(s.message)

    uploads(name, f, packs, see)


def x_is_model(x: Any, f: Any) -> bool:
    return getattr(x, "shape", None) == f.shape


@pairs
def test_a_run_that_is_resumed_ends_with_the_same_bits(name: str, compressor: str, tmp_path: Any) -> None:
    f, path = objective(), tmp_path / "run.npz"
    options: dict[str, Any] = {"compressor": COMPRESSORS[compressor], "participation": chance(name), "rounds": 6}
    options["check_assumptions"] = False
    whole = run(METHODS[name](), f, **options)
    run(METHODS[name](), f, **options, checkpoint=Checkpoint(path), callback=lambda s, row: row["round"] == 3)
    rest = run(METHODS[name](), f, **options, checkpoint=Checkpoint(path, resume=True))
    np.testing.assert_array_equal(rest.theta, whole.theta)
    for column in set(whole.columns) - {"seconds"}:
        np.testing.assert_array_equal(rest[column], whole[column], err_msg=column)
    if len(whole) > 4:  # another compressor is another run
        other = {**options, "compressor": "top-k=1" if compressor != "top_k" else None}
        with pytest.raises(ValueError, match="is of another run: "):
            run(METHODS[name](), f, **other, checkpoint=Checkpoint(path, resume=True))


@cache
def proved() -> list[tuple[str, str]]:
    """The pairs of which a theorem says that they converge."""
    f = objective()
    return [(name, c) for name, c in PAIRS if not METHODS[name]().guarantee(f, None, COMPRESSORS[c]).startswith("none")]


def test_theorems_are_kept_and_others_are_not_claimed() -> None:
    f = objective()
    assert len(proved()) >= 2
    for name, compressor in proved():
        theta = recorded_last(name, f, COMPRESSORS[compressor])
        assert np.linalg.norm(theta - f.minimiser()) <= 1e-4 * np.linalg.norm(f.minimiser()), (name, compressor)
    for name, compressor in PAIRS:
        said = METHODS[name]().guarantee(f, None, COMPRESSORS[compressor])
        assert (name, compressor) in proved() or said.startswith("none: ")


def recorded_last(name: str, f: Any, compressor: Any) -> Any:
    return next(islice(iterate(METHODS[name](), f, compressor=compressor), 500, None)).server.theta


@methods
def test_limits_are_exact(name: str) -> None:
    """A method that reaches the minimiser reaches it with rounding too: both ends know the same, and nothing is lost.

    Eight bits are so many that no method is disturbed on its way; a client that keeps what it has uploaded, in place of
    what has arrived, is.
    """
    f = quadratic(L=4.0)

    def error(compressor: Any) -> float:
        theta = next(islice(iterate(METHODS[name](), f, compressor=compressor), 250, None)).server.theta
        return float(np.linalg.norm(theta - f.minimiser()))

    plain = error(None)
    assert error(Rounding(digits=8)) <= 1.1 * plain + 1e-9
