"""What `recommend` is worth: the page and the program say what the measurements say, and the two sets stay apart."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from dualopt.runs.costs import EXPECTED, JUDGED, SENT
from figures import advice
from figures._advice_problems import CHOICE, advice_cases
from figures._advice_problems import JUDGED as JUDGING
from figures._advice_rows import (
    AIMS,
    TARGETS,
    Aim,
    Problem,
    best_alone,
    expected,
    factors,
    judged_counts,
    left_out,
    near,
    of_tables,
    problems,
)
from figures._program import main
from figures._settings import Settings
from figures._which_rows import read_rows, write_rows
from figures.which_method import beside
from tests.programs import ended
from tests.runs.test_costs import PLAIN

PAGE = Path(__file__).parents[2] / "docs" / "which_method.md"


@pytest.fixture(scope="module")
def measured() -> list[Problem]:
    (cells, facts), (own_cells, own_facts) = (map(read_rows, beside(PAGE, prefix)) for prefix in ("", "advice_"))
    return [*of_tables(cells, facts), *problems(own_cells, own_facts)]


def judges(measured: list[Problem]) -> list[Problem]:
    return [problem for problem in measured if problem.group == "judged"]


# The numbers of the package.


def test_what_is_expected_are_the_means_over_the_problems_of_choice(measured):
    assert expected(measured) == EXPECTED
    assert expected(judges(measured) + of_choice(measured)) == EXPECTED  # in any order
    other = [Problem(p.name, p.facts, "choice", p.rows, p.targets) for p in judges(measured)]
    assert expected([*of_choice(measured), *other]) != EXPECTED  # judging data would be seen


def of_choice(measured: list[Problem]) -> list[Problem]:
    return [problem for problem in measured if problem.group == "choice"]


def test_the_program_says_in_how_many_cases_the_choice_was_near_the_best(measured):
    assert judged_counts(measured) == JUDGED
    assert JUDGED["vectors"] == (near(found := factors(judges(measured), AIMS[0])), len(found))


def test_what_methods_send_is_what_they_were_seen_to_send(measured):
    for problem in measured:
        for method, row in problem.rows.items():
            rounds, up = float(row["rounds to 1e-4"] or 0), float(row["numbers_up to 1e-4"] or 0)
            if rounds >= 10:
                sent, d = SENT[method], problem.facts.size
                told = sent.vectors * d + sent.scalars
                assert up / problem.facts.n_clients / rounds == pytest.approx(told, rel=0.12), (problem.name, method)


# The two sets.


def test_no_data_set_both_chooses_and_judges(measured):
    assert not set(CHOICE) & set(JUDGING)
    for problem in measured:
        side = problem.group == "judged"
        assert problem.data in (JUDGING if side else CHOICE), problem.name


def test_the_choice_is_no_worse_on_judging_data_than_the_one_method_that_was_best_on_the_others(measured):
    for aim in AIMS:
        alone = best_alone(measured, aim)
        judged = judges(measured)
        assert near(factors(judged, aim)) >= near(factors(judged, aim, alone)), str(aim)


def test_the_best_of_the_choice_does_not_look_at_the_judges(measured):
    forged = [Problem(p.name, p.facts, p.group, p.rows if p.group == "choice" else {}, p.targets) for p in measured]
    assert [best_alone(forged, aim) for aim in AIMS] == [best_alone(measured, aim) for aim in AIMS]


def test_problems_of_a_data_set_of_the_users_judge(small):
    assert {case.group for case in advice_cases(small)} == {"judged"}
    assert {case.group for case in advice_cases(Settings(quick=True, out=small.out))} == {"choice", "judged"}


def test_a_data_set_that_is_left_out_is_not_looked_at(measured):
    chosen = of_choice(measured)
    assert len(left_out(measured, AIMS[0])) == len(factors(chosen, AIMS[0]))
    worse = {
        p.name: {m: {**r, "rounds to 1e-4": "9" if m == "giant" else "1"} for m, r in p.rows.items()}
        for p in chosen
        if p.data == "a9a"
    }
    forged = [replace(p, rows=worse.get(p.name, p.rows)) for p in chosen]
    assert expected(forged) != expected(chosen)
    assert expected([p for p in forged if p.data != "a9a"]) == expected([p for p in chosen if p.data != "a9a"])
    assert near(left_out(measured, AIMS[0])) <= near(factors(chosen, AIMS[0]))


def test_cells_that_are_measured_alone_leave_the_others_of_the_page_as_they_are(small, monkeypatch):
    monkeypatch.setattr(advice, "SENT", ("distributed-lbfgs", "giant"))
    page = small.out / "page.md"
    page.write_text("".join(f"<!-- {name} -->\n<!-- end -->\n" for name in ("rules", "expected", "aims", "judged")))
    command = ["advice", "--quick", "--data", small.data, "--out", str(small.out), "--page", str(page)]
    assert ended(main, *command) == 0
    cells, facts = beside(page, "advice_")
    before, known = read_rows(cells), read_rows(facts)
    assert [row["method"] for row in before] == ["distributed-lbfgs", "giant"] * len(known)
    forged = [{**row, "rounds to 1e-4": "12345"} for row in before]
    write_rows(cells, forged)
    assert ended(main, *command, "--only", "*at random: giant", "--overwrite") == 0
    ((_, new),) = [pair for pair in zip(forged, read_rows(cells), strict=True) if pair[0] != pair[1]]
    assert new in before  # from the store
    assert new["method"] == "giant"
    assert read_rows(facts) == known
    assert ended(main, *command, "--only", "no such problem") == 2


# Factors.


def row(rounds: str, gradients: str, up: str) -> dict[str, str]:
    columns = {"rounds": rounds, "gradients": gradients, "numbers_up": up, "numbers_down": up}
    return {f"{name} to {target}": value for name, value in columns.items() for target in ("1e-4", "1e-6")}


def test_factors_are_of_what_is_to_be_kept_small():
    rows = {"a": row("10", "40", "8000"), "b": row("20", "20", "4000"), "c": row("", "", "")}
    problem = Problem("p", PLAIN, "judged", rows, TARGETS)
    assert factors([problem], Aim("vectors"), "a") == [2.0, 2.0]
    assert factors([problem], Aim("gradients"), "a") == [2.0, 2.0]
    assert factors([problem], Aim("gradients"), "b") == [1.0, 1.0]
    assert factors([problem], Aim("bits"), "c") == [math.inf, math.inf]
    assert factors([problem], AIMS[-1], "a") == []  # nobody has timed a gradient
    none = Problem("p", PLAIN, "judged", {"c": rows["c"]}, TARGETS)
    assert factors([none], Aim("vectors"), "a") == []
