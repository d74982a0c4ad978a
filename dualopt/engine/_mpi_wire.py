"""Requests and answers between MPI processes: what `dualopt.arrays.codec` makes of them, arrays as they lie in memory.

A header is sent again only when it differs from the last one of the same process; in most rounds, numbers alone travel.
Arrays of all processes that lie in rows are received into one array, in the order of the processes, so that nothing
need be copied to put them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualopt.arrays.codec import Layout, Packed, layouts

__all__ = ["Wire"]

HEAD = 2048  # bytes of a request's header that are sent before its length is known


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
        text = packed.header
        head = np.zeros(HEAD, np.uint8)
        head[:8] = np.frombuffer(np.int64(len(text)).tobytes(), np.uint8)
        head[8 : 8 + len(text)] = np.frombuffer(text[: HEAD - 8], np.uint8)
        self._comm.Bcast(head)
        if len(text) > HEAD - 8:
            self._comm.Bcast(np.frombuffer(text[HEAD - 8 :], np.uint8))
        for x in packed.arrays:
            self._comm.Bcast(_flat(x))
        sent = max(HEAD, len(text) + 8) + sum(x.nbytes for x in packed.arrays)
        self.bytes_down += sent * (self.size - 1)

    def hear(self) -> Packed:
        """Return what process 0 sends."""
        head = np.empty(HEAD, np.uint8)
        self._comm.Bcast(head)
        length = int(np.frombuffer(head[:8].tobytes(), np.int64)[0])
        text = head[8 : 8 + length].tobytes()
        if length > HEAD - 8:
            rest = np.empty(length - (HEAD - 8), np.uint8)
            self._comm.Bcast(rest)
            text += rest.tobytes()
        arrays = [np.empty(x.stored, x.dtype) for x in layouts(text, exact=True)]
        for x in arrays:
            self._comm.Bcast(_flat(x))
        return Packed(text, arrays)

    def gather(self, packed: Packed, mark: int = 0) -> tuple[list[Packed] | None, int]:
        """Bring the trees of all processes to process 0, and the largest of their marks; the others do not wait."""
        same = packed.header == self._said
        self._said = packed.header
        if self.rank:
            self._send_head(b"" if same else packed.header, mark, 0)
            for x in packed.arrays:
                self._comm.Send(_flat(x), dest=0)
            return None, mark
        self._heard[0] = packed.header
        for rank in range(1, self.size):
            text, other = self._head_of(rank)
            self._heard[rank] = text or self._heard[rank]
            mark = max(mark, other)
        return self._received(packed), mark

    def _send_head(self, text: bytes, mark: int, dest: int) -> None:
        head = np.zeros(HEAD, np.uint8)
        head[:16] = np.array([len(text), mark], np.int64).view(np.uint8)
        head[16 : 16 + len(text)] = np.frombuffer(text[: HEAD - 16], np.uint8)
        self._comm.Send(head[: 16 + len(text)], dest=dest)
        if len(text) > HEAD - 16:
            self._comm.Send(np.frombuffer(text[HEAD - 16 :], np.uint8), dest=dest)

    def _head_of(self, rank: int) -> tuple[bytes, int]:
        head = np.empty(HEAD, np.uint8)
        self._comm.Recv(head, source=rank)
        length, mark = head[:16].view(np.int64).tolist()
        text = head[16 : 16 + length].tobytes()
        if length > HEAD - 16:
            rest = np.empty(length - (HEAD - 16), np.uint8)
            self._comm.Recv(rest, source=rank)
            text += rest.tobytes()
        self.bytes_up += 16 + length
        return text, mark

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


def _flat(x: np.ndarray) -> np.ndarray:
    """Return the bytes of an array, a view: MPI then needs no type for it."""
    return x.reshape(-1).view(np.uint8) if x.dtype.kind not in "fiu" else x.reshape(-1)
