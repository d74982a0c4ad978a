"""Requests and answers as bytes, and back: a header in JSON, and the numbers of the arrays behind it.

==========================  ====================================================================
bytes                       what they are
==========================  ====================================================================
8                           ``dualopt1``
4                           length of the header, little endian
length of the header        JSON: the tree, and of each array its type, shape and order of axes
8 per number in float64     the arrays one after the other, little endian
==========================  ====================================================================

Whatever is no array stands in the header. A NamedTuple is looked up by its name among those of the protocol, the
methods and the solvers of this package; nothing is unpickled, imported or evaluated. Sizes are compared with the bytes
that are there before any memory is taken, and the fields of the protocol's own tuples with their types. Whatever else
arrives is a `WireError`, in one sentence.

The overhead of a message, ``len(message) - payload(message)``, is 12 bytes and the header. In a round it is at most
`OVERHEAD` for each request or answer of a client: `tests/engine/test_wire_runs.py` compares it with all methods.
"""

from __future__ import annotations

import json
import math
import pkgutil
import types as kinds
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

import dualopt.methods
import dualopt.solvers
from dualopt.arrays._packing import named_tuples
from dualopt.arrays.xp import is_array, to_numpy
from dualopt.engine import _protocol as protocol

__all__ = ["LIMIT", "OVERHEAD", "WireError", "decode_answers", "decode_requests", "encode", "payload"]

MAGIC = b"dualopt1"
PREFIX = len(MAGIC) + 4
OVERHEAD = 1024  # bytes
LIMIT = 2**31  # bytes of a message
LONGEST_HEADER = 2**24
DEEPEST = 32  # tuples within tuples
LARGEST_INTEGER = 2**63
DTYPES = {np.dtype(code).str: np.dtype(code) for code in ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "|b1")}
DTYPES |= {np.dtype(code).str: np.dtype(code) for code in ("<u8", "<u4", "<u2", "|u1")}


class WireError(ValueError):
    """Bytes that are no message of this protocol."""


def encode(parts: Sequence[Any]) -> bytes:
    """Return the bytes of requests, or of answers.

    Parameters
    ----------
    parts : sequence of NamedTuple
        Of the protocol.

    Raises
    ------
    TypeError
        If there is something else in them than numbers, text, None, arrays, tuples and known NamedTuples.

    Examples
    --------
    >>> data = encode([protocol.Value("run", 3, np.ones(2))])
    >>> decode_requests(data)
    [Value(run='run', n=3, theta=array([1., 1.]))]
    >>> len(data), payload(data)
    (81, 16)
    >>> decode_requests(data[:-1])
    Traceback (most recent call last):
    dualopt.engine.wire.WireError: message is damaged: its arrays take 16 bytes, but 15 are there.
    """
    arrays: list[np.ndarray] = []
    tree = [_described(part, arrays) for part in parts]
    placed = [(x.transpose(axes), axes) for x in arrays for axes in [_axes(x)]]
    layout = [
        [x.dtype.str, *([list(x.shape)] if axes == sorted(axes) else [list(x.shape), axes])] for x, axes in placed
    ]
    header = json.dumps([tree, layout], separators=(",", ":"), allow_nan=False).encode()
    return b"".join([MAGIC, len(header).to_bytes(4, "little"), header, *(x.tobytes() for x, _ in placed)])


def decode_requests(data: bytes, *, limit: int = LIMIT) -> list[Any]:
    """Return the requests of a message.

    Raises
    ------
    WireError
        If the bytes are no message, are longer than ``limit``, or hold something else.
    """
    parts = _decoded(data, limit)
    for part in parts:
        _require(type(part) in protocol.ANSWERS, f"message holds {_word(part)}, which is no request")
    return parts


def decode_answers(data: bytes, requests: Sequence[Any], *, limit: int = LIMIT) -> list[Any]:
    """Return the answers to some requests, one to each; or `Failed` alone.

    Raises
    ------
    WireError
        If the bytes are no message, are longer than ``limit``, or do not answer the requests.

    Examples
    --------
    >>> asked = [protocol.Value("run", 3, np.ones(2))]
    >>> decode_answers(encode([protocol.Settled("run", 3)]), asked)
    Traceback (most recent call last):
    dualopt.engine.wire.WireError: message holds Settled, which does not answer Value.
    """
    parts = _decoded(data, limit)
    if len(parts) == 1 and isinstance(parts[0], protocol.Failed):
        return parts
    _require(len(parts) == len(requests), f"message holds {len(parts)} answers to {len(requests)} requests")
    for part, asked in zip(parts, requests, strict=True):
        known = (*protocol.ANSWERS[type(asked)], protocol.Failed)
        _require(type(part) in known, f"message holds {_word(part)}, which does not answer {type(asked).__name__}")
    return parts


