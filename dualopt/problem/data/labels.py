"""Encoding of raw labels in the form that a loss takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualopt.problem.inputs import classes_of

__all__ = ["class_count", "class_names", "encode_labels"]

KINDS = ("real", "binary", "class")


def encode_labels(
    y: np.ndarray, kind: str, *, classes: int | Sequence[int] | Sequence[str] | np.ndarray | None = None
) -> np.ndarray:
    """Encode raw labels for a loss.

    * ``"real"``: numbers, as float64;
    * ``"binary"``: exactly two distinct labels, the smaller to -1.0 and the larger to +1.0;
    * ``"class"``: k >= 2 distinct labels, in sorted order to the integers 0..k-1 (int64).

    Parameters
    ----------
    y : array, shape (m,)
        Raw labels: numbers, or strings for the last two kinds.
    kind : str
        The kind of labels that the loss takes, its ``labels``.
    classes : int or array, optional
        All labels that there are, so that a subset of a data set is encoded like the whole; an integer k stands
        for 0..k-1. None means the labels that occur in ``y``.

    Returns
    -------
    array, shape (m,)

    Raises
    ------
    ValueError
        If ``y`` is not what the loss needs: not one number or string per row, NaN or infinite, not exactly
        two labels for "binary", fewer than two or numbers that are not integers for "class", strings for
        "real", or a label that is not in ``classes``; or if ``kind`` is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.problem.data import encode_labels
    >>> encode_labels(np.array([2, 1, 2]), "binary")
    array([ 1., -1.,  1.])
    >>> encode_labels(np.array(["cat", "dog", "ant"]), "class")
    array([1, 2, 0])
    >>> encode_labels(np.array([2, 0]), "class", classes=4)
    array([2, 0])
    """
    y = _labels(y)
    if kind not in KINDS:
        raise ValueError(f"kind of labels must be one of {', '.join(KINDS)}, got {kind!r}.")
    if kind == "real":
        if y.dtype.kind in "US":
            raise ValueError(f"y must hold numbers for a loss with real labels, got the string {str(y[0])!r}.")
        if classes is not None:
            raise ValueError(f"classes must be None for a loss with real labels, got {classes!r}.")
        return y.astype(np.float64)

    values = np.unique(y)
    if kind == "class" and values.dtype.kind == "f" and (fraction := values[values != np.floor(values)]).size:
        raise ValueError(
            f"y must hold classes (integers or strings) for a loss with class labels, got {fraction[0]} "
            f"among {values.size} distinct numbers."
        )
    if classes is not None:
        given = np.arange(classes) if isinstance(classes, int | np.integer) else np.asarray(classes)
        everything = np.unique(_labels(given, "classes"))
        # To NumPy the number 1 and the string "1" are equal; here a number is no class of a data set with words.
        known = np.isin(values, everything) & ((values.dtype.kind in "US") == (everything.dtype.kind in "US"))
        if not known.all():
            raise ValueError(
                f"y has the label {values[~known][0].item()!r}, which is not one of the {everything.size} classes."
            )
        values = everything
    if kind == "binary" and values.size != 2:
        raise ValueError(f"y must have exactly two distinct labels for a loss with binary labels, got {values.size}.")
    if values.size < 2:
        raise ValueError(
            f"y must have at least two distinct labels for a loss with class labels, got only {values[0].item()!r}."
        )
    codes = np.searchsorted(values, y)
    return 2.0 * codes - 1.0 if kind == "binary" else codes.astype(np.int64)


def class_names(y: np.ndarray, kind: str) -> tuple[Any, ...] | None:
    """Return the classes in the order of `encode_labels`; None where the labels are encoded already.

    Parameters
    ----------
    y : array, shape (m,)
        Raw labels.
    kind : str
        The kind of labels that the loss takes.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.problem.data.labels import class_names
    >>> class_names(np.array(["no", "yes", "no"]), "binary"), class_names(np.array([0, 1, 2]), "class")
    (('no', 'yes'), None)
    """
    if kind == "real":
        return None
    names, _ = classes_of(_labels(y))
    codes = [-1, 1] if kind == "binary" else list(range(len(names)))
    return None if names == codes and not isinstance(names[0], bool) else tuple(names)


def class_count(y: np.ndarray) -> int:
    """Count the distinct labels.

    Parameters
    ----------
    y : array, shape (m,)
        Raw labels.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If ``y`` is not a nonempty vector of finite numbers or of strings.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.problem.data import class_count
    >>> class_count(np.array([3, 1, 3, 2]))
    3
    """
    return np.unique(_labels(y)).size


def _labels(y: np.ndarray, name: str = "y") -> np.ndarray:
    """Return labels as a NumPy vector, or refuse them."""
    y = np.asarray(y)
    if y.ndim != 1 or y.size == 0:
        raise ValueError(f"{name} must be a vector with at least one label, but its shape is {y.shape}.")
    if y.dtype.kind not in "biufUS":
        raise ValueError(f"{name} must hold numbers or strings, but its type is {y.dtype}.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(
            f"{name} must be finite, but label {int(np.argmin(np.isfinite(y)))} (counted from 0) is NaN or infinite."
        )
    return y
