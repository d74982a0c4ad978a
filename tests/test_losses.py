"""Contract of every loss in dualopt.losses: a new file there is tested without being named here."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import itertools
import math
import pickle
import pkgutil
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import optimize, special

import dualopt.losses as package
from dualopt.losses import AbsoluteDeviation, Hinge, Huber, Logistic, Loss, Multinomial, SmoothedHinge
from dualopt.losses._wright_omega import wright_omega
from dualopt.xp import to_numpy

pytestmark = pytest.mark.filterwarnings("error")

EPS = float(np.finfo(np.float64).eps)


def discovered() -> list[type]:
    """Return the public dataclass of every module of the package, checking that there is exactly one."""
    found = []
    for info in pkgutil.iter_modules(package.__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        own = [c for _, c in inspect.getmembers(module, inspect.isclass) if c.__module__ == module.__name__]
        public = [c for c in own if dataclasses.is_dataclass(c) and not c.__name__.startswith("_")]
        assert len(public) == 1, f"{info.name} must define one public dataclass, found {public}"
        found += public
    return found


CLASSES = discovered()
# Parameters other than the defaults, where a forgotten factor of 1 would not show.
VARIANTS = [Huber(delta=0.3), SmoothedHinge(gamma=0.25), Multinomial(classes=2)]
LOSSES = [cls(**cls.example) for cls in CLASSES] + VARIANTS  # type: ignore[attr-defined]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


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
        return (3.0 * rng.normal(size=shape)).astype(dtype)
    if loss.labels == "binary":
        return rng.choice(np.asarray([-1.0, 1.0], dtype=dtype), shape)
    return rng.integers(0, loss.outputs, shape)


def draw(loss, m=60, seed=0, scale=3.0):
    """Draw predictors and labels; a continuous law keeps away from kinks."""
    rng = np.random.default_rng(seed)
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
    gradients = [loss.gradient(scale * rng.normal(size=shape_of(loss, y.shape[-1])), y) for _ in range(2)]
    part = spread(rng.uniform(size=y.shape), loss)
    return part * gradients[0] + (1.0 - part) * gradients[1]


def assert_prox(loss, x, z, y, step):
    """Assert that ``(z - x) / step`` is a subgradient at ``x``, by equality or Fenchel-Young equality."""
    rounding = EPS * (np.max(np.abs(z)) + np.max(np.abs(y)) + step)
    if math.isfinite(loss.curvature):
        # The Jacobian of the residual is at least I, so this bounds the error of x too.
        residual = z - x - step * loss.gradient(x, y)
        assert np.max(np.abs(residual)) <= 8 * rounding * (1 + step * loss.curvature)
        return
    ends = [loss.gradient(np.full_like(z, end), y) for end in (-1e8, 1e8)]
    u = (z - x) / step
    inside = np.clip(u, ends[0], ends[1])  # division by a small step magnifies rounding out of the domain
    assert np.max(np.abs(u - inside)) <= 8 * rounding / step
    gap = loss.value(x, y) + loss.conjugate(inside, y) - inside * x
    assert np.max(np.abs(gap)) <= 8 * rounding * (1 + np.max(np.abs(z - y)) / step)


# What each method does, on arrays of any library.

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
@every_loss
def test_read_only_numpy(loss, call):
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
@every_loss
def test_single_precision(loss, call):
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


@pytest.mark.parametrize("device", ["CPU_DEVICE", "device1"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("call", CALLS)
@every_loss
def test_strict_array_api(loss, call, dtype, device):
    """Only the standard is used, and library, type and device of the arguments are kept."""
    where = strict.Device(device)
    args = mapped(arguments(loss), lambda a: a.astype(dtype), lambda a: a)
    result = CALLS[call](loss, {k: strict.asarray(a, device=where) for k, a in args.items()})
    expected = CALLS[call](loss, args)
    assert type(result) is type(strict.asarray(0.0))
    assert (result.dtype, result.device) == (getattr(strict, dtype), where)
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(to_numpy(result), expected, rtol=8 * eps, atol=8 * eps)


@every_loss
def test_leading_axes(loss):
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


# What each function is.

DEFINITIONS = {
    "AbsoluteDeviation": lambda loss, z, y: np.abs(z - y),
    "Hinge": lambda loss, z, y: np.where(y * z < 1, 1 - y * z, 0),
    "Huber": lambda loss, z, y: special.huber(loss.delta, z - y),
    "Logistic": lambda loss, z, y: np.log(1 + np.exp(-y * z)),
    "Multinomial": lambda loss, z, y: -special.log_softmax(z, axis=0)[y, np.arange(y.size)],
    "SmoothedHinge": lambda loss, z, y: np.select(
        [y * z >= 1, y * z <= 1 - loss.gamma],
        [0, 1 - y * z - loss.gamma / 2],
        (1 - y * z) ** 2 / (2 * loss.gamma),
    ),
    "Squared": lambda loss, z, y: (z - y) ** 2 / 2,
}
LARGE = [  # value of the loss at a predictor of 1e4 and -1e4, worked out by hand
    ("AbsoluteDeviation", 2.0, 9998.0, 10002.0),
    ("Hinge", 1.0, 0.0, 10001.0),
    ("Huber", 2.0, 9997.5, 10001.5),
    ("Logistic", 1.0, 0.0, 10000.0),
    ("SmoothedHinge", 1.0, 0.0, 10000.5),
    ("Squared", 0.0, 5e7, 5e7),
]


@every_loss
def test_value_is_the_definition(loss):
    """The value is the textbook formula, written once more."""
    if type(loss).__name__ not in DEFINITIONS:
        pytest.skip("no definition given")
    z, y = draw(loss)
    expected = DEFINITIONS[type(loss).__name__](loss, z, y)
    np.testing.assert_allclose(loss.value(z, y), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("name", "label", "at_plus", "at_minus"), LARGE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_scalar_predictors(name, label, at_plus, at_minus, dtype):
    """Values at large predictors are those worked out by hand."""
    loss = getattr(package, name)()
    z, y = np.asarray([1e4, -1e4], dtype=dtype), np.full(2, label, dtype=dtype)
    np.testing.assert_allclose(loss.value(z, y), [at_plus, at_minus], rtol=1e-7 if dtype == np.float32 else 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_multinomial_predictors(dtype):
    """Values and gradients at large predictors are those worked out by hand."""
    z = np.asarray([[1e4, 1e4, -1e4], [-1e4, 1e4, -1e4], [-1e4, -1e4, -1e4]], dtype=dtype)
    loss = Multinomial(classes=3)
    expected = np.asarray([2e4, math.log(2), math.log(3)])
    np.testing.assert_allclose(loss.value(z, np.asarray([1, 1, 1])), expected, rtol=2 * np.finfo(dtype).eps)
    expected = np.asarray([[1, 0.5, 1 / 3], [-1, -0.5, -2 / 3], [0, 0, 1 / 3]])
    np.testing.assert_allclose(loss.gradient(z, np.asarray([1, 1, 1])), expected, rtol=0, atol=2e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_loss
def test_large_predictors(loss, dtype):
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


# Derivatives.


@every_loss
def test_gradient_is_the_derivative(loss):
    """The gradient agrees with central differences of the value."""
    z, y = draw(loss)
    gradient, h = loss.gradient(z, y), 1e-5
    for d in directions(loss):
        difference = (loss.value(z + h * d, y) - loss.value(z - h * d, y)) / (2 * h)
        np.testing.assert_allclose(rows(gradient * d, loss), difference, rtol=0, atol=1e-8)


@every_loss
def test_value_and_gradient_are_the_two(loss):
    """One pass gives what two give, and the value is never negative."""
    z, y = draw(loss, scale=10.0)
    value, gradient = loss.value_and_gradient(z, y)
    np.testing.assert_allclose(value, loss.value(z, y), rtol=2 * EPS, atol=0)
    np.testing.assert_allclose(gradient, loss.gradient(z, y), rtol=2 * EPS, atol=EPS)
    assert np.all(value >= 0)
    assert loss.nonnegative


@every_loss
def test_hessian_product(loss):
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


@every_loss
def test_curvature_bounds_the_gradient(loss):
    """The gradient is Lipschitz with the declared constant."""
    for scale in (0.1, 1.0, 10.0):
        a, y = draw(loss, m=300, scale=scale)
        b = a + np.random.default_rng(6).normal(size=a.shape)
        ratio = np.sqrt(rows((loss.gradient(a, y) - loss.gradient(b, y)) ** 2, loss) / rows((a - b) ** 2, loss))
        assert np.max(ratio) <= loss.curvature * (1 + 1e-12)


@every_loss
def test_curvature_is_tight(loss):
    """Some pair of points reaches the declared constant, or any constant if it is infinite."""
    if loss.outputs == 1:  # a grid that contains the kinks, y - z = 0 and y z = 1
        z = np.linspace(-2.0, 2.0, 401)
        y = np.zeros_like(z) if loss.labels == "real" else np.ones_like(z)
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


# Conjugates.


@every_loss
def test_fenchel_young(loss):
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


@every_loss
def test_conjugate_is_the_supremum(loss):
    """A numerical maximiser finds the same number."""
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


@every_loss
def test_conjugate_outside_its_domain(loss):
    """Where ``u`` exceeds the slope of the loss at infinity in some direction, the supremum is infinite."""
    m, far = 40, 1e8
    y = labels(loss, (m,), np.random.default_rng(9))
    bounded = 0
    for d in directions(loss):
        ray = np.broadcast_to(d, shape_of(loss, m))
        slope = (loss.value(2 * far * ray, y) - loss.value(far * ray, y)) / far
        at_end = loss.gradient(1e4 * ray, y)
        if np.min(slope) > 1e6:  # grows faster than linearly: every u is in the domain
            assert np.all(np.isfinite(loss.conjugate(1e3 * ray, y)))
            continue
        bounded += 1
        assert np.all(np.isfinite(loss.conjugate(at_end, y)))
        for excess in (1e-6, 1.0):
            u = at_end + excess * ray
            assert np.all(rows(u * ray, loss) > slope + excess / 2)
            assert np.all(loss.conjugate(u, y) == np.inf)
    if type(loss).__name__ in DEFINITIONS:
        assert bounded == (0 if type(loss).__name__ == "Squared" else len(directions(loss)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_loss
def test_conjugate_is_finite_at_every_gradient(loss, dtype):
    """Rounding of a gradient does not put it outside."""
    for scale in (1e-3, 1.0, 30.0, 1e3):
        rng = np.random.default_rng(10)
        z = (scale * rng.normal(size=shape_of(loss, 3000))).astype(dtype)
        y = labels(loss, (3000,), rng, dtype)
        assert np.all(np.isfinite(loss.conjugate(loss.gradient(z, y), y)))


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), SmoothedHinge(), AbsoluteDeviation(), Huber(delta=100.0)])
def test_conjugate_forgives_the_stated_rounding_of_an_interval(loss):
    """Eight units of rounding, relative to the end of the interval, are forgiven and no more."""
    y = np.asarray([1.0, -1.0])
    end = loss.gradient(-1e4 * y, y)
    assert np.all(np.abs(end) == getattr(loss, "delta", 1.0))
    assert np.array_equal(loss.conjugate(end * (1 + 4 * EPS), y), loss.conjugate(end, y))
    assert np.all(loss.conjugate(end * (1 + 20 * EPS), y) == np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_conjugate_forgives_the_stated_rounding_of_the_simplex(dtype):
    """A negative part and a wrong sum are forgiven up to ``4 k eps`` each, and no more, either way."""
    loss, y, eps = Multinomial(classes=4), np.zeros(1, dtype=int), np.finfo(dtype).eps
    # u + e_0 = (1, 0, 0, 0) + change. All entries are multiples of eps, so that the arithmetic is exact.
    for change in ([1, -1, 0, 0], [1, 0, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]):
        u = np.asarray(change, dtype=dtype)[:, None] * eps
        np.testing.assert_allclose(loss.conjugate(8 * u, y), 0.0, atol=1e3 * eps)
        assert loss.conjugate(32 * u, y) == np.inf


# Proximal operators.


@pytest.mark.parametrize("step", [1e-3, 0.1, 1.0, 7.0, 1e3])
@pytest.mark.parametrize("scale", [0.5, 5.0, 50.0])
@every_loss
def test_prox(loss, scale, step):
    """The result satisfies the optimality condition and no point near it is better."""
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


@every_loss
def test_prox_with_a_step_per_row(loss):
    """An array of steps gives what each row alone gives."""
    z, y = draw(loss)
    steps = np.exp(np.random.default_rng(12).normal(size=y.shape))
    expected = np.concatenate([loss.prox(z[..., [i]], y[[i]], steps[i]) for i in range(y.size)], axis=-1)
    np.testing.assert_allclose(loss.prox(z, y, steps), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("step", [0.0, -1.0, math.nan, math.inf])
@every_loss
def test_prox_refuses_a_step(loss, step):
    """A step that is not positive and finite is refused, alone or among others."""
    z, y = draw(loss)
    with pytest.raises(ValueError, match=r"^step must be positive and finite, got"):
        loss.prox(z, y, step)
    with pytest.raises(ValueError, match=r"^step must be positive and finite, got"):
        loss.prox(z, y, np.where(np.arange(y.size) == 3, step, 1.0))


@pytest.mark.parametrize("step", [1e-3, 1.0, 1e3, 1e8])
def test_logistic_prox_against_bisection(step):
    """A bracketing root finder finds the same point, for tiny and huge steps."""
    z = np.asarray([-40.0, -3.0, 0.0, 0.5, 20.0])
    x = Logistic().prox(z, np.ones(5), step)
    for zi, xi in zip(z, x, strict=True):

        def residual(w, zi=zi):
            return w - zi - step * special.expit(-w)

        root = optimize.brentq(residual, zi - 1.0, zi + step + 1.0, xtol=1e-14)
        assert xi == pytest.approx(root, abs=1e-12 * max(1.0, step / 1e3))


def test_logistic_prox_is_right_to_rounding_at_all_scales():
    """Its margin x solves ``h(x) = x - b - s sigma(-x) = 0``.

    Rounding moves x by no more than the few units of its terms, over h', and of x itself. Near b = -s/2 the margin is
    zero, and the terms cancel.
    """
    mp.dps = 40
    near = [-0.5 * (1.0 + sign * 10.0**-k) for sign in (-1, 0, 1) for k in (0, 0.3, 0.6, 1, 2, 5, 9, 13)]
    far = [sign * 10.0**k for sign in (-1, 1) for k in range(-4, 8)]
    s = np.repeat(10.0 ** np.arange(-12.0, 13.0), 48)
    b = np.tile(np.concatenate([near, far]), 25) * np.where(np.arange(s.size) % 48 < 24, s, 1.0)
    for bi, si, xi in zip(b, s, Logistic().prox(b, np.ones_like(b), s), strict=True):
        bi, si, xi = (mpf(float(t)) for t in (bi, si, xi))
        p = 1 / (1 + mp.exp(xi))
        slope = 1 + si * p * (1 - p)
        size = abs(xi) + (abs(xi - bi) + abs(bi) + si * p) / slope
        assert abs(xi - bi - si * p) <= 4 * EPS * size * slope


@pytest.mark.parametrize("step", [1e-3, 1.0, 1e3])
def test_two_classes_are_the_logistic_loss(step):
    """With ``t = z_1 - z_0`` losses agree; the prox keeps ``z_0 + z_1`` and doubles the step for ``t``."""
    two = Multinomial(classes=2)
    z, y = draw(two, scale=5.0)
    t, sign = z[1] - z[0], 2.0 * y - 1.0
    np.testing.assert_allclose(two.value(z, y), Logistic().value(t, sign), rtol=1e-14, atol=1e-15)
    x, tx = two.prox(z, y, step), Logistic().prox(t, sign, 2 * step)
    np.testing.assert_allclose(x[1] - x[0], tx, rtol=0, atol=1e-15 * (10 + step))
    np.testing.assert_allclose(x[0] + x[1], z[0] + z[1], rtol=0, atol=1e-15 * (10 + step))


def test_multinomial_prox_with_many_classes_at_all_scales():
    """Predictors spread over many scales leave one class at a time: slow for Newton's method."""
    loss = Multinomial(classes=60)
    z = -np.geomspace(1e-3, 1e5, 60)[:, None] * np.ones((1, 2))
    y = np.asarray([0, 59])
    for step in (1.0, 1e2, 1e4):
        x = loss.prox(z, y, step)
        residual = z - x - step * loss.gradient(x, y)
        assert np.max(np.abs(residual)) <= 8 * EPS * (1e5 + step) * (1 + step / 2)


