"""Every wrong variant against every claim of its table: ``python -m tests.theory.mutation_table`` prints the verdicts.

The tests assert the entries that must be caught; this prints all of them, those that no claim sees included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dualopt.app.markdown import table_lines
from dualopt.lab.claims import Claim, Verdict, check
from dualopt.solvers import Exact
from theory._claims import Chapter, discover
from theory.mutations import afedpd, baselines, dualfl, feddyn, fedpd, frontier, optimized_dualfl, scales, splitting
from theory.mutations._edits import OtherMethodError, Variant

HEADER = """# Wrong variants and what catches them

Written by `python -m tests.theory.mutation_table`. Each row is a wrong variant, put in the place of the right one in
the quick cases on which the claim holds. **violated**: some case shows a number beyond its bound. *vacuous*,
*inconclusive*: the claim no longer says anything. holds: this claim does not see the variant, another one does. A dash:
the variant concerns something else.
"""
SEVERITY = ("violated", "vacuous", "inconclusive", "holds")
BREAKS_DOWN = (AssertionError, AttributeError, TypeError, ValueError)  # how a wrong variant, or a claim on it, may end


class Table(NamedTuple):
    """The wrong variants of some methods; ``rounds`` are enough to show what is wrong."""

    title: str
    variants: Mapping[str, Variant]
    prefix: str = ""  # of the names of claims, left out in the table
    rounds: int | None = None


_TABLES = (
    Table("DualFL", dualfl.MUTATIONS | dualfl.FISTA),
    Table("OptimizedDualFL", optimized_dualfl.MUTATIONS),
    Table("FedPD", fedpd.MUTATIONS | fedpd.LOCAL, rounds=200),
    Table("FedDyn", feddyn.MUTATIONS, prefix="feddyn_"),
    Table("A-FedPD, FedADMM, identities", afedpd.MUTATIONS),
    Table("Compared methods", splitting.MUTATIONS | baselines.MUTATIONS),
    Table("Beyond the papers", frontier.MUTATIONS),
    Table("Anderson acceleration", frontier.ANDERSON),
    Table("AndersonDANE", frontier.DANE),
    Table("Clients that are alike", frontier.SIMILAR),
    Table("Restarts", frontier.RESTARTS),
    Table("Momentum that adapts", frontier.MOMENTUM),
    Table("Coordinates of a metric", frontier.METRIC),
    Table("One scale for each client under sampling", scales.MUTATIONS),
)


TABLES = {table.title: table for table in _TABLES}


@cache
def chapters() -> dict[str, Chapter]:
    """Return all claims."""
    return discover()


def telling(name: str, rounds: int | None = None) -> Iterator[Any]:
    """Yield the cases on which a claim holds, the cheapest first: one that catches a variant is enough.

    Exact solutions are cheaper than iterations, and short runs than long ones.
    """

    def costs(case: Any) -> tuple[bool, int]:
        rounds = getattr(case, "rounds", 0)
        solver = getattr(getattr(case, "algorithm", None), "solver", None)
        return not isinstance(solver, Exact), rounds if isinstance(rounds, int) else 0

    for case in sorted((case for case, verdict in chapters()[name].cases(True) if verdict == "holds"), key=costs):
        long = rounds is not None and hasattr(case, "but") and case.rounds > rounds
        yield case.but(rounds=rounds) if long else case


def verdicts(claim: Claim, cases: Iterator[Any]) -> Iterator[Verdict]:
    """Yield the verdicts on cases, whether or not the claim speaks about them."""
    with np.errstate(all="ignore"):  # a wrong method may diverge
        for case in cases:
            yield check(claim, case, check_assumptions=False)


def is_violated(claim: Claim, cases: Iterator[Any]) -> bool:
    """Whether a number is beyond its bound on some case."""
    return any(found.verdict == "violated" for found in verdicts(claim, cases))


def shrunk(claim: Claim, factor: float) -> Claim:
    """Return the claim with all its bounds multiplied by a factor."""
    return replace(claim, compare=lambda case: (q._replace(rhs=factor * q.rhs) for q in claim.compare(case)))


def answers(table: Table, variant: str, name: str) -> Iterator[str]:
    """Yield the verdicts of a claim on the telling cases to which a variant applies."""
    for case in telling(name, table.rounds):
        with suppress(OtherMethodError, *BREAKS_DOWN):
            yield from (v.verdict for v in verdicts(chapters()[name].claim, iter([table.variants[variant](case)])))


def verdict(table: Table, variant: str, name: str) -> str:
    """Return the most severe verdict over the telling cases of a claim, or a dash."""
    found = set()
    for answer in answers(table, variant, name):
        found.add(answer)
        if answer == SEVERITY[0]:
            break
    return next((v for v in SEVERITY if v in found), "-")


def columns(table: Table) -> list[str]:
    """Return the claims that notice some variant of a table."""
    return sorted(set().union(*(variant.caught | variant.emptied for variant in table.variants.values())))


def lines(table: Table) -> Iterator[str]:
    """Return the lines of a Markdown table, each when it is asked for: claims that catch something as columns."""
    claims = columns(table)
    marks = {"violated": "**violated**", "vacuous": "*vacuous*", "inconclusive": "*inconclusive*"}
    verdicts = ([verdict(table, variant, claim) for claim in claims] for variant in table.variants)
    rows = ([name, *(marks.get(x, x) for x in found)] for name, found in zip(table.variants, verdicts, strict=True))
    return table_lines([table.title, *(name.removeprefix(table.prefix) for name in claims)], rows)


if __name__ == "__main__":
    print(HEADER)
    for table in TABLES.values():
        print("\n".join(lines(table)), end="\n\n", flush=True)
