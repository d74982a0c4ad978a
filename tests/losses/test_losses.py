"""Contract of every loss in dualopt.losses: a new file there is tested without being named here.

What serves losses in files of users' own, too, is in ``dualopt/lab/contracts/test_losses.py``; here is what is about
ours.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import special

import dualopt.losses
import dualopt.losses as package
from dualopt.lab.contracts.test_losses import *  # noqa: F403
from dualopt.lab.contracts.test_losses import (
    EPS,
    VARIANTS,
    assert_prox,
    bounded_directions,
    directions,
    draw,
    is_steep,
    rows,
    shape_of,
)
from dualopt.losses import (
    AbsoluteDeviation,
    Gamma,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Multinomial,
    Poisson,
    Quantile,
    SmoothedHinge,
    SquaredHinge,
)
from dualopt.losses._checks import positive_step, project_to_interval
from dualopt.losses._wright_omega import wright_omega
from dualopt.spec.discover import discover

pytestmark = pytest.mark.filterwarnings("error")


CLASSES: list[Any] = list(discover(dualopt.losses).values())
LOSSES = [cls(**cls.example) for cls in CLASSES] + VARIANTS
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


# What each function is.

DEFINITIONS = {
    "AbsoluteDeviation": lambda loss, z, y: np.abs(z - y),
    "Gamma": lambda loss, z, y: y / np.exp(z) - 1 - np.log(y / np.exp(z)),
    "Hinge": lambda loss, z, y: np.where(y * z < 1, 1 - y * z, 0),
    "Huber": lambda loss, z, y: special.huber(loss.delta, z - y),
    "Logistic": lambda loss, z, y: np.log(1 + np.exp(-y * z)),
    "Multinomial": lambda loss, z, y: -special.log_softmax(z, axis=0)[y, np.arange(y.size)],
    "Poisson": lambda loss, z, y: special.kl_div(y, np.exp(z)),
    "Quantile": lambda loss, z, y: np.where(z < y, loss.level * (y - z), (1 - loss.level) * (z - y)),
    "SmoothedHinge": lambda loss, z, y: np.select(
        [y * z >= 1, y * z <= 1 - loss.gamma], [0, 1 - y * z - loss.gamma / 2], (1 - y * z) ** 2 / (2 * loss.gamma)
    ),
    "Squared": lambda loss, z, y: (z - y) ** 2 / 2,
    "SquaredHinge": lambda loss, z, y: np.where(y * z < 1, (1 - y * z) ** 2, 0),
}
LARGE = [  # value of the loss at a predictor of 1e4 and -1e4, worked out by hand
    ("AbsoluteDeviation", 2.0, 9998.0, 10002.0),
    ("Hinge", 1.0, 0.0, 10001.0),
    ("Huber", 2.0, 9997.5, 10001.5),
    ("Logistic", 1.0, 0.0, 10000.0),
    ("Quantile", 2.0, 4999.0, 5001.0),
    ("SmoothedHinge", 1.0, 0.0, 10000.5),
    ("Squared", 0.0, 5e7, 5e7),
    ("SquaredHinge", 1.0, 0.0, 100020001.0),
]


@every_loss
def test_value_is_the_definition(loss):
    if type(loss).__name__ not in DEFINITIONS:
        pytest.skip("no definition given")
    z, y = draw(loss)
    expected = DEFINITIONS[type(loss).__name__](loss, z, y)
    np.testing.assert_allclose(loss.value(z, y), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("name", "label", "at_plus", "at_minus"), LARGE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_scalar_predictors(name, label, at_plus, at_minus, dtype):
    loss = getattr(package, name)()
    z, y = np.asarray([1e4, -1e4], dtype=dtype), np.full(2, label, dtype=dtype)
    np.testing.assert_allclose(loss.value(z, y), [at_plus, at_minus], rtol=1e-7 if dtype == np.float32 else 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_multinomial_predictors(dtype):
    z = np.asarray([[1e4, 1e4, -1e4], [-1e4, 1e4, -1e4], [-1e4, -1e4, -1e4]], dtype=dtype)
    loss = Multinomial(classes=3)
    expected = np.asarray([2e4, math.log(2), math.log(3)])
    np.testing.assert_allclose(loss.value(z, np.asarray([1, 1, 1])), expected, rtol=2 * np.finfo(dtype).eps)
    expected = np.asarray([[1, 0.5, 1 / 3], [-1, -0.5, -2 / 3], [0, 0, 1 / 3]])
    np.testing.assert_allclose(loss.gradient(z, np.asarray([1, 1, 1])), expected, rtol=0, atol=2e-7)


@every_loss
def test_where_domains_are_bounded(loss):
    one_side = isinstance(loss, Gamma | Poisson)  # slopes to the other side are not bounded, whatever the label
    assert bounded_directions(loss) == (0 if type(loss).__name__ == "Squared" else len(directions(loss)) - one_side)


INTERVALS = [Logistic(), Hinge(), SmoothedHinge(), AbsoluteDeviation(), Huber(delta=100.0), Quantile()]


@pytest.mark.parametrize("loss", INTERVALS)
def test_conjugate_forgives_the_stated_rounding_of_an_interval(loss):
    """Eight units of rounding, relative to the end of the interval, count as inside, and no more."""
    y = np.asarray([1.0, -1.0])
    end = loss.gradient(-1e4 * y, y)
    assert np.all(np.abs(end) == getattr(loss, "delta", getattr(loss, "level", 1.0)))
    assert np.array_equal(loss.conjugate(end * (1 + 4 * EPS), y), loss.conjugate(end, y))
    assert np.all(loss.conjugate(end * (1 + 20 * EPS), y) == np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_conjugate_forgives_the_stated_rounding_of_the_simplex(dtype):
    """A negative part and a wrong sum count as inside up to ``4 k eps`` each, and no more, either way."""
    loss, y, eps = Multinomial(classes=4), np.zeros(1, dtype=int), np.finfo(dtype).eps
    # u + e_0 = (1, 0, 0, 0) + change. All entries are multiples of eps, so that the arithmetic is exact.
    for change in ([1, -1, 0, 0], [1, 0, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]):
        u = np.asarray(change, dtype=dtype)[:, None] * eps
        np.testing.assert_allclose(loss.conjugate(8 * u, y), 0.0, atol=1e3 * eps)
        assert loss.conjugate(32 * u, y) == np.inf


# Proximal operators.


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
    t = np.concatenate([np.linspace(-60, 60, 4001), np.geomspace(60, 1e12, 100), [1.0, np.nextafter(1, 2)]])
    np.testing.assert_allclose(wright_omega(t), special.wrightomega(t), rtol=60 * EPS)  # exp(t) loses |t| eps


# Losses with a logarithmic link, whose slopes and second derivatives grow exponentially, against 60 digits.

STEEP_LABELS = {
    "Poisson": [0.0, 1e-200, 1e-8, 0.3, 1.0, 7.0, 1e3, 1e9],
    "Gamma": [1e-150, 1e-8, 0.3, 1.0, 7.0, 1e3, 1e9],
}


def exact_steep(loss, z, y):
    """The value, the slope and the second derivative."""
    z, y = mpf(float(z)), mpf(float(y))
    if isinstance(loss, Gamma):
        ratio = y * mp.exp(-z)
        return ratio - 1 - mp.log(ratio), 1 - ratio, ratio
    mean = mp.exp(z)
    return mean - y * z + (y * mp.log(y) - y if y else 0), mean - y, mean


def steep_points(loss, dtype, seed=0):
    """Predictors far from and near to the best one, for labels of all sizes."""
    rng = np.random.default_rng(seed)
    y = np.repeat([x for x in STEEP_LABELS[type(loss).__name__] if dtype == np.float64 or x in (0.0, 0.3, 7.0)], 40)
    y = y.astype(dtype)
    best = np.log(np.maximum(y, 1e-3))
    away = np.where(np.arange(y.size) % 2, 10.0 ** -rng.uniform(0, 12, y.size), rng.uniform(0, 30, y.size))
    return (best + away * rng.choice([-1, 1], y.size)).astype(dtype), y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", [Poisson(), Gamma()], ids=repr)
def test_errors_of_steep_losses_are_within_what_they_say(loss, dtype):
    """The stated bound of a value also is no more than a hundred units of its terms, so that it is worth something."""
    mp.dps = 60
    z, y = steep_points(loss, dtype)
    (value, slope), (off, slope_off) = loss.value_and_gradient(z, y), loss.rounding(z, y)
    eps = float(np.finfo(dtype).eps)
    for i in range(z.size):
        phi, derivative, growth = exact_steep(loss, z[i], y[i])
        assert abs(mpf(float(value[i])) - phi) <= off[i]
        assert abs(mpf(float(slope[i])) - derivative) <= slope_off[i]
        size = 1 + abs(float(z[i])) + abs(math.log(max(float(y[i]), 1e-78)))
        terms = phi + (abs(derivative) + growth + y[i] + 1) * size
        assert off[i] <= 100 * eps * terms
        assert slope_off[i] <= 100 * eps * terms
        product = loss.hessian_product(z[i : i + 1], y[i : i + 1], np.full(1, 2.0, dtype))[0]
        assert abs(mpf(float(product)) - 2 * growth) <= 16 * eps * size * growth


@pytest.mark.parametrize("loss", [Poisson(), Gamma()], ids=repr)
def test_single_labels_are_exact_beside_double_predictors(loss):
    """As in certificates of data in single precision: logarithms of labels are those of double precision."""
    z, y = steep_points(loss, np.float32)
    v, u = np.ones(z.size), loss.gradient(0.3 * z.astype(float), y.astype(float))
    for call in (
        lambda y: loss.value_and_gradient(z.astype(float), y),
        lambda y: (loss.hessian_product(z.astype(float), y, v), loss.prox(z.astype(float), y, 0.7)),
        lambda y: (loss.conjugate(u, y), *loss.rounding(z.astype(float), y)),
    ):
        for mixed, double in zip(call(y), call(y.astype(float)), strict=True):
            np.testing.assert_allclose(mixed, double, rtol=1e-14)


@pytest.mark.parametrize("loss", [Poisson(), Gamma()], ids=repr)
def test_conjugates_of_steep_losses(loss):
    """Slopes of the domain from its end to far inside, and near zero, where both logarithms cancel."""
    mp.dps = 60
    for label in STEEP_LABELS[type(loss).__name__]:
        unit = 1.0 if isinstance(loss, Gamma) else max(label, 1e-3)
        sign = -1.0 if isinstance(loss, Gamma) else 1.0
        parts = [-1.0, -1.0 + 1e-9, -0.7, -0.5, -1e-3, -1e-12, 0.0, 1e-12, 1e-3, 0.5, 0.7, 3.0, 1e6]
        u = sign * unit * np.asarray([part for part in parts if label or isinstance(loss, Gamma) or part >= 0])
        if isinstance(loss, Poisson):
            u = np.maximum(u, -label)
        for slope, found in zip(u, loss.conjugate(u, np.full_like(u, label)), strict=True):
            s, y = mpf(float(slope)), mpf(label)
            exact, logarithms = exact_supremum(loss, s, y)
            assert abs(mpf(float(found)) - exact) <= 8 * EPS * abs(s) * (2 + logarithms) + mpf(10) ** -50


def exact_supremum(loss, s, y):
    """``sup_z s z - phi(z)``, at its maximiser or in the limit, and the sizes of the logarithms in it."""
    log_y = mp.log(y) if y else mpf(0)
    a = 1 - s if isinstance(loss, Gamma) else s + y
    if not a:  # z -> inf, or -inf
        return (1 + log_y if isinstance(loss, Gamma) else y - y * log_y), abs(log_y)
    z = log_y - mp.log(a) if isinstance(loss, Gamma) else mp.log(a)
    phi = y * mp.exp(-z) + z - log_y - 1 if isinstance(loss, Gamma) else mp.exp(z) - y * z + y * log_y - y
    return s * z - phi, abs(mp.log(a)) + abs(log_y)


@pytest.mark.parametrize("loss", [Poisson(), Gamma()], ids=repr)
def test_proximal_points_of_steep_losses_at_all_scales(loss):
    """They solve ``x + s phi'(x) = z``, up to a few units of the terms over the slope of the left side."""
    mp.dps = 60
    z, label, step = (
        x.ravel()
        for x in np.meshgrid(
            [sign * 10.0**k for sign in (-1, 1) for k in range(-3, 5)],
            [x for x in STEEP_LABELS[type(loss).__name__] if x < 1e6],
            10.0 ** np.arange(-6.0, 5.0),
        )
    )
    for zi, y, s, x in zip(z, label, step, loss.prox(z, label, step), strict=True):
        zi, s, x = (mpf(float(t)) for t in (zi, s, x))
        _, slope, growth = exact_steep(loss, x, y)
        terms = abs(zi) + abs(x) * (1 + s * growth) + s * (abs(slope) + (1 if isinstance(loss, Gamma) else y))
        assert abs(x + s * slope - zi) <= 16 * EPS * terms


