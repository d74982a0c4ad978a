"""What every objective promises: types, bits of a client whoever else is in the call, derivatives and constants."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_instances import LOSSES, Rows, assert_close, model, points, rows

from dualopt.arrays.xp import device, to_numpy
from dualopt.lab.contracts.problems import spd
from dualopt.lab.verification import chains
from dualopt.losses import Logistic, Multinomial
from dualopt.objectives import (
    ConvexChain,
    NonconvexPenalty,
    Objective,
    Quadratic,
    SharpnessAware,
    ZeroChain,
    mlp,
    reweighted,
)
from dualopt.objectives.coordinates import InCoordinates, Metric

Move = Callable[[np.ndarray], Any]
RNG = np.random.default_rng(0)
BOUNDS = [(0.2, 4.0), (0.5, 30.0), (1.0, 8.0), (0.3, 2.0)]
MATRICES = np.stack([spd(RNG, 1, 3, mu, L)[0] for mu, L in BOUNDS])
LINEAR, CONSTANTS = RNG.standard_normal((4, 3)), RNG.standard_normal(4)
SPLIT = RNG.uniform(0.0, 3.0, (4, 6)) * (RNG.random((4, 6)) < 0.7)
AXES = np.linalg.qr(np.random.default_rng(2).standard_normal((5, 5)))[0][:2]
CLASSES = Multinomial(classes=3)


def data(loss: Any, move: Move) -> Rows:
    host = rows(loss)
    return Rows(move(host.X), move(host.y), host.clients)


def network(move: Move, layers: tuple[int, ...]) -> Objective:
    moved = data(CLASSES, move)
    return mlp(moved.X, moved.y, layers=layers, clients=moved.clients, classes=3, ridge=0.2)


def chain(f: ConvexChain, move: Move) -> ConvexChain:
    return ConvexChain(**{name: getattr(f, name) for name in f.__dataclass_fields__} | {"ratios": move(f.ratios)})


INSTANCES: dict[str, Callable[[Move], Any]] = {
    "quadratic": lambda a: Quadratic(A=a(MATRICES), b=a(LINEAR), c=a(CONSTANTS)),
    **{type(loss).__name__: lambda a, loss=loss: model(loss, data(loss, a)) for loss in LOSSES},
    "network": lambda a: network(a, (6, 5)),
    "nonconvex": lambda a: NonconvexPenalty(objective=model(Logistic(), data(Logistic(), a)), lam=0.7, alpha=2.5),
    "uphill": lambda a: SharpnessAware(objective=model(CLASSES, data(CLASSES, a)), radius=0.1, epsilon=0.5),
    "metric": lambda a: InCoordinates(
        objective=model(Logistic(), data(Logistic(), a)), metric=Metric(a(AXES), a(np.array([20.0, 2.0])), 0.5)
    ),
    "scales": lambda a: reweighted(model(Logistic(), data(Logistic(), a)), (1.0, 20.0, 0.3, 4.0, 4.0, 0.01, 2.0)),
    "zero chain": lambda a: ZeroChain(split=a(SPLIT), height=0.3, width=1.7),
    "squares": lambda a: chain(chains.geometric(50.0, 7, pairs=2)[0], a),
    "kinks": lambda a: chain(chains.power(7, pairs=2)[0], a),
}
KINKS = {"AbsoluteDeviation", "Hinge", "kinks"}
NOT_THE_GRADIENT = {"uphill"}  # its gradient is taken elsewhere

CALLS: dict[str, tuple[str, Callable[..., Any]]] = {  # what it takes, and the call
    "value": ("", lambda f, theta, v: f.value(theta)),
    "gradient": ("", lambda f, theta, v: f.gradient(theta)),
    "value, too": ("", lambda f, theta, v: f.value_and_gradient(theta)[0]),
    "gradient, too": ("", lambda f, theta, v: f.value_and_gradient(theta)[1]),
    "mu": ("", lambda f, theta, v: f.mu),
    "L": ("", lambda f, theta, v: f.L),
    "hessian": ("hessian", lambda f, theta, v: f.hessian_operator(theta)(v)),
    "preconditioner": ("preconditioner", lambda f, theta, v: f.preconditioner(0.7)(v)),
    "preconditioners": ("preconditioner", lambda f, theta, v: f.preconditioner(0.5 + f.mu)(v)),
}
every = pytest.mark.parametrize("name", INSTANCES)


def host(x: np.ndarray) -> np.ndarray:
    return x


def single(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype.kind == "f" else x


def calls(f: Any) -> dict[str, Callable[..., Any]]:
    return {name: call for name, (offer, call) in CALLS.items() if not offer or offer in f.offers}


def at(f: Any, move: Move = host) -> tuple[Any, Any]:
    return move(points(f)), move(points(f, seed=2))


def close(found: np.ndarray, expected: np.ndarray, units: float, eps: float = 2.0**-52) -> None:
    if np.all(np.isfinite(expected)):
        assert_close(found, expected, units=units, eps=eps)
    else:
        np.testing.assert_array_equal(found, expected)


@every
def test_library_type_and_device_in_are_those_out(name: str, backend: Any) -> None:
    f, plain = INSTANCES[name](backend), INSTANCES[name](host)
    (theta, v), like = at(f, backend), at(plain)
    assert isinstance(f, Objective)
    for said, call in calls(f).items():
        found = call(f, theta, v)
        assert (type(found), found.dtype, device(found)) == (type(theta), theta.dtype, device(theta)), said
        close(to_numpy(found), call(plain, *like), 64.0)
    assert (type(f.zeros()), device(f.zeros())) == (type(theta), device(theta))
    assert to_numpy(f.zeros()).tolist() == np.zeros(f.shape).tolist()
    one, many = (f.gradient(backend(x)) for x in (like[0][0], np.repeat(like[0][:1], f.n_clients, axis=0)))
    close(to_numpy(one), to_numpy(many), 64.0)


@every
def test_single_precision_stays_single(name: str) -> None:
    f, plain = INSTANCES[name](single), INSTANCES[name](host)
    for said, call in calls(f).items():
        found = call(f, *at(f, single))
        assert found.dtype == np.float32, said
        rounded = (x.astype(np.float32).astype(np.float64) for x in at(plain))
        close(found.astype(np.float64), call(plain, *rounded), 64.0, 2.0**-23)


@every
def test_a_client_has_its_bits_whoever_is_in_the_call(name: str) -> None:
    """Alone, in any order, out of a part, and after it has travelled; nothing that is handed over is changed."""
    f = INSTANCES[name](host)
    theta, v = at(f)
    kept, sent = (theta.copy(), v.copy()), pickle.dumps(f)
    whole = {said: call(f, theta, v).copy() for said, call in calls(f).items()}
    last = f.n_clients - 1
    for ids in ([2], [last, 0], list(range(last, -1, -1))):
        for part in (f.select(ids), f.select([0, 2, *range(3, last + 1), 1]).select([_in_turn(j) for j in ids])):
            assert part.n_clients == len(ids)
            for said, call in calls(f).items():
                assert call(part, theta[ids], v[ids]).tobytes() == whole[said][ids].tobytes(), (said, ids)
    for again in (f, pickle.loads(sent), pickle.loads(pickle.dumps(f))):
        for said, call in calls(f).items():
            assert call(again, theta, v).tobytes() == whole[said].tobytes(), said
    assert np.array_equal(theta, kept[0])
    assert np.array_equal(v, kept[1])


def _in_turn(j: int) -> int:
    """Where a client stands when the second one has gone to the end: the first and all from the third on are kept."""
    return {0: 0, 1: -1}.get(j, j - 1)


@every
def test_gradients_and_hessians_are_derivatives(name: str) -> None:
    f, h = INSTANCES[name](host), 1e-6
    theta, v = at(f)
    along = np.sum((f.gradient(theta) * v).reshape(f.n_clients, -1), axis=-1)
    if name not in NOT_THE_GRADIENT:
        difference = (f.value(theta + h * v) - f.value(theta - h * v)) / (2.0 * h)
        np.testing.assert_allclose(along, difference, rtol=1e-7, atol=1e-8)  # truncation h^2, rounding eps/h
    if "hessian" in f.offers:
        second = (f.gradient(theta + h * v) - f.gradient(theta - h * v)) / (2.0 * h)
        np.testing.assert_allclose(f.hessian_operator(theta)(v), second, rtol=1e-7, atol=1e-8)


@every
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-3, 1.0, 30.0]))
def test_declared_constants_hold(name: str, seed: int, scale: float) -> None:
    f = INSTANCES[name](host)
    a, b = points(f, seed, scale), points(f, seed + 1, scale)
    moved, change = ((x - y).reshape(f.n_clients, -1) for x, y in ((a, b), (f.gradient(a), f.gradient(b))))
    squared = np.sum(moved**2, axis=-1)
    size = np.max(np.abs(f.gradient(a))) + np.max(np.abs(f.gradient(b)))
    rounding = 1e-12 * (1.0 + size) * np.sqrt(squared)
    for mu, L, inner, norm, square, room in zip(
        f.mu, f.L, np.sum(moved * change, axis=-1), np.linalg.norm(change, axis=-1), squared, rounding, strict=True
    ):
        assert not math.isfinite(mu) or inner >= mu * square - room
        assert norm <= L * math.sqrt(square) + room
    assert bool(np.all(np.isinf(f.L))) == (name in KINKS or name == "network")
