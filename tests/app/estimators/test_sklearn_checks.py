"""scikit-learn's own checks of an estimator, all of them."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dualopt.app.estimators import FederatedClassifier, FederatedRegressor

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",  # some checks have features of 1e3 and more beside those of 1
    "ignore::sklearn.exceptions.SkipTestWarning",
)


@parametrize_with_checks([FederatedClassifier(), FederatedRegressor(), FederatedClassifier(loss="smoothed-hinge")])
def test_checks(estimator, check) -> None:
    check(estimator)
