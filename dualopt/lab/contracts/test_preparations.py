"""What every preparation promises.

A preparation is built with its own ``example``, and tried on every objective that its ``check`` does not refuse.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.xp import to_numpy
from dualopt.lab.contracts.backends import each_backend
from dualopt.lab.contracts.options import classes, made, open_argument
from dualopt.lab.contracts.problems import logistic, moved, quadratic
from dualopt.methods import AndersonFedSplit
from dualopt.runs.recording import run
from dualopt.runs.reference import newton

OBJECTIVES: dict[str, Callable[[], Any]] = {"quadratic": quadratic, "logistic": lambda: logistic(rows=62)}
COSTS = ("floats_up", "floats_down", "exchanges")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the preparations, and the objectives that they take."""
    if open_argument(metafunc, "step"):
        found = {name: made(kind) for name, kind in classes(metafunc.config, "preparation").items()}
        if "f" not in metafunc.fixturenames:
            metafunc.parametrize("step", found.values(), ids=list(found))
            return
        cases = [(name, o) for name, step in found.items() for o, make in OBJECTIVES.items() if admits(step, make())]
        metafunc.parametrize(
            ("step", "f"), [pytest.param(found[name], OBJECTIVES[o](), id=f"{name}-{o}") for name, o in cases]
        )


def admits(step: Any, objective: Any) -> bool:
    """Tell whether it does not refuse an objective."""
    try:
        step.check(objective)
    except ValueError:
        return False
    except Exception:  # a bug, which the tests show
        return True
    return True


def energy(f: Any, theta: Any) -> float:
    """Return E, the regulariser included."""
    return float(f.mean(f.value(theta))) + f.regulariser.value(theta)


def test_some_objective_is_admitted(step: Any) -> None:
    """``check`` admits quadratics or logistic regression, and refuses others by a ValueError of one sentence."""
    refused = []
    for make in OBJECTIVES.values():
        try:
            step.check(make())
        except ValueError as error:
            refused.append(str(error))
    assert all(len(text.splitlines()) == 1 for text in refused)
    assert len(refused) < len(OBJECTIVES), f"it refuses all: {refused[0] if refused else ''}."


def test_the_problem_stays_the_same(step: Any, f: Any) -> None:
    """Energies, brought to the coordinates of the user, are those of the user's problem; so are gradients."""
    prepared = step.prepare(f, f.zeros())
    assert prepared.theta0.shape == f.zeros().shape
    rng = np.random.default_rng(0)
    for _ in range(5):
        w = prepared.theta0 + rng.standard_normal(prepared.theta0.shape)
        theta = prepared.in_user_coordinates(w)
        assert energy(prepared.objective, w) == pytest.approx(energy(f, theta), rel=1e-9)
        if prepared.slope is not None:
            slopes = prepared.slope(prepared.objective.gradient(w))
            np.testing.assert_allclose(slopes, f.gradient(theta), rtol=1e-7, atol=1e-9)


def test_the_start_is_not_far(step: Any, f: Any) -> None:
    """The energy at the start is finite, at any first model that is handed to it."""
    for theta0 in (f.zeros(), f.zeros() + 1.0):
        prepared = step.prepare(f, theta0)
        assert np.isfinite(energy(f, prepared.in_user_coordinates(prepared.theta0)))


def test_rounds_reach_the_minimiser(step: Any, f: Any) -> None:
    """After it a method reaches the minimiser, in the coordinates of the user, with a certificate."""
    trace = run(AndersonFedSplit(), f, prepare=step, rounds=300, tol=1e-10)
    assert trace.status == "converged"
    best = f.minimiser() if hasattr(f, "minimiser") else newton(f).theta
    np.testing.assert_allclose(trace.theta, best, atol=1e-4)


def test_what_it_costs_is_counted(step: Any, f: Any) -> None:
    """Its cost is in whole numbers that are not negative, gradients by client; nothing travels without an exchange."""
    prepared = step.prepare(f, f.zeros())
    for name in COSTS:
        number = getattr(prepared, name)
        assert isinstance(number, int), f"{name} must be a whole number."
        assert number >= 0, f"{name} must not be negative."
    assert len(prepared.gradients) in (0, f.n_clients), "gradients must have a number for each client."
    assert all(number >= 0 for number in prepared.gradients), "gradients must not be negative."
    if prepared.floats_up or prepared.floats_down:
        assert prepared.exchanges >= 1, "numbers travel, and no exchange is counted."
    moved_at_all = not np.array_equal(prepared.in_user_coordinates(prepared.theta0), f.zeros())
    assert prepared.floats_up or not moved_at_all, "the start is another one, and no client has sent a number."


def test_chance_is_that_of_the_seed(step: Any, f: Any) -> None:
    """The same call gives the same bits, whatever other generators do, and what it is handed stays as it was."""
    theta0 = f.zeros()
    theta0.flags.writeable = False
    np.random.seed(1)  # noqa: NPY002
    first = step.prepare(f, theta0)
    np.random.seed(2)  # noqa: NPY002
    second = step.prepare(f, theta0)
    np.testing.assert_array_equal(first.theta0, second.theta0)
    point = first.theta0 + 1.0
    np.testing.assert_array_equal(first.objective.value(point), second.objective.value(point))


def test_clients_are_selected(step: Any, f: Any) -> None:
    """What is prepared can be divided among processes: ``select`` gives the functions of these clients."""
    prepared, ids = step.prepare(f, f.zeros()), [2, 0]
    point = prepared.theta0 + 1.0
    part = prepared.select(ids).objective.value(point)
    np.testing.assert_allclose(part, prepared.objective.value(point)[ids], rtol=1e-12)


@each_backend
def test_array_libraries_agree(step: Any, f: Any, backend: Any) -> None:
    """Every array library of the standard gives the same start, in its own arrays."""
    other = moved(f, backend)
    found, expected = step.prepare(other, other.zeros()).theta0, step.prepare(f, f.zeros()).theta0
    assert type(found) is type(other.zeros())
    np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-9, atol=1e-12)


def test_single_precision_stays_single(step: Any, f: Any) -> None:
    """Single precision stays single."""
    other = moved(f, lambda x: x.astype(np.float32) if x.dtype == np.float64 else x)
    assert step.prepare(other, other.zeros()).theta0.dtype == np.float32


def test_is_a_preparation(step: Any) -> None:
    """It pickles, and is frozen and keyword-only."""
    assert pickle.loads(pickle.dumps(step)) == step
    names = [field.name for field in dataclasses.fields(step)]
    if names:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(step, names[0], None)
        with pytest.raises(TypeError):
            type(step)(1.0)