@pytest.mark.parametrize("loss", [Poisson(), Gamma()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tangents_of_steep_losses_lie_below(loss, dtype):
    """Where the exponential function leaves the type it is continued by its tangent: finite, convex, a lower bound."""
    mp.dps = 60
    end = 0.4 * math.log(float(np.finfo(dtype).max))
    z = np.asarray([0.5 * end, 0.99 * end, 1.01 * end, 1.2 * end, 1e4], dtype=dtype)
    z, y = (-z if isinstance(loss, Gamma) else z), np.ones(5, dtype=dtype)
    value, slope = loss.value_and_gradient(z, y)
    np.testing.assert_array_equal(loss.gradient(z, y), slope)
    assert np.all(np.diff(np.abs(slope)) >= 0)
    assert np.abs(slope[4]) == np.abs(slope[2])
    for i in range(5):
        phi, derivative, _ = exact_steep(loss, z[i], y[i])
        eps = 400 * float(np.finfo(dtype).eps) * phi
        assert value[i] <= phi + eps
        assert (i > 1) == (value[i] < phi - eps) or i == 2
        assert i > 1 or abs(slope[i] - derivative) <= abs(derivative) * 400 * float(np.finfo(dtype).eps)
    for bound in loss.rounding(z, y):
        np.testing.assert_array_equal(np.isinf(bound), np.arange(5) > 1)  # nothing is certified there


def test_a_quantile_of_one_half_is_half_the_absolute_deviation():
    z, y = draw(Quantile())
    for name in ("value", "gradient"):
        np.testing.assert_array_equal(getattr(Quantile(), name)(z, y), 0.5 * getattr(AbsoluteDeviation(), name)(z, y))
    np.testing.assert_array_equal(Quantile().prox(z, y, 2.0), AbsoluteDeviation().prox(z, y, 1.0))


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, math.nan, math.inf, None, True])
def test_quantile_refuses_a_level(level):
    with pytest.raises(ValueError, match=rf"^level must lie strictly between 0 and 1, got {level}"):
        Quantile(level=level)
    assert type(Quantile(level=np.float64(0.25)).level) is float  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_half_lines_forgive_the_stated_rounding(dtype):
    """Eight units of the end count as inside, twenty do not; and what is forgiven is the end."""
    eps = float(np.finfo(dtype).eps)

    def array(*numbers):
        return np.asarray(numbers, dtype=dtype)

    for loss, end, y in ((Poisson(), -4.0, 4.0), (Gamma(), 1.0, 4.0), (SquaredHinge(), 0.0, 1.0)):
        out = math.copysign(1.0, end) if end else 1.0
        size = abs(end) or 1.0
        at_end = loss.conjugate(array(end), array(y))
        assert np.isfinite(at_end)
        assert loss.conjugate(array(end + out * 4 * eps * size), array(y)) == at_end
        assert loss.conjugate(array(end + out * 20 * eps * size), array(y)) == np.inf


