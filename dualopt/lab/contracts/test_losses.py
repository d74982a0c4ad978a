"""What every loss promises.

A loss is built with its own ``example``.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import pickle
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pytest

from dualopt.arrays.xp import to_numpy
from dualopt.lab.contracts.options import classes, made, open_argument
from dualopt.losses import Huber, Loss, Multinomial, Quantile, SmoothedHinge

EPS = float(np.finfo(np.float64).eps)
# Parameters other than the defaults, where a forgotten factor of 1 would not show.
VARIANTS = [Huber(delta=0.3), SmoothedHinge(gamma=0.25), Multinomial(classes=2), Quantile(level=0.9)]


def instances(config: Any) -> dict[str, Any]:
    """Return the losses to be tested: those that were named, or all of this package, some in several variants."""
    found = {name: made(kind) for name, kind in classes(config, "loss").items()}
    if config.getoption("loss", default=None):
        return found
    return {repr(loss): loss for loss in [*found.values(), *VARIANTS]}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the losses."""
    if open_argument(metafunc, "loss"):
        found = instances(metafunc.config)
        metafunc.parametrize("loss", found.values(), ids=list(found))


def rows(array, loss):
    """Sum an array of the shape of ``z`` over the outputs, leaving one number per row."""
    return array if loss.outputs == 1 else np.sum(array, axis=-2)


def spread(per_row, loss):
    """Give numbers per row the axes of ``z``."""
    return per_row if loss.outputs == 1 else per_row[..., None, :]


def shape_of(loss, m):
    """Return the shape of a predictor of ``m`` rows."""
    return (m,) if loss.outputs == 1 else (loss.outputs, m)


def labels(loss, shape, rng, dtype=np.float64):
    """Draw labels of the kind that the loss takes."""
    if loss.labels == "real":
        y = (3.0 * rng.normal(size=shape)).astype(dtype)
        return np.abs(y) if hasattr(loss, "label_domain") else y
    if loss.labels == "binary":
        return rng.choice(np.asarray([-1.0, 1.0], dtype=dtype), shape)
    return rng.integers(0, loss.outputs, shape)


def is_steep(loss):
    """Tell whether neither slopes nor second derivatives are bounded."""
    return math.isinf(loss.lipschitz) and math.isinf(loss.curvature)


def draw(loss, m=60, seed=0, scale=3.0):
    """Draw predictors and labels; a continuous law keeps away from kinks.

    Where losses grow exponentially predictors are smaller, for tolerances are those of numbers of the size of ``z``.
    """
    rng = np.random.default_rng(seed)
    scale = scale / 6.0 if is_steep(loss) else scale
    return scale * rng.normal(size=shape_of(loss, m)), labels(loss, (m,), rng)


def directions(loss):
    """List coordinate and constant directions and their opposites, each of shape ``(outputs, 1)``."""
    if loss.outputs == 1:
        return [np.ones(1), -np.ones(1)]
    columns = [*np.eye(loss.outputs), np.ones(loss.outputs)]
    return [sign * c[:, None] for c in columns for sign in (1.0, -1.0)]


def feasible(loss, y, seed=1, scale=3.0):
    """Return points of the domain of the conjugate: convex combinations of gradients."""
    rng = np.random.default_rng(seed)
    scale = scale / 6.0 if is_steep(loss) else scale
    gradients = [loss.gradient(scale * rng.normal(size=shape_of(loss, y.shape[-1])), y) for _ in range(2)]
    part = spread(rng.uniform(size=y.shape), loss)
    return part * gradients[0] + (1.0 - part) * gradients[1]


