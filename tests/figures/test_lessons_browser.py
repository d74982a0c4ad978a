"""The pages of the course in a browser: shown numbers against dualopt, verdicts against theory, and hands on the page.

They need Playwright for Python and Chromium: the system's, or the one that ``playwright install chromium`` brings.
DUALOPT_POSITIONS=200 compares at that many positions of every chapter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from figures.lessons import CHAPTERS, load
from figures.lessons._export import export, exported
from figures.lessons._parts import AskChoice, AskCurve, Plane
from tests.figures.chromium import chromium
from tests.figures.colours import VISIONS, blended, contrast
from tests.figures.course import measured, positions, values, verdict

every_chapter = pytest.mark.parametrize("name", CHAPTERS)
MANY = int(os.environ.get("DUALOPT_POSITIONS", "3"))
CLOSE = 1e-10  # of the largest value of a quantity, or of |u|^2, which is the order of the first error, |u| for points
TARGET, HALF_STEP = 44, 0.025
PHONE, DESK = (390, 844), (1280, 800)

# Moves a chapter to a position, and returns all that it computes and shows there.
AT = """([name, at, pick, n]) => {
    const c = page.chapters[name], names = Object.keys(c.numbers.quantities);
    Object.assign(c.state.at, at);
    Object.assign(c.state, { pick, n, shown: true });
    if (c.ask.kind === "choice") c.state.guess = 0;
    c.draw();
    const each = (f) => Object.fromEntries(names.map((q) => [q, f(q)]));
    const said = c.described.said.filter((s) => c.shows(s) && c.holds(s.where)).map((s) => s.text);
    const inside = [...said, ...c.box.map(([, t]) => t)].flatMap((t) => [...t.matchAll(/\\{([^}]+)\\}/g)]);
    const wrong = (e) => [...e.attributes].some((a) => /NaN|undefined|Infinity/.test(a.value))
        || ["width", "height", "r"].some((a) => Number(e.getAttribute(a)) < 0);
    return {
        all: each((q) => [...c.numbers.all(q)]),
        rounds: each((q) => c.numbers.roundsOf(q)),
        points: names.filter((q) => c.numbers.quantities[q].kind === "linear"),
        judged: c.judged,
        shown: Object.fromEntries(inside.map(([, key]) => [key, c.filled(`{${key}}`)])),
        sentence: c.$(".sentence").textContent,
        said: said.map((t) => c.filled(t)),
        broken: [...c.section.querySelectorAll("svg *")].filter(wrong).map((e) => e.outerHTML),
    };
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


