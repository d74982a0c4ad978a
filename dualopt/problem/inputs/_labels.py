"""Labels: numbers, words or truth values, in the form that a loss takes."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array, array_namespace, asarray_like, device, is_array, silent
from dualopt.losses import Loss
from dualopt.problem.inputs._features import host_values
from dualopt.problem.inputs._values import as_numbers, first_kinds, is_missing, object_array, shown

__all__ = ["as_labels", "classes_of", "label_values"]


def as_labels(y: Any, loss: Any, like: Array, rows: int) -> tuple[Array, Loss, tuple[Any, ...] | None]:
    """Return labels as the loss takes them, in the library and type of ``like``, the loss, and the classes.

    Parameters
    ----------
    y : vector of any kind, shape (m,)
        Labels. What is encoded already stays: -1 and +1 for binary losses, integers ``0, ..., k - 1`` for class labels.
    loss : Loss, or a class of losses
        A class is given ``classes``, the number of different labels.
    like : array
        Features, or an array of their library, type and device.
    rows : int
        Number of rows of the features.

    Returns
    -------
    array, Loss, tuple or None
        The classes are the labels that were encoded, in the order of their codes; None where nothing was.
    """
    if not isinstance(loss, type) and is_array(y) and _is_encoded(y, loss, like):
        return y, loss, None
    values = label_values(y)
    if values.shape != (rows,):
        raise ValueError(f"y must have one label for each of the {rows} rows of X, not shape {values.shape}.")
    if not isinstance(loss, type) and loss.labels == "real":
        numbers = as_numbers(values, "y").astype(np.float64)
        with silent():  # too large for float32: refused where all is checked
            return asarray_like(numbers, like), loss, None
    classes, codes = classes_of(values)
    counted = isinstance(loss, type)
    if counted:
        if len(classes) < 2:
            raise ValueError(f"y must have at least two different labels, but all are {classes[0]!r}.")
        loss = loss(classes=len(classes))
    kept, codes = _codes(classes, codes, loss, counted=counted)
    if loss.labels == "class":
        return asarray_like(codes, like, dtype=array_namespace(like).int64), loss, kept
    return asarray_like(codes.astype(np.float64), like), loss, kept


def label_values(y: Any) -> np.ndarray:
    """Return labels as a vector of numbers, of words, or of integers too long for NumPy; none is missing.

    Raises
    ------
    ValueError
        If a label is missing or infinite, or labels are neither all numbers nor all words.
    """
    values = host_values(y, "y")
    if values.dtype.kind == "O":
        values = _of_one_kind(values)
    elif values.dtype.kind not in "biufUS":
        raise ValueError(f"y must hold numbers or words, not {values.dtype}.")
    if values.dtype.kind == "f":
        _require_finite(values)
    return values


def _of_one_kind(values: np.ndarray) -> np.ndarray:
    """Return objects as numbers or as words."""
    listed = values.tolist()
    for row, value in enumerate(listed):
        if is_missing(value):
            raise ValueError(f"y must have no missing label, but row {row} (counted from 0) has none.")
    kinds = first_kinds(listed)
    if len(kinds) > 1:
        (a, first), (b, second) = kinds[:2]
        raise ValueError(f"y must not mix {a} and {b}, such as {shown(first)} and {shown(second)}.")
    if kinds and kinds[0][0] not in ("numbers", "words", "bytes"):
        raise ValueError(f"y must hold numbers or words, not {kinds[0][0]} such as {shown(kinds[0][1])}.")
    if not kinds or kinds[0][0] != "numbers":
        return np.asarray(listed) if kinds else values.astype(np.float64)
    if all(isinstance(value, bool | np.bool) for value in listed):
        return values.astype(bool)
    if all(isinstance(value, Integral | np.bool) for value in listed):
        try:
            return values.astype(np.int64)
        except OverflowError:  # Python's integers have any length: they stay exact
            return object_array([int(value) for value in listed])
    return as_numbers(values, "y")


def classes_of(values: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Return the labels that occur, in order, as Python's own values, and their numbers in that order.

    Whole numbers are integers, whatever type they came in.

    >>> classes_of(np.array([2.0, 0.0, 2.0]))
    ([0, 2], array([1, 0, 1]))
    """
    found, codes = np.unique(values, return_inverse=True)
    classes = found.tolist()
    if all(isinstance(c, float) and c.is_integer() for c in classes):
        classes = [int(c) for c in classes]
    return classes, codes


def _is_encoded(y: Array, loss: Loss, like: Array) -> bool:
    """Tell whether labels are what the loss takes already, an array beside the features."""
    xp = array_namespace(like)
    if array_namespace(y) is not xp or device(y) != device(like):
        return False
    if loss.labels == "class":
        return bool(xp.isdtype(y.dtype, "integral")) and bool(xp.all((y >= 0) & (y < loss.outputs)))
    if y.dtype != like.dtype:
        return False
    return bool(xp.all(xp.abs(y) == 1)) if loss.labels == "binary" else bool(xp.all(xp.isfinite(y)))


def _codes(
    classes: list[Any], codes: np.ndarray, loss: Loss, *, counted: bool
) -> tuple[tuple[Any, ...] | None, np.ndarray]:
    """Return the classes, None where the labels are their own codes, and the codes of all rows.

    Integers are numbers of classes, unless the classes of the loss were ``counted`` among them.
    """
    whole = isinstance(classes[0], int) and not isinstance(classes[0], bool)  # all are of one type
    if loss.labels == "binary":
        if whole and set(classes) <= {-1, 1}:
            return None, np.asarray(classes)[codes]
        if len(classes) != 2:
            raise ValueError(
                f"y must hold only -1 and +1, or two other labels, for the loss {loss}, but it has "
                f"{len(classes)}{_some(classes)}."
            )
        return tuple(classes), 2 * codes - 1
    if isinstance(classes[0], float):
        raise ValueError(f"y must hold classes, integers or words, for the loss {loss}, not fractions{_some(classes)}.")
    if whole and classes[0] >= 0 and classes[-1] < loss.outputs:
        return None, np.asarray(classes)[codes]
    if (whole and not counted) or len(classes) != loss.outputs:
        raise ValueError(
            f"y must hold integers 0 to {loss.outputs - 1} for the loss {loss}, or as many words, but it has "
            f'{len(classes)} labels{_some(classes)}: loss="multinomial" numbers those there are.'
        )
    return tuple(classes), codes


def _some(classes: list[Any]) -> str:
    return f" ({', '.join(map(shown, classes[:3]))}{', ...' if len(classes) > 3 else ''})"


def _require_finite(numbers: np.ndarray) -> None:
    finite = np.isfinite(numbers)
    if not finite.all():
        raise ValueError(
            f"y must hold finite numbers, but row {int(np.argmin(finite))} (counted from 0) is missing or infinite."
        )
