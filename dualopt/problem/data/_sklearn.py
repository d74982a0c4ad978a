"""The import of scikit-learn, an optional dependency."""

from __future__ import annotations

from typing import Any

from dualopt.arrays._extras import optional

__all__ = ["sklearn_datasets"]


def sklearn_datasets() -> Any:
    """Return ``sklearn.datasets``, imported on first use because it is slow to import and optional.

    Raises
    ------
    ModuleNotFoundError
        If scikit-learn is not installed; the sentence says how to install it.
    """
    return optional("sklearn.datasets", "data")