class Course:
    """The pages, each written when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def page(self, name: str) -> Path:
        file = self.folder / f"{name}.html"
        if not file.exists():
            file.write_text(exported(name), encoding="utf-8")
        return file

    def all(self) -> list[Path]:
        return list(export(self.folder))


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(tmp_path_factory.mktemp("course"))


class Seen:
    """A page, and what went wrong on it."""

    def __init__(self, browser: Any, file: Path, *, size: tuple[int, int] = DESK, **options: Any) -> None:
        view = {"width": size[0], "height": size[1]}
        self.context = browser.new_context(viewport=view, offline=True, **options)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.go(file.as_uri())

    def go(self, url: str) -> None:
        self.page.goto(url)
        self.page.wait_for_function("document.body.dataset.ready")
        self.frame()

    def frame(self) -> None:
        """Wait until what changed is drawn."""
        self.page.evaluate("() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def state(self, name: str) -> dict[str, Any]:
        return self.page.evaluate("(name) => page.chapters[name].state", name)

    def show(self) -> None:
        if self.page.locator('input[name$="option"]').count():
            self.page.locator('input[name$="option"]').first.check()
        self.page.click(".reveal")
        self.frame()


@pytest.fixture
def seen(browser: Any, course: Course) -> Iterator[Callable[..., Seen]]:
    made: list[Seen] = []

    def one(name: str, **options: Any) -> Seen:
        made.append(Seen(browser, course.page(name), **options))
        return made[-1]

    yield one
    for each in made:
        each.context.close()


def read(text: str) -> list[float]:
    """Return the numbers of a text as it is shown."""
    plain = text.replace("−", "-").replace("∞", "inf").replace("none", "nan")
    return [float(word) for word in plain.strip("()").split(", ")]


@every_chapter
def test_numbers_are_those_of_the_methods_and_verdicts_those_of_theory(name: str, seen: Callable[..., Seen]) -> None:
    chapter, one = load(name), seen(name)
    for u, pick, n in positions(chapter, MANY):
        at = {d.name: list(map(float, xy)) for d, xy in zip(chapter.drags, u.reshape(-1, 2), strict=True)}
        page, truth = one.page.evaluate(AT, [name, at, pick, n]), measured(chapter, u, pick)
        assert set(page["all"]) == set(truth)
        degree = {key: 1 if key in page["points"] else 2 for key in truth}
        sizes = {
            key: max(float(np.linalg.norm(u)) ** degree[key], *np.abs(np.nan_to_num(v)), 1e-9)
            for key, v in truth.items()
        }
        for key, expected in truth.items():
            found = np.array(page["all"][key], dtype=float)
            size = sizes[key]
            assert found.shape == expected.shape, key
            assert np.array_equal(np.isnan(found), np.isnan(expected)), key  # where there is no such number
            assert np.max(np.abs(np.nan_to_num(found - expected)), initial=0.0) <= CLOSE * size, (key, u, pick)
        for theorem, k in zip(chapter.theorems, page["judged"], strict=True):
            says = verdict(theorem, u, values(chapter, pick))
            assert k["verdict"] == says.verdict, (theorem.label, u, pick, says)
            if says.witness is not None and says.witness.what == theorem.what:
                assert k["n"] == says.witness.n, (theorem.label, u, pick, says)
        for key, text in page["shown"].items():
            quantity, _, entry = key.partition(".")
            if quantity in truth:
                rounds, shown = page["rounds"][quantity], read(text)
                part = truth[quantity].reshape(rounds, -1)[min(n, rounds) - 1] if rounds else truth[quantity]
                wanted = part[len(shown) * int(entry or 0) :][: len(shown)]
                places = 5.1e-3 if len(shown) == 2 else CLOSE * sizes[quantity]  # of points two places are shown
                assert shown == pytest.approx(wanted, rel=5.1e-3, abs=places, nan_ok=True), key
        assert all(said in page["sentence"] for said in page["said"])
        assert page["broken"] == []
    assert one.errors == []
    assert [url for url in one.requests if not url.startswith(("data:", "file:"))] == []


# Whether the middle of a point is at a pixel, up to some of them.
UNDER = """([drag, x, y, most]) => {
    const b = document.querySelector(`.grab[data-name="${drag}"] .target`).getBoundingClientRect();
    return Math.max(Math.abs(b.x + b.width / 2 - x), Math.abs(b.y + b.height / 2 - y)) <= most;
}"""


@every_chapter
@pytest.mark.parametrize("touch", [False, True], ids=["mouse", "touch"])
def test_a_point_stays_under_the_pointer(name: str, touch: bool, seen: Callable[..., Seen]) -> None:
    """Ten moves, each drawn: the point is never farther from the pointer than half a step of its keys."""
    chapter = load(name)
    if not chapter.drags:
        assert not isinstance(chapter.plane, Plane)
        return
    one = seen(name, has_touch=touch)
    if chapter.drags[0].after:
        one.show()
    drag = chapter.drags[0].name
    one.page.locator(f'.grab[data-name="{drag}"]').scroll_into_view_if_needed()
    box = one.page.locator(f'.grab[data-name="{drag}"] .target').bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    unit = one.page.evaluate("(n) => { const X = page.chapters[n].pictures[0].X; return X(1) - X(0); }", name)
    session = one.context.new_cdp_session(one.page)

    def to(kind: str, a: float, b: float) -> None:
        if touch:
            points = [] if kind == "End" else [{"x": a, "y": b}]
            session.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
        elif kind == "Move":
            one.page.mouse.move(a, b)
        else:
            one.page.mouse.move(a, b)
            (one.page.mouse.down if kind == "Start" else one.page.mouse.up)()

    before = one.state(name)["at"][drag]
    to("Start", x, y)
    for k in range(1, 11):
        a, b = x - 12.0 * k, y - 9.0 * k  # steps that no screen takes for a trembling finger
        to("Move", a, b)
        one.frame()
        reach = max(HALF_STEP * unit, 1.0)
        one.page.wait_for_function(UNDER, arg=[drag, a, b, reach], timeout=2000)  # touches come late
    to("End", a, b)
    one.frame()
    after = one.state(name)["at"][drag]
    assert after[0] == pytest.approx(before[0] - 120.0 / unit, abs=HALF_STEP)
    assert after[1] == pytest.approx(before[1] + 90.0 / unit, abs=HALF_STEP)
    one.page.keyboard.press("ArrowLeft")
    one.frame()
    assert one.state(name)["at"][drag][0] == pytest.approx(after[0] - 0.05, abs=2e-3)
    assert one.errors == []


@every_chapter
def test_guess_before_the_answer_by_keyboard_and_the_address_remembers(name: str, seen: Callable[..., Seen]) -> None:
    one, chapter = seen(name), load(name)
    page = one.page
    assert page.locator(".seen").is_hidden()
    assert not any(t.is_visible() for t in page.locator(".theorem").all())
    start = page.inner_text(".sentence")
    if isinstance(chapter.ask, AskChoice):
        assert page.is_disabled(".reveal")
        page.locator('input[name$="option"]').first.focus()
        page.keyboard.press("Space")
        one.frame()
    if isinstance(chapter.ask, AskCurve):
        page.locator(".grab[aria-orientation]").first.focus()
        for _ in range(3):
            page.keyboard.press("ArrowDown")
    page.focus(".reveal")
    page.keyboard.press("Enter")
    one.frame()
    assert page.locator(".seen").is_visible()
    assert page.inner_text(".sentence") != start
    for e in page.locator(".controls input[type=range]").all():
        if e.is_visible():
            before = e.input_value()
            e.focus()
            page.keyboard.press("ArrowLeft" if before == e.get_attribute("max") else "ArrowRight")
            one.frame()
            assert e.input_value() != before
    here, text = page.evaluate("location.href"), page.inner_text(".sentence")
    page.go_back()
    one.frame()
    assert page.inner_text(".sentence") != text or page.evaluate("location.href") != here
    page.goto("about:blank")
    one.go(here)
    assert page.inner_text(".sentence") == text  # the address holds everything
    page.click(".again")
    one.frame()
    assert page.inner_text(".sentence") == start
    assert one.errors == []


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
        return rgb(getComputedStyle(document.body).backgroundColor);
    };
    const own = (e) => [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim());
    const seen = (e) => own(e) && e.getClientRects().length && !e.disabled;
    return [...document.querySelectorAll("body *")].filter(seen).map((e) => {
        const style = getComputedStyle(e), fore = light(rgb(e.closest("svg") ? style.fill : style.color));
        const back = light(behind(e)), [high, low] = fore > back ? [fore, back] : [back, fore];
        return [(high + 0.05) / (low + 0.05), e.textContent.slice(0, 40)];
    }).filter(([c]) => c < 4.5);
}"""
# Names of controls and pictures, values of sliders, unique ids, one heading of the first level.
UNNAMED = """() => {
    const byId = (ids) => ids.split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join("");
    const named = (e) => e.labels?.[0]?.innerText || e.getAttribute("aria-label") || e.innerText
        || byId(e.getAttribute("aria-labelledby") ?? "");
    const all = (selector) => [...document.querySelectorAll(selector)], short = (e) => e.outerHTML.slice(0, 80);
    const wrong = all("input:not([type=hidden]), button, a, svg, .grab, nav, form, section").filter((e) => !named(e));
    const values = ["aria-valuenow", "aria-valuemin", "aria-valuemax", "aria-valuetext"];
    wrong.push(...all("[role=slider]").filter((e) => values.some((a) => !e.getAttribute(a))));
    wrong.push(...all("[id]").filter((e) => document.querySelectorAll(`[id="${e.id}"]`).length > 1));
    return [...wrong.map(short), ...(all("h1").length === 1 && all("main").length === 1 ? [] : ["h1, main"])];
}"""
# What pictures draw beside words and axes: the picture, the part of it, colour, opacity, and line or shape.
DRAWN = """() => Object.values(page.chapters)[0].pictures.flatMap((picture, i) => {
    if (!picture.X || picture.figure?.hidden) return [];
    const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number), rows = [];
    const row = (part, node) => {
        const style = getComputedStyle(node), width = Number.parseFloat(style.strokeWidth);
        const open = style.fill === "none", opacity = Number(node.getAttribute("opacity") ?? 1);
        const weight = width < 1.6 ? "thin" : width >= 4 ? "thick" : "";
        const letters = (node.getAttribute("d") ?? "").replace(/[^A-Z]/g, "");
        const line = !node.hasAttribute("transform") && open && node.tagName !== "rect" && !node.closest(".grab");
        const pattern = node.tagName === "rect" ? `bar ${width > 0}` : `${letters} ${open}`;
        const colour = open || node.tagName === "rect" ? style.stroke : style.fill;
        const dash = node.getAttribute("stroke-dasharray");
        rows.push([i, part, rgb(colour), opacity, line ? `${dash} ${weight}` : pattern, line]);
    };
    for (const [name, layer] of Object.entries({ below: picture.below, grabs: picture.grabs })) {
        for (const [key, { node, kind }] of layer.kept) {
            if (kind === "text" || node.matches(".grid, .axis, .now") || /^(tie|area|pattern)/.test(key)) continue;
            if (kind !== "g") row(key.split(" ")[0], node);
            else for (const part of node.querySelectorAll("path, circle:not(.target)")) row(`${name} ${key}`, part);
        }
    }
    return rows;
})"""
# The lines and dots of the classes of a map, and what they lie on.
HATCHED = """() => [...document.querySelectorAll("pattern path")].filter((e) => e.getAttribute("d")).map((e) => {
    const rgb = (text) => text.match(/[\\d.]+/g).map(Number), id = e.parentNode.id;
    const classes = Object.values(page.chapters)[0].pictures[1].below.kept, area = classes.get(`area ${id.at(-1)}`);
    return area ? [rgb(getComputedStyle(e).stroke), rgb(getComputedStyle(area.node).fill), e.getAttribute("d")] : [];
}).filter((row) => row.length)"""
PAPER = "getComputedStyle(document.body).backgroundColor"
AXE = "async () => (await axe.run()).violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 120))])"


