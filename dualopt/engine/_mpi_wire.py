"""Requests and answers between MPI processes: a short header in JSON, and arrays as they lie in memory.

A header describes a tree and the layout of its arrays (``dualopt.arrays._packing``). It is sent again only when it
differs from the last one of the same process; in most rounds, numbers alone travel. Arrays of all processes that lie in
rows are received into one array, in the order of the processes, so that nothing need be copied to put them together.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dualopt.arrays._packing import assembled, pack, unpacked
from dualopt.arrays.xp import Array

__all__ = ["Frame", "Wire", "framed", "restored"]

HEAD = 2048  # bytes of a request's header that are sent before its length is known
LONG = 32  # integers from which on a tuple travels as an array, as tuples of fractions do, which change
Types = Mapping[str, type]


class Whole(NamedTuple):
    """Stands for a tuple of numbers."""

    numbers: Any


class Frame(NamedTuple):
    """A tree as it travels."""

    text: str  # its header
    arrays: list[np.ndarray]


def framed(tree: Any) -> Frame:
    """Return a tree as header and contiguous arrays.

    >>> frame = framed((np.ones(2), tuple(range(40))))
    >>> from dualopt.arrays._packing import named_tuples
    >>> types = named_tuples(Whole(0), ())
    >>> [x.tolist()[:2] for x in frame.arrays], restored(frame, types, np.ones(1))[1] == tuple(range(40))
    ([[1.0, 1.0], [0, 1]], True)
    """
    description, arrays = pack(_shortened(tree))
    description["shapes"] = [list(x.shape) for x in arrays]
    return Frame(json.dumps(description), arrays)


def restored(frame: Frame, types: Types, like: Array) -> Any:
    """Return the tree; an array in row-major order is the one that came, without a copy."""
    description = _read(frame.text)
    found = [_as_it_was(layout, x, like) for layout, x in zip(description["arrays"], frame.arrays, strict=True)]
    return _lengthened(assembled(description["tree"], found, types))


class Wire:
    """The way between process 0 and all others.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.
    comm : mpi4py.MPI.Comm
        The processes.
    """

    def __init__(self, mpi: Any, comm: Any) -> None:
        self._mpi, self._comm = mpi, comm
        self.rank, self.size = int(comm.Get_rank()), int(comm.Get_size())
        self._said = ""  # the last header of this process
        self._heard = [""] * self.size  # those of all, in process 0
        self.bytes_up = self.bytes_down = 0  # to and from the other processes, in process 0

    def tell(self, frame: Frame) -> None:
        """Send a tree to all others."""
        text = frame.text.encode()
        head = np.zeros(HEAD, np.uint8)
        head[:8] = np.frombuffer(np.int64(len(text)).tobytes(), np.uint8)
        head[8 : 8 + len(text)] = np.frombuffer(text[: HEAD - 8], np.uint8)
        self._comm.Bcast(head)
        if len(text) > HEAD - 8:
            self._comm.Bcast(np.frombuffer(text[HEAD - 8 :], np.uint8))
        for x in frame.arrays:
            self._comm.Bcast(_flat(x))
        sent = max(HEAD, len(text) + 8) + sum(x.nbytes for x in frame.arrays)
        self.bytes_down += sent * (self.size - 1)

    def receive(self) -> Frame:
        """Return what process 0 sends."""
        head = np.empty(HEAD, np.uint8)
        self._comm.Bcast(head)
        length = int(np.frombuffer(head[:8].tobytes(), np.int64)[0])
        text = head[8 : 8 + length].tobytes()
        if length > HEAD - 8:
            rest = np.empty(length - (HEAD - 8), np.uint8)
            self._comm.Bcast(rest)
            text += rest.tobytes()
        header = text.decode()
        arrays = _room(_read(header))
        for x in arrays:
            self._comm.Bcast(_flat(x))
        return Frame(header, arrays)

    def gather(self, frame: Frame, mark: int = 0) -> tuple[list[Frame] | None, int]:
        """Bring the trees of all processes to process 0, and the largest of their marks; the others do not wait."""
        same = frame.text == self._said
        self._said = frame.text
        if self.rank:
            self._send_head(b"" if same else frame.text.encode(), mark, 0)
            for x in frame.arrays:
                self._comm.Send(_flat(x), dest=0)
            return None, mark
        self._heard[0] = frame.text
        for rank in range(1, self.size):
            text, other = self._head_of(rank)
            self._heard[rank] = text or self._heard[rank]
            mark = max(mark, other)
        return self._received(frame), mark

    def _send_head(self, text: bytes, mark: int, dest: int) -> None:
        head = np.zeros(HEAD, np.uint8)
        head[:16] = np.array([len(text), mark], np.int64).view(np.uint8)
        head[16 : 16 + len(text)] = np.frombuffer(text[: HEAD - 16], np.uint8)
        self._comm.Send(head[: 16 + len(text)], dest=dest)
        if len(text) > HEAD - 16:
            self._comm.Send(np.frombuffer(text[HEAD - 16 :], np.uint8), dest=dest)

    def _head_of(self, rank: int) -> tuple[str, int]:
        head = np.empty(HEAD, np.uint8)
        self._comm.Recv(head, source=rank)
        length, mark = head[:16].view(np.int64).tolist()
        text = head[16 : 16 + length].tobytes()
        if length > HEAD - 16:
            rest = np.empty(length - (HEAD - 16), np.uint8)
            self._comm.Recv(rest, source=rank)
            text += rest.tobytes()
        self.bytes_up += 16 + length
        return text.decode(), mark

    def marks(self, *numbers: int) -> np.ndarray:
        """Return some numbers of every process, to all of them."""
        found = np.empty((self.size, len(numbers)), np.int64)
        self._comm.Allgather(np.array(numbers, np.int64), found)
        return found

    def added(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Return the sums of the arrays of all processes to process 0; which comes first is up to MPI."""
        found = []
        for x in arrays:
            total = np.empty(x.shape, x.dtype) if self.rank == 0 else None
            self._comm.Reduce(_flat(x), None if total is None else _flat(total), op=self._mpi.SUM)
            found.append(total)
            self.bytes_up += x.nbytes * (self.size - 1)
        return None if self.rank else found

    def _received(self, own: Frame) -> list[Frame]:
        """Return the arrays of all processes, those that fit under each other in one array."""
        if self.size == 1:
            return [own]
        described = [_read(text) for text in self._heard]
        places = [
            [(tuple(shape), layout["dtype"]) for shape, layout in zip(d["shapes"], d["arrays"], strict=True)]
            for d in described
        ]
        arrays: list[list[np.ndarray]] = [[] for _ in places]
        if len({tuple((shape[1:], kind, len(shape)) for shape, kind in own) for own in places}) == 1:
            for column in zip(*places, strict=True):
                self._under_each_other(column, arrays)
        else:
            for found, of_rank in zip(arrays, places, strict=True):
                found += [np.empty(shape, kind) for shape, kind in of_rank]
        waiting = []
        for rank, found in enumerate(arrays):
            for n, x in enumerate(found):
                if rank:
                    waiting.append(self._comm.Irecv(_flat(x), source=rank))
                    self.bytes_up += x.nbytes
                else:
                    x[...] = own.arrays[n]
        self._mpi.Request.Waitall(waiting)
        return [Frame(text, found) for text, found in zip(self._heard, arrays, strict=True)]

    def _under_each_other(self, column: Sequence[Any], arrays: list[list[np.ndarray]]) -> None:
        (shape, kind), start = column[0], 0
        if not shape:
            for found in arrays:
                found.append(np.empty(shape, kind))
            return
        whole = np.empty((sum(shape[0] for shape, _ in column), *shape[1:]), np.dtype(kind))
        for found, (shape, _) in zip(arrays, column, strict=True):
            found.append(whole[start : start + shape[0]])
            start += shape[0]


