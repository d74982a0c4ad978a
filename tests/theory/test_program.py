"""The program ``python -m theory``."""

from __future__ import annotations

import importlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dualopt.app.cli import progress
from dualopt.lab.claims import Claim, Inequality, Verdict
from tests.programs import called, refusal
from theory import _program
from theory._claims import Chapter, ExpectedVerdict, Result, discover
from theory._report import report, table
from theory._statements import statements


def chapters(*expected: str) -> dict[str, Chapter]:
    """Claims that hold on a case where they were expected to give some verdict."""
    made = {}
    for number, verdict in enumerate(expected):
        claim = Claim(
            name=f"claim_{number}",
            source="Source",
            statement=r"$x \le b$",
            compare=lambda case: [Inequality(3, case, 1.0, "x")],
            cases=lambda quick, verdict=verdict: [ExpectedVerdict(0.5 if quick else 2.0, verdict)],
        )
        made[claim.name] = Chapter("Paper", "theory.paper.file", claim)
    return made


def test_two_processes_say_what_one_says_in_the_same_order(capsys, monkeypatch) -> None:
    monkeypatch.setattr(progress, "SECONDS", math.inf)  # no line that says how far a slow machine has come
    names = ("momentum_3_4", "sum_zeta", "gradient_certificate", "--quick")
    alone, together = (
        called(capsys, _program.main, *names, "--jobs", "1"),
        called(capsys, _program.main, *names, "--jobs", "2"),
    )
    assert alone[0] == 0
    assert together == alone


def test_the_list_names_every_claim(capsys) -> None:
    code, out, _ = called(capsys, _program.main, "--list")
    assert code == 0
    assert all(name in out for name in discover())


def test_a_paper_stands_for_its_claims(capsys) -> None:
    code, out, _ = called(capsys, _program.main, "identities", "momentum_3_4", "--quick", "--list")
    assert code == 0
    assert out.count("identity_") == sum(c.selection == "identities" for c in discover().values()) == 8
    assert out.index("identity_mean_dual") < out.index("momentum_3_4")


def test_all_claims_take_a_line_for_each_chapter_unless_more_is_asked_for(capsys, monkeypatch) -> None:
    several = chapters("holds", "holds", "violated", "holds")
    several["claim_3"] = several["claim_3"]._replace(module="theory.other.file")
    monkeypatch.setattr(_program, "discover", lambda: several)
    _, brief, _ = called(capsys, _program.main, "--quick")
    lines = {line.split("│")[1].strip(): [cell.strip() for cell in line.split("│")[2:-1]] for line in brief.splitlines()
             if "│" in line}  # fmt: skip
    assert lines["paper"] == ["3", "0", "3", "0", "0", "0", "0.5", "NO"]
    assert lines["other"] == ["1", "0", "1", "0", "0", "0", "0.5", "yes"]
    assert "claim_0" not in brief
    assert "claim_2: holds where 'violated' is expected" in brief
    for arguments in (("-v",), ("claim_0",), ("paper",)):
        assert "claim_0" in called(capsys, _program.main, "--quick", *arguments)[1]


def test_some_claims_of_the_paper(capsys, tmp_path: Path) -> None:
    code, out, _ = called(
        capsys, _program.main, "momentum_3_4", "d1_auxiliary_sequence", "--quick",
        "--json", str(tmp_path / "v.json"), "--report", str(tmp_path / "r.md"),
    )  # fmt: skip
    assert code == 0
    assert "1 violated, 1 holds" in out
    told = json.loads((tmp_path / "v.json").read_text())
    assert [claim["name"] for claim in told["claims"]] == ["momentum_3_4", "d1_auxiliary_sequence"]
    printed, corrected = told["claims"][1]["results"]
    assert (printed["verdict"], printed["expected"], printed["witness"]["what"]) == ("violated", "violated", "eta")
    assert (corrected["verdict"], corrected["witness"]) == ("holds", None)
    text = (tmp_path / "r.md").read_text()
    assert "### momentum_3_4" in text
    assert "| as printed: quadratics (N=3, kappa=50) | violated |" in text


