"""Data sets that come with scikit-learn: handwritten digits and breast cancer, both of the UCI repository."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dualopt.arrays._extras import optional
from dualopt.problem.data._dataset import RawData

NAMES = {
    "breast_cancer": "breast cancer Wisconsin (diagnostic): 569 x 30, 2 classes (embedded in scikit-learn)",
    "digits": "handwritten digits of 8 x 8 pixels: 1797 x 64, 10 classes (embedded in scikit-learn)",
}

# The default scale, the source and the file of each: units of breast cancer differ by factors of 1e5, pixels are 0..16.
KNOWN: dict[str, tuple[Any, str, str]] = {
    "breast_cancer": ("standard", "UCI Breast Cancer Wisconsin (Diagnostic)", "breast_cancer.csv"),
    "digits": (16.0, "UCI Optical Recognition of Handwritten Digits, test part", "digits.csv.gz"),
}


def load(name: str) -> RawData:
    """Load all samples of a data set.

    The file is read where scikit-learn has it: importing ``sklearn.datasets`` takes longer than most runs.

    Raises
    ------
    ModuleNotFoundError
        If scikit-learn is missing.
    """
    scale, description, file = KNOWN[name]
    if (path := _path(file)) is None:
        X, y = getattr(optional("sklearn.datasets", f"data {name!r}"), f"load_{name}")(return_X_y=True)
    else:
        table = np.loadtxt(path, delimiter=",", skiprows=int(name == "breast_cancer"))  # a line of sizes and classes
        X, y = table[:, :-1], table[:, -1].astype(np.int64)
    return RawData(X=X, y=y, scale=scale, description=description)


def _path(file: str) -> Path | None:
    """Return where the installed scikit-learn has a file of data; None where it is not there."""
    found = find_spec("sklearn")
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(found.submodule_search_locations[0], "datasets", "data", file)
    return path if path.is_file() else None
