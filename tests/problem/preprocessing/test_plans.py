"""What plans find: the numbers of scikit-learn, and those of one process wherever the rows are."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from dualopt.arrays.communicator import ALONE
from dualopt.problem.data import scale
from dualopt.problem.preprocessing import (
    Numbers,
    Question,
    _questions,
    answered,
    asked_of_peers,
    combined,
    plan_of_numbers,
)
from dualopt.problem.preprocessing._plans import _order_statistics, fills
from tests.engine.thread_communicator import on_each

WITNESSES = {"standard": StandardScaler, "minmax": MinMaxScaler, "robust": RobustScaler}


def columns(m=301):
    """Columns of all kinds: with an offset, constant, of counts, of skewed sizes, large, small, of zeros and ones."""
    rng = np.random.default_rng(0)
    plain = rng.standard_normal(m)
    return np.column_stack(
        [
            plain,
            1e8 + rng.random(m),
            np.full(m, 0.1),
            rng.integers(-5, 6, m),
            np.exp(3 * plain),
            1e290 * plain,
            1e-290 * plain,
            rng.random(m) < 0.02,
            np.where(plain > 0, 0.0, -0.0),
        ]
    ).astype(np.float64)


@pytest.mark.parametrize("how", WITNESSES)
def test_scalings_are_those_of_scikit_learn(how):
    """But for columns that it takes for constant, or whose squares overflow there."""
    X = columns()[:, [0, 3, 4, 7]]
    np.testing.assert_allclose(scale(X, how), WITNESSES[how]().fit_transform(X), rtol=1e-12, atol=1e-12)
    X = columns()[:, [1]]
    unit = np.spacing(1e8) / np.std(X)  # of the mean, which both round
    np.testing.assert_allclose(scale(X, how), WITNESSES[how]().fit_transform(X), rtol=1e-12, atol=2 * unit)


@pytest.mark.parametrize("how", WITNESSES)
def test_columns_of_all_sizes_are_scaled_alike(how):
    found = scale(columns(), how)
    assert np.isfinite(found).all()
    assert (found[:, 2] == 0).all()
    np.testing.assert_allclose(found[:, [5, 6]], found[:, [0, 0]], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("how", [*WITNESSES, "max"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_do_not_depend_on_who_has_which_rows(how, dtype):
    X = columns()[:, [0, 1, 2, 3, 4, 7, 8]].astype(dtype)
    whole = answered(plan_of_numbers(how, dtype), asked_of_peers(Numbers(X), ALONE))
    rng = np.random.default_rng(1)
    parties = [Numbers(X[rng.permutation(np.flatnonzero(np.arange(len(X)) % 4 == part))]) for part in (3, 1, 0, 2)]
    found = answered(plan_of_numbers(how, dtype), lambda q: combined(q, [party.answer(q) for party in parties]))
    for one, other in zip(whole, found, strict=True):
        assert one.dtype == other.dtype == dtype
        np.testing.assert_array_equal(one, other)


def test_processes_find_what_one_finds():
    X = columns(30)[:, :5]
    alone = answered(plan_of_numbers("standard", X.dtype), asked_of_peers(Numbers(X), ALONE))

    def together(peers):
        return answered(plan_of_numbers("standard", X.dtype), asked_of_peers(Numbers(X[peers.rank :: 3]), peers))

    for found in on_each(3, together):
        np.testing.assert_array_equal(found, alone)


def test_who_does_not_add_has_room_for_what_comes():
    """A process that is not the first receives sums of as many rows as it is told, and of all columns."""

    class Second:
        size, seen = 2, []

        def together(self):
            return nullcontext()

        def collected(self, x):
            return None

        def shared(self, x):
            self.seen.append(x.shape)
            return np.array([3]) if x.ndim == 1 else np.ones(x.shape)

    peers: Any = Second()
    found = asked_of_peers(Numbers(columns(4)[:, :5]), peers)(Question("sum"))
    assert Second.seen == [(1,), (3, 5)]
    assert found.shape == (3, 5)


def test_a_size_is_the_largest_absolute_value():
    for row in ([2.0, -3.0], [3.0, -2.0], [0.0, -3.0], [3.0, 1.0]):
        assert Numbers(np.array([row, [0.5, np.nan]])).answer(Question("size")).tolist() == [[3.0]]


def test_an_unweighted_mean_of_the_means_of_sites_would_not_do():
    parties = [np.array([[0.0]]), np.array([[3.0], [6.0], [9.0]])]
    sums = [Numbers(x).answer(Question("sum")) for x in parties]
    assert combined(Question("sum"), sums)[0] / 4 == 4.5
    assert np.mean([x.mean() for x in parties]) == 3.0


@pytest.mark.parametrize("missing", ["mean", "median"])
def test_fills_are_those_of_numpy(missing):
    X = columns(100)[:, :5]
    X[np.random.default_rng(2).random(X.shape) < 0.3] = np.nan
    X[:, 3] = np.nan
    X[3, 3] = -7.5
    found, counts = answered(fills(missing), asked_of_peers(Numbers(X), ALONE))
    np.testing.assert_allclose(found, getattr(np, f"nan{missing}")(X, axis=0), rtol=1e-12)
    np.testing.assert_array_equal(counts, (~np.isnan(X)).sum(axis=0))


def test_quantiles_take_few_questions_and_single_doubles():
    X = np.array([[-1e300], [-5e-324], [0.0], [5e-324], [np.nan]])
    asked = []

    def ask(question):
        asked.append(question.kind)
        return Numbers(X).answer(question)

    assert -5e-324 <= answered(fills("median"), ask)[0][0] <= 0
    assert asked.count("below") <= 64
    for rank, x in enumerate(np.sort(X[:4, 0]), 1):
        assert answered(_order_statistics(np.array([[rank]])), Numbers(X[:4]).answer).tolist() == [[x]]


@pytest.mark.parametrize(
    ("question", "lie", "sentence"),
    [
        (Question("count"), [[1.0, -1.0]], "not be negative"),
        (Question("count"), [[1.0, 0.5]], "whole numbers"),
        (Question("count"), [[1.0]], "another shape"),
        (Question("count"), [[1.0, 1.0], [1.0, 1.0]], "another shape"),
        (Question("sum"), [[np.nan, 1.0]], "not finite"),
        (Question("sum"), [[1e308, 1.0]], "too large"),
        (Question("sum"), np.zeros((0, 2)), "another shape"),
        (Question("squares"), [[1.0, -1.0]], "not be negative"),
        (Question("largest"), [[np.inf, 1.0]], "not finite"),
        (Question("size"), [[1.0, 1.0]], "another shape"),
    ],
)
def test_answers_that_no_rows_give_are_refused(question, lie, sentence):
    with pytest.raises(ValueError, match=sentence):
        _questions.require_sound(question, np.array(lie), 2)


def test_honest_answers_are_none_of_them():
    for X in (columns(), np.full((3, 2), np.nan), np.zeros((0, 2))):
        d = X.shape[1]
        at = np.zeros(d)
        for kind in _questions.KINDS:
            extra = {"exponent": (at,), "squares": (at, at + 1e280), "below": (np.zeros((6, d)),)}.get(kind, ())
            question = Question(kind, extra)
            found = Numbers(X).answer(question)
            _questions.require_sound(question, found, d)
            with pytest.raises(ValueError, match=f"answer to {kind} has another shape"):
                _questions.require_sound(question, found[:, 1:], d)
