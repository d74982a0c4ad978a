"""Every lesson that is found: its corners, its numbers, its pages; the server and the program."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from figures.lessons._charts import Curve
from figures.lessons._scene import Scene, Slider, to_json
from figures.lessons._server import Answers, Server
from figures.lessons._words import Answer, asked

from dualopt.lab.claims import VERDICTS
from figures.lessons import discover, load, show
from figures.lessons._export import exported
from figures.lessons._find import at, described, nearest, positions
from figures.lessons._page import packed, page
from figures.lessons._program import main
from tests.programs import called

LESSONS = discover()
every_lesson = pytest.mark.parametrize("name", LESSONS)
MOST_EXPORTED = 800
ROOT = Path(__file__).resolve().parents[2]
SIZE_OF_ALL, LESSONS_PLANNED = 5e6, 13


def corners(name: str) -> Iterator[dict[str, Any]]:
    """Yield both ends of every slider, all choices, and the start."""
    sliders = load(name).SLIDERS
    yield {s.name: s.start for s in sliders}
    ends = [s.values if isinstance(s.values[0], str) else (s.values[0], s.values[-1]) for s in sliders]
    yield from (dict(zip((s.name for s in sliders), values, strict=True)) for values in product(*ends))


@every_lesson
def test_a_lesson_says_what_it_is(name: str) -> None:
    lesson = load(name)
    assert lesson.TITLE
    assert "?" in lesson.QUESTION
    assert lesson.__doc__
    assert 1 <= len(lesson.SLIDERS) <= 6
    assert len({s.name for s in lesson.SLIDERS}) == len(lesson.SLIDERS)
    assert not {s.name for s in lesson.SLIDERS} & {"round", "play", "reset", "answer", "error", "figures", "table"}
    assert len(list(positions(lesson))) <= MOST_EXPORTED


@every_lesson
def test_a_lesson_has_a_page_for_teachers(name: str) -> None:
    """It names every claim that the lesson shows, and the file that holds it."""
    text = (ROOT / "docs" / "lessons" / f"{name}.md").read_text(encoding="utf-8")
    lesson = load(name)
    assert text.startswith(f"# {lesson.TITLE}\n")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    parts = ("What it shows", "The question, and its answer", "The theorem", "Five minutes", "Twenty minutes")
    assert headings == [f"## {part}" for part in parts]
    assert lesson.QUESTION in text
    for verdict in lesson.scene(**{s.name: s.start for s in lesson.SLIDERS}).verdicts:
        assert f"[`{verdict.claim}`](../../{verdict.file})" in text
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / "docs" / "lessons" / link).exists()


@every_lesson
def test_corners_of_the_sliders_give_finite_numbers_certificates_that_hold_and_the_verdicts_of_theory(
    name: str,
) -> None:
    lesson = load(name)
    for values in corners(name):
        scene = lesson.scene(**values)
        json.dumps(to_json(scene), allow_nan=False)  # refuses what is not finite
        assert certified(scene) == [], values
        assert {v.label: v.verdict for v in scene.verdicts} == {v.label: v.expected for v in scene.verdicts}, values
        assert {v.verdict for v in scene.verdicts} <= set(VERDICTS)
        shapes(scene)


def certified(scene: Scene) -> list[str]:
    """Return the labels of curves whose error exceeds their certificate."""
    wrong = []
    for chart in scene.charts:
        bounds = {c.label: np.asarray(c.y) for c in chart.curves if c.role == "certificate"}
        errors = {c.label: np.asarray(c.y) for c in chart.curves if c.role == "error" and c.label in bounds}
        wrong += [label for label, error in errors.items() if np.any(error > bounds[label])]
    if scene.table is not None and {"E − E*", "certificate"} <= set(scene.table.columns):
        at_error, at_bound = (scene.table.columns.index(c) for c in ("E − E*", "certificate"))
        for row in scene.table.rows:
            error, bound = row.cells[at_error], row.cells[at_bound]
            if not isinstance(error, str) and np.any(np.asarray(error) > np.asarray(bound)):
                wrong.append(row.label)
    return wrong


def shapes(scene: Scene) -> None:
    """Check that what moves has an entry for every round."""
    for chart in scene.charts:
        for curve in chart.curves:
            y = np.asarray(curve.y, dtype=float)
            assert y.shape == ((scene.rounds, len(curve.x)) if curve.moving else (len(curve.x),))
    if scene.table is not None:
        for row in scene.table.rows:
            assert len(row.cells) == len(scene.table.columns)
            for cell in row.cells:
                assert isinstance(cell, str) or np.ndim(cell) == 0 or len(cell) == scene.rounds
    assert scene.rounds == 0 or 1 <= scene.shown <= scene.rounds


@every_lesson
def test_the_question_has_an_answer_and_is_not_answered_at_the_start(name: str) -> None:
    """Some position that an exported page offers is right, and the first one is not."""
    lesson = load(name)
    assert not lesson.scene(**{s.name: s.start for s in lesson.SLIDERS}).answer.right
    assert any(lesson.scene(**at(lesson, position)).answer.right for position in positions(lesson))


@every_lesson
def test_exported_page_is_one_file_without_addresses(name: str) -> None:
    lesson = load(name)
    text = page(described(name, lesson) | {"sliders": []}, b"{}")
    outside = re.findall(r"""(?:src|href)=["'](?!data:)[^"']+|url\((?!["']?data:|#)""", text)
    assert outside == ["url("] or not outside  # clip paths: url(#${id})
    assert "https://" not in re.sub(r"https://d3js.org", "", text)
    assert lesson.TITLE in text


