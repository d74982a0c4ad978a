"""The import of scikit-learn, an optional dependency."""

from __future__ import annotations

from typing import Any

__all__ = ["sklearn_datasets"]


def sklearn_datasets() -> Any:
    """Return ``sklearn.datasets``, imported on first use because it is slow to import and optional.

    Raises
    ------
    ModuleNotFoundError
        If scikit-learn is not installed; the message says how to install it.
    """
    try:
        from sklearn import datasets
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "data needs scikit-learn here: install it with pip install 'dualopt[app]'."
        ) from error
    return datasets