def test_an_unexpected_verdict_ends_with_1_and_its_witness(capsys, monkeypatch) -> None:
    monkeypatch.setattr(_program, "discover", lambda: chapters("holds", "violated"))
    code, out, _ = called(capsys, _program.main)
    assert code == 1
    assert "claim_0: violated where 'holds' is expected; 2.0: at n = 3, x: lhs = 2 > rhs = 1" in out
    assert "claim_1: " not in out
    code, out, _ = called(capsys, _program.main, "--quick")
    assert code == 1
    assert "claim_1: holds where 'violated' is expected" in out


def test_expected_verdicts_end_with_0(capsys, monkeypatch) -> None:
    monkeypatch.setattr(_program, "discover", lambda: chapters("violated"))
    assert called(capsys, _program.main)[0] == 0
    monkeypatch.setattr(_program, "discover", lambda: chapters("holds"))
    assert called(capsys, _program.main, "--quick")[0] == 0


def two_labels(*cases: tuple[str, float]) -> dict[str, Chapter]:
    """A claim of two inequalities, whose cases say which of them they yield, and how much of it is rounding."""
    chapter = chapters("holds")["claim_0"]
    claim = replace(
        chapter.claim,
        compare=lambda case: [Inequality(0, 0.5, 1.0, "x"), Inequality(0, 1e-17, 1.0, *case)],
        cases=lambda quick: [ExpectedVerdict(case) for case in cases],
    )
    return {"theorem_4_1": chapter._replace(claim=replace(claim, name="theorem_4_1"))}


@pytest.mark.parametrize(
    ("cases", "refused"),
    [([("E - E*", 0.0)], []), ([("E - E*", 1e-16)], ["E - E*"]), ([("x", 0.0)], ["E - E*"]),
     ([("E - E*", 1e-16), ("E - E*", 0.0)], []), ([("E - E*", 0.0), ("y", 1e-16)], ["y"])],
)  # fmt: skip
def test_every_label_must_be_tested_on_some_case(capsys, monkeypatch, cases, refused) -> None:
    """All verdicts are as expected; rounding alone, or cases of a label that were removed, end with 1."""
    monkeypatch.setattr(_program, "discover", lambda: two_labels(*cases))
    code, out, _ = called(capsys, _program.main)
    assert code == bool(refused)
    assert [line for line in out.splitlines() if "no case tests" in line] == [
        f"theorem_4_1: no case tests {label!r}" for label in refused
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["theorem_3_22"], "claim must be one of"),
        (["theorem_3_22"], "(did you mean theorem_3_2?)"),
        (["--jobs", "0"], "jobs must be at least 1 and at most 4096, not 0."),
        (["--json", "nowhere/v.json"], "json 'nowhere/v.json' is not in a folder that exists."),
        (["--report", "nowhere/r.md"], "report 'nowhere/r.md' is not in a folder that exists."),
    ],
)
def test_mistakes_end_with_2_and_one_sentence(capsys, arguments: list[str], sentence: str) -> None:
    assert sentence in refusal(capsys, _program.main, *arguments)


def test_names_are_unique(monkeypatch) -> None:
    chapter = discover()["theorem_3_2"]
    monkeypatch.setattr(importlib.import_module(chapter.module), "again", chapter.claim, raising=False)
    with pytest.raises(TypeError, match=r"claim theorem_3_2 is in \S* and in \S*\.$"):
        discover()


def test_a_claim_of_the_papers_has_cases(monkeypatch) -> None:
    chapter = discover()["theorem_3_2"]
    monkeypatch.setattr(importlib.import_module(chapter.module), "theorem_3_2", replace(chapter.claim, cases=None))
    with pytest.raises(TypeError, match=r"claim theorem_3_2 in \S* must have cases"):
        discover()


