"""Requests and answers between MPI processes: what `dualopt.arrays.codec` makes of them, arrays as they lie in memory.

A header is sent again only when it differs from the last one of the same process; in most rounds, numbers alone travel.
Arrays of all processes that lie in rows are received into one array, in the order of the processes, so that nothing
need be copied to put them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from dualopt.arrays.codec import Layout, Packed, layouts

__all__ = ["Wire"]

HEAD = 2048  # bytes that are sent before the length of a header is known
NUMBERS = 16  # bytes of them for the length and a mark


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
        self._said = b""  # the last header of this process
        self._heard = [b""] * self.size  # those of all, in process 0
        self.bytes_up = self.bytes_down = 0  # to and from the other processes, in process 0

    def tell(self, packed: Packed) -> None:
        """Send a tree to all others."""
        for part in _parts(packed.header, least=HEAD):
            self._comm.Bcast(part)
        for x in packed.arrays:
            self._comm.Bcast(_flat(x))
        sent = max(HEAD, len(packed.header) + NUMBERS) + sum(x.nbytes for x in packed.arrays)
        self.bytes_down += sent * (self.size - 1)

    def receive(self) -> Packed:
        """Return what process 0 sends."""
        header, _ = _header(self._comm.Bcast)
        arrays = [np.empty(x.stored, x.dtype) for x in layouts(header, exact=True)]
        for x in arrays:
            self._comm.Bcast(_flat(x))
        return Packed(header, arrays)

    def gather(self, packed: Packed, mark: int = 0) -> tuple[list[Packed] | None, int]:
        """Bring the trees of all processes to process 0, and the largest of their marks; the others do not wait."""
        same = packed.header == self._said
        self._said = packed.header
        if self.rank:
            for part in (*_parts(b"" if same else packed.header, mark), *map(_flat, packed.arrays)):
                self._comm.Send(part, dest=0)
            return None, mark
        self._heard[0] = packed.header
        for rank in range(1, self.size):
            header, other = _header(partial(self._comm.Recv, source=rank))
            self._heard[rank] = header or self._heard[rank]
            self.bytes_up += NUMBERS + len(header)
            mark = max(mark, other)
        return self._received(packed), mark

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

    def _received(self, own: Packed) -> list[Packed]:
        """Return the arrays of all processes, those that fit under each other in one array."""
        if self.size == 1:
            return [own]
        places = [layouts(text, exact=True) for text in self._heard]
        arrays: list[list[np.ndarray]] = [[] for _ in places]
        if len({tuple((x.stored[1:], x.dtype, len(x.stored)) for x in own) for own in places}) == 1:
            for column in zip(*places, strict=True):
                self._under_each_other(column, arrays)
        else:
            for found, of_rank in zip(arrays, places, strict=True):
                found += [np.empty(x.stored, x.dtype) for x in of_rank]
        waiting = []
        for rank, found in enumerate(arrays):
            for n, x in enumerate(found):
                if rank:
                    waiting.append(self._comm.Irecv(_flat(x), source=rank))
                    self.bytes_up += x.nbytes
                else:
                    x[...] = own.arrays[n]
        self._mpi.Request.Waitall(waiting)
        return [Packed(text, found) for text, found in zip(self._heard, arrays, strict=True)]

    def _under_each_other(self, column: Sequence[Layout], arrays: list[list[np.ndarray]]) -> None:
        (shape, dtype), start = (column[0].stored, column[0].dtype), 0
        if not shape:
            for found in arrays:
                found.append(np.empty(shape, dtype))
            return
        whole = np.empty((sum(x.stored[0] for x in column), *shape[1:]), dtype)
        for found, x in zip(arrays, column, strict=True):
            found.append(whole[start : start + x.stored[0]])
            start += x.stored[0]


def _parts(header: bytes, mark: int = 0, least: int = 0) -> Iterator[np.ndarray]:
    """Yield a part of ``least`` to `HEAD` bytes, length and mark and the header, and another one for what is left."""
    first = header[: HEAD - NUMBERS]
    head = np.zeros(max(least, NUMBERS + len(first)), np.uint8)
    head[:NUMBERS] = np.array([len(header), mark], np.int64).view(np.uint8)
    head[NUMBERS : NUMBERS + len(first)] = np.frombuffer(first, np.uint8)
    yield head
    if len(header) > len(first):
        yield np.frombuffer(header[len(first) :], np.uint8)


def _header(receive: Callable[[np.ndarray], Any]) -> tuple[bytes, int]:
    """Return header and mark, as `_parts` has them."""
    head = np.empty(HEAD, np.uint8)
    receive(head)
    length, mark = head[:NUMBERS].view(np.int64).tolist()
    found = head[NUMBERS : NUMBERS + length].tobytes()
    if length > len(found):
        rest = np.empty(length - len(found), np.uint8)
        receive(rest)
        found += rest.tobytes()
    return found, mark


def _flat(x: np.ndarray) -> np.ndarray:
    """Return the bytes of an array, a view: MPI then needs no type for it."""
    return x.reshape(-1).view(np.uint8) if x.dtype.kind not in "fiu" else x.reshape(-1)
