"""The parts of the estimators by themselves: predictions of known weights, parts, seeds, limits, and what is said."""

from __future__ import annotations

import functools
import math
import pickle
import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualopt import Hinge, Logistic, Multinomial, Squared, inference, linear_model
from dualopt.app.estimators import FederatedClassifier, FederatedRegressor

X = np.random.default_rng(0).standard_normal((40, 2)) * [1.0, 3.0] + [0.5, 0.0]
TWO = np.where(X[:, 0] + 0.3 * np.random.default_rng(1).standard_normal(40) > 0.5, "yes", "no")
THREE = np.where(X[:, 1] > 2, "c", np.where(X[:, 0] > 0.5, "b", "a"))
SITES = np.repeat(["u", "v", "w"], [5, 10, 25])
ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [-3.0, 2.0], [0.0, 0.0]])


@functools.cache
def fitted(classes: int, loss: str = "auto") -> Any:
    model = FederatedClassifier(clients=3, mu=0.1, tol=1e-4, loss=loss)
    return model.fit(X, TWO if classes == 2 else THREE)


def with_weights(model: Any, coef: Any, intercept: Any) -> Any:
    model = pickle.loads(pickle.dumps(model))
    model.coef_, model.intercept_ = np.array(coef), np.array(intercept)
    return model


def test_two_classes() -> None:
    """z = 2 x1 - x2 + 1; a row on the border is of the first class."""
    model = with_weights(fitted(2), [[2.0, -1.0]], [1.0])
    z = np.array([3.0, 0.0, -7.0, 1.0])
    np.testing.assert_array_equal(model.decision_function(ROWS), z)
    assert model.predict(ROWS).tolist() == ["yes", "no", "no", "yes"]
    p = 1 / (1 + np.exp(-z))
    np.testing.assert_allclose(model.predict_proba(ROWS), np.stack([1 - p, p], axis=1), rtol=1e-14)
    np.testing.assert_allclose(model.predict_log_proba(ROWS), np.log(np.stack([1 - p, p], axis=1)), rtol=1e-13)
    np.testing.assert_allclose(model.predict_log_proba(1000 * ROWS[:1]), [[-2001.0, 0.0]], atol=1e-12)
    np.testing.assert_array_equal(model.predict_proba(1000 * ROWS[:1]), [[0.0, 1.0]])


@pytest.mark.parametrize("classes", [2, 3])
def test_predictors_of_every_class(classes: int) -> None:
    """Two classes of a multinomial loss have one decision, the difference; three have their own."""
    coef, intercept = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]])[:classes], np.array([0.5, 0.0, -1.0])[:classes]
    model = with_weights(fitted(classes, "multinomial"), coef, intercept)
    z = ROWS @ coef.T + intercept
    np.testing.assert_array_equal(model.decision_function(ROWS), z if classes == 3 else z[:, 1] - z[:, 0])
    assert model.predict(ROWS).tolist() == [model.classes_[i] for i in np.argmax(z, axis=1)]
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(ROWS), p, rtol=1e-14)
    np.testing.assert_allclose(model.predict_log_proba(ROWS), np.log(p), rtol=1e-13)
    np.testing.assert_allclose(model.predict_proba(ROWS * 1e4).sum(axis=1), 1.0, rtol=1e-14)


def test_weights_are_those_of_the_trace() -> None:
    for intercept in ("penalised", "free", "none"):
        model = FederatedClassifier(clients=3, mu=0.1, tol=1e-4, intercept=intercept).fit(X, THREE)
        theta = model.trace_.theta
        np.testing.assert_array_equal(model.coef_, theta[:, :2])
        np.testing.assert_array_equal(model.intercept_, np.zeros(3) if intercept == "none" else theta[:, 2])
        assert (model.n_iter_, model.certified_gap_) == (len(model.trace_) - 1, model.trace_["certificate"][-1])


@pytest.mark.parametrize(("penalty", "share"), [("l2", 1.0), ("elasticnet", 0.75), ("l1", 0.0)])
def test_the_distance_is_of_the_ridge_alone(penalty: str, share: float) -> None:
    """|theta - theta*|^2 <= 2 gap / (share of mu)."""
    model = FederatedClassifier(clients=2, mu=0.2, tol=1e-3, penalty=penalty, l1_ratio=0.25, max_rounds=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, TWO)
    expected = math.sqrt(2 * model.certified_gap_ / (0.2 * share)) if share else math.inf
    assert model.certified_distance_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("table", [False, True])
