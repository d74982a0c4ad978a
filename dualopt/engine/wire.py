"""Requests and answers as bytes, and back: what `dualopt.arrays.codec` writes of NamedTuples of the protocol.

NamedTuples are looked up by name among those of the protocol, the methods and the solvers of this package, and the
fields of the protocol's own are compared with their types. Whatever else arrives is a `CodecError`, in one sentence.

The overhead of a message, ``len(message) - payload(message)``, is 12 bytes and the header. In a round it is at most
`OVERHEAD` for each request or answer of a client: `tests/engine/test_wire_runs.py` compares it with all methods.
"""

from __future__ import annotations

import io
import pkgutil
import types as kinds
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

import dualopt.methods
import dualopt.solvers
from dualopt.arrays.codec import PREFIX, CodecError, Known, chunks, pack, read, unpack
from dualopt.engine import _protocol as protocol
from dualopt.engine.secure_sums import _messages as sums

__all__ = ["LIMIT", "OVERHEAD", "decode_answers", "decode_requests", "encode", "payload"]

OVERHEAD = 1024  # bytes
LIMIT = 2**31  # bytes of a message
LARGEST_INTEGER = 2**63  # in a field of the protocol
ANSWERS = protocol.ANSWERS | sums.ANSWERS
OWN = (protocol.__name__, sums.__name__)


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
    (109, 16)
    >>> decode_requests(data[:-1])
    Traceback (most recent call last):
    dualopt.arrays.codec.CodecError: message is damaged: its arrays take 16 bytes, but 15 are there.
    """
    return b"".join(chunks(pack(parts, _known())))


def decode_requests(data: bytes, *, limit: int = LIMIT) -> list[Any]:
    """Return the requests of a message.

    Raises
    ------
    CodecError
        If the bytes are no message, are longer than ``limit``, or hold something else.
    """
    parts = _decoded(data, limit)
    for part in parts:
        _require(type(part) in ANSWERS, f"message holds {_word(part)}, which is no request")
    return parts


def decode_answers(data: bytes, requests: Sequence[Any], *, limit: int = LIMIT) -> list[Any]:
    """Return the answers to some requests, one to each; or `Failed` alone.

    Raises
    ------
    CodecError
        If the bytes are no message, are longer than ``limit``, or do not answer the requests.

    Examples
    --------
    >>> asked = [protocol.Value("run", 3, np.ones(2))]
    >>> decode_answers(encode([protocol.Committed("run", 3)]), asked)
    Traceback (most recent call last):
    dualopt.arrays.codec.CodecError: message holds Committed, which does not answer Value.
    """
    parts = _decoded(data, limit)
    if len(parts) == 1 and isinstance(parts[0], protocol.Failed):
        return parts
    _require(len(parts) == len(requests), f"message holds {len(parts)} answers to {len(requests)} requests")
    for part, asked in zip(parts, requests, strict=True):
        known = (*ANSWERS[type(asked)], protocol.Failed)
        _require(type(part) in known, f"message holds {_word(part)}, which does not answer {type(asked).__name__}")
    return parts


def payload(data: bytes) -> int:
    """Return how many bytes of a message are those of arrays."""
    return len(data) - PREFIX - int.from_bytes(data[PREFIX - 4 : PREFIX], "little")


def _decoded(data: bytes, limit: int) -> list[Any]:
    _require(isinstance(data, bytes), "message must be bytes")
    _require(len(data) <= limit, f"message is longer than the {limit} bytes that are accepted")
    parts = unpack(read(io.BytesIO(data), len(data)), _known())
    within = [part.request for part in parts if type(part) is sums.Add]
    _require(all(type(part) in protocol.ANSWERS for part in within), "message holds a sum of something else")
    for part in [*parts, *within]:
        for name, hint in _hints(type(part)).items():
            fault = f"message has a {type(part).__name__} whose {name} is of another type"
            _require(_fits(getattr(part, name), hint), fault)
    return parts


@cache
def _known() -> Known:
    """Return the NamedTuples that may be in a message."""
    modules = {*OWN}
    for package in (dualopt.methods, dualopt.solvers):
        found = [f"{package.__name__}.{entry.name}" for entry in pkgutil.iter_modules(package.__path__)]
        modules |= {import_module(name).__name__ for name in found}
    return Known(modules)


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the types of the fields of the protocol's own tuples; an array of any library is sent as NumPy's."""
    return get_type_hints(kind, localns={"Array": np.ndarray}) if kind.__module__ in OWN else {}


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
    if hint is int:
        return type(value) is int and abs(value) < LARGEST_INTEGER
    return type(value) is hint or (hint is None and value is None)


def _word(part: Any) -> str:
    return type(part).__name__ if type(part) in _known() else "something"


def _require(condition: object, sentence: str) -> None:
    if not condition:
        raise CodecError(f"{sentence}.")
