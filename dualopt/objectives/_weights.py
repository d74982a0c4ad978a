"""The weights of the clients: what is given for them, their parts in a mean, and that mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, asarray_like, is_array, reshape, summed, to_numpy

__all__ = [
    "as_client_weights",
    "kind_of_weights",
    "mean",
    "mean_of",
    "of_clients",
    "parse_numbers",
    "positive",
    "shares",
    "total",
    "unequal",
]


def positive(name: str, numbers: Any, n_clients: int | None = None) -> tuple[float, ...] | None:
    """Return positive finite numbers, one for each client, as a tuple; None passes.

    Raises
    ------
    ValueError
        If they are anything else; the sentence names them ``name``.

    Examples
    --------
    >>> positive("weights", [1, 2.5]), positive("weights", None)
    ((1.0, 2.5), None)
    >>> positive("weights", [1.0, math.inf])
    Traceback (most recent call last):
    ValueError: weights must be positive finite numbers, one for each client, not [1.0, inf].
    """
    if numbers is None:
        return None
    sentence = f"{name} must be positive finite numbers, one for each client"
    require(is_array(numbers) or (isinstance(numbers, Sequence) and not isinstance(numbers, str)), sentence, numbers)
    try:
        found = tuple(map(float, to_numpy(numbers).tolist() if is_array(numbers) else numbers))
    except (TypeError, ValueError):
        found = (math.nan,)
    require(bool(found) and all(0 < x < math.inf for x in found), sentence, numbers)
    right = n_clients is None or len(found) == n_clients
    require(right, f"{name} must be {n_clients} numbers, one for each client", len(found))
    return found


def as_client_weights(
    given: Any, sizes: Sequence[float] | None = None, names: Sequence[Any] | None = None
) -> tuple[float, ...] | None:
    """Return the weights of clients that have so many rows, from ``"equal"``, ``"rows"``, numbers, or a dict by name.

    Without ``sizes`` what is wrong for any clients is refused.

    Raises
    ------
    ValueError
        If they are anything else.

    Examples
    --------
    >>> as_client_weights("rows", (2, 5)), as_client_weights({"b": 1, "a": 2}, (2, 5), ("a", "b"))
    ((2.0, 5.0), (2.0, 1.0))
    """
    if isinstance(given, str) or given is None:
        require(given in ("equal", "rows"), "client_weights must be 'equal', 'rows' or numbers", given)
        return None if given == "equal" or sizes is None else tuple(map(float, sizes))
    if isinstance(given, Mapping):
        if sizes is not None:
            named = names is not None and set(given) == set(names)
            require(named, "client_weights must have the names of all clients, and of no others")
        given = list(given.values()) if names is None else [given[name] for name in names]
    return positive("client_weights", given, None if sizes is None else len(sizes))


def kind_of_weights(given: Any) -> str:
    """Return what all processes must say of the weights of their clients, of which each has its own numbers.

    >>> kind_of_weights("rows"), kind_of_weights([1.0, 3.0])
    ('rows', 'numbers')
    """
    return given if isinstance(given, str) else "equal" if given is None else "numbers"


def parse_numbers(text: str) -> str | list[Any]:
    """Return what text says of clients: a word, or numbers with commas between them.

    Examples
    --------
    >>> parse_numbers("rows"), parse_numbers("3,1,0.5"), parse_numbers("3,x")
    ('rows', [3.0, 1.0, 0.5], '3,x')
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text


def of_clients(numbers: tuple[float, ...] | None, ids: Sequence[int]) -> tuple[float, ...] | None:
    """Return those of the clients ``ids``; None passes.

    Examples
    --------
    >>> of_clients((1.0, 2.0, 3.0), (0, 2)), of_clients(None, (0, 2))
    ((1.0, 3.0), None)
    """
    return None if numbers is None else tuple(numbers[j] for j in ids)


def shares(weights: Sequence[float] | None) -> tuple[float, ...] | None:
    """Return the parts ``w_j / sum w`` of clients in their mean; None where all weights are equal.

    Examples
    --------
    >>> shares((1.0, 3.0)), shares((2.0,)), shares(None)
    ((0.25, 0.75), None, None)
    """
    if weights is None or all(w == weights[0] for w in weights):
        return None
    whole = sum(weights)
    return tuple(w / whole for w in weights)


def unequal(weights: tuple[float, ...] | None) -> tuple[float, ...] | None:
    """Return the weights; None where all are equal, so that means need no products.

    Examples
    --------
    >>> unequal((1.0, 3.0)), unequal((2.0, 2.0)), unequal(None)
    ((1.0, 3.0), None, None)
    """
    return None if shares(weights) is None else weights


def mean(rows: Array, shares: Sequence[float] | None = None) -> Array:
    """Return the sum of rows ``(N, ...)`` with these parts; without any the plain mean, with no product.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0, 2.0], [3.0, 6.0]])
    >>> mean(rows).tolist(), mean(rows, (0.25, 0.75)).tolist()
    ([2.0, 4.0], [2.5, 5.0])
    """
    return summed(rows, 0) / rows.shape[0] if shares is None else total(rows, shares)


def total(rows: Array, weights: Sequence[float] | None = None) -> Array:
    """Return the sum of rows ``(N, ...)`` times weights, without any the plain sum.

    Examples
    --------
    >>> import numpy as np
    >>> total(np.array([[1.0], [3.0]])).tolist(), total(np.array([[1.0], [3.0]]), (2.0, 1.0)).tolist()
    ([4.0], [5.0])
    """
    if weights is None:
        return summed(rows, 0)
    return summed(reshape(asarray_like(weights, rows), (-1,) + (1,) * (rows.ndim - 1)) * rows, 0)


def mean_of(numbers: Sequence[float], weights: Sequence[float] | None) -> float:
    """Return the mean of numbers with these weights.

    Examples
    --------
    >>> mean_of((1.0, 5.0), None), mean_of((1.0, 5.0), (3.0, 1.0))
    (3.0, 2.0)
    """
    if weights is None:
        return sum(numbers) / len(numbers)
    return sum(w * x for w, x in zip(weights, numbers, strict=True)) / sum(weights)
