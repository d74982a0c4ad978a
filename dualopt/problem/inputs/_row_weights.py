"""What each row counts: weights that are given with the rows, and weights of classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dualopt.arrays._checks import is_number, require
from dualopt.arrays.communicator import ALONE, Communicator
from dualopt.arrays.xp import Array, array_namespace, asarray_like, device, is_array
from dualopt.losses import Loss
from dualopt.problem.inputs._features import host_values
from dualopt.problem.inputs._values import as_numbers, shown

__all__ = ["as_row_numbers", "as_row_weights", "parse_class_weight", "row_weights"]


def as_row_numbers(numbers: Any, name: str, like: Array) -> Array:
    """Return numbers of the rows, an argument of this name, in the library, the type and on the device of ``like``."""
    if is_array(numbers) and array_namespace(numbers) is array_namespace(like) and numbers.dtype == like.dtype:
        return numbers
    return asarray_like(as_numbers(host_values(numbers, name), name), like)


def as_row_weights(weights: Any, like: Array, rows: int, name: str) -> Array:
    """Return numbers, one for each row, in the library, the type and on the device of the features.

    Raises
    ------
    ValueError
        If they are no vector of ``rows`` finite nonnegative numbers; the sentence names them ``name``.

    Examples
    --------
    >>> import numpy as np
    >>> as_row_weights([2, 0, 1], np.ones(1), 3, "sample_weight").tolist()
    [2.0, 0.0, 1.0]
    >>> as_row_weights([2, -1], np.ones(1), 2, "sample_weight")
    Traceback (most recent call last):
    ValueError: sample_weight must be 2 finite nonnegative numbers, one for each row of X.
    """
    xp, found = array_namespace(like), as_row_numbers(weights, name, like)
    fits = tuple(found.shape) == (rows,) and bool(xp.all(xp.isfinite(found) & (found >= 0)))
    require(fits, f"{name} must be {rows} finite nonnegative numbers, one for each row of X")
    return found


def row_weights(
    sample_weight: Array | None,
    class_weight: Any,
    y: Array,
    like: Array,
    loss: Loss,
    classes: Sequence[Any] | None,
    peers: Communicator = ALONE,
) -> Array | None:
    r"""Return what each row counts, :math:`s_i c_{y_i}`; None where all count alike.

    Parameters
    ----------
    sample_weight : array, shape (m,), optional
        The :math:`s_i`; 1 when not given.
    class_weight : "balanced" or dict, optional
        The :math:`c_k`, by class; those that are not named count 1. ``"balanced"`` is
        :math:`c_k = \sum_i s_i / (K \sum_{i: y_i = k} s_i)` over the rows of all clients, with ``K`` the number of
        classes of which there are rows: all of them have the same weight then, and the mean weight of a row stays.
    y : array, shape (m,)
        Encoded labels.
    like : array
        Features, or an array of their library, type and device.
    loss : Loss
        Decides what the codes are: -1 and 1, or 0 to k - 1.
    classes : sequence, optional
        The labels in the order of their codes, by which ``class_weight`` names them; the codes when not given.
    peers : Communicator, optional
        The processes that hold the rows of the other clients.

    Raises
    ------
    ValueError
        If ``class_weight`` does not fit; the sentence names it.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.losses import Logistic
    >>> y = np.array([1.0, -1.0, -1.0, -1.0])
    >>> row_weights(None, "balanced", y, y, Logistic(), ("no", "yes")).round(3).tolist()
    [2.0, 0.667, 0.667, 0.667]
    >>> row_weights(2 * np.ones(4), {"yes": 3}, y, y, Logistic(), ("no", "yes")).tolist()
    [6.0, 2.0, 2.0, 2.0]
    """
    if class_weight is None:
        return sample_weight
    require(loss.labels != "real", f"class_weight must not be given with the loss {loss}, whose labels are numbers")
    codes = (-1, 1) if loss.labels == "binary" else tuple(range(loss.outputs))
    names = codes if classes is None else tuple(classes)
    xp = array_namespace(like)
    if isinstance(class_weight, str) and class_weight == "balanced":
        numbers = _balanced([_of_class(sample_weight, y == code) for code in codes], sample_weight, peers)
    else:
        numbers = _named(class_weight, names)
    found = xp.ones(y.shape, dtype=like.dtype, device=device(like)) if sample_weight is None else sample_weight
    for code, number in zip(codes, numbers, strict=True):
        if number != 1.0:
            found = xp.where(y == code, number * found, found)
    return found


def parse_class_weight(text: str | None) -> str | dict[str, float] | None:
    """Return what text says of classes: a word, or numbers by the text of labels.

    Raises
    ------
    ValueError
        If it is neither.

    Examples
    --------
    >>> parse_class_weight("yes=3,no=0.5"), parse_class_weight("balanced")
    ({'yes': 3.0, 'no': 0.5}, 'balanced')
    """
    if text is None or text == "balanced":
        return text
    sentence = "class_weight must be balanced, or numbers by class such as yes=3,no=1"
    found = {}
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            found[""] = 0.0
    require("" not in found, sentence, text)
    return found


def _of_class(sample_weight: Array | None, among: Array) -> float | int:
    """Return the weight of the rows of a class, without weights their number."""
    xp = array_namespace(among)
    if sample_weight is None:
        return int(xp.sum(xp.astype(among, xp.int64)))
    return float(xp.sum(xp.where(among, sample_weight, xp.zeros_like(sample_weight))))


def _balanced(totals: list[float | int], sample_weight: Array | None, peers: Communicator) -> list[float]:
    require(
        sample_weight is None or peers.size == 1,
        "class_weight must be numbers where rows have weights and other processes have other rows",
    )
    totals = [peers.total(total) for total in totals]
    whole, present = math.fsum(totals), sum(total > 0 for total in totals)
    return [whole / (present * total) if total > 0 else 1.0 for total in totals]


def _named(class_weight: Any, names: Sequence[Any]) -> list[float]:
    """Return the weights of classes by their names; those not named count 1."""
    require(isinstance(class_weight, Mapping), "class_weight must be 'balanced' or numbers by class", class_weight)
    for name, number in class_weight.items():
        known = f"class_weight must name classes, some of {', '.join(map(shown, names))}"
        require(name in names, known, name)
        right = is_number(number) and 0 < float(number) < math.inf
        require(right, f"class_weight of {shown(name)} must be a positive finite number", number)
    return [float(class_weight.get(name, 1.0)) for name in names]
