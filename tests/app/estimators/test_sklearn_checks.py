"""scikit-learn's own checks of an estimator, all of them."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dualopt.app.estimators import FederatedClassifier, FederatedRegressor

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",  # some checks have features of 1e3 and more beside those of 1
    "ignore::sklearn.exceptions.SkipTestWarning",
)


# As scikit-learn does with ``max_iter``: few rounds, since what is checked is the interface.
@parametrize_with_checks(
    [
        FederatedClassifier(max_rounds=20),
        FederatedRegressor(max_rounds=20),
        FederatedClassifier(loss="smoothed-hinge", max_rounds=20),
    ]
)
def test_checks(estimator, check) -> None:
    check(estimator)
