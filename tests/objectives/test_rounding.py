"""The bounds of rounding at sizes where each of their terms counts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from dualopt.arrays.xp import to_numpy
from dualopt.losses import AbsoluteDeviation, Hinge, Logistic, Multinomial, Poisson, Squared
from dualopt.objectives import Quadratic, linear_model
from dualopt.objectives import rows as rows_module
from dualopt.objectives._rounding import client_norm, gamma, tiny


@pytest.mark.parametrize(("exponent", "dtype"), [(52, np.float64), (23, np.float32)])
def test_gamma_of_as_many_terms_as_there_are_digits(exponent: int, dtype) -> None:
    like = np.zeros(1, dtype=dtype)
    shares = {0: 0.0, 2 ** (exponent - 2): 1.0 / 3.0, 2 ** (exponent - 1): 1.0, 2**exponent - 1: 2.0**exponent - 1.0}
    assert {n: gamma(n, like) for n in shares} == shares
    assert gamma(2**exponent, like) == gamma(2 ** (exponent + 1), like) == math.inf
    assert tiny(like) == (2.0**-1022 if dtype == np.float64 else 2.0**-126)


def test_gamma_bounds_the_error_of_a_sum() -> None:
    """To one are added 1023 numbers of half a unit in its last place, one after the other: all of them are lost."""
    n = 2**10
    terms = np.array([1.0] + [2.0**-53] * (n - 1))
    computed = 0.0
    for term in terms:
        computed += float(term)
    error, size = (n - 1) * 2.0**-53, 1.0 + (n - 1) * 2.0**-53
    assert computed == 1.0
    assert 0.4 * gamma(n, terms) * size < error <= gamma(n, terms) * size


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 0.5, 1.0, 3.0, 1e170, 1e300])
@pytest.mark.parametrize("shape", [(3,), (2, 2), (5, 1)])
def test_norms_of_clients_at_all_scales(backend, scale: float, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((4, *shape))
    x[0], x[1], x[3] = -np.abs(x[0]), 1e-3 * x[1], 0.0
    x[2, ..., 0] *= 1e-200  # the sizes within one row differ as well
    x *= scale
    mp.dps = 40
    expected = [float(mp.norm([mpf(float(t)) for t in row.ravel()])) for row in x]
    np.testing.assert_allclose(to_numpy(client_norm(backend(x))), expected, rtol=1e-14)


def test_a_norm_of_infinite_entries_is_infinite() -> None:
    x = np.array([[math.inf, 1.0], [-math.inf, math.inf], [3.0, 4.0]])
    assert client_norm(x).tolist() == [math.inf, math.inf, 5.0]


@pytest.mark.parametrize("n", [1, 2, 16, 17, 100])
@pytest.mark.parametrize("scale", [1e-300, 1e-162, 1e-154, 1e-145, 1.0, 1e150, 1e154, 1e300])
def test_norms_of_few_and_of_many_rows(n, scale):
    """Rows of one size, and beside them one whose square over- or underflows; 3, 4, 12 have the norm 13."""
    x = scale * np.outer(np.linspace(1.0, 2.0, n), [3.0, 4.0, 12.0, 0.0])
    exact = scale * 13.0 * np.linspace(1.0, 2.0, n)
    np.testing.assert_allclose(client_norm(x), exact, rtol=8 * 2.0**-52)
    for other in (1e-250, 1e250, 0.0):
        both = client_norm(np.concatenate([x, other * np.array([[3.0, 4.0, 12.0, 0.0]])]))
        np.testing.assert_allclose(both, [*exact, 13.0 * other], rtol=8 * 2.0**-52)
    x[0, 3] = np.inf
    assert client_norm(x)[0] == np.inf
    np.testing.assert_allclose(client_norm(x)[1:], exact[1:], rtol=8 * 2.0**-52)
    x[0, 3] = np.nan
    assert np.isnan(client_norm(x)[0])


def energy(X: np.ndarray, y: np.ndarray, theta: np.ndarray) -> Fraction:
    """The mean of half the squares of ``x theta - y``, in rationals."""
    residuals = (
        sum((Fraction(a) * Fraction(b) for a, b in zip(row, theta.tolist(), strict=True)), start=-Fraction(label))
        for row, label in zip(X.tolist(), y.tolist(), strict=True)
    )
    return sum((r * r for r in residuals), start=Fraction(0)) / (2 * len(y))


@pytest.mark.parametrize(("exponent", "dtype"), [(53, np.float64), (24, np.float32)])
@pytest.mark.parametrize("residual", [0.0, 2.0**-6])
def test_values_where_a_predictor_loses_all_of_its_terms_but_one(exponent: int, dtype: type, residual: float) -> None:
    """The products are 1 and then 2047 halves of a unit in its last place, which sparse rows add in this order.

    At the label that is computed the slope is 0, and only the curvature of the loss bounds the error of the value.
    """
    p, half = 2**11, exponent // 2
    X, theta = (np.full(p, 2.0**-k, dtype=dtype) for k in (half, exponent - half))
    X[0] = theta[0] = 1.0
    f = linear_model(
        X[None], np.array([1.0 + residual], dtype), loss=Squared(), mu=0.0, intercept=False, storage="sparse"
    )
    value, gradient = f.value_and_gradient(theta)
    error = abs(Fraction(float(value[0])) - energy(X[None], np.array([1.0 + residual]), theta))
    bound = float(f.rounding(theta, value, gradient).value[0])
    assert float(value[0]) == residual**2 / 2
    assert 0.1 * bound < float(error) <= bound


@pytest.mark.parametrize(("exponent", "dtype"), [(53, np.float64), (24, np.float32)])
def test_values_where_a_sum_loses_all_of_its_rows_but_one(exponent: int, dtype: type, monkeypatch) -> None:
    """Rows of which the first one has the loss 2, and each of the others less than half a unit in its last place."""
    monkeypatch.setattr(rows_module, "block_rows", lambda columns: 1)  # they are added one after the other
    m, least = 2**10, 2.0 ** -(exponent // 2 if exponent % 2 else exponent // 2 - 1)
    X, y = np.ones((m, 1), dtype=dtype), np.full(m, least, dtype=dtype)
    y[0] = 2.0
    f = linear_model(X, y, loss=Squared(), mu=0.0, intercept=False, storage="dense")
    value, gradient = f.value_and_gradient(f.zeros())
    error = abs(Fraction(float(value[0])) - energy(X, y, f.zeros()))
    bound = float(f.rounding(f.zeros(), value, gradient).value[0])
    assert float(value[0]) == 2.0 / m
    assert 0.1 * bound < float(error) <= bound


EPS, LEAST = 2.0**-52, 2.0**-1022


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Hinge(), Multinomial(classes=3), AbsoluteDeviation()], ids=str)
@pytest.mark.parametrize("size", [0.0, 1.0, 1e9])
@pytest.mark.parametrize("given", [0.0, 0.3])
@pytest.mark.parametrize("left", [None, 0.2])
def test_the_bound_of_a_linear_model_term_by_term(loss, size: float, given: float, left: float | None) -> None:
    """Where theta and values are zero what may underflow counts, where theta is large the curvature of the losses."""
    X, w = np.array([[1.0, -2.0], [0.5, 3.0], [4.0, 0.25], [-1.0, 7.0], [2.0, 2.0]]), np.arange(1.0, 6.0) / 3.0
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0]) if loss.labels != "class" else np.array([0, 1, 2, 2, 0])
    f = linear_model(X, y, loss=loss, mu=0.7, clients=[[0, 1, 2], [3, 4]], weights=w, intercept=False)
    k, m, p, ridge = loss.outputs, 3, 2, 0.7
    theta = size * np.stack([np.full(f.shape, 0.5), np.full(f.shape, -2.0)])
    value, excess = np.array([given, 2.0 * given]), None if left is None else np.array([left, 3.0 * left])
    found = f.rounding(theta, value, np.zeros_like(theta), excess)
    unit = (16 + k) * EPS if loss.labels == "class" else 0.0
    for j, rows in enumerate([[0, 1, 2], [3, 4]]):
        norm, W = math.sqrt(sum(w[i] * (X[i] @ X[i]) for i in rows)), sum(w[i] for i in rows)
        length, terms = np.linalg.norm(theta[j]), value[j] + (unit + LEAST) * W
        slope, bend = loss.lipschitz * math.sqrt(W), loss.curvature if math.isfinite(loss.curvature) else 0.0
        if bend:
            more = 0.0 if excess is None else math.sqrt(excess[j])
            slope = min(slope, math.sqrt(2.0 * bend) * (math.sqrt(terms) + more))
        shift = gamma(p + 2, value) * norm * length + p * LEAST * math.sqrt(W)
        lost = LEAST * (m + k * p) * (1.0 + ridge) * (1.0 + math.sqrt(W) * norm + np.abs(X[rows]).max())
        expected = slope * shift + 0.5 * bend * shift**2 + gamma(m + k + 40, value) * terms + unit * W
        expected += 0.5 * gamma(k * p + 2, value) * ridge * length**2 + lost * (1.0 + W)
        np.testing.assert_allclose(found.value[j], expected, rtol=1e-13)
        expected = gamma(m + k + 20, value) * slope * norm + unit * math.sqrt(W) * norm + 4.0 * EPS * ridge * length
        np.testing.assert_allclose(found.gradient[j], expected + lost, rtol=1e-13)


ROWS = np.array([[1.0, -2.0], [0.5, 3.0], [4.0, 0.25], [-1.0, 7.0], [2.0, 2.0]])
PARTS = ([0, 1, 2], [3, 4])
WEIGHTS = np.arange(1.0, 6.0) / 3.0
OFFSET = np.array([0.5, -3.0, 1.0, 2.0, -0.25])


@pytest.mark.parametrize("offset", [None, OFFSET], ids=["plain", "offset"])
@pytest.mark.parametrize(("size", "weak"), [(0.0, 1.0), (0.0, 2.0**-1000), (0.5, 1.0), (20.0, 1.0)])
def test_the_bound_of_steep_losses_row_by_row(size: float, weak: float, offset: np.ndarray | None) -> None:
    """exp(z) - y z: slopes at both ends of the interval of a predictor, times half its length, and the loss's own.

    Where weights are next to nothing, what may underflow counts.
    """
    y, loss, ridge, weights = np.array([1.0, 4.0, 0.0, 2.0, 7.0]), Poisson(), 0.7, weak * WEIGHTS
    f = linear_model(ROWS, y, loss=loss, mu=ridge, clients=list(PARTS), weights=weights, offset=offset, intercept=False)
    theta, value = size * np.array([[0.5, 0.25], [-2.0, 0.125]]), weak * np.array([0.3, 1.7])
    found = f.rounding(theta, value, np.zeros_like(theta))
    o = np.zeros(5) if offset is None else offset
    for j, rows in enumerate(PARTS):
        X, w, labels, m, p = ROWS[rows], weights[rows], y[rows], 3, 2
        length, longest = np.linalg.norm(theta[j]), math.sqrt(p) * np.abs(X).max()
        z, W = X @ theta[j] + o[rows], w.sum()
        shift = gamma(p + 2, value) * longest * length + p * LEAST + gamma(2, value) * np.abs(o[rows])
        steep = np.maximum(np.abs(np.exp(z - shift) - labels), np.abs(np.exp(z + shift) - labels))
        own = loss.rounding(z, labels)
        values = w @ (steep * shift) + w @ own[0] + gamma(m + 40, value) * value[j]
        values += 0.5 * gamma(p + 2, value) * ridge * length**2
        slopes = w @ np.abs(np.exp(z) - labels)
        gradients = longest * (w @ own[1] + gamma(m + 20, value) * slopes) + 4.0 * EPS * ridge * length
        lost = LEAST * (m + p) * (1.0 + ridge) * (1.0 + math.sqrt(W) * longest + longest)
        np.testing.assert_allclose(found.value[j], values + lost * (1.0 + W), rtol=1e-9)
        np.testing.assert_allclose(found.gradient[j], gradients + lost, rtol=1e-9)


def test_the_bound_of_large_offsets() -> None:
    """Hinges that are zero at the zero model, by offsets whose norms are 13 and 4 with the weights of the rows."""
    X, y, offset, weights = np.ones((3, 2)), [1.0, -1.0, 1.0], [11.0, -4.0, 8.0], [1.0, 3.0, 0.25]
    clients = [[0, 1], [2]]
    f = linear_model(X, y, loss=Hinge(), mu=0.7, clients=clients, weights=weights, offset=offset, intercept=False)
    assert f.value(f.zeros()).tolist() == [0.0, 0.0]
    found = f.rounding(f.zeros(), np.zeros(2), f.zeros())
    # slopes of at most 1, with the roots 2 and 1/2 of the sums of weights
    np.testing.assert_allclose(found.value, gamma(2, X) * np.array([2.0 * 13.0, 0.5 * 4.0]), rtol=1e-14)


@pytest.mark.parametrize("size", [0.0, 1.0])
@pytest.mark.parametrize("skew", [0.0, 2.0**-40])
@pytest.mark.parametrize("c", [None, np.array([-5.0, 0.25])])
@pytest.mark.parametrize("weak", [1.0, 2.0**-1060])
def test_the_bound_of_a_quadratic_term_by_term(size: float, skew: float, c: np.ndarray | None, weak: float) -> None:
    """Where the matrices are next to nothing, what may underflow counts."""
    A = np.stack([np.array([[3.0, -1.0], [-1.0, 2.0]]), np.array([[5.0, 0.5], [0.5, 4.0]])])
    A[:, 0, 1] += skew
    A, skew, c = weak * A, weak * skew, None if c is None else weak * c
    b, theta = size * weak * np.array([[1.0, -7.0], [0.5, 2.0]]), size * np.array([[-1.0, 3.0], [2.0, -0.125]])
    value, d = size * weak * np.array([-2.0, 11.0]), 2
    found = Quadratic(A=A, b=b, c=c).rounding(theta, value, np.zeros_like(theta))
    for j in range(2):
        x, product = np.abs(theta[j]), np.abs(A[j]) @ np.abs(theta[j])
        constants = abs(value[j]) + (0.0 if c is None else abs(c[j]))
        expected = gamma(2 * d + 6, value) * (0.5 * product + np.abs(b[j])) @ x + gamma(2, value) * constants
        np.testing.assert_allclose(found.value[j], expected + d**2 * LEAST * (1.0 + x.sum()), rtol=1e-14)
        expected = gamma(d + 3, value) * np.linalg.norm(product + np.abs(b[j]))
        expected += (0.5 + gamma(d**2, A)) * math.sqrt(2.0) * skew * np.linalg.norm(theta[j])
        np.testing.assert_allclose(found.gradient[j], expected + d**2 * LEAST, rtol=1e-14)