def test_a_summary_is_the_inference_on_the_same_rows(table: bool) -> None:
    columns: Any = pd.DataFrame(X, columns=["dose", "age"]) if table else X
    model = FederatedClassifier(mu=0.05, tol=1e-10, intercept="free").fit(columns, TWO, clients=SITES)
    clients = [np.flatnonzero(name == SITES) for name in "uvw"]
    y = (TWO == "yes") * 1.0
    f = linear_model(X, y, loss="logistic", mu=0.05, clients=clients, client_weights="rows", intercept="free")
    names = ["dose", "age"] if table else ["x1", "x2"]
    for kind, level in (("auto", 0.95), ("clients", 0.8)):
        found = model.summary(kind=kind, level=level)
        expected = inference(f, model.trace_.theta, gap=model.certified_gap_, kind=kind, level=level, names=names)
        assert str(found) == str(expected)
    with pytest.raises(ValueError, match=r"^summary needs the rows of fit, .*: fit again\.$"):
        pickle.loads(pickle.dumps(model)).summary()


# --- clients ----------------------------------------------------------------------------------------------------------


def test_rows_are_dealt_out_to_as_many_clients_as_there_are() -> None:
    parts, names = FederatedClassifier(clients=3)._parts(10, None, 0, None)
    assert names == (0, 1, 2)
    assert sorted(np.concatenate(parts).tolist()) == list(range(10))
    assert sorted(map(len, parts)) == [3, 3, 4]
    counts = np.array([0.0, 1, 1, 0, 2, 0, 1, 0, 0, 0])
    for clients, expected in ((3, 3), (4, 4), (7, 4)):  # no more than rows that count
        parts, names = FederatedClassifier(clients=clients)._parts(10, None, 0, counts)
        assert names == tuple(range(expected))
        assert all(len(part) for part in parts)
        assert sorted(np.concatenate(parts).tolist()) == [1, 2, 4, 6]


def test_clients_whose_rows_do_not_count_are_left_out_with_their_names() -> None:
    owners, counts = np.array(["v", "u", "w", "u", "v"]), np.array([0.0, 1.0, 0.0, 0.0, 3.0])
    parts, names = FederatedClassifier()._parts(5, owners, 0, None)
    assert dict(zip(names, map(list, parts), strict=True)) == {"u": [1, 3], "v": [0, 4], "w": [2]}
    parts, names = FederatedClassifier()._parts(5, owners, 0, counts)
    assert dict(zip(names, map(list, parts), strict=True)) == {"u": [1], "v": [4]}


def test_seeds() -> None:
    assert FederatedClassifier(random_state=7)._seed() == 7
    assert FederatedClassifier(random_state=np.int64(7))._seed() == 7
    drawn = [FederatedClassifier(random_state=np.random.RandomState(s))._seed() for s in (3, 3, 4)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_warm_start_is_the_latest_model_where_it_fits() -> None:
    model = with_weights(fitted(3), np.arange(6.0).reshape(3, 2), [10.0, 11.0, 12.0])

    def start(shape: Any, dtype: Any = np.float64) -> Any:
        return model._start(SimpleNamespace(zeros=lambda: np.zeros(shape, dtype)))

    assert start((3, 3)) is None
    model.warm_start = True
    assert start((3, 3)).tolist() == [[0, 1, 10], [2, 3, 11], [4, 5, 12]]
    assert start((3, 3), np.float32).dtype == np.float32
    assert start((3, 4)) is None
    model.intercept = "none"
    assert start((3, 2)).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert FederatedClassifier(warm_start=True)._start(None) is None


# --- limits and words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "L", "mu", "scaling"),
    [("rounds", [1.0, 2e6], 1.0, True), ("rounds", [1.0, 1e6], 1.0, False), ("stalled", [1.0], 0.0, False)],
)
def test_what_is_said_of_a_run_that_is_not_at_its_end(status: str, L: Any, mu: float, scaling: bool) -> None:
    model: Any = FederatedClassifier(tol=1e-5)
    model.trace_, model.n_iter_, model.certified_gap_ = SimpleNamespace(status=status), 12, 0.0321
    words = f"The certified gap is 3.2e-02 after 12 rounds ({status}), more than tol = 1e-05 asks for"
    words += "; kappa = L/mu is 2.0e+06: scale the features." if scaling else "."
    with pytest.warns(ConvergenceWarning, match=f"^{re.escape(words)}$"):
        model._warn(SimpleNamespace(L=np.array(L), mean_mu=mu))


