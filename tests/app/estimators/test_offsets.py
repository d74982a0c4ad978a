"""Offsets and exposures of estimators: the coefficients of statsmodels, and predictions that have offsets too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dualopt.app.estimators import FederatedClassifier, FederatedRegressor

sm = pytest.importorskip("statsmodels.api")

RNG = np.random.default_rng(5)
X = RNG.standard_normal((240, 3)) * [1.0, 0.5, 2.0]
DAYS = RNG.uniform(0.2, 20.0, 240)
OFFSET = RNG.standard_normal(240)
COUNTS = RNG.poisson(DAYS * np.exp(0.3 + X @ [0.4, -0.2, 0.1])).astype(float)
COSTS = RNG.gamma(2.0, 0.5 * np.exp(0.3 + OFFSET + X @ [0.4, -0.2, 0.1]))
SICK = RNG.random(240) < 1 / (1 + np.exp(-OFFSET - X @ [1.0, -1.0, 0.5]))
ASKED: dict[str, Any] = {"mu": 1e-7, "intercept": "free", "tol": 1e-9, "client_weights": "rows", "clients": 4}


def agrees(fitted: Any, found: Any) -> None:
    coefficients = np.append(np.ravel(fitted.coef_), fitted.intercept_)
    np.testing.assert_allclose(coefficients, np.roll(found.params, -1), rtol=1e-5, atol=1e-7)


def test_exposures_of_counts_are_those_of_statsmodels() -> None:
    fitted = FederatedRegressor(loss="poisson", **ASKED).fit(X, COUNTS, exposure=DAYS)
    found = sm.GLM(COUNTS, sm.add_constant(X), family=sm.families.Poisson(), exposure=DAYS).fit(tol=1e-12)
    agrees(fitted, found)
    expected = found.predict(sm.add_constant(X), exposure=DAYS)
    np.testing.assert_allclose(fitted.predict(X, exposure=DAYS), expected, rtol=1e-5)
    np.testing.assert_allclose(fitted.predict(X, offset=np.log(DAYS)), expected, rtol=1e-5)
    plain = FederatedRegressor(loss="poisson", **ASKED).fit(X, COUNTS)
    assert abs(plain.intercept_ - fitted.intercept_) > 1.0


def test_offsets_of_costs_and_of_two_classes_are_those_of_statsmodels() -> None:
    gamma = sm.families.Gamma(sm.families.links.Log())
    found = sm.GLM(COSTS, sm.add_constant(X), family=gamma, offset=OFFSET).fit(tol=1e-12)
    agrees(FederatedRegressor(loss="gamma", **ASKED).fit(X, COSTS, offset=OFFSET), found)
    found = sm.GLM(SICK.astype(float), sm.add_constant(X), family=sm.families.Binomial(), offset=OFFSET).fit(tol=1e-12)
    fitted = FederatedClassifier(**ASKED).fit(X, SICK, offset=OFFSET)
    agrees(fitted, found)
    expected = found.predict(sm.add_constant(X), offset=OFFSET)
    np.testing.assert_allclose(fitted.predict_proba(X, offset=OFFSET)[:, 1], expected, rtol=1e-5)
    assert (fitted.predict(X, offset=OFFSET) == (expected > 0.5)).all()


def test_a_column_of_a_table_is_found_again() -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(days=DAYS)
    by_name = FederatedRegressor(loss="poisson", **ASKED).fit(table, COUNTS, exposure="days")
    given = FederatedRegressor(loss="poisson", **ASKED).fit(table[["a", "b", "c"]], COUNTS, exposure=DAYS)
    assert by_name.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(by_name.coef_, given.coef_)
    expected = given.predict(table[["a", "b", "c"]], exposure=DAYS)
    np.testing.assert_array_equal(by_name.predict(table[["days", "a", "b", "c"]]), expected)
    np.testing.assert_array_equal(by_name.predict(table.drop(columns="days"), exposure=DAYS), expected)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"offset": OFFSET, "exposure": DAYS}, "exposure"),
        ({"exposure": np.append(DAYS[:-1], 0.0)}, "exposure must"),
        ({"offset": OFFSET[:-1]}, "offset must"),
        ({"offset": np.append(OFFSET[:-1], np.nan)}, "offset must"),
        ({"exposure": "days"}, "exposure"),
    ],
)
def test_what_is_no_offset_is_refused(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        FederatedRegressor(loss="poisson", **ASKED).fit(X, COUNTS, **given)


def test_exposures_are_for_counts_and_offsets_come_again() -> None:
    with pytest.raises(ValueError, match="exposure"):
        FederatedRegressor(loss="squared", **ASKED).fit(X, COUNTS, exposure=DAYS)
    fitted = FederatedRegressor(loss="poisson", **ASKED).fit(X, COUNTS, exposure=DAYS)
    with pytest.raises(ValueError, match="exposure must be given for predictions"):
        fitted.predict(X)
    several = np.arange(240) % 3
    with pytest.raises(ValueError, match="offset"):
        FederatedClassifier(**ASKED).fit(X, several, offset=OFFSET)
