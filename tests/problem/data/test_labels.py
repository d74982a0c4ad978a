"""Encoding of labels: sorted order decides, and what a loss cannot use is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualopt.problem.data import class_count, encode_labels

integers = st.lists(st.integers(-5, 5), min_size=1, max_size=20).map(np.array)
words = st.lists(st.sampled_from(["ant", "bee", "cat", "10", "9"]), min_size=1, max_size=20).map(np.array)


@given(integers | words)
def test_class_is_the_rank_among_the_distinct_labels(y):
    distinct = sorted(set(y.tolist()))
    assert class_count(y) == len(distinct)
    if len(distinct) == 1:
        with pytest.raises(ValueError, match=r"^y must have at least two distinct labels .* class labels"):
            encode_labels(y, "class")
    else:
        encoded = encode_labels(y, "class")
        assert encoded.dtype == np.int64
        assert encoded.tolist() == [distinct.index(label) for label in y.tolist()]


@given(st.lists(st.booleans(), min_size=2, max_size=20), st.sampled_from([(0, 1), (-1, 1), (1, 2), ("a", "b")]))
def test_binary_is_the_sign_of_the_order(ups, pair):
    """The smaller label is -1, the larger +1."""
    ups[:2] = [True, False]
    encoded = encode_labels(np.array([pair[up] for up in ups]), "binary")
    assert encoded.dtype == np.float64
    assert encoded.tolist() == [1.0 if up else -1.0 for up in ups]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint8", "bool"])
def test_real_is_float64(dtype):
    """Any numbers become float64."""
    encoded = encode_labels(np.array([0, 1], dtype), "real")
    assert encoded.dtype == np.float64
    assert encoded.tolist() == [0.0, 1.0]


def test_result_is_a_copy():
    y = np.array([1.0, 2.0])
    for kind in ("real", "binary", "class"):
        assert not np.shares_memory(encode_labels(y, kind), y)


def test_integral_floats_are_classes():
    assert encode_labels(np.array([2.0, -1.0, 2.0]), "class").tolist() == [1, 0, 1]


@pytest.mark.parametrize("k", [4, np.int64(4)])
def test_classes_as_a_number(k):
    assert encode_labels(np.array([3, 1]), "class", classes=k).tolist() == [3, 1]
    assert encode_labels(np.array([3]), "class", classes=k).tolist() == [3]


def test_classes_as_a_list():
    assert encode_labels(np.array(["dog"]), "class", classes=["dog", "ant", "cat"]).tolist() == [2]
    assert encode_labels(np.array([7, 7]), "binary", classes=[7, 5]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("y", "classes", "label"),
    [
        ([1, 4], [0, 1, 2, 3], "4"),
        ([-1, 1], 2, "-1"),
        (["1"], [0, 1], "'1'"),
        (["1"], 30, "'1'"),
        ([1], ["0", "1"], "1"),
        ([0.5, 1], [0, 1], "0.5"),
    ],
)
def test_label_that_is_not_a_class(y, classes, label):
    with pytest.raises(ValueError, match=rf"^y has the label {label}, which is not one of the \d+ classes"):
        encode_labels(np.array(y), "binary", classes=classes)


@pytest.mark.parametrize(
    ("y", "kind", "message"),
    [
        ([1, 2, 3], "binary", "y must have exactly two distinct labels for a loss with binary labels, got 3"),
        ([1, 1], "binary", "y must have exactly two distinct labels for a loss with binary labels, got 1"),
        ([0.5, 1.0, 2.0], "class", "y must hold classes .*, got 0.5 among 3 distinct numbers"),
        ([1.0, np.nan], "real", r"y must be finite, but label 1 \(counted from 0\) is NaN"),
        ([1.0, np.nan], "binary", "y must be finite"),
        ([np.inf, 1.0], "class", "y must be finite, but label 0"),
        (["a", "b"], "real", "y must hold numbers for a loss with real labels, got the string 'a'"),
        ([], "real", "y must be a vector with at least one label"),
        ([[1], [2]], "binary", r"y must be a vector .* shape is \(2, 1\)"),
        ([1j, 2], "real", "y must hold numbers or strings, but its type is complex128"),
        ([{}, None], "class", "y must hold numbers or strings, but its type is object"),
        ([1, 2], "multiclass", "kind of labels must be one of real, binary, class, got 'multiclass'"),
    ],
)
def test_wrong_labels(y, kind, message):
    with pytest.raises(ValueError, match=r"^" + message):
        encode_labels(np.array(y), kind)


def test_classes_are_refused_for_real_labels():
    with pytest.raises(ValueError, match=r"^classes must be None for a loss with real labels, got 3"):
        encode_labels(np.array([1.0]), "real", classes=3)


def test_class_count_refuses_nan():
    with pytest.raises(ValueError, match=r"^y must be finite"):
        class_count(np.array([1.0, np.nan]))