def test_runs_that_converge_or_diverge() -> None:
    model: Any = FederatedClassifier()
    model.trace_, model.n_iter_, model.algorithm_ = SimpleNamespace(status="converged"), 3, "feddyn"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model._warn(None)
    model.trace_.status = "diverged"
    with pytest.raises(ValueError, match=r"^algorithm feddyn diverged after 3 rounds: change its parameters\.$"):
        model._warn(None)


GOOD = [{"l1_ratio": 0}, {"l1_ratio": 1.0}, {"max_rounds": 1}, {"clients": 1}, {"clients": "site"}, {"mu": 5e-324}]
BAD = [
    ({"penalty": "l3"}, "penalty must be 'l2', 'l1' or 'elasticnet', not 'l3'."),
    ({"l1_ratio": -0.01}, "l1_ratio must be a number from 0 to 1, not -0.01."),
    ({"l1_ratio": 1.01}, "l1_ratio must be a number from 0 to 1, not 1.01."),
    ({"l1_ratio": "half"}, "l1_ratio must be a number from 0 to 1, not 'half'."),
    ({"mu": 0.0}, "mu must be a positive finite number, not 0.0."),
    ({"mu": math.inf}, "mu must be a positive finite number, not inf."),
    ({"mu": "1"}, "mu must be a positive finite number, not '1'."),
    ({"tol": -1e-3}, "tol must be a positive finite number, not -0.001."),
    ({"tol": math.nan}, "tol must be a positive finite number, not nan."),
    ({"max_rounds": 0}, "max_rounds must be an integer of at least 1, not 0."),
    ({"max_rounds": 2.0}, "max_rounds must be an integer of at least 1, not 2.0."),
    ({"clients": 0}, "clients must be a number of at least 1 or the name of a column, not 0."),
    ({"clients": 2.0}, "clients must be a number of at least 1 or the name of a column, not 2.0."),
]


def test_limits_of_parameters() -> None:
    for given in GOOD:
        FederatedClassifier(**given)._check_parameters()
    for given, sentence in BAD:
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            FederatedRegressor(**given)._check_parameters()


def test_losses_and_numbers_of_classes() -> None:
    def loss(given: Any, classes: int) -> Any:
        return FederatedClassifier(loss=given)._loss_for(classes)

    assert (loss("auto", 2), loss("auto", 3)) == (Logistic(), Multinomial(classes=3))
    assert (loss("multinomial", 2), loss("hinge", 2)) == (Multinomial(classes=2), Hinge())
    assert loss(Multinomial(classes=4), 4) == Multinomial(classes=4)
    for given, classes, sentence in (
        ("auto", 1, "y must have at least two classes, but it has only 1 class"),
        ("squared", 2, "loss squared is for numbers: use FederatedRegressor"),
        ("hinge", 3, "The loss is hinge, and y has 3 classes: use the loss multinomial, or OneVsRestClassifier"),
        (Multinomial(classes=4), 3, "has another number of classes than y, which has 3"),
    ):
        with pytest.raises(ValueError, match=sentence):
            loss(given, classes)


def test_what_has_probabilities_and_several_classes() -> None:
    for loss, probabilities, several in (
        ("auto", True, True),
        ("logistic", True, False),
        ("multinomial", True, True),
        (Logistic(), True, False),
        (Multinomial(classes=3), True, True),
        ("hinge", False, False),
        (Squared(), False, False),
    ):
        model = FederatedClassifier(loss=loss)
        assert hasattr(model, "predict_proba") == hasattr(model, "predict_log_proba") == probabilities
        assert model.__sklearn_tags__().classifier_tags.multi_class == several
        assert model.__sklearn_tags__().input_tags.sparse
    with pytest.raises(AttributeError):
        _ = FederatedClassifier(loss="hinge").predict_proba


def test_groups_and_clients_are_one_thing() -> None:
    with pytest.raises(ValueError, match=r"^groups and clients mean the same: give one of them\.$"):
        FederatedClassifier()._rows(X, SITES, SITES)
    for given in ((SITES, None), (None, SITES)):
        assert FederatedClassifier()._rows(X, *given)[1] is SITES
