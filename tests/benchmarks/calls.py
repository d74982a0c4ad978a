"""How many Python functions a round calls beside its arithmetic: certified rounds of DualFL on the digits.

``python -m tests.benchmarks.calls`` counts the calls of `sys.setprofile` (functions written in C are not counted) in
rounds 10 to 30 of DualFL on the digits of 8 consecutive clients, each with a certificate, and in rounds of a tiny
quadratic, where nothing but such calls takes time. What a round calls depends on how many steps its clients take, and
on when each of them is finished: it is the mean of these rounds that can be compared, and the least of them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from dualopt.engine.rounds import iterate
from dualopt.methods import DualFL
from dualopt.runs.recording import run
from dualopt.solvers import Exact
from tests.problems import digits

from .race import report
from .test_overhead import quadratic

__all__ = ["Called", "certified_rounds", "main", "tiny_rounds"]

FIRST, LAST = 10, 30
PACKAGE = f"{Path('dualopt')}/"


class Called(NamedTuple):
    """What the rounds of a run called."""

    each: list[int]  # calls of each round
    of: Counter[tuple[str, str]]  # file and function, in all of them

    @property
    def mean(self) -> float:
        """Calls of a round."""
        return sum(self.each) / len(self.each)

    @property
    def modules(self) -> dict[str, float]:
        """Calls of a round in each module of this package."""
        found: Counter[str] = Counter()
        for (file, _), n in self.of.items():
            if PACKAGE in file:
                found[file.rpartition(PACKAGE)[2]] += n
        return {name: n / len(self.each) for name, n in found.most_common()}


def counted(work: Callable[[Callable[[int], None]], Any]) -> Called:
    """Count the calls of ``work(ended)`` in the rounds from ``FIRST`` to ``LAST``; it says when a round has ended."""
    each, of, current = [], Counter(), Counter()

    def called(frame: Any, event: str, arg: Any) -> None:
        if event == "call":
            current[(frame.f_code.co_filename, frame.f_code.co_qualname)] += 1

    def ended(n: int) -> None:
        if FIRST <= n < LAST:
            each.append(current.total())
            of.update(current)
        current.clear()

    sys.setprofile(called)
    try:
        work(ended)
    finally:
        sys.setprofile(None)
    return Called(each, of)


def certified_rounds() -> Called:
    """Count the calls of rounds that end with a certificate."""
    f = digits()
    return counted(lambda ended: run(DualFL(), f, rounds=LAST, tol=1e-30, callback=lambda s, _: ended(s.round.n)))


def tiny_rounds() -> Called:
    """Count the calls of rounds on four quadratics in the plane, each of them one system of equations."""
    f = quadratic()
    method = DualFL(solver=Exact()).suggested(f)

    def work(ended: Callable[[int], None]) -> None:
        for s in islice(iterate(method, f), LAST):
            ended(s.round.n)

    return counted(work)


def main() -> dict[str, Called]:
    """Print the calls of a round, and where most of them are; return them by what was counted."""
    found = {"digits, certified": certified_rounds(), "quadratic": tiny_rounds()}
    rows = [(what, f"{c.mean:.0f}", str(min(c.each)), str(len(c.modules))) for what, c in found.items()]
    report("Python calls of a round of DualFL", ["problem", "mean", "least", "modules"], rows)
    largest = [(name, f"{n:.0f}") for name, n in list(found["digits, certified"].modules.items())[:12]]
    report("of those on the digits", ["module", "calls"], largest)
    return found


if __name__ == "__main__":
    main()
