"""Arrays that know what they are: vectors, or numbers that depend on inner products, norms or values of functions.

A method that is linear algebra on vectors may compute such numbers, as local solvers do for their records, and must
not use them. A vector here is an array whose last axis is that of its coefficients.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

__all__ = ["ALWAYS", "SENTENCE", "Measured", "Vectors"]

SENTENCE = (
    "algorithm must be linear algebra on models and answers of clients; "
    "this one uses inner products, norms or values of functions."
)
LINEAR = {np.add, np.subtract, np.negative, np.positive, np.conjugate}
SCALING = {np.multiply, np.divide}
ALWAYS = {np.isfinite: True, np.isnan: False, np.isinf: False}
CONSTANT = {np.zeros_like, np.ones_like, np.full_like, np.empty_like}
MOVING = {np.broadcast_to, np.broadcast_arrays, np.concatenate, np.stack, np.reshape, np.copy, np.expand_dims}
MOVING |= {np.take, np.where, np.squeeze, np.moveaxis}
"""Functions that make new numbers, and those that move the given ones."""
COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.maximum, np.minimum}


class _Tracked(np.ndarray):
    """An array that says of every operation what comes out of it."""

    __array_priority__: ClassVar[float] = 100.0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        kind = _result(ufunc, method, inputs, kwargs)
        if ufunc in ALWAYS:
            return np.full(np.shape(inputs[0]), ALWAYS[ufunc])
        out = kwargs.pop("out", None)
        if out is not None:
            kwargs["out"] = tuple(np.asarray(x) for x in out)
        found = getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, np.ndarray) else x for x in inputs), **kwargs)
        if out is not None:
            return out[0]
        return np.asarray(found).view(kind)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in CONSTANT:
            return np.asarray(super().__array_function__(func, types, args, kwargs))
        found = super().__array_function__(func, types, args, kwargs)
        moved = func in MOVING and not any(issubclass(t, Measured) for t in types)
        many = found if isinstance(found, tuple | list) else (found,)
        own = [_tagged(x, Vectors if moved else Measured) for x in many]
        return type(found)(own) if many is found else own[0]

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        whole = isinstance(found, np.ndarray) and found.shape[-1:] == self.shape[-1:]
        return found if whole else np.asarray(found).view(Measured)  # a coordinate is no vector

    def dot(self, *others: Any, **kwargs: Any) -> Any:
        """Return the inner products, which are no vectors."""
        return np.asarray(self).dot(*map(np.asarray, others), **kwargs).view(Measured)


def _tagged(x: Any, kind: type) -> Any:
    """Return what a function gives as what it is; what is tagged already, or is no floating-point number, stays."""
    if isinstance(x, _Tracked) or not np.issubdtype(np.asarray(x).dtype, np.floating):
        return x
    return np.asarray(x).view(kind)


class Vectors(_Tracked):
    """Vectors: what is added to them is one, and what multiplies them is none."""


class Measured(_Tracked):
    """Numbers that depend on more than the linear relations between vectors."""

    def _refuse(self, *_: Any) -> Any:
        raise ValueError(SENTENCE)

    __bool__ = __float__ = __int__ = __index__ = tolist = item = _refuse  # pyright: ignore[reportAssignmentType]


def _result(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: Any) -> type:
    """Return what an operation makes, and refuse one that decides by, or multiplies with, what was measured."""
    measured = [x for x in inputs if isinstance(x, Measured)]
    vectors = [x for x in inputs if isinstance(x, Vectors)]
    if ufunc in ALWAYS:
        return np.ndarray
    if measured and (vectors or ufunc in COMPARISONS):
        raise ValueError(SENTENCE)
    if measured:
        return Measured
    if method == "reduce":
        axis, n = kwargs.get("axis", 0), np.ndim(inputs[0])
        axes = range(n) if axis is None else (axis,) if isinstance(axis, int) else axis
        over_clients = ufunc is np.add and all(a % n != n - 1 for a in axes)
        return Vectors if over_clients else Measured
    if ufunc in COMPARISONS:
        raise ValueError(SENTENCE)
    if ufunc in LINEAR and any(np.any(x) for x in inputs if not isinstance(x, Vectors)):
        return Measured  # a number in each coordinate is no vector
    linear = ufunc in LINEAR or (
        ufunc in SCALING and len(vectors) == 1 and not (ufunc is np.divide and vectors[0] is inputs[1])
    )
    return Vectors if linear and method == "__call__" else Measured