def test_wright_omega():
    """The function agrees with the complex implementation of SciPy."""
    t = np.concatenate([np.linspace(-60, 60, 4001), np.geomspace(60, 1e12, 100), [1.0, np.nextafter(1, 2)]])
    np.testing.assert_allclose(wright_omega(t), special.wrightomega(t), rtol=60 * EPS)  # exp(t) loses |t| eps


# Any predictor, label and step, kinks included: Hypothesis prefers round numbers.


@st.composite
def points(draw_from, loss):
    """Draw one row: predictor, another predictor, label and step."""
    reals = st.floats(-50, 50)
    z, w = (
        np.reshape(draw_from(st.lists(reals, min_size=loss.outputs, max_size=loss.outputs)), shape_of(loss, 1))
        for _ in range(2)
    )
    kind = {"real": reals, "binary": st.sampled_from([-1.0, 1.0]), "class": st.integers(0, loss.outputs - 1)}
    return z, w, np.asarray([draw_from(kind[loss.labels])]), draw_from(st.floats(1e-3, 1e3))


@every_loss
@given(data=st.data())
def test_any_point(loss, data):
    """Convexity, Fenchel-Young equality and the prox hold wherever they are tried."""
    z, w, y, step = data.draw(points(loss))
    value, gradient = loss.value_and_gradient(z, y)
    assert value >= 0
    np.testing.assert_allclose(gradient, loss.gradient(z, y), rtol=2 * EPS, atol=EPS)
    rounding = 8 * EPS * (1 + np.max(np.abs(y)) + np.max(np.abs(z)) + np.max(np.abs(w))) ** 2
    assert loss.value(w, y) >= value + rows(gradient * (w - z), loss) - rounding  # convex, and a subgradient
    assert loss.value(z, y) + loss.conjugate(gradient, y) - rows(gradient * z, loss) <= rounding
    assert_prox(loss, loss.prox(z, y, step), z, y, step)