def assert_prox(loss, x, z, y, step):
    """Assert that ``(z - x) / step`` is a subgradient at ``x``, by equality or Fenchel-Young equality."""
    rounding = EPS * (np.max(np.abs(z)) + np.max(np.abs(y)) + step)
    if math.isfinite(loss.curvature) or getattr(loss, "differentiable", False):
        # The Jacobian of the residual is at least I, so this bounds the error of x too.
        residual = z - x - step * loss.gradient(x, y)
        steepest = loss.curvature if math.isfinite(loss.curvature) else loss.hessian_product(x, y, np.ones_like(x))
        assert np.all(np.abs(residual) <= 8 * rounding * (1 + step * steepest))
        return
    ends = [loss.gradient(np.full_like(z, end), y) for end in (-1e8, 1e8)]
    u = (z - x) / step
    inside = np.clip(u, ends[0], ends[1])  # division by a small step magnifies rounding out of the domain
    assert np.max(np.abs(u - inside)) <= 8 * rounding / step
    gap = loss.value(x, y) + loss.conjugate(inside, y) - inside * x
    assert np.max(np.abs(gap)) <= 8 * rounding * (1 + np.max(np.abs(z - y)) / step)


CALLS = {
    "value": lambda loss, a: loss.value(a["z"], a["y"]),
    "gradient": lambda loss, a: loss.gradient(a["z"], a["y"]),
    "value_and_gradient[0]": lambda loss, a: loss.value_and_gradient(a["z"], a["y"])[0],
    "value_and_gradient[1]": lambda loss, a: loss.value_and_gradient(a["z"], a["y"])[1],
    "hessian_product": lambda loss, a: loss.hessian_product(a["z"], a["y"], a["v"]),
    "conjugate": lambda loss, a: loss.conjugate(a["u"], a["y"]),
    "prox, one step": lambda loss, a: loss.prox(a["z"], a["y"], 0.7),
    "prox, a step per row": lambda loss, a: loss.prox(a["z"], a["y"], a["steps"]),
}


def arguments(loss, seed=3):
    """Draw NumPy arguments for all of ``CALLS``."""
    z, y = draw(loss, seed=seed)
    rng = np.random.default_rng(seed + 1)
    steps = np.exp(rng.normal(size=y.shape))
    return {"z": z, "y": y, "v": rng.normal(size=z.shape), "u": feasible(loss, y), "steps": steps}


def mapped(args, floats, integers):
    """Apply one function to floating-point arrays and another to integer arrays."""
    return {k: floats(a) if a.dtype.kind == "f" else integers(a) for k, a in args.items()}


