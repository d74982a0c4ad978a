"""Tasks worked off in this process or in several, which share one number: the limit of what is still worth doing."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from threading import Thread
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from threadpoolctl import threadpool_limits

__all__ = ["ENDED", "Limit", "Workers"]

Task = TypeVar("Task")
Result = TypeVar("Result")
Limit = Callable[[], float]

ENDED = -math.inf
"""The limit from which on nothing is worth doing: tasks end as soon as they look at it."""
TICK = 0.2  # seconds between two looks at whether the work is over


class Workers(Generic[Task, Result]):
    """Processes that work off tasks as they become free.

    Parameters
    ----------
    work : callable
        ``work(task, limit)`` returns a result. It may look at ``limit()`` at any time: the number that :meth:`lower`
        last set, infinite at first, and ``ENDED`` when the work is over.
        For several processes, ``work``, tasks and results must pickle, and the main module must be one that can be
        imported.
    jobs : int, default 1
        Number of processes; 1 computes in this one. More have one thread of linear algebra each, leave Ctrl-C to this
        process, and end when it does, however it ends.

    Examples
    --------
    >>> squares = Workers(lambda task, limit: task**2)
    >>> numbers = iter([3, 1, 2])
    >>> list(squares.results(lambda: next(numbers, None), lambda: False))
    [(3, 9), (1, 1), (2, 4)]
    """

    def __init__(self, work: Callable[[Task, Limit], Result], jobs: int = 1) -> None:
        self._work = work
        self._jobs = jobs
        # Workers are spawned: threads of the linear algebra do not survive a fork.
        self._context = get_context("spawn")
        # Written here and read by the workers, without a lock: one double at a time.
        self._limit: Any = SimpleNamespace() if jobs == 1 else self._context.Value("d", lock=False)
        self._limit.value = math.inf

    @property
    def ended(self) -> bool:
        """Whether the work is over, so that what comes back may have been cut short."""
        return self._limit.value == ENDED

    def lower(self, limit: float) -> None:
        """Lower the limit; a larger one than the present changes nothing."""
        self._limit.value = min(self._limit.value, limit)

    def results(
        self, next_task: Callable[[], Task | None], over: Callable[[], bool]
    ) -> Generator[tuple[Task, Result], None, None]:
        """Yield every task with its result, in the order in which they end.

        When the work is over, no task is begun any more; those that run see the limit ``ENDED`` and are waited for. The
        same happens on Ctrl-C, which is passed on afterwards.

        Parameters
        ----------
        next_task : callable
            Returns a task, or None if there is none at present; asked again after each result.
        over : callable
            Tells whether to end.

        Raises
        ------
        MemoryError
            If a process is killed, which systems do that run out of memory.
        """
        return self._in_turn(next_task, over) if self._jobs == 1 else self._in_processes(next_task, over)

    def _in_turn(
        self, next_task: Callable[[], Task | None], over: Callable[[], bool]
    ) -> Generator[tuple[Task, Result], None, None]:
        def limit() -> float:
            if over():
                self.lower(ENDED)
            return self._limit.value

        while limit() != ENDED and (task := next_task()) is not None:
            yield task, self._work(task, limit)

    def _in_processes(
        self, next_task: Callable[[], Task | None], over: Callable[[], bool]
    ) -> Generator[tuple[Task, Result], None, None]:
        running: dict[Any, Task] = {}
        interrupt: KeyboardInterrupt | None = None
        initial = {"initializer": _begin, "initargs": (self._work, self._limit)}
        with ProcessPoolExecutor(self._jobs, mp_context=self._context, **initial) as pool:
            try:
                while True:
                    if not self.ended and over():
                        self.lower(ENDED)
                    while not self.ended and len(running) < self._jobs and (task := next_task()) is not None:
                        running[pool.submit(_run, task)] = task
                    if not running:
                        break
                    try:
                        done, _ = wait(running, timeout=TICK, return_when=FIRST_COMPLETED)
                    except KeyboardInterrupt as error:
                        done, interrupt = set(), error
                        self.lower(ENDED)
                    for future in done:
                        yield running.pop(future), future.result()
            except BrokenProcessPool:
                time.sleep(TICK)  # a signal to the whole group may reach the processes before this one
                if over():
                    return
                raise MemoryError(f"one of {self._jobs} processes was killed, so use fewer jobs") from None
            finally:
                self.lower(ENDED)
        if interrupt is not None:
            raise interrupt


_worker: Any = None  # of a worker process: the work and the shared number


def _begin(work: Any, limit: Any) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    threadpool_limits(limits=1)
    Thread(target=_end_with_parent, daemon=True).start()
    _worker = work, limit


def _end_with_parent() -> None:
    """Wait for the end of the parent process, which a signal may kill before it can stop its workers."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(task: Any) -> Any:
    work, limit = _worker
    return work(task, lambda: limit.value)
