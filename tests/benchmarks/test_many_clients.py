"""Many small clients: the gradient per row as the clients become more, and rounds in which one percent takes part.

Run with ``pytest tests/benchmarks/test_many_clients.py --benchmark-only -s``; times are CPU times of one thread,
medians of contestants that take turns. The rows are the same for every number of clients. Gradients are new arrays,
257 MB of them for 4096 clients of MNIST. What the system takes to clear so much memory, 15 to 300 ms here as other
processes have it, is shown, and is no part of the ratios.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from dualopt.losses import Logistic, Multinomial
from dualopt.objectives import LinearModel, linear_model

from .race import in_turns, report, user_and_system

ROWS, FEATURES = 2_000_000, 20
MANY = 100_000
ACTIVE = MANY // 100
LOSSES = {"logistic": Logistic(), "10 classes": Multinomial(classes=10)}
TURNS = 5


@pytest.fixture(scope="module")
def short_rows() -> np.ndarray:
    """Two million rows of twenty features."""
    return np.random.default_rng(0).normal(size=(ROWS, FEATURES))


def labels(loss: Any, m: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.choice([-1.0, 1.0], m) if loss.outputs == 1 else rng.integers(0, loss.outputs, m)


def growth(benchmark: Any, title: str, models: dict[int, LinearModel]) -> dict[str, dict[int, float]]:
    """Time gradients, at one point for all clients and at one for each; return times relative to the fewest clients."""
    first, *_ = models
    theta = 0.05 * np.random.default_rng(2).normal(size=models[first].shape)
    ratios, rows = {}, []
    for kind in ("one point", "a point for each"):
        points = {n: theta if kind == "one point" else np.repeat(theta[None, ...], n, axis=0) for n in models}
        values = {n: np.mean(f.value(points[n])) for n, f in models.items()}
        for value in values.values():  # weights are 1 over the rows of a client, and sizes differ by one row at most
            assert value == pytest.approx(values[first], rel=1e-2)
        seconds, _ = user_and_system({n: partial(f.value_and_gradient, points[n]) for n, f in models.items()}, TURNS)
        ratios[kind] = {n: user / seconds[first][0] for n, (user, _) in seconds.items()}
        exponent = np.polyfit(np.log(list(models)), np.log(list(ratios[kind].values())), 1)[0]
        rows += [
            [f"{n:,}, {kind}", f"{1e3 * user:.0f}", f"{1e3 * system:.0f}", f"{ratios[kind][n]:.2f}", f"{exponent:.3f}"]
            for n, (user, system) in seconds.items()
        ]
    benchmark.pedantic(lambda: models[first].value_and_gradient(theta), rounds=1)
    report(title, ["clients", "ms", "ms of the system", f"time / {first} clients", "growth exponent"], rows)
    return ratios


def test_gradient_of_images(benchmark, monkeypatch, images):
    """At most 1.5 times the time of 8 clients; the gradients of 4096 clients alone take 257 MB.

    With the products of BLAS: those of Numba take 0.28 of their time for 8 clients and 0.76 for 4096.
    """
    monkeypatch.setenv("DUALOPT_FAST", "0")
    X, y, source = images
    loss = Multinomial(classes=10)
    models = {n: linear_model(X, y, loss=loss, mu=1e-3, clients=n) for n in (8, 64, 512, 4096)}
    ratios = growth(benchmark, f"Gradient, {X.shape[0]:,} x {X.shape[1] + 1}, 10 classes, {source}", models)
    assert max(ratio[4096] for ratio in ratios.values()) <= 1.5


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_gradient_of_short_rows(benchmark, short_rows, loss):
    """At most three times the time of 8 clients."""
    y = labels(loss, ROWS)
    models = {n: linear_model(short_rows, y, loss=loss, mu=1e-3, clients=n) for n in (8, 100, 1000, 10_000, MANY)}
    ratios = growth(benchmark, f"Gradient, {ROWS:,} x {FEATURES + 1}, {loss}", models)
    assert max(ratio[MANY] for ratio in ratios.values()) <= 3.0


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_one_percent(benchmark, short_rows, loss):
    """What a round asks of the objective: other clients every time, against a federation of a thousand alone."""
    y, rng = labels(loss, ROWS), np.random.default_rng(3)
    model = linear_model(short_rows, y, loss=loss, mu=1e-3, clients=MANY)
    m = ROWS // MANY
    small = linear_model(short_rows[: ACTIVE * m], y[: ACTIVE * m], loss=loss, mu=1e-3, clients=ACTIVE)
    points, direction = 0.05 * rng.normal(size=(2, ACTIVE, *model.shape))

    def chosen(f: LinearModel) -> LinearModel:
        ids = rng.choice(f.n_clients, ACTIVE, replace=False) if f is model else np.arange(ACTIVE)
        return f.select(tuple(np.sort(ids).tolist()))

    def gradients(f: LinearModel, count: int) -> None:
        part = chosen(f)
        for _ in range(count):
            part.value_and_gradient(points)

    def steps(f: LinearModel) -> None:
        part = chosen(f)
        for _ in range(10):
            part.value_and_gradient(points)
            part.preconditioner(0.1)(direction)

    def curvature(f: LinearModel) -> None:
        product = chosen(f).hessian_operator(points)
        for _ in range(10):
            product(direction)

    tasks = {
        "select": lambda f: chosen(f),
        "1 gradient": lambda f: gradients(f, 1),
        "10 gradients": lambda f: gradients(f, 10),
        "10 gradients, preconditioned": steps,
        "10 Hessian products": curvature,
    }
    rows, ratios = [], {}
    for name, task in tasks.items():
        seconds, _ = in_turns({"all": lambda task=task: task(model), "alone": lambda task=task: task(small)}, 15)
        ratios[name] = seconds["all"] / seconds["alone"]
        rows.append([name, f"{1e3 * seconds['all']:.2f}", f"{1e3 * seconds['alone']:.2f}", f"{ratios[name]:.2f}"])
    benchmark.pedantic(lambda: steps(model), rounds=1)
    report(
        f"{ACTIVE:,} of {MANY:,} clients with {m} rows, {loss}",
        ["task", "ms of CPU time", "federation of these alone", "ratio"],
        rows,
    )
    assert ratios["10 gradients, preconditioned"] <= 2.0
