"""The witnesses of constants: the table of worst ratios, what it notices, and what speaks for a constant besides."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dualopt.lab.claims import Claim, Inequality, claim
from tests.theory import worst_ratios
from tests.theory.worst_ratios import blind, complaints, evaluate, rows, scaled, unnoticed, written
from theory._claims import Chapter, ExpectedVerdict, deviation, discover
from theory._report import report
from theory._witnesses import (
    ATTACKED,
    ATTAINED,
    DERIVED,
    HALVED,
    UNWITNESSED,
    Rows,
    kind_of,
    load,
    loose,
    nearest,
    witnesses,
)

CHAPTERS = discover()
TABLE = load()


class Half(float):
    """A number to start from."""

    name = "a half"


def chapter(compare: Any) -> Chapter:
    """Return a claim about one half."""
    cases = lambda quick: [ExpectedVerdict(Half(0.5))]  # noqa: E731
    return Chapter("an example", "theory.example", claim(source="", statement="", cases=cases)(compare))


def halves(x: float) -> Iterator[Inequality]:
    """A bound of two terms that falls, and an identity."""
    for n in range(8):
        yield Inequality(n, 0.8 * x**n, x**n + 0.01, "power")
        yield Inequality(n, deviation(x * x, x**2), 1e-10, "square")


HALVES = evaluate(chapter(halves))
EXPECTED = rows(HALVES)
FACTORS = (1.2, 1 / 1.2, 2.0, 0.5, 3.0)


# The table notices.


def test_rows_hold_ratios_of_bounds_and_bounds_of_identities() -> None:
    assert EXPECTED["power"].kind == "ratio"
    assert EXPECTED["power"].numbers["a half"] == pytest.approx([0.8 / 1.01, 0.8 / (1.0 + 0.01 * 2**3.5)], rel=0.02)
    assert EXPECTED["square"] == Rows("bound", {"all cases": [1e-10]})


def test_nothing_is_said_without_a_change() -> None:
    assert not complaints(rows(HALVES), EXPECTED)
    assert not unnoticed(HALVES, EXPECTED, FACTORS)
    slightly = scaled(HALVES, "power", rhs=1.05)
    assert not complaints(rows(slightly), {"power": EXPECTED["power"]})


def test_a_rate_is_noticed() -> None:
    """Only the first round attains the largest ratio: a rate that is wrong shows in the median."""

    def slower(x: float) -> Iterator[Inequality]:
        yield from (q._replace(rhs=0.6**q.n + 0.01) if q.what == "power" else q for q in halves(x))

    changed = rows(evaluate(chapter(slower)))
    (new,), (old,) = (list(found["power"].numbers.values()) for found in (changed, EXPECTED))
    assert new[0] == pytest.approx(old[0])
    assert complaints(changed, EXPECTED)


def test_a_claim_without_rows_and_rows_without_a_claim_are_noticed() -> None:
    assert complaints(EXPECTED, {})
    assert complaints({}, EXPECTED)
    stale = {**EXPECTED, "power": Rows("ratio", {**EXPECTED["power"].numbers, "another case": [0.5, 0.5]})}
    assert complaints(EXPECTED, stale) == ["power, another case: in the table alone"]


def test_a_bound_that_is_never_compared_goes_unnoticed() -> None:
    """So the test of all claims can fail: a left-hand side that is always zero guards nothing."""
    nothing = evaluate(chapter(lambda x: [Inequality(0, 0.0, 1.0, "power"), Inequality(1, 1e-3, 1.0, "more")]))
    expected = rows(nothing, {"power": "ratio", "more": "ratio"})
    assert {line.partition(":")[0] for line in unnoticed(nothing, expected, (2.0, 0.5))} == {"power"}


def test_an_identity_without_two_sides_is_blind() -> None:
    def one_sided(x: float) -> Iterator[Inequality]:
        yield Inequality(0, deviation(x - x, 0.0, scale=1.0), 1e-10, "square")

    found = evaluate(chapter(one_sided))
    assert blind(found, rows(found)) == ["square"]


def test_sides_are_seen_where_the_module_has_a_deviation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubled or halved, a side of an identity is not within its tolerance; the deviation itself stays as it is."""
    sides = worst_ratios._sides(2.0, 2.0)
    assert sides == 0.0
    assert sides.mistaken == 0.5
    found = evaluate(CHAPTERS["identity_feddyn_rows"])
    assert not blind(found, TABLE["identity_feddyn_rows"])
    without = [e._replace(inequalities=[q._replace(lhs=float(q.lhs)) for q in e.inequalities]) for e in found]
    assert blind(without, TABLE["identity_feddyn_rows"])


