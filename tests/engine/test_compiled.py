"""Rounds under JAX, whose parts on the side of the clients are compiled: what they compute is what NumPy computes."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

import dualopt.methods
from dualopt.arrays.compiled import Compiled
from dualopt.arrays.xp import is_traced
from dualopt.engine import _compiled
from dualopt.engine.rounds import iterate
from dualopt.losses import Logistic, Multinomial, Squared
from dualopt.objectives import LocalProblem, Quadratic, linear_model
from dualopt.problem.data import load
from dualopt.runs.recording import run
from dualopt.solvers import LBFGS, Exact, Gradient, Nesterov, NewtonCG
from dualopt.solvers.stopping import Gap, GradientNorm, GradientReduction, LinearSchedule, RelativeEnergy, Steps
from dualopt.spec.discover import discover
from tests.conftest import BACKENDS

jax = pytest.importorskip("jax", reason="JAX is not installed")
LIBRARIES = BACKENDS["numpy"], BACKENDS["jax"]
METHODS = sorted(discover(dualopt.methods))
ROUNDS = 9


@cache
def images() -> tuple[Any, Any]:
    """Digits of four clients, two labels each and a few more, in both libraries."""
    data = load("digits")
    X, y = data.X[:240] / 16.0, data.y[:240].astype(np.int64)
    parts = np.array_split(np.argsort(y, kind="stable"), 7)
    clients = [np.concatenate(own).tolist() for own in (parts[:2], parts[2:3], parts[3:5], parts[5:])]
    return tuple(linear_model(to(X), to(y), loss=Multinomial(classes=10), mu=1e-2, clients=clients) for to in LIBRARIES)  # pyright: ignore[reportReturnType]


def binary(loss: Any = None, *, scale: float = 1.0) -> tuple[Any, ...]:
    """Three clients of one label, or of numbers."""
    rng = np.random.default_rng(3)
    X = scale * rng.normal(size=(60, 5)) * np.array([1.0, 3.0, 0.3, 1.0, 2.0])
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    loss = Logistic() if loss is None else loss
    clients = [range(30), range(30, 50), range(50, 60)]
    return tuple(linear_model(to(X), to(y), loss=loss, mu=1e-3, clients=clients) for to in LIBRARIES)


def quadratics() -> tuple[Any, ...]:
    rng = np.random.default_rng(4)
    B, b = rng.normal(size=(3, 4, 4)), rng.normal(size=(3, 4))
    A = B @ B.transpose(0, 2, 1) + np.eye(4)
    return tuple(Quadratic(A=to(A), b=to(b)) for to in LIBRARIES)


def programs(f: Any) -> dict[Any, Compiled]:
    return vars(f).get("_programs", {})


def assert_same_rounds(both: tuple[Any, ...], method: Any, rounds: int = ROUNDS, **options: Any) -> None:
    """Compare models, counts and status of every round, and see that nothing was computed one by one."""
    for here, there in zip(*(islice(iterate(method, f, **options), rounds) for f in both), strict=True):
        theta = here.server.theta
        np.testing.assert_allclose(
            np.asarray(there.server.theta), theta, rtol=0, atol=1e-9 * max(1e-3, np.abs(theta).max())
        )
        assert (here.floats_up, here.floats_down) == (there.floats_up, there.floats_down)
        if here.solution is None:
            assert there.solution is None
            continue
        assert there.solution.gradients == pytest.approx(here.solution.gradients)
        assert there.solution.status == here.solution.status
        assert type(there.solution.gradients) is tuple
        np.testing.assert_allclose(
            np.asarray(there.local_models), here.local_models, rtol=0, atol=1e-8 * max(1e-3, np.abs(theta).max())
        )
    assert programs(both[1])
    assert {str(key): program.reason for key, program in programs(both[1]).items() if not program.is_compiled} == {}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_compiled_and_does_what_it_does_with_numpy(method: str) -> None:
    assert_same_rounds(images(), method)


@pytest.mark.parametrize("method", ["dualfl", "growing-feddyn", "sampled-dualfl", "fedsplit", "fedprox"])
def test_a_client_of_one_output(method: str) -> None:
    assert_same_rounds(binary(), method)


@pytest.mark.parametrize("solver", ["exact", "lbfgs"])
def test_systems_of_equations(solver: str) -> None:
    assert_same_rounds(quadratics(), f"dualfl: solver={solver}")
    assert_same_rounds(binary(Squared()), f"feddyn: solver={solver}")


def test_reweighted_clients() -> None:
    assert_same_rounds(binary(), "fedsplit", scales=[1.0, 2.0, 4.0])


def test_weights_of_clients() -> None:
    both = tuple(replace(f, weights=(1.0, 2.0, 0.5)) for f in binary())
    assert_same_rounds(both, "dualfl")


def test_single_precision() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)).astype(np.float32), np.where(rng.normal(size=40) > 0, 1, -1).astype(np.float32)
    both = tuple(linear_model(to(X), to(y), loss=Logistic(), mu=0.1, clients=4) for to in LIBRARIES)
    thetas = [[np.asarray(s.server.theta) for s in islice(iterate("dualfl", f), 5)][-1] for f in both]
    assert thetas[1].dtype == np.float32
    np.testing.assert_allclose(thetas[1], thetas[0], rtol=1e-4)
    assert all(program.is_compiled for program in programs(both[1]).values())


@pytest.mark.parametrize("method", ["feddyn", "sampled-dualfl", "scaffold"])
def test_cohorts_take_the_program_of_all(method: str) -> None:
    both = binary()
    assert_same_rounds(both, method, participation="subset=2")
    assert sum(key[0] == "local" for key in programs(both[1])) == 1


def test_another_run_takes_the_same_programs() -> None:
    _, f = binary()
    for seed in (0, 1):
        list(islice(iterate("dualfl", f, seed=seed), 3))
        found = dict(programs(f))
        assert found == {**found, **programs(f)}
    again = dict(programs(f))
    list(islice(iterate("dualfl", f, seed=2), 3))
    assert programs(f) == again
    list(islice(iterate("dualfl: rho=0.01", f), 3))
    assert len(programs(f)) > len(again)


def test_the_oldest_programs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compiled, "MOST", 3)
    _, f = quadratics()
    for rho in (0.01, 0.02, 0.03):
        list(islice(iterate(f"dualfl: rho={rho}", f), 2))
    assert len(programs(f)) == 3
    assert any("rho=0.03" in str(key) for key in programs(f))


def test_certificates_are_the_same() -> None:
    here, there = (run("dualfl", f, rounds=6, certify_every=1) for f in binary())
    for column in ("energy", "certificate"):
        np.testing.assert_allclose(there[column], here[column], rtol=1e-9)


def test_what_draws_rows_is_not_compiled() -> None:
    here, there = binary()
    method = "fedavg: solver=(sgd: step=0.01, batch=3), stop=steps=2"
    pairs = zip(*(islice(iterate(method, f, seed=5), 3) for f in (here, there)), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(np.asarray(b.server.theta), a.server.theta, rtol=1e-10)
    local = [program for key, program in programs(there).items() if key[0] == "local"]
    assert [program.is_compiled for program in local] == [False]


STOPS = [
    GradientNorm(tol=1e-6),
    GradientNorm(tol=1e-300),  # below rounding: clients stall
    GradientReduction(factor=0.1),
    RelativeEnergy(tol=1e-10),
    Gap(schedule=LinearSchedule(rho=0.1)),
    Steps(steps=4),
]
SOLVERS = [
    LBFGS(),
    LBFGS(history=2, precondition=False),
    LBFGS(max_iter=3),
    NewtonCG(),
    Gradient(max_iter=40),
    Nesterov(max_iter=40),
]


@pytest.mark.parametrize("stop", STOPS, ids=repr)
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_solvers_end_where_they_do_with_numpy(solver: Any, stop: Any, scale: float) -> None:
    """Line searches try several times, clients end one after the other, stall, or come to the largest number."""
    f, g = binary(scale=scale)
    start = 3.0 * np.random.default_rng(1).normal(size=(3, *f.shape))
    here = solver(LocalProblem(objective=f, weight=0.5, center=f.zeros()), start, stop)
    first = LIBRARIES[1](start)

    def solved(start: Any) -> Any:
        found = solver(LocalProblem(objective=g, weight=0.5, center=g.zeros()), start, stop)
        return found.theta, found.evaluation, found.gradients, found.status

    for name in g.computed_once:
        if "." not in name:
            getattr(g, name)
    program = Compiled(solved)
    theta, evaluation, gradients, status = program(first)
    assert program.is_compiled, program.reason
    named = tuple(("converged", "max_iter", "stalled")[int(place)] for place in np.asarray(status))
    exact = isinstance(stop, GradientNorm) and stop.tol < 1e-20  # where rounding decides, it decides
    if not exact:
        assert named == here.status
        np.testing.assert_allclose(np.asarray(gradients), here.gradients)
    size = np.abs(here.theta).max()
    np.testing.assert_allclose(np.asarray(theta), here.theta, rtol=0, atol=(1e-6 if exact else 1e-8) * size)
    np.testing.assert_allclose(np.asarray(evaluation.value), here.evaluation.value, rtol=1e-8)


@pytest.mark.parametrize("both", [images, binary, quadratics], ids=lambda f: f.__name__)
def test_what_an_objective_keeps_has_numbers(both: Any) -> None:
    """A function that is being traced leaves nothing behind: what it computes has no numbers."""
    f = both()[1]
    list(islice(iterate("feddyn", f), 3))
    run("feddyn", f, rounds=2, certify_every=1)
    kept = [x for x in vars(f).values() if hasattr(x, "shape")]
    assert not any(is_traced(x) for x in kept)
    names = {
        name for kind in type(f).__mro__ for name, x in vars(kind).items() if type(x).__name__ == "cached_property"
    }
    computed = {name for name in names & vars(f).keys() if hasattr(vars(f)[name], "shape")}
    assert computed <= set(f.computed_once)
    weighted = LocalProblem(objective=f, weight=0.7, center=f.zeros())
    start = f.zeros() + np.zeros((f.n_clients, *f.shape))
    assert np.isfinite(np.asarray(LBFGS()(weighted, start, Steps(steps=2)).theta)).all()
    if "exact" in f.offers:
        assert np.isfinite(np.asarray(Exact()(weighted, start, Steps(steps=1)).theta)).all()


def test_an_objective_that_says_nothing_of_itself_is_not_compiled() -> None:
    class Silent(Quadratic):
        computed_once = None

    here, there = (Silent(A=f.A, b=f.b) for f in quadratics())
    for a, b in zip(*(islice(iterate("dualfl", f), 3) for f in (here, there)), strict=True):
        np.testing.assert_allclose(np.asarray(b.server.theta), a.server.theta, rtol=1e-10)
    assert not programs(there)


def test_programs_are_not_pickled() -> None:
    f = quadratics()[1]
    list(islice(iterate("dualfl", f), 3))
    assert programs(f)
    again = pickle.loads(pickle.dumps(f))
    assert not programs(again)
    assert np.asarray(again.A).tolist() == np.asarray(f.A).tolist()
    list(islice(iterate("dualfl", again), 3))
