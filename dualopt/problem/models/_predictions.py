"""Predictions as a table, and how well they fit labels that are known."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import IO, Any

import numpy as np

from dualopt.arrays._files import write_atomically
from dualopt.problem.models._model import Model

__all__ = ["agreement", "prediction_columns", "write_predictions"]


def prediction_columns(model: Model, X: Any, offset: Any = None) -> dict[str, np.ndarray]:
    """Return predictions, and probabilities of the classes, or else their predictors, ``(m,)`` each.

    Parameters
    ----------
    model : Model
        The model.
    X : DataFrame, array or sparse matrix, shape (m, d)
        The rows.
    offset : number or vector of shape (m,), optional
        As in `Model.predict`.

    Examples
    --------
    >>> from dualopt import Logistic, Schema
    >>> schema = Schema(n_features=1, classes=("no", "yes"))
    >>> model = Model(layers=((np.ones((1, 1)), np.zeros(1)),), loss=Logistic(), schema=schema)
    >>> {name: x.round(2).tolist() for name, x in prediction_columns(model, [[1.0]]).items() if name != "prediction"}
    {'probability no': [0.27], 'probability yes': [0.73]}
    """
    z = model.predictors(X, offset)
    found = {"prediction": model.labels(z)}
    if model.classes is None:
        return found
    if model.has_probabilities:
        return found | dict(zip(_names("probability", model), model.probabilities(z).T, strict=True))
    return found | dict(zip(["decision"] if len(z) == 1 else _names("decision", model), z, strict=True))


def write_predictions(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Write a table as CSV, whole or not at all; numbers with all their digits."""

    def write(file: IO[Any]) -> None:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))

    write_atomically(path, write)


def agreement(model: Model, predicted: np.ndarray, y: np.ndarray) -> float | None:
    """Return the fraction of labels that are predicted, or the root mean square error of numbers; None for others.

    >>> from dualopt import Squared, Schema
    >>> model = Model(layers=((np.ones((1, 1)), np.zeros(1)),), loss=Squared(), schema=Schema(n_features=1))
    >>> agreement(model, np.array([1.0, 2.0]), np.array([4, 6]))
    3.5355339059327378
    """
    if y.shape != predicted.shape or (model.classes is None and y.dtype.kind not in "biuf"):
        return None
    if model.classes is None:
        return float(np.sqrt(np.mean((predicted - y.astype(np.float64)) ** 2)))
    return float(np.mean([a == b for a, b in zip(predicted.tolist(), y.tolist(), strict=True)]))


def _names(what: str, model: Model) -> list[str]:
    assert model.classes is not None
    return [f"{what} {label}" for label in model.classes.tolist()]