@pytest.mark.parametrize("loss", [Hinge(), AbsoluteDeviation(), Quantile(level=0.3)], ids=repr)
def test_losses_with_a_kink_at_the_label_are_linear_on_both_sides(loss):
    assert loss.kink_at_label
    y = np.asarray([1.0, -1.0])
    for side in (-1.0, 1.0):
        z = y + side * np.asarray([[1e-3], [1.0], [1e3]])
        slopes = loss.gradient(z, y)
        assert np.all(slopes == slopes[0])
        np.testing.assert_allclose(loss.value(z, y), slopes * (z - y), rtol=1e-12)
    assert np.all(loss.gradient(y + 1.0, y) - loss.gradient(y - 1.0, y) > 0)
    assert np.all(loss.value(y, y) == 0)


# Any predictor, label and step, kinks included: Hypothesis prefers round numbers.


@st.composite
def points(draw_from, loss):
    """Draw one row: predictor, another predictor, label and step."""
    reals = st.floats(-50, 50)
    near = st.floats(-8, 8) if is_steep(loss) else reals
    z, w = (
        np.reshape(draw_from(st.lists(near, min_size=loss.outputs, max_size=loss.outputs)), shape_of(loss, 1))
        for _ in range(2)
    )
    numbers = st.floats(0.0 if loss.label_domain == "nonnegative" else 1e-3, 50) if is_steep(loss) else reals
    kind = {"real": numbers, "binary": st.sampled_from([-1.0, 1.0]), "class": st.integers(0, loss.outputs - 1)}
    return z, w, np.asarray([draw_from(kind[loss.labels])]), draw_from(st.floats(1e-3, 1e3))