def payload(data: bytes) -> int:
    """Return how many bytes of a message are those of arrays."""
    return len(data) - PREFIX - int.from_bytes(data[len(MAGIC) : PREFIX], "little")


def _decoded(data: bytes, limit: int) -> list[Any]:
    _require(isinstance(data, bytes), "message must be bytes")
    _require(len(data) <= limit, f"message is longer than the {limit} bytes that are accepted")
    _require(data[: len(MAGIC)] == MAGIC, "message is not one of dualopt, or of another version")
    length = int.from_bytes(data[len(MAGIC) : PREFIX], "little")
    _require(len(data) >= PREFIX + length, "message is damaged: it ends within its header")
    _require(length <= LONGEST_HEADER, f"message has a header longer than {LONGEST_HEADER} bytes")
    try:
        header = json.loads(data[PREFIX : PREFIX + length].decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise WireError("message is damaged: its header is no JSON.") from None
    right = isinstance(header, list) and len(header) == 2 and all(isinstance(x, list) for x in header)
    _require(right, "message is damaged: its header has another form")
    tree, layout = header
    arrays = _arrays(data, PREFIX + length, layout)
    used: set[int] = set()
    parts = [_rebuilt(part, arrays, used, 0) for part in tree]
    _require(len(used) == len(arrays), "message is damaged: it has arrays that stand nowhere")
    return parts


def _arrays(data: bytes, start: int, layout: list[Any]) -> list[np.ndarray]:
    """Return the arrays behind the header, each in memory of its own; none is made before all sizes are checked."""
    described, end = [], start
    for entry in layout:
        _require(isinstance(entry, list) and len(entry) in (2, 3), "message is damaged: an array has no type and shape")
        code, shape, axes = entry if len(entry) == 3 else (*entry, None)
        _require(isinstance(code, str) and code in DTYPES, "message has an array of a type that is not accepted")
        _require(_is_shape(shape), "message is damaged: an array has no shape")
        axes = list(range(len(shape))) if axes is None else axes
        whole = isinstance(axes, list) and all(type(k) is int for k in axes) and sorted(axes) == [*range(len(shape))]
        _require(whole, "message is damaged: an array has another number of axes")
        dtype, count = DTYPES[code], math.prod(shape)
        described.append((dtype, shape, axes, count, end))
        end += dtype.itemsize * count
        _require(end - start < LIMIT * 8, "message has arrays that are too large")
    there = len(data) - start
    _require(end == len(data), f"message is damaged: its arrays take {end - start} bytes, but {there} are there")
    found = []
    for dtype, shape, axes, count, offset in described:
        flat = np.frombuffer(data, dtype, count, offset).copy()  # aligned, and writable as arrays usually are
        if dtype.kind == "b":
            _require(not (flat.view(np.uint8) > 1).any(), "message is damaged: a truth value is neither 0 nor 1")
        found.append(flat.reshape(shape).transpose(np.argsort(axes).tolist()))
    return found


def _is_shape(shape: Any) -> bool:
    whole = isinstance(shape, list) and len(shape) <= 16
    return whole and all(type(n) is int and 0 <= n < LIMIT for n in shape)


def _axes(x: np.ndarray) -> list[int]:
    """Return the axes in the order in which they lie in memory: sums in another order round differently."""
    if x.flags.c_contiguous:
        return list(range(x.ndim))
    return sorted(range(x.ndim), key=lambda k: (-abs(x.strides[k]) if x.shape[k] > 1 else 0, k))


def _described(x: Any, arrays: list[np.ndarray]) -> Any:
    """Return a node of the tree as JSON; arrays go to the list."""
    if x is None or isinstance(x, bool | str):
        return x
    if isinstance(x, np.generic):
        return {"n": _placed(np.asarray(x), arrays)}
    if isinstance(x, int):
        return x
    if isinstance(x, float):
        return x if math.isfinite(x) else {"f": repr(x)}
    if isinstance(x, tuple):
        children = [_described(child, arrays) for child in x]
        if type(x) is tuple:
            return children
        if type(x) not in _names():
            raise TypeError(f"{type(x).__name__} of {type(x).__module__} cannot be sent: it is not of this package.")
        return {"k": _names()[type(x)], "v": children}
    if is_array(x):
        return {"a": _placed(to_numpy(x), arrays)}
    raise TypeError(f"a {type(x).__name__} cannot be sent: only numbers, text, arrays and tuples of them can.")


def _placed(x: np.ndarray, arrays: list[np.ndarray]) -> int:
    x = x.astype(x.dtype.newbyteorder("<"), copy=False)
    if x.dtype.str not in DTYPES:
        raise TypeError(f"an array of type {x.dtype} cannot be sent.")
    arrays.append(x)
    return len(arrays) - 1


def _rebuilt(node: Any, arrays: list[np.ndarray], used: set[int], depth: int) -> Any:
    """Return the part of the tree that a node of JSON describes."""
    _require(depth < DEEPEST, f"message has tuples more than {DEEPEST} deep")
    if node is None or isinstance(node, bool | str | float):
        return node
    if isinstance(node, int):
        _require(abs(node) < LARGEST_INTEGER, "message has an integer that is too large")
        return node
    if isinstance(node, list):
        return tuple(_rebuilt(child, arrays, used, depth + 1) for child in node)
    if set(node) == {"f"}:
        _require(node["f"] in ("inf", "-inf", "nan"), "message is damaged: it has no number where one must be")
        return float(node["f"])
    if set(node) == {"k", "v"} and isinstance(node["v"], list):
        kind: Any = _types().get(node["k"]) if isinstance(node["k"], str) else None
        _require(kind is not None, "message names a structure that is not known")
        _require(len(node["v"]) == len(kind._fields), f"message has a {kind.__name__} with other fields")
        children = [_rebuilt(child, arrays, used, depth + 1) for child in node["v"]]
        for name, child in zip(kind._fields, children, strict=True):
            hint = _hints(kind).get(name, Any)
            _require(_fits(child, hint), f"message has a {kind.__name__} whose {name} is of another type")
        return kind(*children)
    key = next(iter(node)) if len(node) == 1 else ""
    place: Any = node.get(key)
    _require(key in ("a", "n") and type(place) is int, "message is damaged: its tree has another form")
    _require(0 <= place < len(arrays) and place not in used, "message is damaged: it names an array that is not there")
    used.add(place)
    _require(key == "a" or arrays[place].ndim == 0, "message is damaged: it has no number where one must be")
    return arrays[place] if key == "a" else arrays[place][()]


@cache
def _types() -> dict[str, type]:
    """Return the NamedTuples that may be in a message, by name."""
    modules = [protocol.__name__]
    for package in (dualopt.methods, dualopt.solvers):
        found = [f"{package.__name__}.{entry.name}" for entry in pkgutil.iter_modules(package.__path__)]
        modules += [import_module(name).__name__ for name in found]
    known = named_tuples((), modules).items()
    own = f"{protocol.__name__}:"
    return {name.removeprefix(own).removeprefix("dualopt."): kind for name, kind in known}


@cache
def _names() -> Mapping[type, str]:
    return {kind: name for name, kind in _types().items()}


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the types of the fields of the protocol's own tuples; those of methods hold whatever trees they like."""
    own = kind.__module__ == protocol.__name__
    return (
        get_type_hints(kind, localns={"Array": np.ndarray}) if own else {}
    )  # an array of any library is sent as these


def _fits(value: Any, hint: Any) -> bool:
    """Tell whether a value is of the type that a field of the protocol has."""
    if hint is Any:
        return True
    if get_origin(hint) in (Union, kinds.UnionType):
        return any(_fits(value, choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return type(value) is tuple and all(_fits(item, get_args(hint)[0]) for item in value)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint or (hint is None and value is None)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _word(part: Any) -> str:
    return type(part).__name__ if type(part) in _names() else "something"


def _require(condition: object, sentence: str) -> None:
    if not condition:
        raise WireError(f"{sentence}.")
