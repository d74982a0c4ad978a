"""What people have, as the arrays that objectives take.

Features come as lists, arrays, sparse matrices, DataFrames or tensors; labels as numbers, words or truth values;
clients as a number, as the rows of each or a mask of them, as one name per row, or as the name of a column.
:func:`prepare` makes arrays of one library and one type of them, or raises one sentence that names the argument, the
column and the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dualopt.arrays.xp import Array, is_sparse
from dualopt.losses import Loss
from dualopt.problem.inputs._clients import as_clients, by_owner, row_numbers
from dualopt.problem.inputs._features import as_features, require_entries
from dualopt.problem.inputs._frames import as_frame, is_table, take_column
from dualopt.problem.inputs._labels import as_labels, classes_of, label_values
from dualopt.problem.inputs._offsets import OffsetOrigin, as_offset, require_one_offset, require_takes
from dualopt.problem.inputs._row_weights import as_row_numbers, as_row_weights, parse_class_weight, row_weights

__all__ = [
    "Inputs",
    "OffsetOrigin",
    "as_clients",
    "as_features",
    "as_offset",
    "as_row_numbers",
    "as_row_weights",
    "by_owner",
    "classes_of",
    "label_values",
    "parse_class_weight",
    "prepare",
    "require_entries",
    "require_one_offset",
    "require_takes",
    "row_numbers",
    "row_weights",
    "without_column",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """Data as an objective takes them, and the names that they had.

    Attributes
    ----------
    X : array or sparse matrix, shape (m, d)
        Features in float64 or float32.
    y : array, shape (m,)
        Labels in the form that the loss takes, in the library and the type of ``X``.
    loss : Loss
        The loss, with its number of classes.
    clients : int or sequence of integer sequences or masks
        Rows of each client.
    weights : array, shape (m,), or None
        Weights ``w_ji`` of the rows.
    sample_weight : array, shape (m,), or None
        What each row counts among those of its client.
    classes : tuple or None
        The labels that were encoded, in the order of their codes: for a binary loss those of -1 and +1.
    feature_names : tuple of str or None
        The columns, where they had names.
    client_names : tuple or None
        The clients, where they had names.
    """

    X: Any
    y: Array
    loss: Loss
    clients: Any
    weights: Any
    sample_weight: Any = None
    classes: tuple[Any, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    client_names: tuple[Any, ...] | None = None


def prepare(X: Any, y: Any, *, loss: Any, clients: Any = 1, weights: Any = None, sample_weight: Any = None) -> Inputs:
    """Return data of any kind as arrays.

    Everything is computed in one type, that of ``X``: float32 stays float32, float16 becomes float32, whatever else
    float64. Labels and weights follow.

    Parameters
    ----------
    X : list of lists, array, sparse matrix, DataFrame or tensor, shape (m, d)
        Features.
    y : vector of any kind, shape (m,), or str
        Labels; of a DataFrame, the name of a column.
    loss : Loss, or a class of losses
        Decides how labels are encoded; a class is given the number of different labels.
    clients : int, rows, names, or str
        As in :func:`dualopt.linear_model`; of a DataFrame, the name of a column.
    weights : vector of shape (m,), optional
        Weights ``w_ji`` of the rows.
    sample_weight : vector of shape (m,), or str, optional
        What each row counts among those of its client; of a DataFrame, the name of a column.

    Raises
    ------
    ValueError
        If an argument does not fit, with one sentence that names it.
    ModuleNotFoundError
        If a DataFrame needs a package that is missing.

    Examples
    --------
    >>> from dualopt.losses import Logistic
    >>> data = prepare([[1, 2], [3, 4]], ["no", "yes"], loss=Logistic(), clients=["Lyon", "Basel"])
    >>> data.X.dtype.name, data.y.tolist(), data.classes, data.client_names
    ('float64', [-1.0, 1.0], ('no', 'yes'), ('Basel', 'Lyon'))
    """
    if isinstance(y, str):
        X, y = without_column(X, y, "y")
    if isinstance(clients, str):
        X, clients = without_column(X, clients, "clients")
    if isinstance(sample_weight, str):
        X, sample_weight = without_column(X, sample_weight, "sample_weight")
    X, feature_names = as_features(X)
    require_entries(X)
    like = X.data if is_sparse(X) else X
    y, loss, classes = as_labels(y, loss, like, X.shape[0])
    clients, client_names = as_clients(clients, X.shape[0])
    if weights is not None:
        weights = as_row_weights(weights, like, X.shape[0], "weights")
    if sample_weight is not None:
        sample_weight = as_row_weights(sample_weight, like, X.shape[0], "sample_weight")
    return Inputs(
        X=X,
        y=y,
        loss=loss,
        clients=clients,
        weights=weights,
        sample_weight=sample_weight,
        classes=classes,
        feature_names=feature_names,
        client_names=client_names,
    )


def without_column(X: Any, name: str, argument: str) -> tuple[Any, Any]:
    """Return a DataFrame without the column of this name, and the column, as narwhals has them.

    Raises
    ------
    ValueError
        If ``X`` is no DataFrame, or has no such column.
    """
    frame = as_frame(X, "X")
    if frame is None or not is_table(frame):
        raise ValueError(f"{argument} = {name!r} names a column, but X is a {type(X).__name__} and no DataFrame.")
    column, rest = take_column(frame, name, argument)
    return rest, column
