"""Every claim of every paper gives the verdicts that are expected of it."""

from __future__ import annotations

import pytest

from theory._claims import discover, judge

CHAPTERS = discover()


@pytest.mark.parametrize("name", CHAPTERS)
def test_verdicts_are_the_expected_ones(name: str) -> None:
    chapter = CHAPTERS[name]
    results = list(judge(chapter, quick=True))
    assert {r.verdict.case: r.verdict.verdict for r in results} == {r.verdict.case: r.expected for r in results}
    assert any(r.verdict.verdict == "holds" for r in results)
    assert chapter.claim.source
    assert chapter.claim.statement


def test_the_paper_is_covered() -> None:
    theorems = {f"theorem_{number}" for number in ("3_2", "3_3", "3_4", "3_5", "4_1", "4_2")}
    propositions = {f"proposition_{number}" for number in ("3_1", "6_2", "6_3")}
    assert theorems | propositions | {"lemma_6_4", "lemma_6_5"} <= set(CHAPTERS)
    errata = {name[:2] for name, chapter in CHAPTERS.items() if chapter.paper == "Errata"}
    assert errata == {"d1", "d2", "d3", "d4", "d5"}


def test_printed_forms_do_not_hold() -> None:
    for name, chapter in CHAPTERS.items():
        if chapter.paper == "Errata":
            for result in judge(chapter, quick=True):
                printed = result.verdict.case.startswith("as printed")
                assert (result.verdict.verdict != "holds") == printed, name
