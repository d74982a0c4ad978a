"""The pages of all lessons in a browser: what is shown is what was computed, by keyboard, offline, at two sizes.

They need Playwright for Python and Chromium: the system's, or the one that ``playwright install chromium`` brings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from figures.lessons import discover, load, show
from figures.lessons._export import exported
from figures.lessons._find import at
from figures.lessons._planes import Handle
from figures.lessons._scene import Slider, to_json
from figures.lessons._server import Server
from tests.figures.chromium import chromium

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (extra: browser)")

LESSONS = discover()
every_lesson = pytest.mark.parametrize("name", LESSONS)
DIGITS = 5e-3  # three digits are shown: half a unit of the third is at most 5e-3 of the number
TARGET = 44  # pixels
CONTRAST = 4.5  # of letters, as WCAG 2.2 asks at level AA
SIZES = ((1024, 768), (390, 844), (1600, 900))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


class Seen:
    """A page, and what went wrong on it."""

    def __init__(
        self, browser: Any, *, offline: bool = False, size: tuple[int, int] = SIZES[0], scheme: str = "light"
    ) -> None:
        view = {"width": size[0], "height": size[1]}
        context = browser.new_context(viewport=view, offline=offline, color_scheme=scheme)
        self.page = context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))

    def go(self, url: str) -> Seen:
        self.page.goto(url)
        self.page.wait_for_function("document.body.dataset.round")
        return self

    def position(self) -> tuple[int, ...]:
        return tuple(int(i) for i in self.page.evaluate("document.body.dataset.at").split("-"))

    def wait_for(self, change: Callable[[], None]) -> None:
        """Make a change, and wait until another position is drawn."""
        before = self.page.evaluate("document.body.dataset.at")
        change()
        self.page.wait_for_function("(old) => document.body.dataset.at !== old", arg=before)

    def close(self) -> None:
        self.page.context.close()


@pytest.fixture
def seen(browser: Any) -> Iterator[Callable[..., Seen]]:
    made: list[Seen] = []

    def one(**options: Any) -> Seen:
        made.append(Seen(browser, **options))
        return made[-1]

    yield one
    for each in made:
        each.close()


def compare(name: str, seen: Seen) -> None:
    """Compare everything that is written on the page with the scene, computed here."""
    lesson, page = load(name), seen.page
    values = at(lesson, seen.position())
    scene = to_json(lesson.scene(**values))
    n = int(page.evaluate("document.body.dataset.round")) - 1
    assert page.inner_text("h1") == lesson.TITLE
    assert page.inner_text("#question") == lesson.QUESTION
    for slider in lesson.SLIDERS:
        if isinstance(slider.values[0], str):
            shown = page.evaluate("(id) => document.getElementById(id).selectedOptions[0].text", slider.name)
            assert shown == values[slider.name]
        else:
            close(page.inner_text(f"#{slider.name}-value").removesuffix(slider.unit), values[slider.name])
    rows = page.evaluate("[...document.querySelectorAll('#table tr')].map((r) => [...r.cells].map((c) => c.innerText))")
    if scene["table"] is not None:
        assert rows[0] == [scene["table"]["first"], *scene["table"]["columns"]]
        assert len(rows) - 1 == len(scene["table"]["rows"])
        for shown, row in zip(rows[1:], scene["table"]["rows"], strict=True):
            assert shown[0] == row["label"]
            for text, cell in zip(shown[1:], row["cells"], strict=True):
                close(text, cell[n] if isinstance(cell, list) else cell)
    for shown, verdict in zip(page.locator(".verdict").all(), scene["verdicts"], strict=True):
        assert shown.inner_text().startswith(f"{verdict['label']}: {verdict['verdict']}")
        assert verdict["claim"] in shown.inner_text()
    assert page.inner_text("#answer") == scene["answer"]["text"]
    assert page.get_attribute("#answer", "data-right") == str(scene["answer"]["right"]).lower()
    assert page.is_visible("#round") == page.is_visible("#play") == (scene["rounds"] > 0)
    drawn = len(scene["planes"]) + len(scene["charts"])
    assert page.locator("figure > svg").count() == drawn
    assert page.evaluate("[...document.querySelectorAll('svg *')].filter((e) => /NaN/.test(e.outerHTML)).length") == 0


def close(text: str, value: Any) -> None:
    """Compare a number as it is shown with the computed one, to three digits."""
    if isinstance(value, str):
        assert text == value
    else:
        assert abs(float(text) - value) <= DIGITS * abs(value), f"{text} is shown for {value}"


@every_lesson
def test_live_page_shows_what_is_computed_and_the_arrow_keys_move_every_slider(
    name: str, seen: Callable[..., Seen], server: Server
) -> None:
    one = seen().go(server.url(name))
    compare(name, one)
    for slider in load(name).SLIDERS:
        before = one.position()
        one.page.focus(f"#{slider.name}")
        last = slider.start == slider.values[-1]
        down, up = ("ArrowUp", "ArrowDown") if isinstance(slider.values[0], str) else ("ArrowLeft", "ArrowRight")
        one.wait_for(lambda: one.page.keyboard.press(down if last else up))  # noqa: B023
        k = [s.name for s in load(name).SLIDERS].index(slider.name)
        step = -1 if last else 1
        assert one.position() == (*before[:k], before[k] + step, *before[k + 1 :])
        compare(name, one)
    if one.page.is_visible("#round"):
        start = one.page.evaluate("document.body.dataset.round")
        one.page.focus("#round")
        one.page.keyboard.press("ArrowLeft")
        one.page.keyboard.press("ArrowLeft")
        one.page.wait_for_function("(old) => document.body.dataset.round !== old", arg=start)
        compare(name, one)
    assert one.errors == []
    assert {url.split("/")[2].split(":")[0] for url in one.requests if not url.startswith("data:")} == {"127.0.0.1"}


@every_lesson
def test_the_address_opens_a_moment(name: str, seen: Callable[..., Seen], server: Server) -> None:
    lesson = load(name)
    last = {slider.name: slider.values[-1] for slider in lesson.SLIDERS}
    address = "&".join(f"{key}={value}" for key, value in last.items())
    one = seen().go(f"{server.url(name)}#{address}&round=1")
    assert one.position() == tuple(len(slider.values) - 1 for slider in lesson.SLIDERS)
    assert one.page.evaluate("document.body.dataset.round") == "1"
    compare(name, one)
    hash_before = one.page.evaluate("location.hash")
    again = seen().go(f"{server.url(name)}{hash_before}")
    assert again.position() == one.position()
    one.wait_for(lambda: one.page.click("#reset"))
    assert at(lesson, one.position()) == {slider.name: slider.start for slider in lesson.SLIDERS}


@every_lesson
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_no_horizontal_scroll_and_targets_of_44_pixels(
    name: str, size: tuple[int, int], seen: Callable[..., Seen], server: Server
) -> None:
    one = seen(size=size).go(server.url(name))
    wide, room = one.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room
    for target in one.page.locator("input, select, button, .handle").all():
        if target.is_visible():
            box = target.bounding_box()
            assert box["height"] >= TARGET - 0.5
            assert box["width"] >= TARGET - 0.5


# Every text with the colours of it and of what lies behind it, and their contrast as WCAG 2.2 defines it.
CONTRASTS = """() => {
    const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const behind = (e) => {
        for (; e; e = e.parentElement) {
            const c = rgb(getComputedStyle(e).backgroundColor);
            if (c.length === 3 || c[3] === 1) return c;
        }
        throw new Error("no background");
    };
    const own = (e) => [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim());
    return [...document.querySelectorAll("body *")].filter((e) => own(e) && e.getClientRects().length).map((e) => {
        const style = getComputedStyle(e), fore = light(rgb(e.closest("svg") ? style.fill : style.color));
        const back = light(behind(e)), [high, low] = fore > back ? [fore, back] : [back, fore];
        return [(high + 0.05) / (low + 0.05), e.textContent.slice(0, 40)];
    });
}"""


@every_lesson
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_are_readable_and_controls_have_names_and_a_focus_ring(
    name: str, scheme: str, seen: Callable[..., Seen], server: Server
) -> None:
    one = seen(scheme=scheme).go(server.url(name))
    contrasts = one.page.evaluate(CONTRASTS)
    assert len(contrasts) > 20
    assert [c for c in contrasts if c[0] < CONTRAST] == []
    for control in one.page.locator("input, select, button, .handle").all():
        if control.is_visible() and control.is_enabled():
            named = "(e) => e.labels?.[0]?.innerText || e.getAttribute('aria-label') || e.innerText"
            assert control.evaluate(named)
            control.evaluate("(e) => e.blur()")
            one.page.keyboard.press("Tab")  # a focus that comes from the keyboard is shown
            control.focus()
            ring = control.evaluate("(e) => [getComputedStyle(e).outlineStyle, getComputedStyle(e).outlineWidth]")
            assert ring == ["solid", "3px"]
    for live in ("#table", "#verdicts", "#answer"):
        assert one.page.get_attribute(live, "aria-live") == "polite"
    assert one.page.get_attribute("#error", "role") == "alert"


@every_lesson
def test_exported_page_works_from_a_file_with_the_network_off(
    name: str, seen: Callable[..., Seen], tmp_path: Path
) -> None:
    """One slider moves, the others stand still, so that few answers are computed."""
    lesson = load(name)
    moving: Slider = max(lesson.SLIDERS, key=lambda s: len(s.exported_indices()))
    fixed = {s.name: s.start for s in lesson.SLIDERS if s is not moving}
    file = tmp_path / f"{name}.html"
    file.write_text(exported(name, fixed), encoding="utf-8")
    one = seen(offline=True).go(file.as_uri())
    compare(name, one)
    one.page.focus(f"#{moving.name}")
    choice = isinstance(moving.values[0], str)
    last = moving.start == moving.values[moving.exported_indices()[-1]]
    keys = ("ArrowUp", "ArrowDown") if choice else ("ArrowLeft", "ArrowRight")
    one.wait_for(lambda: one.page.keyboard.press(keys[0] if last else keys[1]))
    compare(name, one)
    assert one.errors == []
    assert [url for url in one.requests if not url.startswith("data:")] == [file.as_uri()]


@every_lesson
def test_points_that_are_dragged_move_their_sliders(name: str, seen: Callable[..., Seen], server: Server) -> None:
    lesson = load(name)
    scene = lesson.scene(**{s.name: s.start for s in lesson.SLIDERS})
    handles = [mark for plane in scene.planes for mark in plane.marks if isinstance(mark, Handle)]
    if not handles:
        return
    one = seen().go(server.url(name))
    for handle in handles:
        point = one.page.locator(f"#handle-{handle.x}-{handle.y}")
        box = point.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

        def drag(x: float = x, y: float = y) -> None:
            one.page.mouse.move(x, y)
            one.page.mouse.down()
            one.page.mouse.move(x + 40, y - 30, steps=4)
            one.page.mouse.up()

        one.wait_for(drag)
        one.page.wait_for_function("!busy")  # the last of several questions is answered
        compare(name, one)
        before = one.position()
        point.focus()
        one.wait_for(lambda: one.page.keyboard.press("ArrowLeft"))
        assert one.position() != before
    assert one.errors == []


def test_an_error_is_one_sentence_and_the_next_value_is_shown(
    seen: Callable[..., Seen], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = load("chain")
    plain = lesson.scene

    def failing(**values: Any) -> Any:
        if values["kappa"] == 300:
            raise ValueError("kappa must not be 300.")
        return plain(**values)

    monkeypatch.setattr(lesson, "scene", failing)
    one = seen().go(f"{server.url('chain')}#method=FedAvg&kappa=100")
    one.page.focus("#kappa")
    one.page.keyboard.press("ArrowRight")
    one.page.wait_for_selector("#error:visible")
    assert one.page.inner_text("#error") == "kappa must not be 300."
    one.wait_for(lambda: one.page.keyboard.press("ArrowRight"))
    assert not one.page.is_visible("#error")
    compare("chain", one)


# What VS Code lets the outputs of a notebook do, where it restricts them ("notebook.experimental.enableCsp").
VS_CODE = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' https: http: data:; font-src 'self' https:; connect-src https:; child-src https: data:;"
)


@pytest.mark.parametrize("policy", ["", VS_CODE], ids=["none", "VS Code"])
def test_a_notebook_shows_the_page(policy: str, seen: Callable[..., Seen], tmp_path: Path) -> None:
    """The frame works inside another page, where it has no address of its own and inherits the page's policy."""
    file = tmp_path / "notebook.html"
    head = f'<head><meta http-equiv="Content-Security-Policy" content="{policy}"></head>' if policy else ""
    frame = show("chain", kappa=30)._repr_html_()
    file.write_text(f"<!doctype html>{head}<body>{frame}</body>", encoding="utf-8")
    one = seen(offline=True)
    one.page.goto(file.as_uri())
    frame = one.page.frame_locator("iframe")
    frame.locator("#table td").first.wait_for()
    frame.locator("#method").focus()
    one.page.keyboard.press("ArrowDown")
    frame.locator("tbody th", has_text="OptimizedDualFL").wait_for()
    scene = to_json(load("chain").scene(method="OptimizedDualFL", kappa=30))
    cells = frame.locator("#table td").all_inner_texts()
    for text, cell in zip(cells, scene["table"]["rows"][0]["cells"], strict=True):
        close(text, cell[scene["shown"] - 1] if isinstance(cell, list) else cell)
    assert one.errors == []
