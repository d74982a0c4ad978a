"""Breast cancer Wisconsin (diagnostic), embedded in scikit-learn."""

from __future__ import annotations

from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._sklearn import sklearn_datasets

NAMES = {"breast_cancer": "breast cancer Wisconsin (diagnostic): 569 x 30, 2 classes (embedded in scikit-learn)"}


def load(name: str) -> RawData:
    """Load the 569 samples; they are standardised by default, since their units differ by factors of 1e5."""
    X, y = sklearn_datasets().load_breast_cancer(return_X_y=True)
    return RawData(X=X, y=y, scale="standard", description="UCI Breast Cancer Wisconsin (Diagnostic)")
