r"""What pages compute with: matrices of the real methods, found on a basis of positions.

With the Hessians of quadratic clients fixed, every iterate, dual and local solution of a method here is an affine
function of the position ``u``, the coordinates of what the reader drags; squared lengths and differences of energies
are quadratic ones. A chapter says what it *measures* at one position, by running the methods there. :func:`tabulate`
measures at enough positions to know these functions everywhere, for all values of the parameters, and a page
multiplies. Nothing of a method is written twice, and tests compare pages with measurements at random positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from typing import Any, Literal, NamedTuple

import numpy as np

__all__ = ["Measured", "Quantity", "constant", "evaluate", "form", "linear", "named", "names_of", "squares", "tabulate"]

Kind = Literal["linear", "squares", "form", "constant"]
Measure = Callable[..., Mapping[str, "Measured"]]


class Measured(NamedTuple):
    """Numbers at one position, and what kind of function of the position they are."""

    kind: Kind
    values: np.ndarray
    rounds: bool  # whether the first axis counts rounds


def linear(values: Any, *, rounds: bool = False) -> Measured:
    """Return numbers that are affine in the position: points, duals."""
    return Measured("linear", np.asarray(values, dtype=float), rounds)


def squares(values: Any, *, rounds: bool = False) -> Measured:
    """Return squared lengths: the last axis of ``values``, affine in the position, is what they are the lengths of."""
    return Measured("squares", np.asarray(values, dtype=float), rounds)


def form(values: Any, *, rounds: bool = False) -> Measured:
    """Return numbers that are quadratic in the position."""
    return Measured("form", np.asarray(values, dtype=float), rounds)


def constant(values: Any, *, rounds: bool = False) -> Measured:
    """Return numbers that do not depend on the position."""
    return Measured("constant", np.asarray(values, dtype=float), rounds)


@dataclass(frozen=True)
class Quantity:
    """A function of position, parameters and round.

    Attributes
    ----------
    kind : str
        Of function: "linear", "squares", "form" or "constant".
    over : tuple of str
        The parameters that it depends on; the first axes of the table count their values.
    rounds : bool
        Whether the next axis counts rounds.
    table : array
        Behind these axes come those of the quantity itself, then the coefficients: one for each coordinate of the
        position and for 1; for a form one for each pair of them, the first before the second one. Where the functions
        are homogeneous, what belongs to 1 is left out.
    """

    kind: Kind
    over: tuple[str, ...]
    rounds: bool
    table: np.ndarray


def names_of(measure: Measure) -> tuple[str, ...]:
    """Return the parameters of a measurement: its arguments that are given by name.

    Examples
    --------
    >>> def measure(u, *, K):
    ...     return {}
    >>> names_of(measure)
    ('K',)
    """
    found = inspect.signature(measure).parameters.values()
    return tuple(p.name for p in found if p.kind is inspect.Parameter.KEYWORD_ONLY)


def named(measure: Callable[..., Mapping[str, Measured]], over: Sequence[str]) -> Measure:
    """Return a measurement that takes what it is given by name, with the names of its parameters.

    Examples
    --------
    >>> names_of(named(lambda u, **parameters: {}, ["K"]))
    ('K',)
    """
    made = partial(measure)
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in over]
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return made


def tabulate(measure: Measure, dim: int, values: Mapping[str, Sequence[Any]]) -> dict[str, Quantity]:
    """Return all that a measurement measures, as functions of position and parameters.

    Parameters
    ----------
    measure : callable
        ``measure(u, **parameters)`` returns quantities by name; ``u`` has shape (dim,).
    dim : int
        How many coordinates a position has.
    values : dict
        The values of every parameter, by name.

    Examples
    --------
    >>> def measure(u, *, K):
    ...     return {"point": linear(K * u[:1] + 1.0), "square": form((u[0] - u[1]) ** 2)}
    >>> found = tabulate(measure, 2, {"K": (1, 10)})
    >>> u = np.array([3.0, 1.0])
    >>> evaluate(found["point"], u)[1].tolist(), float(evaluate(found["square"], u)[0])
    ([31.0], 4.0)
    """
    over = names_of(measure)
    combined = [dict(zip(over, chosen, strict=True)) for chosen in product(*(values[name] for name in over))]
    sizes = tuple(len(values[name]) for name in over)
    columns = [_coefficients(lambda u, p=p: measure(u, **p), dim) for p in combined]
    made = {}
    for name, (kind, rounds, _) in columns[0].items():
        table = _lean(kind, np.stack([column[name][2] for column in columns]), dim)
        made[name] = Quantity(kind, over, rounds, table.reshape(*sizes, *table.shape[1:]))
    return made


def _lean(kind: Kind, table: np.ndarray, dim: int) -> np.ndarray:
    """Return a table without the coefficients that belong to 1, if they are rounding or 0."""
    if kind == "constant" or dim == 0:
        return table
    of_one = np.cumsum([dim + 1 - i for i in range(dim + 1)]) - 1 if kind == "form" else np.array([dim])
    rest = np.delete(table, of_one, axis=-1)
    return rest if np.max(np.abs(table[..., of_one])) <= 1e-14 * np.max(np.abs(rest), initial=0.0) else table


def _coefficients(measure: Callable[[np.ndarray], Mapping[str, Measured]], dim: int) -> dict[str, Any]:
    unit = np.eye(dim)
    zero = measure(np.zeros(dim))
    kinds = {m.kind for m in zero.values()}
    ahead = [measure(e) for e in unit] if kinds - {"constant"} else []
    behind = [measure(-e) for e in unit] if "form" in kinds else []
    pairs = {(i, k): measure(unit[i] + unit[k]) for i, k in combinations(range(dim), 2)} if "form" in kinds else {}
    found: dict[str, Any] = {}
    for name, (kind, at_zero, rounds) in zero.items():
        if kind == "constant":
            table = at_zero
        elif kind == "form":
            plus, minus = (np.stack([m[name].values for m in side]) for side in (ahead, behind))
            square, line = 0.5 * (plus + minus) - at_zero, 0.5 * (plus - minus)
            columns = []
            for i in range(dim):
                columns.append(square[i])
                for k in range(i + 1, dim):
                    columns.append(pairs[i, k][name].values - plus[i] - plus[k] + at_zero)
                columns.append(line[i])
            table = np.stack([*columns, at_zero], axis=-1)
        else:
            table = np.stack([*(m[name].values - at_zero for m in ahead), at_zero], axis=-1)
        found[name] = kind, rounds, table
    return found


def evaluate(quantity: Quantity, u: np.ndarray) -> np.ndarray:
    """Return a quantity at a position, for all parameters and rounds, as pages compute it."""
    if quantity.kind == "constant":
        return quantity.table
    pairs, size = quantity.kind == "form", quantity.table.shape[-1]
    lean = size == len(u) * (len(u) + 1) // 2 if pairs else size == len(u)
    one = u if lean else np.append(u, 1.0)
    if pairs:
        return quantity.table @ np.concatenate([one[i] * one[i:] for i in range(len(one))])
    values = quantity.table @ one
    return values if quantity.kind == "linear" else np.sum(values**2, axis=-1)
