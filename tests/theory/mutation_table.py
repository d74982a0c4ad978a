"""Every wrong variant against every claim of its paper: ``python -m tests.theory.mutation_table`` prints the table.

The tests assert the entries that must be caught; this prints all of them, those that no claim sees included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from dualopt.lab.claims import check
from tests.theory import (
    test_frontier,
    test_mutations,
    test_mutations_afedpd,
    test_mutations_baselines,
    test_mutations_feddyn,
    test_mutations_fedpd,
    test_mutations_frontier_anderson,
    test_mutations_frontier_scales,
    test_optimized_dualfl,
)
from theory.mutations import afedpd, baselines, dualfl, feddyn, fedpd, optimized_dualfl, splitting

HEADER = """# Wrong variants and what catches them

Written by `python -m tests.theory.mutation_table`. Each row is a wrong variant, put in the place of the right one in
the quick cases on which the claim holds. **violated**: some case shows a number beyond its bound. *vacuous*,
*inconclusive*: the claim no longer says anything. holds: this claim does not see the variant, another one does. A dash:
the variant concerns something else.
"""
SEVERITY = ("violated", "vacuous", "inconclusive", "holds")
NOT_APPLICABLE = (AssertionError, AttributeError, TypeError, ValueError)


class Paper(NamedTuple):
    """The wrong variants of a paper's methods, and the module that knows its cases."""

    title: str
    variants: dict[str, Callable[[Any], Any]]
    module: ModuleType
    prefix: str = ""


PAPERS = (
    Paper("DualFL", dualfl.MUTATIONS | dualfl.FISTA, test_mutations),
    Paper("OptimizedDualFL", optimized_dualfl.MUTATIONS, test_optimized_dualfl),
    Paper("FedPD", fedpd.MUTATIONS | fedpd.LOCAL, test_mutations_fedpd),
    Paper("FedDyn", feddyn.MUTATIONS, test_mutations_feddyn, "feddyn_"),
    Paper("A-FedPD, FedADMM, identities", afedpd.MUTATIONS, test_mutations_afedpd),
    Paper("Compared methods", splitting.MUTATIONS | baselines.MUTATIONS, test_mutations_baselines),
    Paper("Beyond the papers", test_frontier.MUTATIONS, test_frontier),
    Paper("Anderson acceleration", test_mutations_frontier_anderson.MUTATIONS, test_mutations_frontier_anderson),
    Paper(
        "One scale for each client under sampling",
        test_mutations_frontier_scales.MUTATIONS,
        test_mutations_frontier_scales,
    ),
)


def verdict(paper: Paper, variant: str, claim: str) -> str:
    """Return the most severe verdict over the telling cases of a claim, or a dash."""
    found = set()
    chapter = paper.module.CHAPTERS[paper.prefix + claim]
    with np.errstate(all="ignore"):  # a wrong method may diverge
        for case in paper.module.telling_cases(claim):
            try:
                found.add(check(chapter.claim, paper.variants[variant](case), check_assumptions=False).verdict)
            except NOT_APPLICABLE:
                continue
            if SEVERITY[0] in found:
                break
    return next((v for v in SEVERITY if v in found), "-")


def table(paper: Paper) -> Iterator[str]:
    """Yield the lines of a Markdown table: claims that catch something as columns."""
    claims = sorted(set().union(*(names for v, names in paper.module.CATCHES.items() if v in paper.variants)))
    yield f"| {paper.title} | {' | '.join(claims)} |"
    yield "|---" * (len(claims) + 1) + "|"
    marks = {"violated": "**violated**", "vacuous": "*vacuous*", "inconclusive": "*inconclusive*"}
    for variant in paper.variants:
        cells = [verdict(paper, variant, claim) for claim in claims]
        yield f"| {variant} | {' | '.join(marks.get(cell, cell) for cell in cells)} |"


if __name__ == "__main__":
    print(HEADER)
    for paper in PAPERS:
        print("\n".join(table(paper)), end="\n\n", flush=True)
