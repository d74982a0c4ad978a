"""Our objectives keep the contract of objectives; and more than plug-ins need: bits of a client, libraries, types."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from model_instances import LOSSES, Rows, assert_close, model, points, rows

from dualopt.arrays.xp import device, to_numpy
from dualopt.lab.contracts.problems import spd
from dualopt.lab.contracts.test_objectives import *  # noqa: F403  # pyright: ignore[reportAssignmentType]
from dualopt.lab.verification import chains
from dualopt.losses import Logistic, Multinomial
from dualopt.objectives import (
    Composite,
    ConvexChain,
    LocalProblem,
    NonconvexPenalty,
    Objective,
    Quadratic,
    SharpnessAware,
    ZeroChain,
    mlp,
    reweighted,
)
from dualopt.objectives.coordinates import InCoordinates, Metric
from dualopt.regularisers import L1

Move = Callable[[np.ndarray], Any]
RNG = np.random.default_rng(0)
BOUNDS = [(0.2, 4.0), (0.5, 30.0), (1.0, 8.0), (0.3, 2.0)]
MATRICES = np.stack([spd(RNG, 1, 3, mu, L)[0] for mu, L in BOUNDS])
LINEAR, CONSTANTS = RNG.standard_normal((4, 3)), RNG.standard_normal(4)
SPLIT = RNG.uniform(0.0, 3.0, (4, 6)) * (RNG.random((4, 6)) < 0.7)
AXES = np.linalg.qr(np.random.default_rng(2).standard_normal((5, 5)))[0][:2]
CLASSES = Multinomial(classes=3)
WEIGHTS = (1.0, 20.0, 0.3, 4.0, 4.0, 0.01, 2.0)


def data(loss: Any, move: Move) -> Rows:
    host = rows(loss)
    return Rows(move(host.X), move(host.y), host.clients)


def logistic(move: Move, **options: Any) -> Objective:
    return model(Logistic(), data(Logistic(), move), **options)


def network(move: Move, layers: tuple[int, ...]) -> Objective:
    moved = data(CLASSES, move)
    return mlp(moved.X, moved.y, layers=layers, clients=moved.clients, classes=3, ridge=0.2)


def chain(f: ConvexChain, move: Move) -> ConvexChain:
    return ConvexChain(**{field.name: getattr(f, field.name) for field in fields(f)} | {"ratios": move(f.ratios)})


INSTANCES: dict[str, Callable[[Move], Any]] = {
    "quadratic": lambda a: Quadratic(A=a(MATRICES), b=a(LINEAR), c=a(CONSTANTS)),
    **{type(loss).__name__: lambda a, loss=loss: model(loss, data(loss, a)) for loss in LOSSES},
    "network": lambda a: network(a, (6, 5)),
    "nonconvex": lambda a: NonconvexPenalty(objective=logistic(a), lam=0.7, alpha=2.5),
    "uphill": lambda a: SharpnessAware(objective=model(CLASSES, data(CLASSES, a)), radius=0.1, epsilon=0.5),
    "metric": lambda a: InCoordinates(objective=logistic(a), metric=Metric(a(AXES), a(np.array([20.0, 2.0])), 0.5)),
    "scales": lambda a: reweighted(logistic(a, client_weights=WEIGHTS[::-1]), WEIGHTS),
    "composite": lambda a: Composite(objective=logistic(a, client_weights=WEIGHTS), regulariser=L1(weight=0.1)),
    "zero chain": lambda a: ZeroChain(split=a(SPLIT), height=0.3, width=1.7),
    "squares": lambda a: chain(chains.geometric(50.0, 7, pairs=2)[0], a),
    "kinks": lambda a: chain(chains.power(7, pairs=2)[0], a),
}
NO_CONSTANT = {"AbsoluteDeviation", "Gamma", "Hinge", "Poisson", "Quantile", "kinks"}
NO_DERIVATIVE = {"uphill", "network"}  # a gradient taken elsewhere; kinks between two points, see test_network.py


def local(f: Any, linear: Any, center: Any, weight: Any) -> LocalProblem:
    return LocalProblem(objective=f, linear=linear, weight=weight, center=center)


CALLS: dict[str, tuple[str, Callable[..., Any]]] = {  # what it takes, and the call
    "value": ("", lambda f, theta, v, sample: f.value(theta)),
    "gradient": ("", lambda f, theta, v, sample: f.gradient(theta)),
    "value, too": ("", lambda f, theta, v, sample: f.value_and_gradient(theta)[0]),
    "gradient, too": ("", lambda f, theta, v, sample: f.value_and_gradient(theta)[1]),
    "mu": ("", lambda f, theta, v, sample: f.mu),
    "L": ("", lambda f, theta, v, sample: f.L),
    "hessian": ("hessian", lambda f, theta, v, sample: f.hessian_operator(theta)(v)),
    "preconditioner": ("preconditioner", lambda f, theta, v, sample: f.preconditioner(0.7)(v)),
    "preconditioners": ("preconditioner", lambda f, theta, v, sample: f.preconditioner(0.5 + f.mu)(v)),
    "exact": ("exact", lambda f, theta, v, sample: f.exact_minimiser(local(f, theta, v, 0.7))),
    "exact, alone": ("exact", lambda f, theta, v, sample: f.exact_minimiser(LocalProblem(objective=f, linear=v))),
    "exact, each": ("exact", lambda f, theta, v, sample: f.exact_minimiser(local(f, theta, v, 0.5 + f.mu))),
    "sample": ("samples", lambda f, theta, v, sample: f.sample_gradient(theta, sample)),
}


def host(x: np.ndarray) -> np.ndarray:
    return x


def single(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype.kind == "f" else x


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test of the contract the objectives, and one of this file what makes them in any library."""
    if "objective" in metafunc.fixturenames:
        without = NO_DERIVATIVE if "derivative" in metafunc.function.__name__ else set()
        names = [name for name in INSTANCES if name not in without]
        metafunc.parametrize("objective", [INSTANCES[name](host) for name in names], ids=names)
    elif "name" in metafunc.fixturenames:
        metafunc.parametrize("name", INSTANCES)


