"""What the rows of a model are: columns, their names, their scaling, and the labels that are predicted for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dualopt.arrays._checks import is_number
from dualopt.arrays.xp import is_sparse, to_numpy
from dualopt.losses import Loss
from dualopt.problem.data._dataset import check_features
from dualopt.problem.data._scaling import Scaling
from dualopt.problem.inputs import OffsetOrigin, as_features, as_offset, require_entries
from dualopt.problem.inputs._frames import as_frame, column_names, frame_features, is_table
from dualopt.problem.preprocessing import Columns

__all__ = ["PLAIN", "Schema", "class_number"]

SHOWN = 20  # names that a sentence lists
PLAIN = {bool, int, float, str}  # types of labels


@dataclass(frozen=True, kw_only=True, eq=False)
class Schema:
    """What the rows of a model are.

    Columns of a table are found by name where the model has names: they may stand in any order, one that is missing is
    refused, and others are left alone, that of the labels among them. Columns of anything else are counted.

    Attributes
    ----------
    n_features : int
        Number ``d`` of features, without the column of ones.
    feature_names : tuple of str, optional
        Their names, where the data had some.
    classes : tuple, optional
        The labels that codes stand for; None where labels are numbers, or codes themselves.
    scaling : Scaling
        What was done to the features.
    dtype : str
        float64 or float32, in which all was computed.
    reading : mapping
        Options with which files are read so that their columns mean the same, such as the name of the label column.
    offset : OffsetOrigin, optional
        Where the offsets of the predictors came from.
    columns : Columns, optional
        How the columns of a table become features, where words or gaps are not refused. Rows that are no table are
        these features.

    Examples
    --------
    >>> import pandas as pd
    >>> schema = Schema(n_features=2, feature_names=("age", "dose"))
    >>> schema.rows(pd.DataFrame({"dose": [0.5], "name": ["Anna"], "age": [63]})).tolist()
    [[63.0, 0.5]]
    >>> schema.rows([[63, 0.5, 1]])
    Traceback (most recent call last):
    ValueError: X must have the 2 features of the model, not 3.
    """

    n_features: int
    feature_names: tuple[str, ...] | None = None
    classes: tuple[Any, ...] | None = None
    scaling: Scaling = field(default_factory=Scaling)
    dtype: str = "float64"
    reading: Mapping[str, Any] = field(default_factory=dict)
    offset: OffsetOrigin | None = None
    columns: Columns | None = None

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names of the columns of a table from which features are made; None where there are no names."""
        return self.feature_names if self.columns is None else self.columns.names

    def rows(self, X: Any, what: str = "X") -> Any:
        """Return the features of rows in the order of the model, not scaled: an array or sparse matrix, shape (m, d).

        Parameters
        ----------
        X : DataFrame, array, sparse matrix of SciPy, tensor or list of lists, shape (m, d)
            The rows; a DataFrame may have more columns.
        what : str, default "X"
            What sentences call them.

        Raises
        ------
        ValueError
            If columns are missing, too few or too many, or hold anything but finite numbers.
        """
        frame = as_frame(X, what)
        if frame is not None and is_table(frame) and self.feature_names is not None:
            frame = frame[:, self.places(column_names(frame), what)]
            X = frame_features(frame) if self.columns is None else self.columns.matrix(self.columns.table(frame))
        else:
            X, _ = as_features(X)
        require_entries(X)
        if X.shape[1] != self.n_features:
            raise ValueError(f"{what} must have the {self.n_features} features of the model, not {X.shape[1]}.")
        X = X.tocsr() if is_sparse(X) else to_numpy(X)
        check_features(X)
        return X

    def offsets(self, X: Any, given: Any = None, what: str = "X") -> Any:
        """Return what is added to the predictors of rows: a number, or an array of shape (m,).

        Parameters
        ----------
        X : as for `rows`
            The rows; a DataFrame may have the column from which the offsets of the model came.
        given : number or vector of shape (m,), optional
            The offsets, in place of those of the column.
        what : str, default "X"
            What sentences call the rows.

        Raises
        ------
        ValueError
            If the model was trained with offsets, and there are none.
        """
        rows, like = X.shape[0] if hasattr(X, "shape") else len(X), np.zeros(0, self.dtype)
        if given is not None:
            return as_offset(np.full(rows, float(given)) if is_number(given) else given, None, like, rows)
        if self.offset is None:
            return 0.0
        frame = as_frame(X, what)
        if frame is not None and is_table(frame) and self.offset.column in column_names(frame):
            return as_offset(*self.offset.pair(frame[self.offset.column]), like, rows)
        raise ValueError(self.without_offsets(what))

    def without_offsets(self, what: str) -> str:
        """Say that rows have no offsets, and what helps."""
        assert self.offset is not None
        column = "offsets" if self.offset.column is None else f"a column {self.offset.column!r}"
        unit = "an offset of 0" if self.offset.kind == "offset" else "an exposure of 1"
        return f"{what} must have {column}, with which the model was trained: offset=0 predicts for {unit}."

    def places(self, names: Sequence[str], what: str = "X") -> list[int]:
        """Return where the features of the model are among these columns.

        Raises
        ------
        ValueError
            If some are missing; the sentence names them.
        """
        known = {name: place for place, name in enumerate(names)}
        missing = [name for name in self.column_names or () if name not in known]
        if missing:
            listed = ", ".join(map(repr, missing[:SHOWN])) + (", ..." if len(missing) > SHOWN else "")
            raise ValueError(f"{what} must have the columns of the model, but {listed} {_is(missing)} missing.")
        return [known[name] for name in self.column_names or ()]

    def labels(self, kind: str, outputs: int) -> np.ndarray | None:
        """Return what is predicted for the codes of a loss, in their order; None for numbers.

        Parameters
        ----------
        kind : {"real", "binary", "class"}
            The labels of the loss.
        outputs : int
            Its outputs.
        """
        if kind == "real":
            return None
        if self.classes is not None:
            return np.asarray(self.classes)
        return np.array([-1, 1]) if kind == "binary" else np.arange(outputs)


def class_number(loss: Loss) -> int:
    """Return how many classes a loss has; 0 for numbers.

    >>> from dualopt import Hinge, Multinomial, Squared
    >>> [class_number(loss) for loss in (Squared(), Hinge(), Multinomial(classes=4))]
    [0, 2, 4]
    """
    return {"real": 0, "binary": 2}.get(loss.labels, loss.outputs)


def _is(things: Sequence[Any]) -> str:
    return "is" if len(things) == 1 else "are"
