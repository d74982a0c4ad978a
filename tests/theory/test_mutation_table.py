"""The table of wrong variants: every paper names what its variants are caught by, and a verdict is the right one."""

from __future__ import annotations

import pytest

from tests.theory.mutation_table import PAPERS, Paper, table, verdict


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.title)
def test_claims_that_catch_variants_have_cases(paper: Paper) -> None:
    assert set(paper.variants) & set(paper.module.CATCHES)
    for claims in paper.module.CATCHES.values():
        for claim in claims:
            assert paper.prefix + claim in paper.module.CHAPTERS
            assert next(iter(paper.module.telling_cases(claim)), None) is not None


def test_a_row_tells_what_catches_a_variant() -> None:
    (paper,) = (paper for paper in PAPERS if paper.title == "DualFL")
    assert verdict(paper, "momentum dropped", "theorem_3_3") == "violated"
    head, rule, *_ = table(Paper("DualFL", {}, paper.module))
    assert (head, rule) == ("| DualFL |  |", "|---|")