@every_chapter
def test_everybody_can_use_it(name: str, seen: Callable[..., Seen]) -> None:
    """What is said, names, contrast in both schemes, targets, a phone; and axe where DUALOPT_AXE names its file."""
    one = seen(name)
    one.show()
    one_region_says_what_is_seen(name, one)
    for size in (DESK, PHONE):
        one.page.set_viewport_size({"width": size[0], "height": size[1]})
        one.frame()
        for scheme in ("light", "dark"):
            one.page.emulate_media(color_scheme=scheme)
            assert one.page.evaluate(CONTRASTS) == []
        assert one.page.evaluate(UNNAMED) == []
        wide, room = one.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= room
        for target in one.page.locator("button, summary, .grab .target, .options label").all():
            if target.is_visible():
                assert target.bounding_box()["height"] >= (TARGET if size == DESK else 40) - 0.5
        if axe := os.environ.get("DUALOPT_AXE"):
            one.page.add_script_tag(path=axe)
            found = one.page.evaluate(AXE)
            assert found == []
    slider_and_result_are_on_one_screen(one)


@every_chapter
def test_nothing_is_told_apart_by_colour_alone(name: str, seen: Callable[..., Seen]) -> None:
    """Parts of different colours have different lines or shapes; all are seen, without green cones and in grey."""
    one = seen(name)
    for shown in (False, True):
        if shown:
            one.show()
        for scheme in ("light", "dark"):
            one.page.emulate_media(color_scheme=scheme)
            rows = one.page.evaluate(DRAWN)
            paper = [float(c) for c in one.page.evaluate(PAPER).strip("rgb()").split(",")]
            looks: dict[tuple[int, str, tuple[float, ...]], dict[bool, set[str]]] = {}
            for picture, part, colour, opacity, pattern, line in rows:
                looks.setdefault((picture, part, tuple(colour)), {True: set(), False: set()})[line].add(pattern)
                for vision in VISIONS:
                    assert contrast(blended(colour, opacity, paper), paper, vision) >= 3.0, (part, scheme, vision)
            for (a, look), (b, other) in combinations(looks.items(), 2):
                if a[0] == b[0] and a[2] != b[2]:  # in one picture, and of different colours
                    assert (look[True] or look[False]) != (other[True] or other[False]), (a, b)
            hatched = one.page.evaluate(HATCHED)
            assert len({d for _, _, d in hatched}) == len(hatched)
            for colour, ground, _ in hatched:
                assert min(contrast(colour, ground, vision) for vision in VISIONS) >= 3.0, (colour, ground)
    assert len(rows) >= 2


