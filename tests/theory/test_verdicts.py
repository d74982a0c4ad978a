"""Every claim of every paper gives the verdicts that are expected of it, as near to its bounds as the table says."""

from __future__ import annotations

import importlib
import re

import pytest

from tests.theory.worst_ratios import COMMAND, blind, complaints, evaluate, rows, unnoticed
from theory._claims import discover
from theory._statements import statements
from theory._witnesses import load, untested

CHAPTERS = discover()
TABLE = load()
NO_SECOND_SIDE = {
    ("sum_zeta", "sum zeta"),  # compared with zero
    ("acc_s_dane_adaptive", "weights of delta are accepted"),  # yes or no
    ("fedavg_bias", "nearer to the limit"),  # of two distances, which is smaller: no identity, and no constant
    ("fedprox_bias", "nearer to the limit"),
}


@pytest.mark.parametrize("name", CHAPTERS)
def test_verdicts_are_the_expected_ones(name: str) -> None:
    chapter = CHAPTERS[name]
    evaluations = evaluate(chapter)
    results = [evaluation.result for evaluation in evaluations]
    assert {r.verdict.case: r.verdict.verdict for r in results} == {r.verdict.case: r.expected for r in results}
    assert any(r.verdict.verdict == "holds" for r in results)
    assert not untested(name, [r.verdict for r in results], TABLE)  # every label, not one of them
    assert chapter.claim.source
    assert chapter.claim.statement
    if chapter.selection == "errata":
        printed = {r.verdict.verdict for r in results if r.verdict.case.startswith("as printed")}
        assert printed - {"holds"}  # perhaps not everywhere: P1 is a matter of scale
        assert {r.verdict.verdict for r in results if not r.verdict.case.startswith("as printed")} == {"holds"}
    expected = TABLE.get(name, {})
    found = rows(evaluations, {what: rows.kind for what, rows in expected.items()})
    assert not complaints(found, expected), f"if this is right: {COMMAND} > theory/worst_ratios.toml"
    # Any bound, and what is compared with it, is guarded against a fifth, a half, and a factor of the clients' number.
    assert not unnoticed(evaluations, expected, (1.2, 1.0 / 1.2, 2.0, 0.5, 3.0))
    assert not {(name, what) for what in blind(evaluations, expected)} - NO_SECOND_SIDE


def test_no_claim_was_lost() -> None:
    assert len(CHAPTERS) >= 122
    assert sum(chapter.selection == "errata" for chapter in CHAPTERS.values()) >= 23


def test_no_number_of_a_statement_is_left_out() -> None:
    """Numbers run on, by kind or, in sections, for all kinds; the package says why if one is missing."""
    series: dict[tuple[str, str], set[int]] = {}
    for statement in statements():
        named = re.match(r"(Theorem|Proposition|Lemma) (?:([\d.]*)\.)?(\d+)", statement.label)
        if named:
            series.setdefault((statement.paper, named[2] or named[1]), set()).add(int(named[3]))
    assert len(series) > 8
    for (paper, label), numbers in series.items():
        said = importlib.import_module(f"theory.{paper}").__doc__ or ""
        missing = set(range(1 if label.isalpha() else min(numbers), max(numbers))) - numbers
        assert all(re.search(rf"{label} {number}\b", said) for number in missing), (label, missing)


def test_the_slips_are_numbered() -> None:
    codes = [name.partition("_")[0] for name, chapter in CHAPTERS.items() if chapter.selection == "errata"]
    for letter in {code[0] for code in codes}:
        numbers = sorted(int(code[1:]) for code in codes if code[0] == letter)
        assert numbers == list(range(1, len(numbers) + 1))


def test_an_erratum_corrects_a_claim_or_a_place() -> None:
    for name, chapter in CHAPTERS.items():
        corrects = chapter.claim.corrects
        if chapter.selection == "errata":
            assert corrects in CHAPTERS or corrects in ("Appendix A", "Section 7"), name
            assert corrects != name
