"""Rounds on tensors of PyTorch in host memory, which NumPy works on: its results to the last bit, as tensors."""

from __future__ import annotations

import copy
import pickle
from itertools import islice
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt.arrays.tree import leaves
from dualopt.engine import _in_numpy
from dualopt.engine.rounds import advance, initial_state, iterate, resolve
from dualopt.losses import Logistic, Squared
from dualopt.methods.participation import first_round
from dualopt.objectives import Quadratic, linear_model
from dualopt.runs.recording import run
from dualopt.spec.discover import discover
from tests.conftest import BACKENDS

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
LIBRARIES = BACKENDS["numpy"], BACKENDS["torch"]
METHODS = sorted(discover(dualopt.methods))


def models(loss: Any = None) -> tuple[Any, ...]:
    """Three clients of rows, in both libraries."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    clients = [range(30), range(30, 50), range(50, 60)]
    loss = Logistic() if loss is None else loss
    return tuple(linear_model(to(X), to(y), loss=loss, mu=1e-2, clients=clients) for to in LIBRARIES)


def quadratics() -> tuple[Any, ...]:
    rng = np.random.default_rng(4)
    B, b = rng.normal(size=(3, 4, 4)), rng.normal(size=(3, 4))
    return tuple(Quadratic(A=to(B @ B.transpose(0, 2, 1) + np.eye(4)), b=to(b)) for to in LIBRARIES)


def assert_same_rounds(both: tuple[Any, ...], method: Any, rounds: int = 9, **options: Any) -> None:
    """Compare models, states and counts of every round."""
    for here, there in zip(*(islice(iterate(method, f, **options), rounds) for f in both), strict=True):
        np.testing.assert_allclose(there.server.theta.numpy(), here.server.theta, rtol=1e-9, atol=1e-12)
        assert (here.floats_up, here.floats_down) == (there.floats_up, there.floats_down)
        arrays = [x for x in leaves((there.clients, there.solver, there.memory)) if hasattr(x, "dtype")]
        assert all(type(x) is torch.Tensor for x in arrays)
        assert [tuple(x.shape) for x in arrays] == [
            x.shape for x in leaves((here.clients, here.solver, here.memory)) if hasattr(x, "dtype")
        ]
        if here.solution is None:
            assert there.solution is None
            continue
        assert there.solution.gradients == pytest.approx(here.solution.gradients)
        assert there.solution.status == here.solution.status
        np.testing.assert_allclose(there.local_models.numpy(), here.local_models, rtol=1e-8, atol=1e-12)
        if here.local_gradients is not None:
            assert type(there.local_gradients) is torch.Tensor
            np.testing.assert_allclose(there.local_gradients.numpy(), here.local_gradients, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method: str) -> None:
    assert_same_rounds(models(), method)


@pytest.mark.parametrize("method", ["dualfl", "feddyn", "fedavg"])
def test_systems_of_equations(method: str) -> None:
    assert_same_rounds(quadratics(), method)
    assert_same_rounds(models(Squared()), method)


@pytest.mark.parametrize(
    "options",
    [
        {"participation": "subset=2"},
        {"scales": [1.0, 2.0, 4.0]},
        {"compressor": "natural"},
        {"engine": "blocks=2"},
        {"participation": "subset=2", "compressor": "rand-k=2"},
    ],
    ids=str,
)
def test_other_rounds(options: dict[str, Any]) -> None:
    assert_same_rounds(models(), "feddyn", **options)


def test_what_draws_rows() -> None:
    assert_same_rounds(models(), "fedavg: solver=(sgd: step=0.01, batch=3), stop=steps=2", seed=5)


@pytest.mark.parametrize("engine", [None, "blocks=2", "blocks: number=2, partial_sums=true"])
def test_certificates(engine: str | None) -> None:
    here, there = (run("dualfl", f, rounds=6, certify_every=1, engine=engine) for f in models())
    for column in ("energy", "certificate"):
        np.testing.assert_allclose(there[column], here[column], rtol=1e-12)


def test_the_numbers_of_a_certificate_are_in_host_memory() -> None:
    """So they are elsewhere: they are added up to one number."""
    _, f = models()
    found = _in_numpy.phases(f).evaluated(f, f.zeros(), None, None, partial_sums=True)
    assert type(found.columns) is np.ndarray
    assert type(found.gradient) is torch.Tensor


def test_a_single_round_is_one_of_the_iterator() -> None:
    _, f = models()
    method = resolve("dualfl", f)
    after, *_ = advance(method, f, initial_state(method, f), first_round(3))
    first = next(iterate("dualfl", f))
    assert torch.equal(after.server.theta, first.server.theta)
    assert torch.equal(after.solver.pairs.s, first.solver.pairs.s)


def test_data_and_states_are_neither_copied_nor_changed() -> None:
    _, f = models()
    before = copy.deepcopy([x for client in f.client_rows() for x in client])
    rounds = iterate("feddyn", f)
    first = next(rounds)
    kept = [x.clone() for x in leaves(first.clients)]
    list(islice(rounds, 3))
    assert all(map(torch.equal, kept, leaves(first.clients)))
    assert all(map(torch.equal, before, [x for client in f.client_rows() for x in client]))
    seen = _in_numpy._seen(f)
    own, other = next(f.client_rows())[0], next(seen.client_rows())[0]
    assert own.data_ptr() == other.__array_interface__["data"][0]


def test_other_objectives_are_not_seen() -> None:
    class Own(Quadratic):
        """What it does is not known here."""

    here, there = (Own(A=f.A, b=f.b) for f in quadratics())
    assert _in_numpy._seen(there) is there
    assert_same_rounds((here, there), "dualfl: solver=exact")
    here, there = (run("dualfl", f, rounds=4, certify_every=1) for f in (here, there))
    np.testing.assert_allclose(there["certificate"], here["certificate"], rtol=1e-9)


def test_an_objective_is_pickled_once() -> None:
    f = quadratics()[1]
    size = len(pickle.dumps(f))
    list(islice(iterate("dualfl", f), 2))
    assert len(pickle.dumps(f)) < 3 * size
