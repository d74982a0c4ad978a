"""How long the course takes: a frame while a point is dragged, the first picture of a page, and the export of all.

Run with ``pytest tests/benchmarks/test_lessons.py --benchmark-only -s``. A frame is all that the main thread of a page
does between two moves of the hand: tables, pictures, text, layout. Its CPU time is what a quiet machine would take.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from figures.lessons import CHAPTERS, load
from figures.lessons._export import export
from tests.figures.chromium import chromium

from .race import report

FRAME_LIMIT = 16.0  # milliseconds
EXPORT_SECONDS, EXPORT_MEGABYTES, FRAMES = 120.0, 6.0, 200
# Drags the first point along a circle, frame by frame; returns the wall time of every frame's work.
DRAG = """async ([name, drag, frames]) => {
    const c = page.chapters[name], times = [];
    c.state.shown = true;
    c.state.n = c.described.rounds || 1;
    const next = () => new Promise((done) => requestAnimationFrame(done));
    for (let k = 0; k < frames; k++) {
        if (drag) c.state.at[drag] = [2.2 + 1.5 * Math.cos(k / 20), 1.2 + Math.sin(k / 20)];
        const start = performance.now();
        c.draw();
        c.section.getBoundingClientRect();
        times.push(performance.now() - start);
        await next();
    }
    return times;
}"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    folder, start = tmp_path_factory.mktemp("course"), time.process_time()
    list(export(folder))
    return folder, time.process_time() - start


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    with chromium() as browser:
        yield browser.new_page(viewport={"width": 1280, "height": 800})


def main_thread(session: Any) -> float:
    """Return the CPU time of the main thread of the page so far, in milliseconds."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1e3 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")


def test_frames_while_dragging(benchmark: Any, page: Any, made: tuple[Path, float]) -> None:
    session, rows, worst = page.context.new_cdp_session(page), [], 0.0
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    for name in CHAPTERS:
        start = time.perf_counter()
        page.goto((made[0] / f"{name}.html").as_uri())
        page.wait_for_function("document.body.dataset.ready")
        first = 1e3 * (time.perf_counter() - start)
        before, drags = main_thread(session), load(name).drags
        times = page.evaluate(DRAG, [name, drags[0].name if drags else "", FRAMES])
        cpu, median = (main_thread(session) - before) / FRAMES, statistics.median(times)
        worst = max(worst, cpu)
        rows.append((name, f"{cpu:.1f} ms", f"{median:.1f} ms", f"{first:.0f} ms"))
    benchmark.pedantic(lambda: page.evaluate(DRAG, ["your_own", "m1", 20]), rounds=3)
    title = f"The course: a frame while a point is dragged ({FRAMES} frames, load {os.getloadavg()[0]:.0f})"
    report(title, ("chapter", "CPU of a frame", "its drawing, median", "first picture"), rows)
    assert worst <= FRAME_LIMIT


def test_export_of_all(benchmark: Any, made: tuple[Path, float]) -> None:
    folder, seconds = made
    size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    benchmark.pedantic(lambda: sum(file.stat().st_size for file in folder.iterdir()), rounds=3)
    report("The course: export of all", ("CPU time", "size"), [(f"{seconds:.0f} s", f"{size:.1f} MB")])
    assert seconds <= EXPORT_SECONDS
    assert size <= EXPORT_MEGABYTES
