"""How long a lesson takes to answer: a new slider value, one that is kept, an exported page.

Run with ``pytest tests/benchmarks/test_lessons.py --benchmark-only -s``. A scene alone is measured in CPU time; server
and page together in wall time, which wants a quiet machine. Medians over positions of all sliders.
"""

from __future__ import annotations

import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

from figures.lessons import discover, load
from figures.lessons._export import exported
from figures.lessons._find import positions
from figures.lessons._server import Answers, Server

from .race import report

NEW_LIMIT, KEPT_LIMIT, EXPORTED_LIMIT = 100e-3, 30e-3, 20e-3
QUESTIONS = 25
# Moves every slider to a position, and says how many milliseconds pass until the page is drawn and laid out.
MOVE = """async (position) => {
    const start = performance.now();
    lesson.sliders.forEach((s, k) => { $(s.name).value = s.offered.indexOf(position[k]); });
    nameValues();
    await ask();
    document.body.getBoundingClientRect();
    return performance.now() - start;
}"""


def some(name: str) -> list[tuple[int, ...]]:
    """Return positions, spread over all, each of which differs from the one before."""
    everything = list(positions(load(name)))
    return everything[:: max(1, len(everything) // QUESTIONS)][:QUESTIONS]


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (extra: browser)")
    with playwright.sync_playwright() as running:
        own = running.chromium.executable_path
        path = own if Path(own).exists() else shutil.which("chromium") or shutil.which("google-chrome")
        if path is None:
            pytest.skip("there is no Chromium")
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1600, "height": 900})
        browser.close()


@pytest.mark.parametrize("name", discover())
def test_computing_a_scene(name: str, benchmark: Any) -> None:
    """The server alone: what a position costs that was not asked for, without neighbours."""
    asked = iter(islice(product(some(name)), QUESTIONS))
    answers = Answers(ahead=False)
    answers(name, some(name)[-1])
    times = []

    def ask() -> None:
        start = time.process_time()
        answers(name, next(asked)[0])
        times.append(time.process_time() - start)

    benchmark.pedantic(ask, rounds=len(some(name)) - 1)
    report(f"computing a scene: {name}", ["median, CPU ms"], [[f"{1e3 * statistics.median(times):.1f}"]])
    assert statistics.median(times) <= NEW_LIMIT


@pytest.mark.parametrize("name", discover())
def test_a_slider_that_moves(name: str, page: Any, benchmark: Any) -> None:
    """Server and page: new positions without neighbours computed ahead, then the same ones again."""
    with Server(ahead=False) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.goto(server.url(name))
        page.wait_for_function("document.body.dataset.round")
        new = [page.evaluate(MOVE, list(position)) / 1e3 for position in some(name)]
        kept = [page.evaluate(MOVE, list(position)) / 1e3 for position in some(name)]
        benchmark.pedantic(lambda: page.evaluate(MOVE, list(some(name)[0])), rounds=1)
        server.shutdown()
    row = [f"{1e3 * statistics.median(times):.1f}" for times in (new, kept)]
    report(f"a slider that moves: {name}", ["new, ms", "kept, ms"], [row])
    assert statistics.median(new) <= NEW_LIMIT
    assert statistics.median(kept) <= KEPT_LIMIT


@pytest.mark.parametrize("name", discover())
def test_an_exported_page(name: str, page: Any, tmp_path: Path, benchmark: Any) -> None:
    file = tmp_path / f"{name}.html"
    file.write_text(timed(benchmark, lambda: exported(name)), encoding="utf-8")
    page.goto(file.as_uri())
    page.wait_for_function("document.body.dataset.round")
    times = [page.evaluate(MOVE, list(position)) / 1e3 for position in some(name)]
    row = [f"{1e3 * statistics.median(times):.1f}", f"{file.stat().st_size / 1e6:.2f}"]
    report(f"an exported page: {name}", ["slider, ms", "MB"], [row])
    assert statistics.median(times) <= EXPORTED_LIMIT


def timed(benchmark: Any, function: Callable[[], str]) -> str:
    return benchmark.pedantic(function, rounds=1)
