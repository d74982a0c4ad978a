"""Handwritten digits, 8 x 8 pixels: a part of a UCI data set that is embedded in scikit-learn."""

from __future__ import annotations

from dualopt.problem.data._dataset import RawData
from dualopt.problem.data._sklearn import sklearn_datasets

NAMES = {"digits": "handwritten digits of 8 x 8 pixels: 1797 x 64, 10 classes (embedded in scikit-learn)"}


def load(name: str) -> RawData:
    """Load the 1797 images; pixels 0..16 are divided by 16 by default."""
    X, y = sklearn_datasets().load_digits(return_X_y=True)
    return RawData(X=X, y=y, scale=16.0, description="UCI Optical Recognition of Handwritten Digits, test part")
