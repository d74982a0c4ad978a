"""Data sets that come with scikit-learn: handwritten digits and breast cancer, both of the UCI repository."""

from __future__ import annotations

from typing import Any

from dualopt.arrays._extras import optional
from dualopt.problem.data._dataset import RawData

NAMES = {
    "breast_cancer": "breast cancer Wisconsin (diagnostic): 569 x 30, 2 classes (embedded in scikit-learn)",
    "digits": "handwritten digits of 8 x 8 pixels: 1797 x 64, 10 classes (embedded in scikit-learn)",
}

# The default scale and the source of each: units of breast cancer differ by factors of 1e5, pixels are 0..16.
KNOWN: dict[str, tuple[Any, str]] = {
    "breast_cancer": ("standard", "UCI Breast Cancer Wisconsin (Diagnostic)"),
    "digits": (16.0, "UCI Optical Recognition of Handwritten Digits, test part"),
}


def load(name: str) -> RawData:
    """Load all samples of a data set.

    Raises
    ------
    ModuleNotFoundError
        If scikit-learn is missing.
    """
    scale, description = KNOWN[name]
    X, y = getattr(optional("sklearn.datasets", f"data {name!r}"), f"load_{name}")(return_X_y=True)
    return RawData(X=X, y=y, scale=scale, description=description)
