"""Every method that admits it, with messages through a compressor: limits, counts, wherever the clients are."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt import iterate, run
from dualopt.engine import Blocks
from dualopt.engine.checkpoint import Checkpoint
from dualopt.methods import Algorithm, DualFL, FedSplit, GradientDescent
from dualopt.methods.compressors import CoordinateCohorts, Identity, RandK, Rounding, TopK
from dualopt.methods.compressors._downlink import Downlink, _of_server
from dualopt.methods.participation import first_round
from dualopt.spec.discover import discover
from tests.engine.problems import problems
from tests.engine.wired import elsewhere
from tests.problems import quadratic

METHODS = {name: kind for name, kind in discover(dualopt.methods).items() if kind.delivered is not Algorithm.delivered}
methods = pytest.mark.parametrize("name", METHODS)


class Whole(Identity):
    """A compressor that changes nothing, and is not known to."""


def objective() -> Any:
    return problems()["quadratic"]


def models(name: str, f: Any, rounds: int = 8, **options: Any) -> Any:
    return [s.server.theta for s in islice(iterate(METHODS[name](), f, seed=2, **options), rounds)]


def test_many_methods_admit_it() -> None:
    assert len(METHODS) >= 8


@methods
def test_messages_that_arrive_as_they_are_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, plain = objective(), models(name, objective())
    monkeypatch.setattr("dualopt.engine.rounds.Identity", RandK)  # which is not taken out then
    for one, other in zip(plain, models(name, f, downlink=Whole()), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-11)


@methods
def test_limits_are_exact(name: str) -> None:
    f = quadratic(L=4.0)

    def error(**options: Any) -> float:
        return float(np.linalg.norm(models(name, f, 250, **options)[-1] - f.minimiser()))

    both = {"downlink": Rounding(digits=8), "compressor": Rounding(digits=8)}
    assert error(**both) <= 1.1 * error() + 1e-9


@methods
def test_wherever_the_clients_are_it_is_the_same_run(name: str) -> None:
    f, downlink = objective(), RandK(size=2)
    whole = models(name, f, downlink=downlink)
    N = f.n_clients
    wired = elsewhere(f, [(1, 3), tuple(j for j in range(N) if j not in (1, 3))])
    for placed, engine in ((f, Blocks(number=3)), (wired, None)):
        np.testing.assert_array_equal(models(name, placed, downlink=downlink, engine=engine), whole)


@methods
def test_a_run_that_is_resumed_ends_with_the_same_bits(name: str, tmp_path: Any) -> None:
    f, path, downlink = objective(), tmp_path / "run.npz", RandK(size=2)
    options: dict[str, Any] = {"downlink": downlink, "rounds": 9, "check_assumptions": False}
    whole = run(METHODS[name](), f, **options)
    run(METHODS[name](), f, **options, checkpoint=Checkpoint(path), callback=lambda s, row: row["round"] == 4)
    rest = run(METHODS[name](), f, **options, checkpoint=Checkpoint(path, resume=True))
    np.testing.assert_array_equal(rest.theta, whole.theta)
    for column in set(whole.columns) - {"seconds"}:
        np.testing.assert_array_equal(rest[column], whole[column], err_msg=column)
    if len(whole) > 5:
        with pytest.raises(ValueError, match="is of another run: downlink is"):
            run(METHODS[name](), f, **{**options, "downlink": None}, checkpoint=Checkpoint(path, resume=True))


def test_the_first_message_is_counted_in_full_and_others_as_they_are_sent() -> None:
    """Five clients, four coordinates: 64 bits each at first, then three bits and the largest one."""
    f = quadratic()
    trace = run(GradientDescent(), f, rounds=3, downlink=Rounding(digits=3))
    full, small = 5 * 4 * 64, 5 * (64 + 4 * 3)
    assert trace["bits_down"].tolist() == [0, full, full + small, full + 2 * small]
    assert trace["floats_down"].tolist() == [0, 20, 45, 70]
    assert trace["bits_up"].tolist() == [0, full, 2 * full, 3 * full]
    assert trace.parameters["downlink"] == {"rounding": {"digits": 3}}


def test_gradients_are_taken_where_the_messages_say() -> None:
    """Of every step the larger coordinates arrive, and the model is what arrived."""
    f = quadratic()
    before = f.zeros()
    step = GradientDescent().suggested(f).step
    for s in islice(iterate(GradientDescent(), f, downlink=TopK(size=2)), 5):
        full = -step * f.mean(f.gradient(before))
        expected = before + np.where(np.abs(full) >= np.sort(np.abs(full))[-2], full, 0.0)
        np.testing.assert_allclose(s.server.theta, expected, atol=1e-14)
        before = s.server.theta


def test_every_kind_of_message_has_its_own_memory() -> None:
    down = Downlink(TopK(size=1), (2,))
    down.begin((np.array([1.0, 1.0]), 0))
    other, kind = down.delivered((np.array([3.0, 4.0]), 1), first_round(3))
    assert (other.tolist(), kind) == ([0.0, 4.0], 1)
    assert down.delivered((np.array([3.0, 4.0]), 0), first_round(3))[0].tolist() == [1.0, 4.0]
    assert down.delivered((np.array([3.0, 4.0]), True), first_round(3))[0].tolist() == [3.0, 4.0]


def test_vectors_of_a_message_are_compressed_one_by_one_and_other_numbers_are_not() -> None:
    down, n = Downlink(TopK(size=1), (2,)), np.float64(0.5)
    down.begin((np.zeros(2), np.array([5.0, 5.0]), np.zeros(3), n))
    x, y, numbers, number = down.delivered((np.array([3.0, 4.0]), np.array([9.0, 6.0]), np.ones(3), n), first_round(3))
    assert (x.tolist(), y.tolist(), numbers.tolist(), number) == ([0.0, 4.0], [9.0, 5.0], [1.0, 1.0, 1.0], n)
    assert not Downlink(Identity(), ()).is_vector(0.5)
    assert Downlink(Identity(), ()).is_vector(n)


def test_draws_of_the_server_are_no_other_ones() -> None:
    """Not those of clients or of who takes part, and other ones in the next round: their keys are (8, n)."""
    for n in (1, 2):
        (rng,) = _of_server(replace(first_round(3), n=n, seed=7)).compression_rngs()
        expected = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(8, n)))
        assert rng.random() == expected.random()


def test_there_is_one_sender() -> None:
    """So a compressor that gives each coordinate to one of the senders sends them all."""
    down = Downlink(CoordinateCohorts(size=1), (3,))
    down.begin(np.zeros(3))
    assert down.delivered(np.array([1.0, 2.0, 3.0]), first_round(5)).tolist() == [1.0, 2.0, 3.0]
    assert (down.numbers(first_round(5)), down.bits(64, first_round(5))) == (3, 192)
    with pytest.raises(ValueError, match="size of the compressor must be at most"):
        Downlink(CoordinateCohorts(size=2), (3,))


@pytest.mark.parametrize(
    ("method", "options", "sentence"),
    [
        (DualFL(), {}, "the states of DualFL are right only where messages arrive as they are"),
        (FedSplit(), {"participation": "subset=2"}, "where clients miss messages: they would miss differences"),
        (FedSplit(), {"downlink": "top-k=9"}, "size of the compressor must be at most the number of coordinates, 4"),
    ],
)
def test_what_does_not_go_is_refused(method: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        run(method, quadratic(), rounds=1, **{"downlink": "rounding=8", **options})