# Construction.


@every_loss
def test_is_a_loss(loss):
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


@pytest.mark.parametrize("cls", CLASSES)
def test_is_exported(cls):
    """The package names every loss."""
    assert getattr(package, cls.__name__) is cls
    assert cls.__name__ in package.__all__


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize(("cls", "name"), [(Huber, "delta"), (SmoothedHinge, "gamma")])
def test_refuses_a_parameter(cls, name, value):
    """A parameter that is not positive and finite is refused."""
    with pytest.raises(ValueError, match=rf"^{name} must be positive and finite, got {value}"):
        cls(**{name: value})


def test_parameters_become_python_numbers():
    """NumPy numbers and integers are coerced, since they do not mix with every library."""
    assert type(Huber(delta=np.float64(2.0)).delta) is float  # type: ignore[arg-type]
    assert type(SmoothedHinge(gamma=2).gamma) is float
    assert type(Multinomial(classes=np.int64(3)).classes) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("classes", [1, 0, -3, 2.0, True])
def test_refuses_a_number_of_classes(classes):
    """Fewer than two classes, and numbers that are not integers, are refused."""
    with pytest.raises(ValueError, match=rf"^classes must be an integer of at least 2, got {classes}"):
        Multinomial(classes=classes)


@pytest.mark.parametrize("shape", [(5, 4), (4,), (3, 5)])
def test_multinomial_refuses_a_layout(shape):
    """Predictors stored rows first are refused, not misread."""
    loss, z, y = Multinomial(classes=4), np.zeros(shape), np.zeros(5, dtype=int)
    for call in (loss.value, loss.gradient, loss.value_and_gradient, loss.conjugate):
        with pytest.raises(ValueError, match=r"^z must have 4 classes on axis -2, got shape"):
            call(z, y)
    with pytest.raises(ValueError, match=r"^z must have 4 classes on axis -2, got shape"):
        loss.prox(z, y, 1.0)
