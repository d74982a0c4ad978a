"""Trees of arrays as bytes, and back: a header in JSON, and the numbers of the arrays behind it; nothing is executed.

==========================  ====================================================================
bytes                       what they are
==========================  ====================================================================
8                           ``dualopt2``
4                           length of the header, little endian
length of the header        JSON: the trees, and of each array its type, shape and order of axes
8 per number in float64     the arrays one after the other, little endian
==========================  ====================================================================

Files, messages between machines and those between processes of an MPI program are all written so. Whatever is no array
stands in the header, but tuples of fractions and long ones of integers, which travel as arrays. A NamedTuple is looked
up by its name among known ones; nothing is unpickled, imported or evaluated. Sizes are compared with the bytes that are
there before any memory is taken. Whatever else is found is a `CodecError`, in one sentence that quotes none of it.

Arrays come back with their axes in the order that they had in memory: how a product or a sum rounds depends on it. With
``exact`` they keep their strides, those of zero and those with gaps too, so that a run that is continued ends with the
same digits; what lies in the gaps is never written. An array that stood in several places is one again.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualopt.arrays.xp import Array, array_namespace, asarray_like, is_array, is_numpy, to_numpy

__all__ = ["CodecError", "Known", "Packed", "chunks", "class_name", "class_named", "layouts", "pack", "read", "unpack"]

MAGIC = b"dualopt2"
PREFIX = len(MAGIC) + 4
LONGEST_HEADER = 2**24
LONGEST_AXIS = 2**31
LARGEST_INTEGER = 2**128  # seeds may be as large
DEEPEST = 32  # tuples within tuples
LONG = 32  # integers from which on a tuple travels as an array
GAPS = 2**16  # how much memory an array may span, in terms of its numbers
SHORT = 2**14  # bytes of headers that are kept: in most rounds they are those of the round before
CODES = ("<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1")
DTYPES = {code: np.dtype(code) for code in CODES}
TUPLES = ("<f8", "<i8")  # types of arrays that stand for tuples


class CodecError(ValueError):
    """Bytes that are none of this codec, or hold what they must not."""


class Packed(NamedTuple):
    """Trees as they are written."""

    header: bytes
    arrays: list[np.ndarray]  # contiguous


class Known:
    """The NamedTuples that may be in a tree, by name: those of some modules that are imported, and of some trees.

    Parameters
    ----------
    modules : container of str, optional
        Names of modules; all when not given.
    trees : tree
        The types of its nodes are among them, wherever they are from.

    Examples
    --------
    >>> known = Known({"dualopt.arrays.codec"})
    >>> known[".arrays.codec:Packed"].__name__, Packed in known, Packed in Known(())
    ('Packed', True, False)
    """

    def __init__(self, modules: Container[str] | None = None, trees: Any = ()) -> None:
        self._modules = modules
        self._types = {class_name(kind): kind for kind in _kinds(trees)}

    def __contains__(self, kind: type) -> bool:
        try:
            return self[class_name(kind)] is kind
        except CodecError:
            return False

    def __getitem__(self, name: str) -> Any:
        if name not in self._types:
            kind: Any = class_named(name)
            right = issubclass(kind, tuple) and hasattr(kind, "_fields")
            _require(right and (self._modules is None or kind.__module__ in self._modules), UNKNOWN)
            self._types[name] = kind
        return self._types[name]


def class_name(kind: type) -> str:
    """Return the name of a class, without that of this package.

    >>> class_name(Packed), class_name(tuple)
    ('.arrays.codec:Packed', 'builtins:tuple')
    """
    package, dot, rest = kind.__module__.partition(".")
    return f"{dot + rest if package == 'dualopt' else kind.__module__}:{kind.__qualname__}"


def class_named(name: str) -> type:
    """Return the class of this name in a module that is imported; nothing is called to find it.

    Raises
    ------
    CodecError
        If there is none.
    """
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(f"dualopt{module}" if module.startswith(".") else module)
    for part in path.split("."):
        found = vars(found).get(part) if isinstance(found, ModuleType | type) else None
    _require(isinstance(found, type) and class_name(found) == name, UNKNOWN)
    return found


def pack(parts: Sequence[Any], known: Known | None = None, *, exact: bool = False) -> Packed:
    """Return header and arrays of some trees.

    Parameters
    ----------
    parts : sequence of tree
        Tuples and NamedTuples of arrays, numbers, text and None.
    known : Known, optional
        The NamedTuples that the reader knows; all when not given.
    exact : bool, default False
        Whether arrays keep their strides.

    Raises
    ------
    TypeError
        If something else is in the trees.

    Examples
    --------
    >>> x = np.ones(3)
    >>> packed = pack([x, (1.5, None, x)])
    >>> len(packed.arrays), unpack(packed, Known(()))
    (1, [array([1., 1., 1.]), (1.5, None, array([1., 1., 1.]))])
    """
    kept: list[np.ndarray] = []
    layout: list[Any] = []
    places: dict[int, int] = {}

    def place(x: np.ndarray) -> int:
        entry, stored = _laid_out(x, exact)
        layout.append(entry)
        kept.append(stored)
        return len(kept) - 1

    def node(x: Any) -> Any:
        if isinstance(x, np.generic):
            return {"n": place(np.asarray(x))}
        if x is None or isinstance(x, bool | str):
            return x
        if isinstance(x, int) and abs(x) < LARGEST_INTEGER:
            return x
        if isinstance(x, float):
            return x if math.isfinite(x) else {"f": repr(x)}
        if type(x) is tuple:
            return [node(v) for v in x] if (numbers := _numbers(x)) is None else {"t": place(numbers)}
        if isinstance(x, tuple) and (names := getattr(x, "_fields", None)) is not None:
            kind = type(x)
            if known is not None and kind not in known:
                raise TypeError(f"{kind.__name__} of {kind.__module__} cannot be sent: it is not of this package.")
            return {class_name(kind): {name: node(v) for name, v in zip(names, x, strict=True)}}
        if not is_array(x):
            raise TypeError(f"a {type(x).__name__} cannot be written: only numbers, text, arrays, tuples of them can.")
        own: Any = x
        if id(x) not in places:
            places[id(x)] = place(own if is_numpy(x) else to_numpy(x))
        return {"a" if is_numpy(x) else "d": places[id(x)]}

    header = json.dumps([[node(part) for part in parts], layout], separators=(",", ":"), allow_nan=False).encode()
    if len(header) > LONGEST_HEADER:
        raise TypeError(f"what is no array takes {len(header)} bytes, and {LONGEST_HEADER} can be written.")
    return Packed(header, kept)


def chunks(packed: Packed) -> list[Any]:
    r"""Return the bytes in pieces.

    >>> b"".join(chunks(pack([1, None])))
    b'dualopt2\r\x00\x00\x00[[1,null],[]]'
    """
    start = MAGIC + len(packed.header).to_bytes(4, "little")
    return [start, packed.header, *(x.reshape(-1).view(np.uint8) for x in packed.arrays)]


def read(stream: BinaryIO, length: int, *, exact: bool = False) -> Packed:
    """Return header and arrays from so many bytes; sizes are compared with them before memory is taken.

    Raises
    ------
    CodecError
        If they are not what ``chunks`` writes.

    Examples
    --------
    >>> import io
    >>> data = b"".join(chunks(pack([np.ones(2)])))
    >>> read(io.BytesIO(data), len(data)).arrays
    [array([1., 1.])]
    >>> read(io.BytesIO(data), len(data) - 1)
    Traceback (most recent call last):
    dualopt.arrays.codec.CodecError: message is damaged: its arrays take 16 bytes, but 15 are there.
    """
    start = stream.read(min(PREFIX, length))
    _require(start[: len(MAGIC)] == MAGIC, "message is not one of dualopt, or of another version")
    size = int.from_bytes(start[len(MAGIC) :], "little")
    _require(length >= PREFIX + size, "message is damaged: it ends within its header")
    _require(size <= LONGEST_HEADER, f"message has a header longer than {LONGEST_HEADER} bytes")
    header = stream.read(size)
    described = layouts(header, exact=exact)
    needed, there = sum(x.bytes for x in described), length - PREFIX - size
    _require(needed == there, f"message is damaged: its arrays take {needed} bytes, but {there} are there")
    arrays = [np.empty(x.stored, x.dtype) for x in described]
    for x in arrays:
        flat = x.reshape(-1).view(np.uint8)
        _require(stream.readinto(flat) == flat.size, "message is damaged: it ends within its arrays")  # pyright: ignore
        if x.dtype.kind == "b":
            _require(not (flat > 1).any(), "message is damaged: a truth value is neither 0 nor 1")
    return Packed(header, arrays)


def layouts(header: bytes, *, exact: bool = False) -> list[Layout]:
    """Return how the arrays are written that follow a header.

    Raises
    ------
    CodecError
        If the header is none.
    """
    return _header(header, exact).layouts


def unpack(packed: Packed, known: Known, like: Array | None = None, *, exact: bool = False) -> list[Any]:
    """Return the trees; an array in row-major order is the one that was packed or read, without a copy.

    Parameters
    ----------
    packed : Packed
        What was packed.
    known : Known
        The NamedTuples that may be in the trees; nothing else is ever called.
    like : array, optional
        Arrays of other libraries than NumPy come back in its library and on its device; in host memory when not given.
    exact : bool, default False
        Whether arrays may have strides with gaps, as in a file of one's own.

    Raises
    ------
    CodecError
        If the header is none, or does not fit the arrays or what is known.
    """
    header = _header(packed.header, exact)
    arrays = [_as_it_lay(layout, x) for layout, x in zip(header.layouts, packed.arrays, strict=True)]
    used: set[int] = set()

    def node(x: Any, depth: int) -> Any:
        _require(depth < DEEPEST, f"message has tuples more than {DEEPEST} deep")
        if x is None or isinstance(x, bool | str | float):
            return x
        if isinstance(x, int):
            _require(abs(x) < LARGEST_INTEGER, "message has an integer that is too large")
            return x
        if isinstance(x, list):
            return tuple(node(child, depth + 1) for child in x)
        _require(len(x) == 1, "message is damaged: its tree has another form")
        ((key, value),) = x.items()
        if ":" in key and isinstance(value, dict):
            kind = known[key]
            _require(tuple(value) == kind._fields, f"message has a {kind.__name__} with other fields")
            return kind(*(node(child, depth + 1) for child in value.values()))
        if key == "f":
            _require(value in ("inf", "-inf", "nan"), "message is damaged: it has no number where one must be")
            return float(value)
        _require(key in ("a", "d", "n", "t") and type(value) is int, "message is damaged: its tree has another form")
        _require(0 <= value < len(arrays), "message is damaged: it names an array that is not there")
        found, again = arrays[value], value in used
        used.add(value)
        if key == "n":
            _require(found.ndim == 0, "message is damaged: it has no number where one must be")
            return found[()]
        if key == "t":  # takes memory of its own, so that each array may stand for one tuple
            right = found.ndim == 1 and found.dtype.str in TUPLES and not again
            _require(right, "message is damaged: it has no tuple where one must be")
            return tuple(found.tolist())
        if key == "d" and like is not None and is_numpy(found):
            dtype = getattr(array_namespace(like), str(found.dtype))
            found = arrays[value] = asarray_like(found, like, dtype=dtype)
        return found

    parts = [node(part, 0) for part in header.tree]
    _require(len(used) == len(arrays), "message is damaged: it has arrays that stand nowhere")
    return parts


# --- the header --------------------------------------------------------------------------------------------------

UNKNOWN = "message names a structure that is not known"


class Layout(NamedTuple):
    """How an array is written: its axes in their order in memory, and strides only where it does not lie densely."""

    dtype: np.dtype
    stored: tuple[int, ...]  # shape of what is written, without what strides of zero repeat
    axes: Sequence[int]  # of the array, from the slowest in memory to the fastest
    shape: Sequence[int] | None = None  # of the array
    strides: Sequence[int] | None = None  # in numbers; None: dense

    @property
    def bytes(self) -> int:
        """How many are written."""
        return self.dtype.itemsize * math.prod(self.stored)


class _Header(NamedTuple):
    tree: list[Any]
    layouts: list[Layout]


def _header(text: bytes, exact: bool) -> _Header:
    return _parsed_before(text, exact) if len(text) <= SHORT else _parsed(text, exact)


def _parsed(text: bytes, exact: bool) -> _Header:
    """Return what a header says, all of whose sizes are those of arrays."""
    try:
        found = json.loads(text.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise CodecError("message is damaged: its header is no JSON.") from None
    right = isinstance(found, list) and len(found) == 2 and all(isinstance(x, list) for x in found)
    _require(right, "message is damaged: its header has another form")
    return _Header(found[0], [_layout(entry, exact) for entry in found[1]])


_parsed_before = lru_cache(maxsize=64)(_parsed)


def _layout(entry: Any, exact: bool) -> Layout:
    right = isinstance(entry, list) and len(entry) in ((2, 3, 5) if exact else (2, 3))
    _require(right, "message is damaged: an array has no type and shape")
    full: list[Any] = [*entry, None, None, None]
    code, stored, axes, shape, strides = full[:5]
    _require(isinstance(code, str) and code in DTYPES, "message has an array of a type that is not accepted")
    _require(_are_integers(stored, 0) and len(stored) <= 16, "message is damaged: an array has no shape")
    axes = list(range(len(stored))) if axes is None else axes
    right = _are_integers(axes, 0) and sorted(axes) == [*range(len(stored))]
    _require(right, "message is damaged: an array has another number of axes")
    if strides is not None:
        right = _are_integers(shape, 1) and _are_integers(strides) and len(shape) == len(strides) == len(stored)
        right = right and all(stored[i] == (shape[k] if strides[k] else 1) for i, k in enumerate(axes))
        right = right and _span(shape, strides)[1] <= GAPS * math.prod(stored)
        _require(right, "message is damaged: an array has other strides")
    return Layout(DTYPES[code], tuple(stored), axes, shape, strides)


def _are_integers(x: Any, least: int = -LONGEST_AXIS) -> bool:
    return isinstance(x, list) and all(type(n) is int and least <= n < LONGEST_AXIS for n in x)


def _span(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Return at which number in memory an array begins, and how many there are from its lowest to its highest."""
    ends = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    first = -sum(min(end, 0) for end in ends)
    return first, first + sum(max(end, 0) for end in ends) + 1