def one_region_says_what_is_seen(name: str, one: Seen) -> None:
    assert one.page.locator("[aria-live], [role=status], [role=alert]").count() == 1
    one.page.wait_for_function("document.querySelector('[role=status]').textContent")
    spoken = one.page.evaluate("document.querySelector('[role=status]').textContent")
    assert one.page.inner_text(".sentence") in spoken
    for k, theorem in enumerate(load(name).theorems):
        if theorem.after is not False:
            assert one.page.inner_text(f'[data-theorem="{k}"] .verdict') in spoken


def slider_and_result_are_on_one_screen(one: Seen) -> None:
    one.page.locator("figure:visible").last.evaluate("(e) => e.scrollIntoView({ block: 'center' })")
    figure = one.page.locator("figure:visible").last.bounding_box()
    controls = one.page.locator(".controls").bounding_box()
    if one.page.locator(".controls input:visible").count():
        assert controls["y"] >= 0
        assert controls["y"] + controls["height"] <= PHONE[1] + 0.5
        assert figure["y"] < controls["y"]
        seen_of_it = min(figure["y"] + figure["height"], controls["y"]) - max(figure["y"], 0.0)
        assert seen_of_it >= 0.95 * figure["height"]


def test_all_chapters_on_one_page_and_the_size_of_all(browser: Any, course: Course) -> None:
    files = course.all()
    assert len(files) == 2 * len(CHAPTERS) + 1  # pages and notebooks, and one page of all
    assert sum(file.stat().st_size for file in files) < 6e6
    one = Seen(browser, files[-1])
    assert one.page.locator("section.chapter").count() == len(CHAPTERS)
    assert one.page.evaluate(UNNAMED) == []
    first, last = CHAPTERS[0], CHAPTERS[-1]
    for name in (first, last):
        one.page.evaluate("(n) => { const c = page.chapters[n]; c.state.shown = true; c.change(); c.done(); }", name)
        one.frame()
    one.page.go_back()
    one.frame()
    assert [one.state(name)["shown"] for name in (first, last)] == [True, False]
    assert one.errors == []
    assert [url for url in one.requests if not url.startswith(("data:", "file:"))] == []
    one.context.close()


# What VS Code lets the outputs of a notebook do, where it restricts them ("notebook.experimental.enableCsp").
VS_CODE = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' https: http: data:; font-src 'self' https:; connect-src https:; child-src https: data:;"
)


@pytest.mark.parametrize("policy", ["", VS_CODE], ids=["none", "VS Code"])
def test_a_frame_shows_a_chapter_and_hears_its_height(policy: str, browser: Any, tmp_path: Path) -> None:
    from figures.lessons import show

    file = tmp_path / "notebook.html"
    head = f'<head><meta http-equiv="Content-Security-Policy" content="{policy}"></head>' if policy else ""
    listen = "<script>addEventListener('message', (e) => { window.told = e.data; });</script>"
    file.write_text(f"<!doctype html>{head}<body>{listen}{show('bound')._repr_html_()}</body>", encoding="utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_function("window.told")
    told = page.evaluate("window.told")
    assert told["chapters"] == ["bound"]
    assert told["height"] > 600
    frame = page.frame_locator("iframe")
    frame.locator(".reveal").click()
    frame.locator(".seen").wait_for(state="visible")
    context.close()