def frozen(array):
    """Copy an array and forbid writing to it."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize("call", CALLS)
def test_read_only_numpy(loss: Any, call: Any) -> None:
    """Nothing is written to or shared with the arguments, and shapes are as documented."""
    args = arguments(loss)
    before = {k: a.copy() for k, a in args.items()}
    expected = CALLS[call](loss, args)
    assert all(np.array_equal(args[k], before[k]) for k in args)
    result = CALLS[call](loss, mapped(args, frozen, frozen))
    assert np.array_equal(result, expected)
    assert result.dtype == np.float64
    assert result.flags.writeable
    assert not any(np.shares_memory(result, a) for a in args.values())
    row_wise = call in ("value", "value_and_gradient[0]", "conjugate")
    assert result.shape == (args["y"].shape if row_wise else args["z"].shape)


@pytest.mark.parametrize("call", CALLS)
def test_single_precision(loss: Any, call: Any) -> None:
    """Single precision stays single and agrees with double precision to its rounding."""
    single = mapped(arguments(loss), lambda a: a.astype(np.float32), lambda a: a)
    result = CALLS[call](loss, single)
    assert result.dtype == np.float32
    # The same numbers in double precision, so that only the arithmetic differs, not the input.
    double = mapped(single, lambda a: a.astype(np.float64), lambda a: a)
    if call == "conjugate":  # a gradient rounded to single is outside the domain in double
        double["u"] = arguments(loss)["u"]
    scale = 1 + np.max(np.abs(single["z"])) + np.max(np.abs(single["y"]))
    np.testing.assert_allclose(result, CALLS[call](loss, double), rtol=0, atol=1e-6 * scale)


@pytest.mark.skipif(find_spec("array_api_strict") is None, reason="array-api-strict is not installed")
@pytest.mark.array_api
@pytest.mark.parametrize("device", ["CPU_DEVICE", "device1"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("call", CALLS)
def test_strict_array_api(loss: Any, call: Any, dtype: Any, device: Any) -> None:
    """Only the standard is used, and library, type and device of the arguments are kept."""
    import array_api_strict as strict

    where = strict.Device(device)
    args = mapped(arguments(loss), lambda a: a.astype(dtype), lambda a: a)
    result = CALLS[call](loss, {k: strict.asarray(a, device=where) for k, a in args.items()})
    expected = CALLS[call](loss, args)
    assert type(result) is type(strict.asarray(0.0))
    assert (result.dtype, result.device) == (getattr(strict, dtype), where)
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(to_numpy(result), expected, rtol=8 * eps, atol=8 * eps)


def test_leading_axes(loss: Any) -> None:
    """Clients stacked in front give what each gives alone, and labels and steps broadcast."""
    stacked = [arguments(loss, seed=s) for s in range(3)]
    together = {k: np.stack([a[k] for a in stacked]) for k in stacked[0]}
    for call in CALLS.values():
        expected = np.stack([call(loss, a) for a in stacked])
        np.testing.assert_allclose(call(loss, together), expected, rtol=1e-13, atol=1e-13)
    shared = together | {"y": stacked[0]["y"], "steps": stacked[0]["steps"]}
    alone = [a | {"y": stacked[0]["y"], "steps": stacked[0]["steps"]} for a in stacked]
    for name in ("value_and_gradient[0]", "value_and_gradient[1]", "prox, a step per row"):
        expected = np.stack([CALLS[name](loss, a) for a in alone])
        np.testing.assert_allclose(CALLS[name](loss, shared), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_predictors(loss: Any, dtype: Any) -> None:
    """Everything is finite and consistent at predictors of 1e4, whatever their signs."""
    eps = float(np.finfo(dtype).eps)
    signs = np.asarray(list(itertools.product([-1.0, 1.0], repeat=loss.outputs))).T
    m = signs.shape[1]
    z = (1e4 * signs).reshape(shape_of(loss, m)).astype(dtype)
    for seed in range(4):
        y = labels(loss, (m,), np.random.default_rng(seed), dtype)
        value, gradient = loss.value_and_gradient(z, y)
        gap = value + loss.conjugate(gradient, y) - rows(gradient * z, loss)
        assert np.max(np.abs(gap)) <= 4 * eps * max(2e4, np.max(value))
        assert np.all(np.isfinite(loss.hessian_product(z, y, np.ones_like(z))))
        for step in (1e-3, 1.0, 1e3):
            x = loss.prox(z, y, step)
            expected = loss.prox(z.astype(np.float64), y.astype(np.float64) if loss.outputs == 1 else y, step)
            np.testing.assert_allclose(x, expected, rtol=0, atol=4 * eps * (1e4 + step))
            if dtype == np.float64:
                assert_prox(loss, x, z, y, step)


def test_gradient_is_the_derivative(loss: Any) -> None:
    """The gradient agrees with central differences of the value."""
    z, y = draw(loss)
    gradient, h = loss.gradient(z, y), 1e-5
    for d in directions(loss):
        difference = (loss.value(z + h * d, y) - loss.value(z - h * d, y)) / (2 * h)
        np.testing.assert_allclose(rows(gradient * d, loss), difference, rtol=0, atol=1e-8)


def test_value_and_gradient_are_the_two(loss: Any) -> None:
    """One pass gives what two give, and the value is never negative."""
    z, y = draw(loss, scale=10.0)
    value, gradient = loss.value_and_gradient(z, y)
    np.testing.assert_allclose(value, loss.value(z, y), rtol=2 * EPS, atol=0)
    np.testing.assert_allclose(gradient, loss.gradient(z, y), rtol=2 * EPS, atol=EPS)
    assert np.all(value >= 0)
    assert loss.nonnegative


def test_hessian_product(loss: Any) -> None:
    """The product agrees with central differences of the gradient, symmetric and semidefinite."""
    z, y = draw(loss)
    rng = np.random.default_rng(5)
    v, w = rng.normal(size=z.shape), rng.normal(size=z.shape)
    product, h = loss.hessian_product(z, y, v), 1e-5
    difference = (loss.gradient(z + h * v, y) - loss.gradient(z - h * v, y)) / (2 * h)
    np.testing.assert_allclose(product, difference, rtol=0, atol=1e-8)
    other = loss.hessian_product(z, y, w)
    np.testing.assert_allclose(rows(product * w, loss), rows(v * other, loss), rtol=0, atol=1e-14)
    assert np.all(rows(product * v, loss) >= -1e-16)


def test_curvature_bounds_the_gradient(loss: Any) -> None:
    """The gradient is Lipschitz with the declared constant."""
    for scale in (0.1, 1.0, 10.0):
        a, y = draw(loss, m=300, scale=scale)
        b = a + np.random.default_rng(6).normal(size=a.shape)
        ratio = np.sqrt(rows((loss.gradient(a, y) - loss.gradient(b, y)) ** 2, loss) / rows((a - b) ** 2, loss))
        assert np.max(ratio) <= loss.curvature * (1 + 1e-12)


def test_lipschitz_bounds_the_slopes(loss: Any) -> None:
    """No slope is larger than the declared constant, and with one output the largest predictors reach it."""
    z, y = draw(loss, m=300, scale=10.0)
    sizes = np.sqrt(rows(loss.gradient(z, y) ** 2, loss))
    assert np.max(sizes) <= loss.lipschitz * (1 + 1e-12)
    if loss.outputs == 1 and math.isfinite(loss.lipschitz):
        ends = [np.max(np.abs(loss.gradient(end * np.ones_like(z), y))) for end in (-1e6, 1e6)]
        assert max(ends) == pytest.approx(loss.lipschitz, rel=1e-12)


def test_curvature_is_tight(loss: Any) -> None:
    """Some pair of points reaches the declared constant, or any constant if it is infinite."""
    if loss.outputs == 1:  # a grid that contains the kinks, y - z = 0 and y z = 1
        z = (10.0 if is_steep(loss) else 1.0) * np.linspace(-2.0, 2.0, 401)
        y = np.zeros_like(z) if loss.labels == "real" and not hasattr(loss, "label_domain") else np.ones_like(z)
        candidates = [np.ones_like(z)]
    else:  # all but some classes of negligible probability
        z = np.asarray(list(itertools.product([0.0, -40.0], repeat=loss.outputs))).T
        y = np.zeros(z.shape[1], dtype=int)
        signs = itertools.product([-1.0, 0.0, 1.0], repeat=loss.outputs)
        candidates = [np.asarray(d)[:, None] for d in signs if any(d)]
    h, best = 1e-5, 0.0
    for d in candidates:
        change = loss.gradient(z + h * d, y) - loss.gradient(z - h * d, y)
        norm = np.sqrt(rows(d**2 + 0 * z, loss))
        best = max(best, np.max(np.sqrt(rows(change**2, loss)) / (2 * h * norm)))
    assert best >= (0.99 * loss.curvature if math.isfinite(loss.curvature) else 0.1 / h)


def test_fenchel_young(loss: Any) -> None:
    """The inequality holds at any dual point, with equality at the gradient."""
    z, y = draw(loss, m=300)
    for seed in range(5):
        u = feasible(loss, y, seed=seed)
        gap = loss.value(z, y) + loss.conjugate(u, y) - rows(u * z, loss)
        assert np.all(np.isfinite(gap))
        assert np.min(gap) >= -1e-13 * (1 + np.max(np.abs(z)))
    gradient = loss.gradient(z, y)
    gap = loss.value(z, y) + loss.conjugate(gradient, y) - rows(gradient * z, loss)
    assert np.max(np.abs(gap)) <= 1e-13 * (1 + np.max(np.abs(z)) * (1 + np.max(np.abs(y))))


def test_conjugate_is_the_supremum(loss: Any) -> None:
    """The conjugate is the supremum: a numerical maximiser finds the same number."""
    optimize = pytest.importorskip("scipy.optimize")
    m = 6
    y = labels(loss, (m,), np.random.default_rng(7))
    u = feasible(loss, y, seed=8, scale=1.5)
    conjugate = loss.conjugate(u, y)
    for i in range(m):

        def negative(x, i=i):
            x = np.reshape(x, shape_of(loss, 1))
            inner = np.sum(u[..., i : i + 1] * x)
            return float(loss.value(x, y[i : i + 1])[0] - inner)

        if loss.outputs == 1:
            best: Any = optimize.minimize_scalar(negative, bounds=(-60, 60), options={"xatol": 1e-10})
        else:
            best = optimize.minimize(negative, np.zeros(loss.outputs), method="BFGS", options={"gtol": 1e-6})
        assert conjugate[i] == pytest.approx(-best.fun, abs=1e-8)


class Ray(NamedTuple):
    """Rows in one direction, shape ``(outputs, rows)`` or ``(rows,)``, and the loss at infinity."""

    direction: np.ndarray
    slope: np.ndarray
    gradient: np.ndarray
    grows: np.ndarray  # faster than linearly: every u is in the domain of these rows


def rays(loss: Any, y: np.ndarray) -> Iterator[Ray]:
    """Yield the rows in each direction."""
    far = 1e8
    for d in directions(loss):
        ray = np.broadcast_to(d, shape_of(loss, len(y)))
        slope = (loss.value(2 * far * ray, y) - loss.value(far * ray, y)) / far
        yield Ray(ray, slope, loss.gradient(1e4 * ray, y), slope > 1e6)


def bounded_directions(loss: Any) -> int:
    """Return in how many directions the domain of the conjugate is bounded for some rows."""
    return sum(not np.all(found.grows) for found in rays(loss, labels(loss, (40,), np.random.default_rng(9))))


def test_conjugate_outside_its_domain(loss: Any) -> None:
    """Where ``u`` exceeds the slope of the loss at infinity in some direction, the conjugate is infinite."""
    y = labels(loss, (40,), np.random.default_rng(9))
    for ray, slope, gradient, grows in rays(loss, y):
        assert np.all(np.isfinite(loss.conjugate(1e3 * ray, y)[grows]))
        if np.all(grows):
            continue
        assert np.all(np.isfinite(loss.conjugate(gradient, y)))
        for excess in (1e-6, 1.0):
            u = gradient + excess * ray
            assert np.all((rows(u * ray, loss) > slope + excess / 2) | grows)
            assert np.all((loss.conjugate(u, y) == np.inf) | grows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_conjugate_is_finite_at_every_gradient(loss: Any, dtype: Any) -> None:
    """Rounding of a gradient does not put it outside."""
    for scale in (1e-3, 1.0, 30.0, 1e3):
        rng = np.random.default_rng(10)
        z = (scale * rng.normal(size=shape_of(loss, 3000))).astype(dtype)
        y = labels(loss, (3000,), rng, dtype)
        assert np.all(np.isfinite(loss.conjugate(loss.gradient(z, y), y)))


@pytest.mark.parametrize("step", [1e-3, 0.1, 1.0, 7.0, 1e3])
@pytest.mark.parametrize("scale", [0.5, 5.0, 50.0])
def test_prox(loss: Any, scale: Any, step: Any) -> None:
    """The proximal point satisfies the optimality condition and no point near it is better."""
    z, y = draw(loss, m=100, scale=scale)
    x = loss.prox(z, y, step)
    assert_prox(loss, x, z, y, step)

    def objective(w):
        return loss.value(w, y) + rows((w - z) ** 2, loss) / (2 * step)

    rng = np.random.default_rng(11)
    lowest = objective(x)
    for size in (1e-4, 1e-2, 1.0):
        other = objective(x + size * rng.normal(size=z.shape))
        assert np.all(lowest <= other + 8 * EPS * (lowest + np.abs(other)))


def test_prox_with_a_step_per_row(loss: Any) -> None:
    """An array of steps gives what each row alone gives."""
    z, y = draw(loss)
    steps = np.exp(np.random.default_rng(12).normal(size=y.shape))
    expected = np.concatenate([loss.prox(z[..., [i]], y[[i]], steps[i]) for i in range(y.size)], axis=-1)
    np.testing.assert_allclose(loss.prox(z, y, steps), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("step", [0.0, -1.0, math.nan, math.inf])
def test_prox_refuses_a_step(loss: Any, step: Any) -> None:
    """A step that is not positive and finite is refused, alone or among others."""
    z, y = draw(loss)
    with pytest.raises(ValueError, match=r"^step must be positive and finite, got"):
        loss.prox(z, y, step)
    with pytest.raises(ValueError, match=r"^step must be positive and finite, got"):
        loss.prox(z, y, np.where(np.arange(y.size) == 3, step, 1.0))


def test_is_a_loss(loss: Any) -> None:
    """A loss follows the protocol, pickles, and is frozen and keyword-only."""
    assert loss.labels in ("real", "binary", "class")
    assert isinstance(loss.curvature, float)
    assert isinstance(loss.outputs, int)
    assert (loss.outputs > 1) == (loss.labels == "class")
    assert pickle.loads(pickle.dumps(loss)) == loss
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.delta = 2.0
    if dataclasses.fields(loss):
        with pytest.raises(TypeError):
            type(loss)(1.0)
    assert isinstance(loss, Loss)


def test_what_is_predicted_is_the_label_of_least_loss(loss: Any) -> None:
    """A model predicts ``mean(z)``, or ``z`` itself: of all predictors none explains that label better than ``z``."""
    if loss.labels != "real":
        return
    z = np.random.default_rng(5).normal(size=40)
    label = loss.mean(z) if hasattr(loss, "mean") else z
    here = loss.value(z, label)
    for d in (1e-2, 0.1, 1.0):
        assert np.all(here <= loss.value(z + d, label) + 64 * EPS)
        assert np.all(here <= loss.value(z - d, label) + 64 * EPS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_are_those_of_the_likelihood(loss: Any, dtype: Any) -> None:
    """Slopes have the mean 0 under them; they are in [0, 1], also where the predictor is large; types are kept."""
    if loss.labels == "real" or not hasattr(loss, "mean"):
        return
    z = draw(loss, scale=4.0)[0].astype(dtype)
    eps, m = float(np.finfo(dtype).eps), z.shape[-1]
    p = loss.mean(z)
    assert p.dtype == z.dtype
    if loss.labels == "binary":
        each = [(1.0, p), (-1.0, loss.mean(-z))]
        codes = [(np.full(m, y, dtype), q) for y, q in each]
        np.testing.assert_allclose(p + loss.mean(-z), 1.0, rtol=4 * eps)
    else:
        codes = [(np.full(m, c), p[c]) for c in range(loss.outputs)]
        np.testing.assert_allclose(p.sum(axis=0), 1.0, rtol=4 * loss.outputs * eps)
    slope = sum(q * loss.gradient(z, y) for y, q in codes)
    np.testing.assert_allclose(slope, 0.0, atol=8 * loss.outputs * eps)
    far = loss.mean(np.where(np.arange(m) % 2 == 0, 1e4, -1e4).astype(dtype) + 0 * z)
    assert np.all((far >= 0) & (far <= 1))


@pytest.mark.skipif(find_spec("array_api_strict") is None, reason="array-api-strict is not installed")
@pytest.mark.array_api
def test_means_of_strict_arrays(loss: Any) -> None:
    """Predictions use the standard alone."""
    import array_api_strict as strict

    if hasattr(loss, "mean"):
        z, where = arguments(loss)["z"], strict.Device("device1")
        found = loss.mean(strict.asarray(z, device=where))
        assert found.device == where
        np.testing.assert_allclose(to_numpy(found), loss.mean(z), rtol=8 * EPS)
