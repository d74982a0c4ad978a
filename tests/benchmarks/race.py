"""Timing of several contestants in turns, so that a busy moment of the machine hits all of them alike."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from threadpoolctl import threadpool_info

from dualopt.app.cli.output import make_console, show_table
from dualopt.app.markdown import table_lines
from dualopt.runs.trace import versions

Contestant = Callable[[], Any]
TABLES: list[tuple[str, list[str], list[list[str]]]] = []
"""Titles, columns and rows of what was reported."""


class Race(NamedTuple):
    """What a race measured, by the names of the contestants."""

    seconds: dict[str, float]  # median over the repetitions
    results: dict[str, Any]  # of the last repetition


def race(benchmark: Any, contestants: dict[str, Contestant], *, repetitions: int, warmup: int = 1) -> Race:
    """Run every contestant once per repetition; the first one is what pytest-benchmark itself reports."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    results: dict[str, Any] = {}

    def turn(name: str) -> None:
        start = time.perf_counter()
        results[name] = contestants[name]()
        times[name].append(time.perf_counter() - start)

    first, *others = contestants

    def others_first() -> None:
        for name in others:
            turn(name)

    benchmark.pedantic(turn, args=(first,), setup=others_first, rounds=repetitions, warmup_rounds=warmup)
    return Race({name: statistics.median(all_[-repetitions:]) for name, all_ in times.items()}, results)


def in_turns(contestants: dict[str, Contestant], repetitions: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the median CPU seconds of each contestant and its last result, one after the other in every repetition."""
    times, results = _times(contestants, repetitions)
    return {name: statistics.median(map(sum, all_)) for name, all_ in times.items()}, results


def user_and_system(
    contestants: dict[Any, Contestant], repetitions: int
) -> tuple[dict[Any, tuple[float, float]], dict[Any, Any]]:
    """Return the median seconds that each contestant takes itself, and that the system takes for it; as `in_turns`."""
    times, results = _times(contestants, repetitions)
    medians = {name: tuple(map(statistics.median, zip(*all_, strict=True))) for name, all_ in times.items()}
    return medians, results


def _times(contestants: dict[Any, Contestant], repetitions: int) -> tuple[dict[Any, list[Any]], dict[Any, Any]]:
    """Return the seconds of each turn, own and of the system, and the last results."""
    times: dict[Any, list[Any]] = {name: [] for name in contestants}
    results = {}
    for _ in range(repetitions + 1):  # the first turn warms up
        for name, work in contestants.items():
            before = resource.getrusage(resource.RUSAGE_SELF)
            results[name] = work()
            after = resource.getrusage(resource.RUSAGE_SELF)
            times[name].append((after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime))
    return {name: all_[1:] for name, all_ in times.items()}, results


def peak_memory(code: str, *arguments: str) -> dict[str, float]:
    """Run Python code in a process of its own and return what it ``note``s: megabytes that were in use at most so far.

    A process that is started by another one begins with the peak of that one in ``getrusage``, so it is read elsewhere.
    """
    if not STATUS.exists():
        pytest.skip("the peak of a process is read from /proc")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    command = [sys.executable, "-c", NOTE + code, *arguments]
    output = subprocess.run(command, check=True, capture_output=True, env=environment, text=True).stdout
    found = (line.rsplit(" ", 1) for line in output.splitlines())
    return {name: float(kilobytes) / 1e3 for name, kilobytes in found}


def report(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, and keep it for the file of the option ``--tables``."""
    rows = [list(row) for row in rows]
    TABLES.append((title, list(columns), rows))
    show_table(make_console(), title, [dict(zip(columns, row, strict=True)) for row in rows])


STATUS = Path("/proc/self/status")
NOTE = """
def note(name):
    lines = open("/proc/self/status").read().splitlines()
    print(name, next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""
HEAD = """# Benchmarks

Written by

    DUALOPT_DATA_HOME=DIR python -m pytest tests/benchmarks --benchmark-only -s --tables docs/benchmarks.md

on {machine}. Unless a table says otherwise its times are CPU times of one thread, medians of contestants that take
turns in one process; ratios of one table compare, times of two tables need not. BLAS has other kernels for another
processor, so that what is not BLAS (Numba, C) may be less ahead of it there, or more. Each file of
[tests/benchmarks](../tests/benchmarks) says what it measures and against what, and
asserts its limits as ratios, counts or seconds.
"""


def markdown() -> str:
    """Return a page with all tables."""
    parts = [HEAD.format(machine=machine())]
    for title, columns, rows in TABLES:
        lines = table_lines(columns, rows, "l" + "r" * (len(columns) - 1))
        parts.append(f"**{title}**\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def machine() -> str:
    """Name the processor, the system and the packages that do the work."""
    names = Path("/proc/cpuinfo")
    found = [line for line in names.read_text().splitlines() if line.startswith("model name")] if names.exists() else []
    processor = found[0].partition(":")[2].strip() if found else platform.processor() or platform.machine()
    packages = ", ".join(f"{name} {version}" for name, version in versions().items() if name != "dualopt")
    system = f"{platform.system()}, Python {platform.python_version()}"
    kernels = {
        f"{x['internal_api']} {x['version']}, {x['architecture']}" for x in threadpool_info() if "architecture" in x
    }
    return f"{os.cpu_count()} processors ({processor}), {system}, {packages}; kernels: {', '.join(sorted(kernels))}"
