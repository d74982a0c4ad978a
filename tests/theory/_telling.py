"""The cases on which wrong variants are tried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dualopt.solvers import Exact
from theory._claims import Chapter


def telling(chapter: Chapter) -> Iterator[Any]:
    """The cases on which a claim holds, the cheapest first: one that catches a variant is enough.

    Exact solutions are cheaper than iterations, and short runs than long ones.
    """
    held = (case for case, verdict in chapter.cases(True) if verdict == "holds")

    def costs(case: Any) -> tuple[bool, int]:
        rounds = getattr(case, "rounds", 0)
        solver = getattr(getattr(case, "algorithm", None), "solver", None)
        return not isinstance(solver, Exact), rounds if isinstance(rounds, int) else 0

    return iter(sorted(held, key=costs))
