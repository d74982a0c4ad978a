"""Worker processes: what they return, and how they end."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

import dualopt
from dualopt.runs._workers import ENDED, Limit, Workers


def tripled(task: int, limit: Limit) -> int:
    return 3 * task


def until_the_limit_falls(task: int, limit: Limit) -> float:
    while limit() == math.inf:
        time.sleep(0.01)
    return limit()


def killed(task: int, limit: Limit) -> None:
    os._exit(9)


def mistaken(task: int, limit: Limit) -> None:
    raise ValueError("task must be another.")


def tasks(*numbers: int):
    left = iter(numbers)
    return lambda: next(left, None)


def never() -> bool:
    return False


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_is_done_once(jobs: int) -> None:
    results = list(Workers(tripled, jobs).results(tasks(*range(5)), never))
    assert sorted(results) == [(n, 3 * n) for n in range(5)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_task_is_begun_when_the_work_is_over(jobs: int) -> None:
    workers = Workers(tripled, jobs)
    looks = count()
    found = list(workers.results(tasks(*range(100)), lambda: next(looks) == 3))  # true but once
    assert len(found) < 10
    assert workers.ended


def test_processes_see_the_limit_and_it_never_rises() -> None:
    workers = Workers(until_the_limit_falls, 2)
    looks = count()

    def over() -> bool:
        if next(looks) == 2:
            workers.lower(7.0)
            workers.lower(8.0)
        return False

    assert [result for _, result in workers.results(tasks(1, 2), over)] == [7.0, 7.0]
    assert Workers(tripled)._limit.value == math.inf


def test_running_tasks_see_that_the_work_is_over_and_are_waited_for() -> None:
    looks = count()
    found = dict(Workers(until_the_limit_falls, 2).results(tasks(1, 2, 3), lambda: next(looks) == 2))
    assert found == {1: ENDED, 2: ENDED}


def test_ctrl_c_ends_tasks_gives_their_results_and_is_passed_on() -> None:
    found = []
    looks = count()

    def press() -> bool:
        if next(looks) == 2:  # both processes are at work
            signal.setitimer(signal.ITIMER_REAL, 0.05)  # while the results are waited for
        return False

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            found.extend(Workers(until_the_limit_falls, 2).results(tasks(1, 2, 3), press))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert sorted(found) == [(1, ENDED), (2, ENDED)]


def test_a_killed_process_and_a_mistake_are_reported() -> None:
    with pytest.raises(MemoryError, match="one of 2 processes was killed, so use fewer jobs"):
        list(Workers(killed, 2).results(tasks(1, 2), never))
    with pytest.raises(ValueError, match=r"task must be another\."):
        list(Workers(mistaken, 2).results(tasks(1, 2), never))


PROGRAM = """
import os, time
from dualopt.runs._workers import Workers

def endless(task, limit):
    os.write(1, f"{os.getpid()}\\n".encode())  # at once: two processes write to one pipe
    time.sleep(60)

if __name__ == "__main__":
    tasks = iter([1, 2])
    list(Workers(endless, 2).results(lambda: next(tasks, None), lambda: False))
"""


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks up processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_do_not_outlive_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(Path(dualopt.__path__[0]).parent)}
    command = [sys.executable, str(tmp_path / "program.py")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(map(alive, workers))
        parent.send_signal(number)
        parent.wait()
        deadline = time.monotonic() + 20.0
        while any(map(alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(alive, workers))


GROUP = """
import signal, time
from dualopt.runs._workers import Workers
from dualopt.app.cli.output import interruptible

def long(task, limit):
    print("at work", flush=True)
    while limit() > 0:
        time.sleep(0.01)
    return task

if __name__ == "__main__":
    tasks = iter([1, 2])
    with interruptible() as interrupt:
        list(Workers(long, 2).results(lambda: next(tasks, None), interrupt.is_set))
    print("ended", interrupt.exit_code)
"""


def test_a_signal_to_the_whole_group_is_no_lack_of_memory(tmp_path: Path) -> None:
    """Job systems end all processes of a job at once."""
    (tmp_path / "program.py").write_text(GROUP)
    environment = {**os.environ, "PYTHONPATH": str(Path(dualopt.__path__[0]).parent)}
    command = [sys.executable, str(tmp_path / "program.py")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, start_new_session=True, **pipes) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        for _ in range(2):
            assert parent.stdout.readline() == "at work\n"
        os.killpg(parent.pid, signal.SIGTERM)
        assert parent.stdout.read() == "ended 143\n"
        assert "MemoryError" not in parent.stderr.read()
    assert parent.returncode == 0