def calls(f: Any) -> dict[str, Callable[..., Any]]:
    return {name: call for name, (offer, call) in CALLS.items() if not offer or offer in f.offers}


def at(f: Any, move: Move = host) -> tuple[Any, Any, Any]:
    """Return a point and a direction for each client, and samples of one to three rows."""
    sample = f.draw([np.random.default_rng(j) for j in range(f.n_clients)], 3) if "samples" in f.offers else ()
    return move(points(f)), move(points(f, seed=2)), tuple(x[: 1 + j % 3] for j, x in enumerate(sample))


def close(found: np.ndarray, expected: np.ndarray, units: float, eps: float = 2.0**-52) -> None:
    if np.all(np.isfinite(expected)):
        assert_close(found, expected, units=units, eps=eps)
    else:
        np.testing.assert_array_equal(found, expected)


def test_library_type_and_device_in_are_those_out(name: str, backend: Any) -> None:
    f, plain = INSTANCES[name](backend), INSTANCES[name](host)
    theta, *others = at(f, backend)
    assert isinstance(f, Objective)
    for said, call in calls(f).items():
        found = call(f, theta, *others)
        assert (type(found), found.dtype, device(found)) == (type(theta), theta.dtype, device(theta)), said
        close(to_numpy(found), call(plain, *at(plain)), 64.0)
    assert (type(f.zeros()), device(f.zeros())) == (type(theta), device(theta))
    assert to_numpy(f.zeros()).tolist() == np.zeros(f.shape).tolist()
    same = to_numpy(theta)[:1]
    for call in calls(f).values():  # one point for all clients stands for the same point at each
        one, many = (call(f, backend(x), *others) for x in (same[0], np.repeat(same, f.n_clients, axis=0)))
        close(to_numpy(one), to_numpy(many), 64.0)


def test_single_precision_stays_single(name: str) -> None:
    f, plain = INSTANCES[name](single), INSTANCES[name](host)
    theta, v, sample = at(plain)
    rounded = [single(x).astype(np.float64) for x in (theta, v)]
    for said, call in calls(f).items():
        found = call(f, single(theta), single(v), sample)
        assert found.dtype == np.float32, said
        close(found.astype(np.float64), call(plain, *rounded, sample), 64.0, 2.0**-23)


def test_a_client_has_its_bits_whoever_is_in_the_call(name: str) -> None:
    """Alone, in any order, out of a part, and after it has travelled; nothing that is handed over is changed."""
    f = INSTANCES[name](host)
    theta, v, sample = at(f)
    kept, sent = (theta.copy(), v.copy()), pickle.dumps(f)
    whole = {said: call(f, theta, v, sample).copy() for said, call in calls(f).items()}
    last = f.n_clients - 1
    for ids in ([2], [last, 0], list(range(last, -1, -1))):
        alone, nested = f.select(ids), f.select([0, 2, *range(3, last + 1), 1]).select([_in_turn(j) for j in ids])
        for part in (alone, nested, pickle.loads(pickle.dumps(alone))):
            assert part.n_clients == len(ids)
            for said, call in calls(f).items():
                found = call(part, theta[ids], v[ids], tuple(sample[j] for j in ids if sample))
                assert found.tobytes() == whole[said][ids].tobytes(), (said, ids)
    for again in (f, pickle.loads(sent), pickle.loads(pickle.dumps(f))):
        for said, call in calls(f).items():
            assert call(again, theta, v, sample).tobytes() == whole[said].tobytes(), said
    assert np.array_equal(theta, kept[0])
    assert np.array_equal(v, kept[1])


def _in_turn(j: int) -> int:
    """Where a client stands when the second one has gone to the end: the first and all from the third on are kept."""
    return {0: 0, 1: -1}.get(j, j - 1)


def test_infinite_constants_are_those_of_kinks(name: str) -> None:
    assert bool(np.all(np.isinf(INSTANCES[name](host).L))) == (name in NO_CONSTANT or name == "network")
