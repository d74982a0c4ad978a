"""Scaling: each rule does what it says, at any magnitude, and never to its argument."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dualopt.problem.data import scale

moderate = st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-3)
matrices = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=moderate)
powers = st.integers(-900, 900).map(lambda e: 2.0**e)


@given(matrices)
def test_none_is_the_identity(X):
    np.testing.assert_array_equal(scale(X, "none"), X)


@given(matrices, powers)
def test_max(X, factor):
    """The largest absolute value becomes exactly 1, at any magnitude; zeros stay."""
    scaled = scale(factor * X, "max")
    largest = np.abs(X).max()
    np.testing.assert_array_equal(scaled, X / largest if largest else X)
    assert np.abs(scaled).max() == (largest > 0)


@given(matrices, powers)
def test_unit_rows(X, factor):
    """Rows get norm 1 and keep their direction, at any magnitude; zero rows stay."""
    scaled = scale(factor * X, "unit-rows")
    norms = np.linalg.norm(X, axis=1)
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), norms > 0, rtol=1e-14)
    np.testing.assert_allclose(scaled * norms[:, None], X, rtol=1e-13)


@given(matrices, powers)
def test_standard(X, factor):
    """Columns get mean 0 and variance 1, at any magnitude; constant columns become 0."""
    scaled = scale(factor * X, "standard")
    varies = np.ptp(X, axis=0) > 0
    assert (scaled[:, ~varies] == 0).all()
    # Rounding of the mean, relative to the spread, is the only error.
    error = 1e-14 * (1 + np.abs(X).max(axis=0) / np.where(varies, np.std(X, axis=0), 1))
    assert (np.abs(scaled.mean(axis=0)) <= error).all()
    assert (np.abs(scaled.std(axis=0) - varies) <= error).all()


def test_standard_keeps_the_orientation():
    np.testing.assert_allclose(scale(np.array([[1.0], [3.0], [5.0]]), "standard"), [[-(1.5**0.5)], [0], [1.5**0.5]])


def test_standard_clears_a_constant_column_that_rounds():
    """The mean of seven numbers 0.1 is not 0.1 in floating-point arithmetic for all ways to sum."""
    X = np.column_stack([np.full(7, 0.1), np.arange(7.0)])
    assert (scale(X, "standard")[:, 0] == 0).all()


def test_standard_in_float32_sums_in_float64():
    """A float32 sum of many numbers with a large mean would shift the mean by far more than this."""
    X = (1000 + np.random.default_rng(0).random((100_000, 1))).astype(np.float32)
    scaled = scale(X, "standard")
    assert scaled.dtype == np.float32
    assert abs(scaled.mean(dtype=np.float64)) < 2e-4
    assert abs(scaled.std(dtype=np.float64) - 1) < 1e-6


@given(matrices, st.floats(1e-3, 1e3))
def test_number_divides(X, divisor):
    np.testing.assert_array_equal(scale(X, divisor), X / divisor)


@pytest.mark.parametrize("how", ["none", "max", "unit-rows", "standard", "minmax", "robust", 2.0])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
def test_argument_is_untouched_and_type_kept(how, dtype):
    X = np.array([[1, 2, 3], [4, 5, 7]], dtype)
    X.flags.writeable = False
    scaled = scale(X, how)
    assert not np.shares_memory(scaled, X)
    assert scaled.dtype == (dtype if dtype.startswith("float") else np.float64)
    np.testing.assert_array_equal(X, [[1, 2, 3], [4, 5, 7]])


@pytest.mark.parametrize("how", ["auto", "unit_rows", 0, -1.0, np.nan, np.inf, True, None, 1j])
def test_unknown_rule(how):
    with pytest.raises(ValueError, match=r"^scale must be one of none, max, unit-rows, standard, minmax, robust or a"):
        scale(np.eye(2), how)


def test_matrix_is_checked():
    with pytest.raises(ValueError, match=r"^X must be finite, but row 1"):
        scale(np.array([[1.0], [np.nan]]), "max")