@every_loss
@given(data=st.data())
def test_any_point(loss, data):
    z, w, y, step = data.draw(points(loss))
    value, gradient = loss.value_and_gradient(z, y)
    assert value >= 0
    np.testing.assert_allclose(gradient, loss.gradient(z, y), rtol=2 * EPS, atol=EPS)
    rounding = 8 * EPS * (1 + np.max(np.abs(y)) + np.max(np.abs(z)) + np.max(np.abs(w))) ** 2
    if is_steep(loss):
        rounding *= 1 + max(np.abs(gradient), np.abs(loss.gradient(w, y)))
    assert loss.value(w, y) >= value + rows(gradient * (w - z), loss) - rounding  # convex, and a subgradient
    assert loss.value(z, y) + loss.conjugate(gradient, y) - rows(gradient * z, loss) <= rounding
    assert_prox(loss, loss.prox(z, y, step), z, y, step)


# Construction.


@pytest.mark.parametrize("cls", CLASSES)
def test_is_exported(cls):
    assert getattr(package, cls.__name__) is cls
    assert cls.__name__ in vars(package)["__all__"]


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, None])
@pytest.mark.parametrize(("cls", "name"), [(Huber, "delta"), (SmoothedHinge, "gamma")])
def test_refuses_a_parameter(cls, name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be positive and finite, got {value}"):
        cls(**{name: value})


def test_parameters_become_python_numbers():
    assert type(Huber(delta=np.float64(2.0)).delta) is float  # type: ignore[arg-type]
    assert type(SmoothedHinge(gamma=2).gamma) is float
    assert type(Multinomial(classes=np.int64(3)).classes) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("classes", [1, 0, -3, 2.0, True])
def test_refuses_a_number_of_classes(classes):
    with pytest.raises(ValueError, match=rf"^classes must be an integer of at least 2, got {classes}"):
        Multinomial(classes=classes)


@pytest.mark.parametrize("shape", [(5, 4), (4,), (3, 5)])
def test_multinomial_refuses_a_layout(shape):
    loss, z, y = Multinomial(classes=4), np.zeros(shape), np.zeros(5, dtype=int)
    for call in (loss.value, loss.gradient, loss.value_and_gradient, loss.conjugate):
        with pytest.raises(ValueError, match=r"^z must have 4 classes on axis -2, got shape"):
            call(z, y)
    with pytest.raises(ValueError, match=r"^z must have 4 classes on axis -2, got shape"):
        loss.prox(z, y, 1.0)


# The CVXPY expressions of the losses: references are computed from them, so they must be the losses.


LOSSES_CVXPY: list[Loss] = [kind(**kind.example) for kind in discover(dualopt.losses).values()]
LOSSES_CVXPY += [Quantile(level=0.8), Huber(delta=0.3), SmoothedHinge(gamma=0.25), Multinomial(classes=3)]


@pytest.mark.parametrize("loss", LOSSES_CVXPY, ids=repr)
def test_expressions_have_the_values_of_the_losses(loss: Loss) -> None:
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    m = 40
    z = 3.0 * rng.standard_normal(m if loss.outputs == 1 else (loss.outputs, m))
    y = {
        "real": rng.standard_normal(m) if not is_steep(loss) else rng.exponential(size=m),
        "binary": np.sign(rng.standard_normal(m)),
        "class": rng.integers(0, loss.outputs, m),
    }[loss.labels]
    np.testing.assert_allclose(loss.cvxpy(cp.Constant(z), y).value, loss.value(z, y), rtol=1e-13, atol=1e-14)


# What the losses do at the ends of their pieces and domains: the docstrings say so.


@pytest.mark.parametrize("loss", [Hinge()], ids=repr)
def test_a_margin_of_one_needs_no_step(loss: Hinge) -> None:
    y = np.array([1.0, -1.0])
    assert np.all(loss.gradient(y, y) == 0.0)
    assert np.all(loss.value_and_gradient(y, y)[1] == 0.0)
    assert np.all(loss.gradient(0.5 * y, y) == -y)


@pytest.mark.parametrize("loss", [Huber(delta=0.5)], ids=repr)
def test_curvature_is_taken_from_inside(loss: Huber) -> None:
    z, y, v = np.array([0.5, -0.5, 0.75]), np.zeros(3), np.array([2.0, 3.0, 4.0])
    np.testing.assert_array_equal(loss.hessian_product(z, y, v), [2.0, 3.0, 0.0])


def test_intervals_forgive_eight_units_in_the_last_place() -> None:
    eps = float(np.finfo(np.float64).eps)
    a = np.array([1.0 + 8.0 * eps, 1.0 + 9.0 * eps, -1.0 - 8.0 * eps, -1.0 - 9.0 * eps])
    projected, inside = project_to_interval(a, -1.0, 1.0)
    np.testing.assert_array_equal(projected, [1.0, 1.0, -1.0, -1.0])
    np.testing.assert_array_equal(inside, [True, False, True, False])
    np.testing.assert_array_equal(project_to_interval(a[2:], -1.0, 0.0)[1], [True, False])


def test_steps_get_the_type_of_the_predictor() -> None:
    z = np.ones(2, dtype=np.float32)
    for step in (0.5, np.array([0.5, 0.5]), np.array([0.5, 0.5], dtype=np.float32)):
        assert positive_step(step, z).dtype == np.float32
    own = np.array([0.5, 0.5], dtype=np.float32)
    assert positive_step(own, z) is own
