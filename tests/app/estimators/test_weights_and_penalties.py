r"""Weights of rows and classes, free intercepts, and L1: the problems of scikit-learn, rows dealt out lopsidedly.

For a free intercept the weights agree to the certified distance, as in ``test_same_solutions``; the energy of
scikit-learn's model, intercept included, is between our lower bound and what its own accuracy allows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, GammaRegressor, Lasso, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from dualopt import Logistic, Multinomial, Squared, linear_model
from dualopt.app.estimators import FederatedClassifier, FederatedRegressor

MU = 0.02
RNG = np.random.default_rng(3)


def scaled(load, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load(return_X_y=True)
    chosen = np.random.default_rng(1).permutation(len(y))[:rows]
    return StandardScaler().fit_transform(X)[chosen], y[chosen]


CANCER, IRIS, DIABETES = scaled(load_breast_cancer, 160), scaled(load_iris, 120), scaled(load_diabetes, 150)
DIABETES = DIABETES[0], DIABETES[1] / 80.0  # of mean 1.9: an intercept counts
COUNTS = RNG.exponential(size=160) * (RNG.random(160) < 0.9)
OWNERS = np.repeat([0, 1, 2], [10, 50, 100])


def energy(f: Any, model: Any) -> float:
    theta = np.hstack([np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)[:, None]]).reshape(f.shape)
    return float(f.mean(f.value(theta)))


def assert_agree(ours: Any, theirs: Any, f: Any, m: float) -> None:
    """Compare weights by what is certified, and energies; ``m`` is the ridge of ``f``."""
    least = energy(f, ours) - ours.certified_gap_
    assert energy(f, theirs) >= least - 1e-15
    theirs_away = math.sqrt(2.0 * (energy(f, theirs) - least) / m)
    assert np.linalg.norm(ours.coef_ - theirs.coef_) <= ours.certified_distance_ + theirs_away < 1e-2
    assert ours.trace_.status == "converged"


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
@pytest.mark.parametrize("intercept", ["free", "none"])
def test_weights_of_rows_and_classes(class_weight: Any, intercept: str) -> None:
    X, y = CANCER
    ours = FederatedClassifier(mu=MU, tol=1e-9, class_weight=class_weight, intercept=intercept)
    ours.fit(X, y, sample_weight=COUNTS, groups=OWNERS)
    of_class = {0: 1.0, 1: 1.0} | (class_weight if isinstance(class_weight, dict) else {})
    if class_weight == "balanced":
        of_class = {c: COUNTS.sum() / (2 * COUNTS[y == c].sum()) for c in (0, 1)}
    counts = COUNTS * np.where(y == 1, of_class[1], of_class[0])
    theirs = LogisticRegression(C=1 / (MU * counts.sum()), fit_intercept=intercept == "free", tol=1e-11, max_iter=9999)
    theirs.fit(X, y, sample_weight=counts)
    columns = X if intercept == "free" else np.column_stack([X, np.zeros(160)])  # on which 0 may stand
    weights = counts / counts.sum()
    f = linear_model(columns, 2.0 * y - 1.0, loss=Logistic(), mu=MU, weights=weights, intercept=intercept)
    assert_agree(ours, theirs, f, MU)


@pytest.mark.parametrize("groups", ["at random", "by label"])
def test_several_classes_with_free_intercepts(groups: str) -> None:
    """Also where each client has one class, so that no client has a best intercept of its own."""
    X, y = IRIS
    ours = FederatedClassifier(mu=MU, tol=1e-9, intercept="free", class_weight={2: 0.25}, clients=3)
    ours.fit(X, y, groups=y if groups == "by label" else None)
    counts = np.where(y == 2, 0.25, 1.0)
    theirs = LogisticRegression(C=1 / (MU * counts.sum()), tol=1e-11, max_iter=9999).fit(X, y, sample_weight=counts)
    f = linear_model(X, y, loss=Multinomial(classes=3), mu=MU, weights=counts / counts.sum(), intercept="free")
    assert_agree(ours, theirs, f, MU)


def test_ridge_with_weights_and_a_free_intercept() -> None:
    X, y = DIABETES
    counts = COUNTS[:150]
    ours = FederatedRegressor(mu=MU, tol=1e-10, intercept="free").fit(X, y, sample_weight=counts)
    theirs = Ridge(alpha=MU * counts.sum(), tol=1e-12).fit(X, y, sample_weight=counts)
    assert_agree(
        ours, theirs, linear_model(X, y, loss=Squared(), mu=MU, weights=counts / counts.sum(), intercept="free"), MU
    )
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-3)


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize(("penalty", "ratio"), [("elasticnet", 0.7), ("l1", 1.0)])
def test_elastic_net_and_lasso(penalty: str, ratio: float, intercept: str) -> None:
    """The lasso has no ridge, so that no distance is certified; its energy is."""
    X, y = DIABETES
    ours = FederatedRegressor(mu=0.1, penalty=penalty, l1_ratio=0.7, tol=1e-8, intercept=intercept, max_rounds=3000)
    ours.fit(X, y, groups=OWNERS[:150])
    theirs = ElasticNet(alpha=0.1, l1_ratio=ratio, fit_intercept=intercept == "free", tol=1e-13, max_iter=99999)
    theirs.fit(X, y)

    def total(model: Any) -> float:
        square = np.mean((y - model.predict(X)) ** 2) / 2
        return square + 0.1 * (ratio * np.abs(model.coef_).sum() + (1 - ratio) / 2 * np.sum(model.coef_**2))

    assert ours.trace_.status == "converged"
    assert total(theirs) >= total(ours) - ours.certified_gap_
    assert total(ours) - total(theirs) <= ours.certified_gap_ <= 1e-8 * total(ours)
    np.testing.assert_array_equal(ours.coef_ == 0.0, theirs.coef_ == 0.0)
    assert np.isinf(ours.certified_distance_) == (penalty == "l1")
    if penalty == "elasticnet":
        assert np.linalg.norm(ours.coef_ - theirs.coef_) <= 2 * ours.certified_distance_ < 1e-2


def test_lasso_of_two_classes() -> None:
    X, y = CANCER
    ours = FederatedClassifier(mu=0.02, penalty="l1", tol=1e-4, intercept="free", max_rounds=3000).fit(X, y)
    how: Any = {} if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8) else {"penalty": "elasticnet"}
    C = 1 / (0.02 * 160)
    theirs = LogisticRegression(C=C, l1_ratio=1.0, solver="saga", tol=1e-7, max_iter=99999, **how).fit(X, y)

    def total(model: Any) -> float:
        signs = 2.0 * y - 1.0
        return float(np.mean(np.log1p(np.exp(-signs * model.decision_function(X)))) + 0.02 * np.abs(model.coef_).sum())

    assert abs(total(ours) - total(theirs)) <= ours.certified_gap_ + 1e-8
    assert set(np.flatnonzero(theirs.coef_)) == set(np.flatnonzero(ours.coef_))


def test_a_row_of_weight_two_is_the_row_twice() -> None:
    X, y = CANCER
    counts = np.arange(160) % 3.0
    ours = FederatedClassifier(mu=MU, tol=1e-9).fit(X, y, sample_weight=counts, groups=OWNERS)
    times = np.repeat(np.arange(160), counts.astype(int))
    twice = FederatedClassifier(mu=MU, tol=1e-9).fit(X[times], y[times], groups=OWNERS[times])
    allowed = ours.certified_distance_ + twice.certified_distance_
    assert np.linalg.norm(ours.coef_ - twice.coef_) <= allowed < 1e-2
    assert ours.trace_["energy"][-1] == pytest.approx(twice.trace_["energy"][-1], rel=1e-7)


def test_clients_whose_rows_do_not_count_are_left_out() -> None:
    X, y = CANCER
    counts = (OWNERS != 1) * 1.0
    ours = FederatedClassifier(mu=MU, tol=1e-9).fit(X, y, sample_weight=counts, groups=OWNERS)
    others = np.flatnonzero(counts)
    rest = FederatedClassifier(mu=MU, tol=1e-9).fit(X[others], y[others], groups=OWNERS[others])
    assert ours.client_names_ == rest.client_names_ == (0, 2)
    np.testing.assert_array_equal(ours.coef_, rest.coef_)


def test_weights_are_routed() -> None:
    X, y = CANCER
    with sklearn.config_context(enable_metadata_routing=True):
        model: Any = FederatedClassifier(mu=MU, tol=1e-4).set_fit_request(sample_weight=True, groups=True)
        model = model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"class_weight": [None, "balanced"]}, cv=2)
        search.fit(X, y, sample_weight=COUNTS + 0.1, groups=OWNERS)
    assert search.best_estimator_.client_names_ == (0, 1, 2)


def test_rare_classes_keep_their_share_with_a_free_intercept() -> None:
    """The mean probability is the share of the class, where the intercept is free; a penalty moves it towards 1/2."""
    X, y = CANCER
    rare = np.r_[np.flatnonzero(y == 1), np.flatnonzero(y == 0)[:12]]
    shares = {
        kind: FederatedClassifier(mu=0.5, tol=1e-10, intercept=kind, clients=3)
        .fit(X[rare], y[rare])
        .predict_proba(X[rare])
        for kind in ("free", "penalised")
    }
    share = np.mean(y[rare] == 0)
    assert shares["free"][:, 0].mean() == pytest.approx(share, abs=1e-4)
    assert share + 0.1 < shares["penalised"][:, 0].mean() < 0.5


def test_the_method_that_is_chosen_is_said() -> None:
    X, y = CANCER
    plain, free = (FederatedClassifier(mu=MU, tol=1e-4, intercept=kind).fit(X, y) for kind in ("penalised", "free"))
    sampled = FederatedClassifier(mu=MU, tol=1e-2, participation="subset=1").fit(X, y, groups=OWNERS)
    assert [type(model.algorithm_).__name__ for model in (plain, free)] == ["DistributedLBFGS"] * 2
    assert type(sampled.algorithm_).__name__ == "FedSplit"
    assert FederatedClassifier(mu=MU, tol=1e-4, algorithm="feddyn").fit(X, y).algorithm_ == "feddyn"


@pytest.mark.parametrize(("loss", "theirs"), [("poisson", PoissonRegressor), ("gamma", GammaRegressor)])
def test_counts_and_costs_with_weights_and_a_free_intercept(loss: str, theirs: Any) -> None:
    """Predictions are means; the rate of all rows is that of the data, which a penalised intercept would move."""
    X, counts = DIABETES[0][:, :4], COUNTS[:150]
    mean = np.exp(1.0 + X @ np.array([0.5, -0.3, 0.2, 0.0]))
    y = RNG.poisson(mean).astype(float) if loss == "poisson" else RNG.gamma(2.0, mean / 2.0)
    ours = FederatedRegressor(loss=loss, mu=MU, tol=1e-9, intercept="free")
    ours.fit(X, y, sample_weight=counts, groups=OWNERS[:150])
    other = theirs(alpha=MU, tol=1e-11, max_iter=9999).fit(X, y, sample_weight=counts)
    assert np.linalg.norm(ours.coef_ - other.coef_) <= 2 * ours.certified_distance_ < 1e-2
    np.testing.assert_allclose(ours.predict(X), other.predict(X), rtol=1e-3)
    if loss == "poisson":
        assert counts @ ours.predict(X) == pytest.approx(counts @ y, rel=1e-4)


def test_lasso_is_sklearns_lasso() -> None:
    X, y = DIABETES
    ours = FederatedRegressor(mu=0.3, penalty="l1", tol=1e-9, intercept="none", max_rounds=3000, clients=4).fit(X, y)
    np.testing.assert_allclose(ours.coef_, Lasso(alpha=0.3, tol=1e-13, fit_intercept=False).fit(X, y).coef_, atol=1e-4)


def test_the_limit_of_energies_that_are_almost_zero_is_of_that_at_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """tol^2 E(0), and E(0) = (1/2) mean y^2 = 50."""
    asked: dict[str, Any] = {}

    def watched(*_: Any, **options: Any) -> None:
        asked.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr("dualopt.app.estimators._base.run", watched)
    with pytest.raises(KeyboardInterrupt):
        FederatedRegressor(tol=1e-3, clients=2, max_rounds=7).fit(
            [[1.0], [2.0], [3.0], [5.0]], [10.0, -10.0, 10.0, -10.0]
        )
    assert asked["atol"] == pytest.approx(1e-6 * 50.0, rel=1e-12)
    assert (asked["tol"], asked["rounds"], asked["seed"]) == (1e-3, 7, 0)


def test_a_warning_names_the_line_that_fits() -> None:
    with pytest.warns(ConvergenceWarning, match="after 1 rounds") as found:
        FederatedRegressor(tol=1e-12, clients=2, max_rounds=1, algorithm="feddyn").fit(
            [[1.0], [2.0], [3.0], [5.0]], [1.0, -1.0, 2.0, 0.0]
        )
    assert [warning.filename for warning in found] == [__file__]


def test_both_estimators_have_the_same_defaults() -> None:
    of_classes = {"class_weight": None}
    assert FederatedRegressor().get_params() | of_classes == FederatedClassifier().get_params()
