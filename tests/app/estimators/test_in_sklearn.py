"""The estimators inside scikit-learn's tools, and its own checks: pipelines, searches, routing, clone, warm starts."""

from __future__ import annotations

import pickle
import re
from ast import literal_eval
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dualopt import DualFL, FedAvg, FedDyn, Multinomial, OptimizedDualFL, UniformSubset, linear_model, load_model
from dualopt.app.estimators import FederatedClassifier, FederatedRegressor
from dualopt.problem.build import build_problem
from dualopt.problem.data import load
from dualopt.problem.options import ProblemOptions
from dualopt.runs._data_hash import data_hash, rows_hash
from dualopt.solvers import LBFGS

X, Y = load_breast_cancer(return_X_y=True)
X, Y = StandardScaler().fit_transform(X)[:120, :6], Y[:120]
SITES = np.array([f"site {i % 4}" for i in range(120)])
FAST: dict[str, Any] = {"mu": 0.1, "tol": 1e-4}


def test_a_pipeline_with_clients_by_name() -> None:
    pipeline: Any = make_pipeline(StandardScaler(), FederatedClassifier(**FAST))
    pipeline.fit(X, Y, federatedclassifier__clients=SITES)
    assert pipeline[-1].client_names_ == tuple(sorted(set(SITES)))
    assert pipeline.score(X, Y) > 0.9


def test_a_grid_over_numbers_and_methods() -> None:
    search = GridSearchCV(
        FederatedClassifier(clients=3, tol=1e-4),
        {"mu": [1e-1, 1e2], "algorithm": [DualFL(), OptimizedDualFL(), "feddyn"]},
        cv=3,
        scoring="neg_log_loss",
    ).fit(X, Y)
    assert search.best_params_["mu"] == 0.1
    scores = search.cv_results_["mean_test_score"]
    assert np.ptp(scores[::2]) < 0.02  # with mu = 0.1, all methods find the same model
    assert search.best_estimator_.certified_gap_ < 1e-4


def test_a_grid_with_routed_clients() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        for name in ("groups", "clients"):
            model = FederatedClassifier(**FAST).set_fit_request(**{name: True})
            search = GridSearchCV(make_pipeline(StandardScaler(), model), {"federatedclassifier__mu": [0.1, 1.0]}, cv=3)
            search.fit(X, Y, **{name: SITES})
            assert search.best_estimator_[-1].client_names_ == tuple(sorted(set(SITES)))


def test_groups_go_to_the_splitter_and_to_the_model() -> None:
    """With whole clients left out, every fold trains on three of four."""
    seen = []

    class Watching(FederatedClassifier):
        def fit(self, X, y, groups=None, clients=None, sample_weight=None):
            super().fit(X, y, groups=groups, clients=clients, sample_weight=sample_weight)
            seen.append(self.client_names_)
            return self

    with sklearn.config_context(enable_metadata_routing=True):
        model = Watching(**FAST).set_fit_request(groups=True)
        scores = cross_val_score(model, X, Y, cv=GroupKFold(4), params={"groups": SITES})
    assert len(scores) == 4
    assert [len(names) for names in seen] == [3, 3, 3, 3]


def test_clone_keeps_methods_and_losses() -> None:
    algorithm, loss = FedAvg(solver=LBFGS(history=3)), Multinomial(classes=2)
    model = FederatedClassifier(algorithm=algorithm, loss=loss, participation=UniformSubset(size=2))
    copy: Any = clone(model)
    assert copy is not model
    assert (copy.algorithm, copy.loss, copy.participation) == (algorithm, loss, UniformSubset(size=2))
    assert copy.get_params() == model.get_params()


def test_pickle() -> None:
    model = FederatedClassifier(algorithm=DualFL(), **FAST).fit(X, Y, groups=SITES)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.certified_gap_ == model.certified_gap_
    assert len(again.trace_) == len(model.trace_)


@pytest.mark.parametrize("library", [pd, pl])
def test_clients_are_a_column(library) -> None:
    columns = [f"feature {i}" for i in range(6)]
    frame = library.DataFrame({name: X[:, i] for i, name in enumerate(columns)} | {"site": SITES})
    by_parameter = FederatedClassifier(clients="site", **FAST).fit(frame, Y)
    by_argument = FederatedClassifier(**FAST).fit(frame, Y, groups="site")
    plain = FederatedClassifier(**FAST).fit(X, Y, groups=SITES)
    np.testing.assert_array_equal(by_parameter.coef_, plain.coef_)
    np.testing.assert_array_equal(by_argument.coef_, plain.coef_)
    assert by_parameter.client_names_ == plain.client_names_
    assert list(by_parameter.feature_names_in_) == columns
    rest = frame.drop(columns="site") if library is pd else frame.drop("site")
    np.testing.assert_array_equal(by_parameter.predict(frame), by_parameter.predict(rest))