def _flat(x: np.ndarray) -> np.ndarray:
    """Return the bytes of an array, a view: MPI then needs no type for it."""
    return x.reshape(-1).view(np.uint8) if x.dtype.kind not in "fiu" else x.reshape(-1)


_headers: dict[str, Any] = {}


def _read(text: str) -> Any:
    """Return what a header says; the latest ones are kept."""
    if text not in _headers:
        if len(_headers) > 64:
            _headers.clear()
        _headers[text] = json.loads(text)
    return _headers[text]


def _room(description: Mapping[str, Any]) -> list[np.ndarray]:
    return [
        np.empty(tuple(shape), layout["dtype"])
        for shape, layout in zip(description["shapes"], description["arrays"], strict=True)
    ]


def _as_it_was(layout: Mapping[str, Any], stored: np.ndarray, like: Array) -> Any:
    """Return an array with the strides that it had where it came from."""
    if "device" not in layout and tuple(layout["shape"]) == stored.shape:
        expected, size = [], stored.itemsize
        for n in reversed(stored.shape):
            expected.append(size)
            size *= max(n, 1)
        if all(s == e or n <= 1 for s, e, n in zip(layout["strides"], expected[::-1], stored.shape, strict=True)):
            return stored
    return unpacked(layout, stored, like)


def _shortened(tree: Any) -> Any:
    if not isinstance(tree, tuple):
        return tree
    if hasattr(tree, "_fields"):
        return type(tree)(*map(_shortened, tree))
    if (len(tree) > LONG and all(type(x) is int for x in tree)) or (tree and all(type(x) is float for x in tree)):
        return Whole(np.array(tree))
    return tuple(map(_shortened, tree))


def _lengthened(tree: Any) -> Any:
    if isinstance(tree, Whole):
        return tuple(tree.numbers.tolist())
    if not isinstance(tree, tuple):
        return tree
    if hasattr(tree, "_fields"):
        return type(tree)(*map(_lengthened, tree))
    return tuple(map(_lengthened, tree))


def checksum(frame: Frame) -> int:
    """Return a number that frames of other structure, shapes or types do not share."""
    return zlib.crc32(frame.text.encode())
