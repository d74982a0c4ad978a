"""Sums are those of exact arithmetic, whatever is added in whichever order."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualopt.problem.preprocessing import _exact

sizes = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
KINDS = {
    "a common offset": 1e8 + np.random.default_rng(0).standard_normal((4000, 3)),
    "all magnitudes": np.random.default_rng(1).standard_normal((900, 3)) * 2.0 ** np.linspace(-1074, 990, 900)[:, None],
    "what cancels": np.array([[1e300, 1.0], [1e-300, 1e16], [-1e300, -1e16]]),
    "subnormals": np.full((7, 2), 5e-324),
    "zeros of both signs": np.array([[0.0, -0.0], [-0.0, -0.0]]),
    "powers of two": np.tile(2.0 ** np.arange(-50, 50)[:, None], (40, 1)),
}


def exact(X):
    return [sum(map(Fraction, column)) for column in X.T.tolist()]


def value(sums):
    return [sum(map(Fraction, column)) for column in sums.T.tolist()]


@given(st.lists(sizes, max_size=60), st.integers(1, 7))
def test_sums_are_exact(numbers, step):
    X = np.array(numbers, dtype=np.float64).reshape(-1, 1)
    sums = _exact.expansion((X[i : i + step].copy() for i in range(0, len(X), step)), 1)
    assert value(sums) == exact(X)
    assert sums[0, 0] == float(exact(X)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_an_expansion_depends_on_the_sum_alone(kind):
    X = KINDS[kind]
    whole = _exact.expansion([X.copy()], X.shape[1])
    assert value(whole) == exact(X)
    rng = np.random.default_rng(2)
    for parts in (1, 2, 5):
        owner = rng.integers(0, parts, len(X))
        shuffled = [X[rng.permutation(np.flatnonzero(owner == part))] for part in range(parts)]
        found = _exact.sum_of_expansions([_exact.expansion([x], X.shape[1]) for x in shuffled], X.shape[1])
        np.testing.assert_array_equal(found, whole)


def test_plain_sums_would_not_do():
    """The same rows in two orders, added with rounding."""
    X = KINDS["a common offset"]
    assert (X.sum(axis=0) != X[::-1].sum(axis=0)).any()


def test_few_numbers_stand_for_many():
    assert len(_exact.expansion([KINDS["a common offset"].copy()], 3)) <= 3
    assert len(_exact.expansion([KINDS["all magnitudes"].copy()], 3)) <= 42


def test_means_are_rounded_once():
    rng = np.random.default_rng(3)
    for m in (3, 7, 49, 1000):
        X = np.repeat(rng.standard_normal((1, 50)), m, axis=0)
        found = _exact.mean(_exact.expansion([X.copy()], 50), np.full(50, m))
        np.testing.assert_array_equal(found, X[0])
    assert _exact.mean(np.zeros((1, 1)), np.array([0])).tolist() == [0.0]


def test_the_largest_numbers_are_added():
    X = np.full((5000, 1), _exact.LARGEST)
    assert _exact.expansion([X], 1).tolist() == [[5000 * _exact.LARGEST]]


def test_numbers_that_could_overflow_are_refused():
    with pytest.raises(ValueError, match="numbers of at most 2\\^1000"):
        _exact.expansion([np.full((2, 1), 1.7e308)], 1)