# The table as a file.


def test_what_is_written_is_read(tmp_path: Path) -> None:
    table = {"halves": EXPECTED, "odd": {'a "what" with |x|': Rows("ratio", {"": [0.0, float("inf")]})}}
    file = tmp_path / "table.toml"
    file.write_text(written(table))
    read = load(file)
    assert read["odd"] == table["odd"]
    assert not complaints(read["halves"], EXPECTED)


def test_the_program_writes_all_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(worst_ratios, "discover", lambda: {"halves": chapter(halves)})
    worst_ratios.main(said.append)
    assert '[halves."power".ratio]' in said[0]


def test_the_table_has_the_claims_that_there_are() -> None:
    assert set(TABLE) == set(CHAPTERS)


# Witnesses.


def bare(name: str, found: Claim) -> list[str]:
    """Return the kinds of inequalities of a claim whose constants nothing speaks for, and nobody has said why."""
    w = witnesses(name, TABLE)
    if found.constant != "explicit" or w.attack or w.derived:
        return []
    known = {*w.attained, *w.identities, *w.table_only}
    return [what for what in TABLE[name] if what not in known]


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_constant_has_a_witness_or_a_reason(name: str) -> None:
    assert not bare(name, CHAPTERS[name].claim)


def test_a_constant_without_witness_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(DERIVED, "feddyn_lemma_4")
    assert bare("feddyn_lemma_4", CHAPTERS["feddyn_lemma_4"].claim) == [""]


def test_reasons_are_for_what_has_no_witness() -> None:
    for name, what in UNWITNESSED:
        assert what in TABLE[name]
        assert what not in witnesses(name, TABLE).attained


def halved_unnoticed(table: Any) -> dict[str, set[str]]:
    """Return the inequalities that would hold on all cases with half of their bounds."""
    found = {
        name: {what for what, rows in kinds.items() if rows.kind == "ratio" and nearest(rows)[1] < HALVED}
        for name, kinds in table.items()
    }
    return {name: labels for name, labels in found.items() if labels}


def test_a_bound_that_could_be_halved_has_a_reason_and_no_other() -> None:
    assert {name: set(labels) for name, labels in loose().items()} == halved_unnoticed(TABLE)
    for why in (why for labels in loose().values() for why in labels.values()):
        assert re.fullmatch(r"[A-Z].{20,}\.", why), why


def test_a_halved_bound_is_found() -> None:
    half = Rows("ratio", {"one": [0.49, 0.1], "as printed: one": [0.9, 0.9]})
    assert halved_unnoticed({"a": {"x": half, "y": Rows("bound", {"": [1.0]})}}) == {"a": {"x"}}
    assert not halved_unnoticed({"a": {"x": Rows("ratio", {"one": [0.49, 0.1], "two": [0.5, 0.1]})}})


def test_witnesses_exist() -> None:
    for name in ATTACKED | DERIVED:
        assert name in CHAPTERS
    for test in [*ATTACKED.values(), *(test for tests in DERIVED.values() for test in tests)]:
        file, _, function = test.partition("::")
        module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
        assert callable(getattr(module, function)), test


def test_an_attained_bound_cannot_be_smaller() -> None:
    """The ratio in the table is that of an inequality of the claim, with a left-hand side that is not rounding."""
    for name in ("afedpd_lemma_1", "feddyn_lemma_7", "convex_strong_bound"):
        for what, (case, ratio) in witnesses(name, TABLE).attained.items():
            assert ratio >= ATTAINED
            (found,) = [e for e in evaluate(CHAPTERS[name]) if e.result.verdict.case == case]
            compared = [q for q in found.inequalities if kind_of(q.what) == what]
            assert any(q.lhs > 0.89 * q.rhs and q.lhs > 1e-9 for q in compared)


def test_the_report_shows_them() -> None:
    chosen = [CHAPTERS[name] for name in ("feddyn_theorem_2", "convex_span", "fedsplit_contraction")]
    text = report([(found, []) for found in chosen])
    _, _, section = text.partition("## Witnesses of the constants")
    assert "| convex_span | attained | 1: " in section
    assert "derived again, table only" in section
    assert "2 attained, 1 attack, 1 derived again, 0 identity, 1 table only." in section
    assert "Witnesses" not in report([])
