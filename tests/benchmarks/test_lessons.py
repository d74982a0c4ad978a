"""How long a lesson takes to answer: a new slider value, one that is kept, an exported page; and the export of all.

Run with ``pytest tests/benchmarks/test_lessons.py --benchmark-only -s``. Every lesson is measured in several passes,
one lesson after the other in each, so that a busy moment of the machine hits all alike. CPU time of a scene, and of the
page on its main thread (which draws and lays out), is what a quiet machine would take; wall time, printed beside it
with the load of the machine, is from the slider's move until the page is laid out.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from figures.lessons import discover, load
from figures.lessons._export import export
from figures.lessons._find import positions
from figures.lessons._server import Answers, Server
from tests.figures.chromium import chromium

from .race import report

NEW_LIMIT, KEPT_LIMIT, EXPORTED_LIMIT = 100.0, 30.0, 20.0  # milliseconds
EXPORT_SECONDS, EXPORT_MEGABYTES = 300.0, 5.0
PASSES, QUESTIONS = 3, 8  # the latter of every lesson in every pass
LESSONS = discover()
# Moves every slider to a position, and says how many milliseconds pass until the page is drawn and laid out.
MOVE = """async (position) => {
    const start = performance.now();
    lesson.sliders.forEach((s, k) => { $(s.name).value = s.offered.indexOf(position[k]); });
    nameValues();
    await ask();
    document.body.getBoundingClientRect();
    return performance.now() - start;
}"""


def some(name: str, turn: int) -> list[tuple[int, ...]]:
    """Return positions spread over all that are exported, others in every pass."""
    everything = list(positions(load(name)))
    return everything[turn :: max(PASSES, len(everything) // QUESTIONS)][:QUESTIONS]


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    with chromium() as browser:
        yield browser.new_page(viewport={"width": 1600, "height": 900})


class Clock:
    """Wall time of moves of a page, and CPU time of its main thread."""

    def __init__(self, page: Any) -> None:
        self.page, self.session = page, page.context.new_cdp_session(page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def move(self, position: tuple[int, ...]) -> tuple[float, float]:
        """Return milliseconds on the wall and on the CPU."""
        before = self._used()
        wall = self.page.evaluate(MOVE, list(position))
        return wall, 1e3 * (self._used() - before)

    def _used(self) -> float:
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "TaskDuration")


def open_(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_function("document.body.dataset.round")


def table(title: str, columns: list[str], times: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, float]]:
    """Print medians of every lesson with the load of the machine, and return them."""
    medians = {name: {c: statistics.median(times[name][c]) for c in columns} for name in LESSONS}
    load_average = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    rows = [[name, *(f"{medians[name][c]:.1f}" for c in columns)] for name in LESSONS]
    report(f"{title}, medians; load {load_average} on {os.cpu_count()} cores", ["lesson", *columns], rows)
    return medians


def test_a_slider_that_moves(page: Any, benchmark: Any) -> None:
    """New positions without neighbours computed ahead, then the same ones again."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def measure() -> None:
        for turn in range(PASSES):
            for name in LESSONS:
                answers = Answers(ahead=False)  # another cache than the server's, for the CPU time of scenes alone
                open_(page, server.url(name))
                clock = Clock(page)
                for position in some(name, turn):
                    start = time.thread_time()
                    answers(name, position)
                    times[name]["scene, CPU ms"].append(1e3 * (time.thread_time() - start))
                forget_runs(name)
                for kind in ("new", "kept"):
                    for position in some(name, turn):
                        wall, cpu = clock.move(position)
                        times[name][f"{kind}, wall ms"].append(wall)
                        times[name]["page, CPU ms"].append(cpu)

    with Server(ahead=False) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name in LESSONS:  # what is imported or computed once
            server.answers(name, next(positions(load(name))))
        benchmark.pedantic(measure, rounds=1)
        server.shutdown()
    columns = ["scene, CPU ms", "page, CPU ms", "new, wall ms", "kept, wall ms"]
    for name, found in table("a slider that moves", columns, times).items():
        assert found["scene, CPU ms"] + found["page, CPU ms"] <= NEW_LIMIT, name
        assert found["page, CPU ms"] <= KEPT_LIMIT, name


def forget_runs(name: str) -> None:
    """Clear what a lesson keeps of its runs, so that a new value is new for the server too."""
    for kept in vars(load(name)).values():
        if hasattr(kept, "cache_clear"):
            kept.cache_clear()


def test_the_export_of_all(page: Any, tmp_path: Path, benchmark: Any) -> None:
    """Its time and size, and the pages."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def write() -> None:
        for name in LESSONS:
            start = time.process_time()
            export([name], tmp_path)
            times[name]["export, CPU s"].append(time.process_time() - start)
            times[name]["MB"].append((tmp_path / f"{name}.html").stat().st_size / 1e6)

    benchmark.pedantic(write, rounds=1)
    for turn in range(PASSES):
        for name in LESSONS:
            open_(page, (tmp_path / f"{name}.html").as_uri())
            clock = Clock(page)
            for position in some(name, turn):
                wall, cpu = clock.move(position)
                times[name]["slider, wall ms"].append(wall)
                times[name]["slider, CPU ms"].append(cpu)
    found = table("exported", ["slider, CPU ms", "slider, wall ms", "export, CPU s", "MB"], times)
    sums = {c: sum(found[name][c] for name in LESSONS) for c in ("export, CPU s", "MB")}
    report("export of all", list(sums), [[f"{v:.1f}" for v in sums.values()]])
    assert sums["export, CPU s"] <= EXPORT_SECONDS
    assert sums["MB"] <= EXPORT_MEGABYTES
    for name in LESSONS:
        assert found[name]["slider, CPU ms"] <= EXPORTED_LIMIT, name