def _laid_out(x: np.ndarray, exact: bool) -> tuple[list[Any], np.ndarray]:
    """Return the entry of an array in the header, and what is written of it."""
    x = x.astype(x.dtype.newbyteorder("<"), copy=False)
    if x.dtype.str not in DTYPES:
        raise TypeError(f"an array of type {x.dtype} cannot be written.")
    if x.flags.c_contiguous:
        return [x.dtype.str, list(x.shape)], x
    once = x[(*(slice(0, 1) if s == 0 else slice(None) for s in x.strides), ...)]
    axes = sorted(range(x.ndim), key=lambda k: (-abs(x.strides[k]) if once.shape[k] > 1 else 0, k))
    stored = once.transpose(axes)
    entry = [x.dtype.str, list(stored.shape), axes]
    if once.shape == x.shape and stored.flags.c_contiguous:
        return entry, stored
    strides = [s // x.itemsize for s in x.strides]
    if not exact or any(s % x.itemsize for s in x.strides) or _span(x.shape, strides)[1] > GAPS * once.size:
        return _laid_out(x.copy(order="K"), exact)
    return [*entry, list(x.shape), strides], np.ascontiguousarray(stored)


def _as_it_lay(layout: Layout, stored: np.ndarray) -> np.ndarray:
    """Return an array with its strides."""
    _require((stored.shape, stored.dtype) == (layout.stored, layout.dtype), "message has an array of another shape")
    x = stored.transpose(np.argsort(layout.axes)) if list(layout.axes) != [*range(stored.ndim)] else stored
    if layout.strides is None or layout.shape is None:
        return x
    first, span = _span(layout.shape, layout.strides)
    memory, strides = np.zeros(span, x.dtype)[first:], [s * x.itemsize for s in layout.strides]
    as_strided(memory, x.shape, strides)[...] = x  # within memory, by its length
    return as_strided(memory, layout.shape, strides, writeable=x.shape == tuple(layout.shape))


def _numbers(x: tuple[Any, ...]) -> np.ndarray | None:
    """Return a tuple of fractions, or a long one of integers, as an array."""
    if (len(x) > LONG and all(type(v) is int for v in x)) or (x and all(type(v) is float for v in x)):
        found = np.array(x)
        return found if found.dtype.str in TUPLES else None
    return None


def _kinds(tree: Any) -> Iterable[type]:
    """Yield the types of the NamedTuples in a tree."""
    if isinstance(tree, tuple):
        if hasattr(tree, "_fields"):
            yield type(tree)
        for child in tree:
            yield from _kinds(child)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _require(condition: object, sentence: str) -> None:
    if not condition:
        raise CodecError(f"{sentence}.")
