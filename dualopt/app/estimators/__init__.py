"""Estimators in the manner of scikit-learn, trained over clients and certified.

:class:`FederatedClassifier` and :class:`FederatedRegressor` have ``fit``, ``predict`` and ``score``, and go wherever
scikit-learn takes an estimator: into pipelines, grid searches, ``clone`` and ``pickle``.
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('dualopt.app.estimators needs scikit-learn: pip install "dualopt[app]".') from error

from dualopt.app.estimators.classifier import FederatedClassifier
from dualopt.app.estimators.regressor import FederatedRegressor

__all__ = ["FederatedClassifier", "FederatedRegressor"]
