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
    rows,
    shape_of,
)
from dualopt.losses import AbsoluteDeviation, Hinge, Huber, Logistic, Loss, Multinomial, SmoothedHinge
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
    "Hinge": lambda loss, z, y: np.where(y * z < 1, 1 - y * z, 0),
    "Huber": lambda loss, z, y: special.huber(loss.delta, z - y),
    "Logistic": lambda loss, z, y: np.log(1 + np.exp(-y * z)),
    "Multinomial": lambda loss, z, y: -special.log_softmax(z, axis=0)[y, np.arange(y.size)],
    "SmoothedHinge": lambda loss, z, y: np.select(
        [y * z >= 1, y * z <= 1 - loss.gamma], [0, 1 - y * z - loss.gamma / 2], (1 - y * z) ** 2 / (2 * loss.gamma)
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
    assert bounded_directions(loss) == (0 if type(loss).__name__ == "Squared" else len(directions(loss)))


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), SmoothedHinge(), AbsoluteDeviation(), Huber(delta=100.0)])
def test_conjugate_forgives_the_stated_rounding_of_an_interval(loss):
    """Eight units of rounding, relative to the end of the interval, count as inside, and no more."""
    y = np.asarray([1.0, -1.0])
    end = loss.gradient(-1e4 * y, y)
    assert np.all(np.abs(end) == getattr(loss, "delta", 1.0))
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
    z, w, y, step = data.draw(points(loss))
    value, gradient = loss.value_and_gradient(z, y)
    assert value >= 0
    np.testing.assert_allclose(gradient, loss.gradient(z, y), rtol=2 * EPS, atol=EPS)
    rounding = 8 * EPS * (1 + np.max(np.abs(y)) + np.max(np.abs(z)) + np.max(np.abs(w))) ** 2
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
LOSSES_CVXPY += [Huber(delta=0.3), SmoothedHinge(gamma=0.25), Multinomial(classes=3)]


@pytest.mark.parametrize("loss", LOSSES_CVXPY, ids=repr)
def test_expressions_have_the_values_of_the_losses(loss: Loss) -> None:
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    m = 40
    z = 3.0 * rng.standard_normal(m if loss.outputs == 1 else (loss.outputs, m))
    y = {
        "real": rng.standard_normal(m),
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