def test_letters_that_mean_something_in_html_are_written_as_letters() -> None:
    lesson = described("momentum", load("momentum")) | {"title": "a < b & </script>", "question": "<b>?"}
    text = page(lesson)
    assert "<title>a &lt; b &amp; &lt;/script&gt;</title>" in text
    assert text.count("</script>") == page(described("momentum", load("momentum"))).count("</script>")
    assert packed(b"x" * 1000) == packed(b"x" * 1000)


def test_export_holds_fixed_sliders_only_where_they_are_fixed() -> None:
    text = exported("chain", {"kappa": 9})
    (embedded,) = re.findall(r'<script type="application/json" id="lesson">(.*?)</script>', text)
    offered = {s["name"]: s["offered"] for s in json.loads(embedded)["sliders"]}
    assert offered["kappa"] == [1]  # 10 is nearest
    assert len(offered["method"]) == len(load("chain").SLIDERS[0].values)
    with pytest.raises(ValueError, match=r"^slider must be one of method, kappa; not 'kapa' \(did you mean kappa"):
        exported("chain", {"kapa": 9})
    with pytest.raises(ValueError, match=r"^kappa must be a finite number, not nan"):
        exported("chain", {"kappa": float("nan")})
    with pytest.raises(ValueError, match=r"^method must be one of DualFL, .*; not 'FedFoo'"):
        exported("chain", {"method": "FedFoo"})
    shown = show("chain", method="FedAvg", kappa=10)
    assert "srcdoc=" in shown._repr_html_()
    assert "MB" in repr(shown)


def test_sliders_refuse_values_that_they_do_not_have() -> None:
    with pytest.raises(ValueError, match=r"^slider a: 3 is none of its values"):
        Slider(name="a", label="a", values=(1, 2), start=3)
    with pytest.raises(ValueError, match=r"^slider a: an exported page starts at 1, which it must offer"):
        Slider(name="a", label="a", values=(1, 2), start=1, exported=(2,))
    lesson = load("momentum")
    assert nearest(lesson, {"kappa": 30}) == [2, 2, 5]
    with pytest.raises(ValueError, match=r"^at must have one index for each of the 3 sliders, not 1"):
        at(lesson, [0])
    with pytest.raises(ValueError, match=r"^clients has 5 values: no index 9"):
        at(lesson, [9, 0, 0])
    with pytest.raises(ValueError, match=r"^role must be one of"):
        Curve(x=[], y=[], label="", role="eror")
    with pytest.raises(ValueError, match=r"finite numbers, not nan"):
        to_json(np.array([np.nan]))
    assert Answer.of((asked((1.0, 1.0)), "holds"), yes="y", no="n") == Answer(right=True, text="y")
    assert Answer.of((asked((1.0, 1.0)), "holds"), (asked((2.0, 1.0)), "holds"), yes="y", no="n").text == "n"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(ahead=False) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def get(server: Server, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(server.url(path)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_server_answers_and_says_in_one_sentence_what_is_wrong(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    status, text = get(server, "")
    assert status == 200
    assert all(load(name).TITLE in text for name in LESSONS)
    status, text = get(server, "chain")
    assert (status, load("chain").TITLE in text) == (200, True)
    status, text = get(server, "chain/scene?at=0-1")
    assert json.loads(text) == to_json(load("chain").scene(method="DualFL", kappa=10))
    for path, sentence in {
        "chian": "lesson must be one of",
        "chain/else": "there is no page",
        "chain/scene?at=0": "at must have one index",
        "chain/scene?at=x": "at must be indices",
        "chian/scene?at=0": "lesson must be one of",
    }.items():
        status, text = get(server, path)
        assert (status, sentence in text) in {(404, True), (200, True)}
    with pytest.raises(ValueError, match=r"^port \d+ cannot be used"):
        Server(server.server_address[1])


def test_answers_are_kept_and_neighbours_computed_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson, computed, waited = load("chain"), [], threading.Event()
    plain = lesson.scene

    def counted(**values: Any) -> Scene:
        computed.append(values["kappa"])
        if len(computed) == 3:
            waited.set()
        return plain(**values)

    monkeypatch.setattr(lesson, "scene", counted)
    answers = Answers()
    first = answers("chain", (0, 2))
    assert waited.wait(20.0)  # two neighbours follow
    assert answers("chain", (0, 2)) is first
    assert computed[:3] == [30, 30, 100]  # the next method, the next kappa
    with Server(ahead=False) as made:
        monkeypatch.setattr(lesson, "scene", lambda **values: 1 / 0)
        assert json.loads(made.answers("chain", (1, 1))) == {"error": "ZeroDivisionError: division by zero"}


def test_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = partial(called, capsys, main)

    code, out, _ = run("--list")
    assert (code, all(name in out for name in LESSONS)) == (0, True)
    code, out, _ = run("chain", "--export", str(tmp_path / "out"))
    assert code == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["chain.html", "index.html"]
    assert (tmp_path / "out" / "chain.html").stat().st_size < SIZE_OF_ALL / LESSONS_PLANNED
    assert 'href="chain.html"' in (tmp_path / "out" / "index.html").read_text()
    (tmp_path / "taken").write_text("a file")
    code, _, err = run("chain", "--export", str(tmp_path / "taken"))
    assert code == 2
    assert re.search(r"export '.*' is not a folder that can be written", " ".join(err.split()))
    code, _, err = run("chian")
    assert code == 2
    assert "did you mean chain?" in " ".join(err.split())
