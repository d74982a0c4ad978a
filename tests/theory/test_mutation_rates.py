"""Wrong variants of methods lose the rate that is proved of the right ones, and MUTATIONS.md says which."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("clarabel")

from tests.theory.mutation_rates import HEADER, RIGHT, answer, lines, variants

TABLE = Path(__file__).resolve().parents[2] / "theory" / "MUTATIONS.md"
BY_TITLE = {right.title: right for right in RIGHT}
LOST = [
    ("DualFL, all", "momentum dropped", "slower"),
    ("FedPD, all", "sign of the dual", "diverges"),
    ("FedPD, all", "dual step dropped", "stands still"),
    ("FedDyn, 2 of 4 clients", "parenthesis of h dropped", "diverges"),
    ("FedDyn, 2 of 4 clients", "half the memory", "slower"),
    ("AFedPD, 2 of 4 clients", "no dual on the server", "stands still"),
    ("FedADMM, 2 of 4 clients", "server step off", "diverges"),
    ("FedSplit, all", "FedSplit: half the step", "slower"),
]


@cache
def least(title: str) -> float:
    """Return the factor of the right method, which does not lose its own rate."""
    found = answer(BY_TITLE[title])
    assert answer(BY_TITLE[title], found.factor).verdict == "kept"
    return found.factor


def written(title: str) -> str:
    """Return the table of a method in MUTATIONS.md."""
    _, _, rates = TABLE.read_text(encoding="utf-8").partition(HEADER)
    _, _, own = rates.partition(f"| {title} | rate |")
    return own.partition("\n\n")[0]


@pytest.mark.parametrize(("title", "name", "verdict"), LOST)
def test_wrong_variants_lose_the_rate(title: str, name: str, verdict: str) -> None:
    wrong = next(wrong for known, wrong, _ in variants(BY_TITLE[title]) if known == name)
    assert answer(wrong, least(title)).verdict == verdict
    assert f"| {name} | **{verdict}** |" in written(title)


@pytest.mark.parametrize("title", BY_TITLE)
def test_every_variant_is_in_the_table(title: str) -> None:
    rows = written(title).splitlines()[2:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [
        "the method",
        *(name for name, *_ in variants(BY_TITLE[title])),
    ]


def test_the_table_of_a_method() -> None:
    """Gradient descent, whose variants are told apart by factors in closed form."""
    title, _, own, *rows = lines(BY_TITLE["GradientDescent, all"])
    assert title == "| GradientDescent, all | rate | proved | happens |"
    assert own == f"| the method | proved | {0.85**2:.4f} | {0.85**2:.4f} |"
    slower, uphill, twice, longer = rows
    assert slower == f"| gradient descent: a client too many | **slower** | {0.88**2:.4f} | {0.88**2:.4f} |"
    assert uphill == f"| gradient descent: uphill | **diverges** |  | {2.5**2:.4f} |"
    assert twice == f"| gradient descent: twice the step | **diverges** |  | {2.0**2:.4f} |"
    numbers = " | ".join(2 * [f"{(1.0 - 1.1 * 0.15) ** 2:.4f}"])  # faster, and of another theorem
    name = "Compressed gradient descent: the step of the server a tenth longer"
    assert longer == f"| {name} | kept; `gradient_descent_with_memory` | {numbers} |"
