"""Trees of arrays as a description in JSON and plain arrays, and back, without pickled objects.

Arrays come back with the strides that they had, and one that stood in several places is one again: how a product or a
sum rounds depends on the order of the numbers in memory, and a run that is continued must end with the same digits.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dualopt.arrays.xp import Array, array_namespace, asarray_like, is_numpy, to_numpy

__all__ = ["assembled", "named_tuples", "pack", "unpack", "unpacked"]


def pack(tree: Any) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Return what describes a tree, in terms of JSON, and its arrays.

    Parameters
    ----------
    tree : tree
        Tuples and NamedTuples of arrays, numbers, strings and None.

    Raises
    ------
    ValueError
        If something else is in the tree.

    Examples
    --------
    >>> x = np.ones(3)
    >>> description, arrays = pack((x, (1.5, None, x)))
    >>> len(arrays), unpack(description, arrays, {}, like=x)
    (1, (array([1., 1., 1.]), (1.5, None, array([1., 1., 1.]))))
    """
    kept: list[Any] = []
    places: dict[int, int] = {}

    def node(x: Any) -> Any:
        if x is None or (isinstance(x, bool | int | str) and not isinstance(x, np.generic)):
            return x
        if isinstance(x, tuple):
            if (names := getattr(x, "_fields", None)) is not None:
                return {"type": _name(type(x)), "fields": {n: node(v) for n, v in zip(names, x, strict=True)}}
            return {"tuple": [node(v) for v in x]}
        if isinstance(x, float) and not isinstance(x, np.generic):
            return {"float": x.hex()}
        if isinstance(x, np.generic) and x.dtype.kind in "biuf":
            kept.append(np.asarray(x))
            return {"number": len(kept) - 1}
        if hasattr(x, "shape") and hasattr(x, "dtype") and (not is_numpy(x) or x.dtype.kind in "biufc"):
            if id(x) not in places:
                places[id(x)] = len(kept)
                kept.append(x)
            return {"array": places[id(x)]}
        raise ValueError(f"state must consist of arrays, numbers and tuples to be kept in a file, not {type(x)!r}.")

    described = node(tree)
    packed = [_packed(x) for x in kept]
    return {"tree": described, "arrays": [layout for layout, _ in packed]}, [x for _, x in packed]


def unpack(description: Mapping[str, Any], arrays: list[np.ndarray], types: Mapping[str, type], *, like: Array) -> Any:
    """Return the tree that :func:`pack` described.

    Parameters
    ----------
    description : dict
        The description.
    arrays : list of array
        The arrays.
    types : dict of str to type
        The NamedTuples that may be in the tree, by name; nothing else is ever called.
    like : array
        An array of the library and device where those arrays belong that were not in host memory.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the description does not fit the arrays or the types.
    """
    whole = [unpacked(layout, x, like) for layout, x in zip(description["arrays"], arrays, strict=True)]
    return assembled(description["tree"], whole, types)


def assembled(tree: Any, whole: list[Any], types: Mapping[str, type]) -> Any:
    """Return the tree that ``tree`` in a description describes, from arrays that are what they were."""

    def node(x: Any) -> Any:
        if x is None or isinstance(x, bool | int | str):
            return x
        if "tuple" in x:
            return tuple(node(v) for v in x["tuple"])
        if "type" in x:
            kind: Any = types[x["type"]]
            if tuple(x["fields"]) != kind._fields:
                raise ValueError(f"{x['type']} has other fields.")
            return kind._make(node(v) for v in x["fields"].values())
        if "float" in x:
            return float.fromhex(x["float"])
        return whole[x["number"]][()] if "number" in x else whole[x["array"]]

    return node(tree)


def named_tuples(trees: Any, modules: Iterable[str]) -> dict[str, type]:
    """Return NamedTuples by the names under which :func:`pack` describes them.

    Parameters
    ----------
    trees : tree
        The types of its nodes are among them.
    modules : iterable of str
        Modules, of those that are imported, whose NamedTuples are among them too.
    """
    found: dict[str, type] = {}

    def walk(x: Any) -> None:
        if isinstance(x, tuple):
            if hasattr(x, "_fields"):
                found[_name(type(x))] = type(x)
            for child in x:
                walk(child)

    walk(trees)
    for name in modules:
        for value in vars(sys.modules[name]).values():
            if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
                found[_name(value)] = value
    return found


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _packed(x: Any) -> tuple[dict[str, Any], np.ndarray]:
    """Return the layout of an array, and its numbers without those that strides of zero repeat."""
    if not is_numpy(x):
        host = to_numpy(x)
        return {"dtype": str(host.dtype), "device": True}, host
    layout = {"shape": list(x.shape), "strides": list(x.strides), "dtype": str(x.dtype), "writeable": x.flags.writeable}
    return layout, np.ascontiguousarray(_without_copies(x))


def unpacked(layout: Mapping[str, Any], stored: np.ndarray, like: Array) -> Any:
    """Return an array with the strides, or in the library, that its layout describes."""
    if str(stored.dtype) != layout["dtype"]:
        raise ValueError("an array has another type.")
    if "device" in layout:
        return asarray_like(stored, like, dtype=getattr(array_namespace(like), layout["dtype"]))
    shape, strides = tuple(map(int, layout["shape"])), tuple(map(int, layout["strides"]))
    item, spans = stored.itemsize, [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    if 0 in shape or any(s % item for s in strides):
        return np.array(np.broadcast_to(stored, shape))
    first, last = sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans)
    memory = np.zeros((last - first) // item + 1, dtype=stored.dtype)
    x = np.lib.stride_tricks.as_strided(memory[-first // item :], shape, strides)  # within memory, by its length
    whole = _without_copies(x)
    if stored.size != whole.size:
        raise ValueError("an array has another shape.")
    whole[...] = stored.reshape(whole.shape)
    if not layout["writeable"]:
        x.flags.writeable = False
    return x


def _without_copies(x: np.ndarray) -> np.ndarray:
    """Return the array with length one along axes whose stride is zero."""
    once = (slice(0, 1) if s == 0 and n > 1 else slice(None) for n, s in zip(x.shape, x.strides, strict=True))
    return x[(*once, ...)]
