"""The claims on AndersonFedSplit can fail: wrong weights, wrong Gram matrices and a missing safeguard are caught."""

from __future__ import annotations

from dualopt.lab.claims import check
from tests.theory.mutation_table import TABLES, columns, shrunk, telling
from theory._claims import discover
from theory.frontier.anderson import Wild

CHAPTERS = {name: chapter for name, chapter in discover().items() if chapter.module == "theory.frontier.anderson"}


QUADRATIC, SAFE = "anderson_quadratics", "anderson_safeguard"


def test_attained_factors_cannot_be_less() -> None:
    less = shrunk(CHAPTERS[QUADRATIC].claim, 1.0 - 1e-6)
    assert {check(less, case).verdict for case in telling(QUADRATIC) if case.attained} == {"violated"}


def test_wild_points_are_refused() -> None:
    """A refusal, its plain step, the step from a history of one point, the next wild point: every fourth or fifth."""
    for case in telling(SAFE):
        if type(case.algorithm) is Wild:
            known = [s.server.history.known for s in case.snapshots()]
            assert known.count(0) >= case.rounds // 5


def test_every_claim_is_caught_by_some_mutation() -> None:
    assert set(columns(TABLES["Anderson acceleration"])) == set(CHAPTERS)
