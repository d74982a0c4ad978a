"""What the processes of an MPI program agree on, in buffers of numbers; nothing is pickled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from dualopt.arrays._extras import optional
from dualopt.engine._agreement import agree

__all__ = ["MpiCommunicator", "mpi4py_module", "sentence"]


def mpi4py_module() -> Any:
    """Return ``mpi4py.MPI``, imported when it is first needed: the import starts MPI.

    Raises
    ------
    ModuleNotFoundError
        If mpi4py is not installed, or finds no MPI library.
    """
    optional("mpi4py", "engine mpi")
    try:
        from mpi4py import MPI  # pyright: ignore[reportMissingImports]
    except (ImportError, RuntimeError) as error:
        raise ModuleNotFoundError(
            "engine mpi needs an MPI library, such as that of the package openmpi-bin of Debian, or pip install mpich."
        ) from error
    return MPI


class MpiCommunicator:
    """The processes of a communicator (`dualopt.arrays.communicator.Communicator`).

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        The communicator; all processes of the program when not given.
    """

    def __init__(self, comm: Any = None) -> None:
        self.mpi = mpi4py_module()
        self.comm = self.mpi.COMM_WORLD if comm is None else comm
        self.rank, self.size = int(self.comm.Get_rank()), int(self.comm.Get_size())

    @property
    def share(self) -> float:
        """The part of the processes that is on this machine."""
        here = self.comm.Split_type(self.mpi.COMM_TYPE_SHARED)
        try:
            return here.Get_size() / self.size
        finally:
            here.Free()

    def total(self, x: Any) -> Any:
        """Return the sums over the processes of a whole number, or of an array of them."""
        return self._reduced(x, self.mpi.SUM)

    def largest(self, x: Any) -> Any:
        """Return the maxima over the processes of a number or an array."""
        return self._reduced(x, self.mpi.MAX)

    def collected(self, x: np.ndarray) -> list[np.ndarray] | None:
        """Return the arrays of all processes, whose first axes may differ, to process 0, and None to the others."""
        x = np.ascontiguousarray(x)
        counts = np.empty(self.size, np.int64) if self.rank == 0 else None
        self.comm.Gather(np.array([len(x)]), counts)
        if self.rank or counts is None:
            self.comm.Gatherv(x.reshape(-1), None)
            return None
        whole = np.empty((int(counts.sum()), *x.shape[1:]), x.dtype)
        width = int(np.prod(x.shape[1:]))
        self.comm.Gatherv(x.reshape(-1), [whole.reshape(-1), (counts * width).tolist()])
        return np.split(whole, np.cumsum(counts)[:-1])

    def shared(self, x: np.ndarray) -> np.ndarray:
        """Return the array of process 0; the others pass one of its shape and type."""
        found = np.array(x, order="C")
        self.comm.Bcast(found)
        return found

    @contextmanager
    def together(self) -> Iterator[None]:
        """End with an error in all processes where it does in one: its sentence is that of all.

        Raises
        ------
        ValueError
            In the processes that did not fail themselves.
        """
        failure: Exception | None = None
        try:
            yield
        except Exception as error:  # whatever it is, the others must not wait
            failure = error
        first = -int(self.largest(-(self.rank if failure is not None else self.size)))
        if first == self.size:
            return
        text = self.text_of(first, "" if failure is None else sentence(failure, self.rank))
        if failure is not None:
            raise failure
        raise ValueError(text)

    def agree(self, facts: Mapping[str, Any]) -> None:
        """Refuse, in all processes, facts that are not the same in all (`dualopt.engine._agreement.agree`)."""
        agree(self, facts)

    def text_of(self, rank: int, text: str) -> str:
        """Return the text of one of the processes."""
        mine = np.frombuffer(text.encode(), np.uint8)
        length = int(self.largest(len(mine) if self.rank == rank else 0))
        found = np.zeros(length, np.uint8)
        if self.rank == rank:
            found[:] = mine
        self.comm.Bcast(found, root=rank)
        return found.tobytes().decode()

    def _reduced(self, x: Any, operation: Any) -> Any:
        mine = np.ascontiguousarray(x)
        found = np.empty_like(mine)
        self.comm.Allreduce(mine, found, op=operation)
        return (
            found.item()
            if isinstance(x, int | float) and not isinstance(x, np.generic)
            else found.reshape(np.shape(x))[()]
        )


def sentence(error: BaseException, rank: int) -> str:
    """Say in one sentence what went wrong in a process.

    >>> sentence(ValueError("X must be finite."), 1), sentence(MemoryError(), 1)
    ('X must be finite.', 'memory is too small in process 1.')
    """
    if isinstance(error, OSError):
        where = f" {error.filename!r}" if error.filename else ""
        return f"file{where} cannot be used in process {rank}: {error.strerror or error}."
    if isinstance(error, MemoryError):
        return f"memory is too small in process {rank}."
    if isinstance(error, ValueError | ModuleNotFoundError):
        return str(error)
    return f"process {rank} has failed: {type(error).__name__}: {error}."
