"""Processes that are threads: what is agreed among processes, tested without MPI."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from dualopt.engine._agreement import agree


class ThreadCommunicator:
    """One of ``size`` threads that call the same methods in the same order."""

    def __init__(self, rank, shared):
        self.rank, self.size, self.share, self._shared = rank, len(shared.slots), 1.0, shared

    def _all(self, x):
        self._shared.slots[self.rank] = x
        self._shared.barrier.wait(20)
        found = list(self._shared.slots)
        self._shared.barrier.wait(20)
        return found

    def total(self, x):
        return sum(self._all(x))

    def largest(self, x):
        found = self._all(x)
        return max(found) if np.ndim(x) == 0 else np.max(np.stack(found), axis=0)

    def collected(self, x):
        found = self._all(np.array(x))
        return found if self.rank == 0 else None

    def shared(self, x):
        return np.array(self._all(x)[0])

    def agree(self, facts):
        agree(self, facts)

    @contextmanager
    def together(self):
        failure = None
        try:
            yield
        except Exception as error:
            failure = error
        failures = [error for error in self._all(failure) if error is not None]
        if failures:
            raise failure or ValueError(str(failures[0]))


class _Shared:
    def __init__(self, size):
        self.slots, self.barrier = [None] * size, threading.Barrier(size)


def on_each(size, function):
    """Return what ``function(peers)`` returns in each of ``size`` threads."""
    shared = _Shared(size)
    with ThreadPoolExecutor(size) as pool:
        waiting = [pool.submit(function, ThreadCommunicator(rank, shared)) for rank in range(size)]
        for future in waiting:
            if future.exception(60) is not None:
                shared.barrier.abort()
        return [future.result() for future in waiting]
