"""What every data set promises.

A data set is a name of ``NAMES`` in a module with ``load(name, ...)``, whose other arguments have defaults.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualopt.arrays.xp import is_sparse
from dualopt.lab.contracts.options import classes, open_argument
from dualopt.losses import Logistic, Multinomial, Squared
from dualopt.objectives import linear_model
from dualopt.problem.data import class_count, consecutive, load, natural
from dualopt.spec import plugins


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the names of the data sets."""
    if open_argument(metafunc, "name"):
        metafunc.parametrize("name", list(classes(metafunc.config, "data")))


def dense(X: Any) -> np.ndarray:
    """Return features as an array."""
    return X.toarray() if is_sparse(X) else np.asarray(X)


def test_it_has_rows_of_finite_numbers_with_a_label_each(name: str) -> None:
    """``load(name)`` gives a matrix of finite numbers, a label for each row, and a line that says what it is."""
    data = load(name)
    assert data.X.shape[0] == data.y.shape[0] >= 1
    assert len(data.description.strip().splitlines()) == 1, "description must be one line."


def test_columns_and_clients_have_their_names(name: str) -> None:
    """Names of features, owners of rows and weights, where there are any, fit the rows and columns."""
    data = load(name)
    m, d = data.X.shape
    if data.feature_names is not None:
        assert len(set(data.feature_names)) == d, f"feature_names must be {d} different ones."
    if data.clients is not None:
        assert data.clients.min() == 0, "clients must be counted from 0."
        assert len(np.unique(data.clients)) == data.clients.max() + 1, "every client must have rows."
        named = data.client_names is None or len(data.client_names) == data.clients.max() + 1
        assert named, "client_names must have a name for each client."
    if data.sample_weight is not None:
        weight = np.asarray(data.sample_weight)
        assert weight.shape == (m,), f"sample_weight must have {m} entries."
        assert np.isfinite(weight).all(), "sample_weight must be finite."
        assert weight.min() >= 0, "sample_weight must not be negative."


def test_chance_is_that_of_the_seed(name: str) -> None:
    """The same arguments give the same rows, whatever other generators do."""
    np.random.seed(1)  # noqa: NPY002
    first = load(name)
    np.random.seed(2)  # noqa: NPY002
    second = load(name)
    np.testing.assert_array_equal(dense(first.X), dense(second.X))
    np.testing.assert_array_equal(first.y, second.y)


def test_what_it_returns_is_the_callers(name: str) -> None:
    """The caller owns the arrays: writing to them does not change what the next call gives."""
    before = load(name)
    kept, labels = dense(before.X).copy(), before.y.copy()
    values = before.X.data if is_sparse(before.X) else before.X
    values[...] = 0.0
    if before.y.flags.writeable:
        before.y[...] = before.y[0]
    after = load(name)
    np.testing.assert_array_equal(dense(after.X), kept)
    np.testing.assert_array_equal(after.y, labels)


def test_single_precision_is_the_same_data(name: str) -> None:
    """In single precision the rows are the same to rounding."""
    single, double = load(name, dtype="float32"), load(name)
    assert single.X.dtype == np.float32
    np.testing.assert_allclose(dense(single.X), dense(double.X), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(single.y, double.y)


def test_a_loss_takes_its_labels(name: str) -> None:
    """Some loss takes its labels, on its own clients where it has some: values and gradients are finite."""
    data = load(name)
    clients = natural(data.clients) if data.clients is not None else consecutive(len(data.y), min(3, len(data.y)))
    f = linear_model(data.X, data.y, loss=a_loss(data.y), mu=0.1, clients=clients)
    value, gradient = f.value_and_gradient(f.zeros())
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()


def a_loss(y: np.ndarray) -> Any:
    """Return a loss for the labels: of classes where they are words or few whole numbers, else of real numbers."""
    values = np.unique(y)
    if y.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
        return Squared()
    if len(values) == 2:
        return Logistic()
    return Multinomial(classes=class_count(y)) if y.dtype.kind in "US" or len(values) <= 100 else Squared()


def test_an_unknown_option_is_refused(name: str) -> None:
    """An option that it does not have is refused in a sentence."""
    with pytest.raises(ValueError, match="option 'no_such_option' is not known"):
        load(name, no_such_option=1)


def test_it_is_listed_under_its_name(name: str) -> None:
    """``NAMES`` has one line for it."""
    if not plugins.is_spelled(name):
        return
    module = plugins.load("data", name, "data")
    text = module.NAMES[name.rpartition(":")[2]]
    assert isinstance(text, str)
    assert len(text.strip().splitlines()) == 1, "its entry in NAMES must be one line."