def judged(*verdicts: tuple[str, float]) -> list[Result]:
    return [
        Result(Verdict(claim="c", case=f"|x|*{n}", verdict=verdict, worst_ratio=ratio, compared=1), verdict)
        for n, (verdict, ratio) in enumerate(verdicts)
    ]


def test_ratios_stand_beside_the_verdicts_to_which_they_belong() -> None:
    chapter = chapters("holds")["claim_0"]
    results = judged(("violated", 3.0), ("holds", 0.5), ("violated", 7.0), ("outside assumptions", math.nan))
    row = table(chapter, results)
    assert row["verdicts"] == "2 violated, 1 holds, 1 outside assumptions"
    assert row["worst ratios"] == "7, 0.5, -"


def test_the_report_begins_with_its_contents_and_a_summary() -> None:
    found = discover()
    names = ["identity_mean_dual", "p2_matrix_of_lemma_2", "theorem_3_2"]
    text = report([(found[name], judged(("holds", 0.5))) for name in names])
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    assert headings[:3] == ["Theorems and their verdicts", "Contents", "Summary"]
    assert headings[3] == found["theorem_3_2"].paper  # DualFL first
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = set(re.findall(r"\]\(#([^)]*)\)", text))
    assert links - anchors == {"fedpd_lemma_2"}  # what the erratum corrects, which was not chosen
    assert "Corrects [fedpd_lemma_2](#fedpd_lemma_2)." in text
    assert "| \\|x\\|\\*0 | holds | 0.5 | 1 |" in text  # a cell is a cell


def test_mathematics_is_out_of_the_reach_of_markdown() -> None:
    """All of it is between dollars, which come in pairs and become those that GitHub leaves alone."""
    for name, chapter in discover().items():
        statement = chapter.claim.statement
        assert statement.count("$") % 2 == 0, name
        assert not re.search(r"[\\^]", re.sub(r"\$[^$]+\$", "", statement)), name
        assert "`" not in statement, name
    assert r"$`E_d(\xi^n)" in report([(discover()["theorem_3_2"], [])])


PAPERS = ("afedpd", "dualfl", "feddyn", "fedpd")


def test_every_claim_of_a_paper_is_named_by_a_statement_and_every_name_is_a_claim() -> None:
    found, known = discover(), statements()
    assert {statement.paper for statement in known} == set(PAPERS)
    named = {name for statement in known for name in statement.claims}
    assert named <= set(found)
    folders = {name: chapter.module.split(".")[1] for name, chapter in found.items()}
    assert {name for name, folder in folders.items() if folder in PAPERS} <= named


def test_a_statement_that_is_not_checked_or_in_part_has_a_sentence() -> None:
    for statement in statements():
        assert (statement.covered == "all") != bool(statement.reason), statement
        if statement.reason:
            assert re.fullmatch(r"[A-Z`(].{20,}\.", statement.reason), statement


def test_a_special_case_is_a_short_phrase() -> None:
    some = [statement.special for statement in statements() if statement.special]
    assert all(statement.claims for statement in statements() if statement.special)
    assert all(len(special) <= 100 and not special.endswith(".") for special in some)


def test_statements_are_listed(capsys, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    _, out, _ = called(capsys, _program.main, "dualfl", "--statements", "--report", str(page))
    assert "Theorem 3.2" in out
    assert "theorem_3_2" in out
    assert "special" in out
    assert "statements of 1 paper: " in out
    assert "| dualfl | Theorem 3.3 | all | theorem_3_3, " in page.read_text()


def test_the_page_of_theorems_has_the_statements() -> None:
    page = (Path(__file__).parents[2] / "docs" / "theorems.md").read_text(encoding="utf-8")
    assert page == _program.renewed(page, statements()), "python -m theory --statements --report docs/theorems.md"