def test_a_warm_start_goes_on() -> None:
    model = FederatedClassifier(algorithm="feddyn", tol=1e-9, warm_start=True, max_rounds=8)
    with pytest.warns(ConvergenceWarning, match=r"^The certified gap is .* after 8 rounds \(max_rounds\)"):
        model.fit(X, Y)
    first = model.trace_["energy"]
    with pytest.warns(ConvergenceWarning):
        model.fit(X, Y)
    assert model.trace_["energy"][0] == pytest.approx(first[-1], rel=1e-12)
    with pytest.warns(ConvergenceWarning):
        cold = FederatedClassifier(algorithm="feddyn", tol=1e-9, max_rounds=8).fit(X, Y)
    assert model.certified_gap_ < cold.certified_gap_


def test_some_clients_take_part() -> None:
    model = FederatedClassifier(algorithm=FedDyn(), participation="subset=2", mu=0.1, tol=1e-4).fit(X, Y, groups=SITES)
    everybody = FederatedClassifier(mu=0.1, tol=1e-8).fit(X, Y, groups=SITES)
    allowed = model.certified_distance_ + everybody.certified_distance_
    assert np.linalg.norm(model.coef_ - everybody.coef_) <= allowed < 0.05


def test_clients_alike_is_another_problem() -> None:
    """With clients of 100 and 20 rows the mean over clients differs from the mean over rows."""
    owners = np.arange(120) < 100
    rows, clients = (
        FederatedClassifier(client_weights=weights, mu=0.1, tol=1e-8).fit(X, Y, groups=owners)
        for weights in ("rows", "equal")
    )
    assert np.linalg.norm(rows.coef_ - clients.coef_) > 10 * (rows.certified_distance_ + clients.certified_distance_)


def test_more_classes_for_a_loss_of_two() -> None:
    X, y = load_iris(return_X_y=True)
    model = OneVsRestClassifier(FederatedClassifier(loss="smoothed-hinge", mu=0.1, tol=1e-3)).fit(X, y)
    assert model.score(X, y) > 0.6
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    assert set(FederatedClassifier(mu=0.01, tol=1e-3).fit(X, words).predict(X)) == set(words)


def test_probabilities_sum_to_one_and_agree_with_decisions() -> None:
    for loss in ("logistic", "multinomial"):
        model = FederatedClassifier(loss=loss, mu=0.1, tol=1e-6).fit(X, Y)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-15)
        np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), model.decision_function(X), atol=1e-12)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p, atol=1e-15)


def test_features_that_need_scaling_are_named() -> None:
    wild = np.column_stack([X[:, 0] * 1e6, X[:, 1]])
    rows = np.column_stack([wild, np.ones(len(wild))])
    kappa = (0.25 * np.linalg.eigvalsh(rows.T @ rows / len(rows))[-1] + 0.5) / 0.5
    sentence = re.escape(f"; kappa = L/mu is {kappa:.1e}: scale the features.")
    with pytest.warns(ConvergenceWarning, match=sentence + "$"):
        FederatedClassifier(max_rounds=2, mu=0.5, clients=1).fit(wild, Y)


def test_a_zero_target_is_certified() -> None:
    """E* is 0, so that no relative error is: the model is zero and the gap is."""
    model = FederatedRegressor().fit(X, np.zeros(120))
    assert np.all(model.coef_ == 0.0)
    assert model.certified_gap_ < 1e-290


BAD: list[tuple[dict[str, Any], str]] = [
    ({"loss": "squared"}, "loss squared is for numbers: use FederatedRegressor."),
    ({"loss": "logistics"}, "did you mean logistic?"),
    ({"algorithm": "dualfi"}, "did you mean dualfl?"),
    ({"mu": 0.0}, "mu must be a positive finite number, not 0.0."),
    ({"mu": np.inf}, "mu must be a positive finite number, not inf."),
    ({"mu": "small"}, "mu must be a positive finite number, not 'small'."),
    ({"tol": -1e-6}, "tol must be a positive finite number, not -1e-06."),
    ({"max_rounds": 1.5}, "max_rounds must be an integer of at least 1, not 1.5."),
    ({"max_rounds": 0}, "max_rounds must be an integer of at least 1, not 0."),
    ({"clients": 0}, "clients must be a number of at least 1 or the name of a column, not 0."),
    ({"clients": 2.5}, "clients must be a number of at least 1 or the name of a column, not 2.5."),
    ({"clients": "site"}, "clients = 'site' names a column, but X is a ndarray"),
    ({"clients": 500}, "a minimum of 500 is required"),
    ({"participation": "half"}, "participation must be one of full, subset"),
    ({"participation": "subset=2", "algorithm": "dualfl"}, "algorithm DualFL does not support partial"),
    ({"intercept": "fitted"}, "intercept must be True, False, 'penalised', 'free' or 'none', not fitted."),
    (
        {"intercept": "free", "algorithm": "dualfl"},
        "nu cannot be suggested: with a free intercept no client",
    ),
    ({"penalty": "l3"}, "penalty must be 'l2', 'l1' or 'elasticnet', not 'l3'."),
    ({"penalty": "l1", "algorithm": "dualfl"}, "algorithm DualFL does not support an objective with a regulariser."),
    ({"l1_ratio": 1.5}, "l1_ratio must be a number from 0 to 1, not 1.5."),
    ({"class_weight": "rare"}, "class_weight must be 'balanced' or numbers by class, not rare."),
    ({"class_weight": {2: 1.0}}, "class_weight must name classes, some of 0, 1, not 2."),
    ({"class_weight": {1: 0.0}}, "class_weight of 1 must be a positive finite number, not 0.0."),
    ({"client_weights": "sizes"}, "client_weights must be 'equal', 'rows' or numbers, not sizes."),
    ({"groups": SITES, "clients": SITES}, "groups and clients mean the same: give one of them."),
]


