"""The lesson on a method of one's own: its answer, wrong claims and lines, what is stored, no solver."""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from dualopt.engine.rounds import iterate
from dualopt.lab.claims import check
from dualopt.lab.proofs._quadratics import mean_square_factor
from dualopt.lab.proofs._setting import Setting
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
    best = lesson.machine()[2.8, 2]
    says("With two of four clients active, $a = 2.8$", f"{best.factor:.4f} per round", f"need {best.needed:.4f}.")


def test_the_numbers_of_the_page_for_teachers() -> None:
    says(f"which is {lesson.claimed(2.8, 4):.2f} for $a = 2.8$")
    for relaxation in lesson.RELAXATIONS:
        found = lesson.machine()[relaxation, 4]
        assert found.needed == pytest.approx(lesson.claimed(relaxation, 4), rel=1e-9)
        assert (found.factor is not None) == (relaxation < 8 / 3)
    unknown, diverges, better = (lesson.machine()[a, 2] for a in (3.0, 3.2, 2.2))
    assert unknown.factor is None
    says(f"need {unknown.needed:.4f}. From 3.2 on")
    assert diverges.sentence.startswith("diverges on")
    says(f"({better.factor:.3f} for {lesson.claimed(2.2, 2):.3f}.)")
    for relaxation in lesson.RELAXATIONS[:5]:
        found = lesson.machine()[relaxation, 2]
        assert found.factor == pytest.approx(lesson.claimed(relaxation, 2), abs=1.5 * lesson.TOLERANCE)


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


def test_what_is_stored_is_what_the_machine_says() -> None:
    """Every step, to the tolerance of the search; of clients that are equally slow either will do."""
    assert list(lesson.machine()) == lesson.questions()
    for (a, active), found in lesson.machine().items():
        again = lesson.asked(a, active)
        assert (found.factor is None) == (again.factor is None)
        if found.factor is not None and again.factor is not None:
            assert found.factor == pytest.approx(again.factor, abs=lesson.TOLERANCE)
            assert f"{found.factor:.6f}" in found.sentence
        assert found.needed == pytest.approx(again.needed, rel=1e-9)
        setting = Setting.of(lesson.YourOwn(a=a), lesson.MU, lesson.L, lesson.CLIENTS, lesson.cohorts(active))
        assert mean_square_factor(setting, found.slowest) == pytest.approx(found.needed, rel=1e-9)
        assert found.sentence.partition(" by ")[0].partition(" of curv")[0] in str(again.sentence)


def test_without_the_solver_the_page_is_the_same_and_asking_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    before = to_json(shown(2.8, 2))
    assert json.dumps(before, allow_nan=False)
    assert "needs CVXPY" in before["note"]
    with pytest.raises(ImportError, match=r'pip install "dualopt\[theory\]"'):
        lesson.asked(2.8, 2)
