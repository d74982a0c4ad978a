"""Images of another brightness at every client: the rule, and that each client has the rows that are its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dualopt.arrays.streams import generator
from dualopt.arrays.xp import to_numpy
from dualopt.problem.build import build_problem
from dualopt.problem.data import load, partition
from dualopt.problem.data.brightness import brightened
from dualopt.problem.options import ProblemOptions

RNG = np.random.default_rng(3)
SIZES = (1, 30, 4, 9)
ROWS = [np.sort(RNG.choice(40, size=size, replace=False)) for size in SIZES]  # some rows are at several clients
LOPSIDED = ProblemOptions(data="digits", clients=5, partition="lognormal", sigma=1.5, rows=400, brightness=0.7, seed=2)


def images(channels: int, side: int = 4, dtype: str = "float64") -> np.ndarray:
    return (RNG.random((40, channels * side * side)) * np.repeat([[0.2], [3.0]], 20, axis=0)).astype(dtype)


@pytest.mark.parametrize("channels", [1, 3])
def test_every_client_adds_two_numbers_in_units_of_its_own_brightness(channels: int) -> None:
    X, spread, seed = images(channels), 0.4, 7
    found, rows, parts = brightened(X, ROWS, spread=spread, seed=seed)
    np.testing.assert_array_equal(rows, np.concatenate(ROWS))
    assert [len(part) for part in parts] == list(SIZES)
    chosen = []
    for j, (own, part) in enumerate(zip(ROWS, parts, strict=True)):
        rng = generator(seed, (3, 2, j))
        g, h, c = rng.standard_normal(), rng.standard_normal(), int(rng.integers(channels))
        mean = sum(map(float, X[own].ravel())) / X[own].size
        expected = X[own].reshape(len(own), channels, -1) + spread * mean * g
        expected[:, c] += spread * mean * h
        np.testing.assert_allclose(found[part], expected.reshape(len(own), -1), rtol=1e-13, atol=1e-14)
        chosen.append(c)
    assert len(set(chosen)) == min(2, channels) or channels == 3
    assert not np.array_equal(X, found[: len(X)])


def test_a_client_sees_the_same_whoever_is_in_the_call_and_however_long_a_pixel_is() -> None:
    X = images(3)
    whole, _, parts = brightened(X, ROWS, spread=0.4, seed=1)
    later, _, own = brightened(X, ROWS[2:], spread=0.4, seed=1, first=2)
    for ours, theirs in zip(own, parts[2:], strict=True):
        np.testing.assert_array_equal(later[ours], whole[theirs])
    by_hundred, _, _ = brightened(100.0 * X, ROWS, spread=0.4, seed=1)
    np.testing.assert_allclose(by_hundred, 100.0 * whole, rtol=1e-12, atol=1e-12)
    assert not np.array_equal(brightened(X, ROWS, spread=0.4, seed=2)[0], whole)
    assert brightened(X.astype("float32"), ROWS, spread=0.4, seed=1)[0].dtype == np.float32
    np.testing.assert_array_equal(brightened(X, ROWS, spread=0.0, seed=1)[0], X[np.concatenate(ROWS)])


@pytest.mark.parametrize("kind", ["lognormal", "dirichlet-replacement"])
def test_linear_clients_have_their_images_and_labels(kind: str) -> None:
    options = replace(LOPSIDED, partition=kind)
    f, plain = build_problem(options).objective, build_problem(replace(options, brightness=0.0)).objective
    assert f.sizes == plain.sizes
    shifts = []
    for j, ((X, y, w), (X0, y0, w0)) in enumerate(zip(f.client_rows(), plain.client_rows(), strict=True)):
        order, order0 = np.lexsort(X.T), np.lexsort(X0.T)  # a shift keeps the order of rows
        np.testing.assert_array_equal(y[order], y0[order0])
        np.testing.assert_array_equal(w, w0)
        change = X[order][:, :64] - X0[order0][:, :64]
        rng = generator(2, (3, 2, j))
        shifts.append(0.7 * X0[:, :64].mean() * (rng.standard_normal() + rng.standard_normal()))
        np.testing.assert_allclose(change, shifts[-1], rtol=0.0, atol=1e-12)
        np.testing.assert_array_equal(X[:, 64], 1.0)  # the intercept is none of the image
    assert np.ptp(shifts) > 0.1
    assert np.isfinite(f.value(f.zeros())).all()


def test_a_module_has_the_same_images_and_the_test_part_stays_as_it_is(tmp_path: Any) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pixels = RNG.integers(0, 256, size=(60, 3, 16, 16), dtype=np.uint8)
    labels = np.arange(60) % 3
    np.savez(tmp_path / "colours.npz", X_train=pixels[:45], y_train=labels[:45], X_test=pixels[45:], y_test=labels[45:])
    options = ProblemOptions(
        data=str(tmp_path / "colours.npz"), clients=4, partition="by-label", brightness=0.3, seed=1, dtype="float32"
    )
    linear = build_problem(replace(options, intercept="none"), test=True)
    module = build_problem(replace(options, model="cnn: filters=2, layers=1, hidden=4"), test=True)
    plain = load(str(tmp_path / "colours.npz"), dtype="float32")
    for (X, y, _), (Z, z, _), own in zip(
        linear.objective.client_rows(),
        module.objective.client_rows(),
        partition("by-label", plain.y, 4),
        strict=True,
    ):
        np.testing.assert_array_equal(X, Z.numpy())
        np.testing.assert_array_equal(y, z.numpy())
        by_channel = (X - plain.X[own]).reshape(len(own), 3, -1)
        assert np.ptp(by_channel, axis=(0, 2)).max() < 1e-6
        assert len(np.unique(by_channel.mean(axis=(0, 2)).round(4))) == 2
    assert linear.test is not None
    assert module.test is not None
    for found in (linear.test[0], to_numpy(module.test[0])):
        np.testing.assert_array_equal(found, load(str(tmp_path / "colours.npz"), split="test", dtype="float32").X)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"brightness": -0.1}, r"^brightness must be a finite number, at least 0, not -0.1\.$"),
        ({"brightness": float("inf")}, r"^brightness must be a finite number, at least 0, not inf\.$"),
        (
            {"scale": "standard"},
            r"^scale must be none, auto for images, max or a number with brightness, not sta",
        ),
        (
            {"data": "breast_cancer", "scale": "none"},
            "^images must be square images of one channel or three, not 30",
        ),
    ],
)
def test_what_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        build_problem(replace(LOPSIDED, **changes))


def test_a_spread_is_refused_where_images_are_changed() -> None:
    for spread in (-0.1, float("inf")):
        with pytest.raises(ValueError, match=r"^brightness must be a finite number, at least 0, not "):
            brightened(images(1), ROWS, spread=spread, seed=0)