@pytest.mark.parametrize(("given", "sentence"), BAD)
def test_what_cannot_be_used_gives_one_sentence(given: dict[str, Any], sentence: str) -> None:
    fit = given if "groups" in given else {}
    with pytest.raises(ValueError, match=re.escape(sentence)):
        FederatedClassifier(**({} if fit else given)).fit(X, Y, **fit)


def test_a_loss_of_classes_is_refused_for_numbers() -> None:
    """Also where the numbers are those that its labels would be."""
    with pytest.raises(ValueError, match=r"^loss logistic is for classes: use FederatedClassifier\.$"):
        FederatedRegressor(loss="logistic").fit(X, 2.0 * Y - 1.0)


@pytest.mark.parametrize("kind", [FederatedClassifier, FederatedRegressor])
def test_masked_values_are_refused(kind) -> None:
    fitted = kind().fit(np.ma.masked_array(X), np.ma.masked_array(Y))  # nothing is masked
    hidden = np.ma.masked_array(X, X > 1)
    calls = {
        "X": [lambda: kind().fit(hidden, Y), lambda: fitted.predict(hidden), lambda: fitted.score(hidden, Y)],
        "y": [lambda: kind().fit(X, np.ma.masked_array(Y, X[:, 0] > 1))],
    }
    for name, tried in calls.items():
        for call in tried:
            with pytest.raises(ValueError, match=f"^{name} must not have masked values.$"):
                call()


def test_a_small_least_energy_is_certified_to_its_share() -> None:
    """Of E*, or of E(0) by the square of ``tol``, whichever is more."""
    y = X @ np.arange(1.0, X.shape[1] + 1.0)
    model = FederatedRegressor(tol=1e-3, mu=1e-3).fit(X, y)
    scale, energy = 0.5 * np.mean(y**2), model.trace_["energy"][-1]
    assert model.certified_gap_ <= max(1e-3 * energy, 1e-6 * scale)
    assert model.trace_["certificate"][-2] > 1e-6 * scale


def test_a_column_may_be_called_mask() -> None:
    """NumPy looks for the mask of an array under this name."""
    frame = pd.DataFrame({"_mask": X[:, 0], "radius": X[:, 1]})
    assert FederatedClassifier(**FAST).fit(frame, Y).n_features_in_ == 2


def test_defaults_are_those_of_the_docstring() -> None:
    told = re.findall(r"^ +(\w+) : .*, default (.+)$", FederatedClassifier.__doc__ or "", re.MULTILINE)
    parameters = FederatedClassifier().get_params()
    assert {name: literal_eval(value) for name, value in told}.items() <= parameters.items()
    assert ("clients", "8") in told


# scikit-learn's own checks, all of them.


# Accurate, since rows of weight two and rows that are there twice are compared to seven digits.
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_the_model_knows_the_hash_of_its_rows(store, tmp_path) -> None:
    data = load(_written(tmp_path / "t.csv", Y), label="y", client="site")
    f = linear_model(store(data.X), data.y, loss="logistic", mu=0.1, clients=data.clients, client_weights="rows")
    model = FederatedClassifier(**FAST).fit(store(X), Y, clients=SITES)
    own = model.model_.record["data"]
    assert own == {"sha256": rows_hash(f, f.sizes, f.weights), "rows": 120}
    if store is np.asarray:  # the same as that of the command line
        options: dict[str, Any] = {"label": "y", "client": "site", "client_weights": "rows"}
        for y, same in ((Y, True), (1 - Y, False)):
            problem = build_problem(ProblemOptions(data=_written(tmp_path / "other.csv", y), **options))
            assert (data_hash(problem) == own["sha256"]) is same
    model.save_model(tmp_path / "saved")
    assert load_model(tmp_path / "saved").record["data"] == own


def _written(path, y) -> str:
    pd.DataFrame(X).add_prefix("x").assign(site=SITES, y=y).to_csv(path, index=False)
    return str(path)


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",  # some checks have features of 1e3 and more beside those of 1
    "ignore::sklearn.exceptions.SkipTestWarning",
)
@parametrize_with_checks(
    [
        FederatedClassifier(max_rounds=200, tol=1e-12),
        FederatedRegressor(max_rounds=200, tol=1e-12),
        FederatedClassifier(loss="smoothed-hinge", max_rounds=200, tol=1e-12),
    ]
)
def test_checks(estimator, check) -> None:
    check(estimator)
