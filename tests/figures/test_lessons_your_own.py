"""The lesson on a method of one's own: its answer, wrong claims and lines, and a page without a solver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.lab.claims import check
from dualopt.methods import ConsensusFedSplit
from dualopt.solvers import Exact
from figures.lessons import your_own as lesson
from figures.lessons._scene import Scene, to_json

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lessons" / "your_own.md"
RIGHT, SLIP = lesson.SIGNS


def says(*parts: str) -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    for part in parts:
        assert part in text, part


def shown(relaxation: float, active: int, line: str = RIGHT) -> Scene:
    return lesson.scene(relaxation=relaxation, active=active, line=line)


def test_one_step_with_two_clients_is_right_and_no_other() -> None:
    found = []
    for relaxation, active, line in product(lesson.RELAXATIONS, (2, 4), lesson.SIGNS):
        answer = shown(relaxation, active, line).answer
        assert answer is not None
        found += [(relaxation, active, line)] if answer.right else []
    assert found == [(2.8, 2, RIGHT)]
    rate = lesson.machine(2.8, 2)
    assert rate is not None
    says("With two of four clients active, $a = 2.8$", f"{rate.factor:.4f} per round", f"need {rate.lower_bound:.4f}.")


def test_the_numbers_of_the_page_for_teachers() -> None:
    says(f"which is {lesson.claimed(2.8, 4):.2f} for $a = 2.8$")
    for relaxation in lesson.RELAXATIONS:
        rate = lesson.machine(relaxation, 4)
        assert rate is not None
        assert rate.lower_bound == pytest.approx(lesson.claimed(relaxation, 4), rel=1e-9)
        assert rate.proved == (relaxation < 8 / 3)
    open_, diverges, better = (lesson.machine(a, 2) for a in (3.0, 3.2, 2.2))
    assert open_ is not None
    assert not open_.proved
    says(f"need {open_.lower_bound:.4f}. From 3.2 on")
    assert diverges is not None
    assert "diverges on" in str(diverges)
    assert better is not None
    says(f"({better.factor:.3f} for {lesson.claimed(2.2, 2):.3f}.)")
    for relaxation in lesson.RELAXATIONS[:5]:
        rate = lesson.machine(relaxation, 2)
        assert rate is not None
        assert rate.factor == pytest.approx(lesson.claimed(relaxation, 2), abs=1.5 * lesson.TOLERANCE)


def test_the_slip_diverges_and_is_seen_to() -> None:
    for relaxation, active in product((0.4, 2.0, 3.6), (2, 4)):
        scene = shown(relaxation, active, SLIP)
        assert scene.answer is not None
        assert "diverges on quadratic clients" in scene.answer.text
        (mean,) = (c for c in scene.charts[1].curves if c.label.startswith("mean"))
        assert mean.y[-1] > mean.y[0]
        needed = scene.charts[0].curves[0]
        assert min(needed.y) > 1.0


def test_step_2_is_fedsplit() -> None:
    case = lesson.run(2.0, 4)
    other = iterate(ConsensusFedSplit(step=lesson.STEP, solver=Exact()), case.objective)
    for snapshot, theirs in zip(case.snapshots(), other, strict=False):
        np.testing.assert_allclose(snapshot.server.theta, theirs.server.theta, atol=1e-12)
    assert not np.allclose(next(lesson.run(2.2, 4).snapshots()).server.theta, next(case.snapshots()).server.theta)


def test_a_claim_that_is_too_good_is_violated(monkeypatch: pytest.MonkeyPatch) -> None:
    """One percent less than the theorem, on clients that attain it."""
    plain = lesson.claimed
    monkeypatch.setattr(lesson, "claimed", lambda a, active: 0.99 * plain(a, active))
    assert check(lesson.your_theorem, lesson.run(2.0, 4)).verdict == "violated"
    assert lesson.scene(relaxation=2.0, active=4, line=RIGHT).verdicts[1].verdict == "violated"


@pytest.fixture
def without_solver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def missing(*args: object, **options: object) -> None:
        raise ImportError("no CVXPY")

    monkeypatch.setattr(lesson, "prove", missing)
    for remembered in (lesson.machine, lesson.run):
        remembered.cache_clear()
    yield
    for remembered in (lesson.machine, lesson.run):
        remembered.cache_clear()


@pytest.mark.usefixtures("without_solver")
def test_without_the_solver_the_page_says_so() -> None:
    scene = shown(2.8, 2)
    assert 'python -m pip install "dualopt[theory]"' in scene.note
    assert scene.answer is not None
    assert not scene.answer.right
    assert {v.label: v.verdict for v in scene.verdicts} == {v.label: v.expected for v in scene.verdicts}
    json.dumps(to_json(scene), allow_nan=False)
