"""``python -m tests.theory.worst_ratios > theory/worst_ratios.toml``: how near claims come to their bounds.

A row of the table belongs to a claim, a kind of inequality (its ``what``, with ``#`` for decimals) and a case. It holds
the largest and the median ratio of left-hand side over right-hand side on the quick cases: the largest is often that of
the first round, the median knows the rate. Where left-hand sides are rounding a ratio would be noise: there the claim
is an identity, its bound a tolerance, and one row holds the largest tolerance.

Whoever changes a bound, or what is compared with it, by 20 percent in either direction, gets a complaint. So the table
guards claims against edits. It is no evidence that a constant is right: a wrong constant has a row as good as another.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import theory._claims
from dualopt.lab.claims import Inequality, check
from theory._claims import Chapter, Result, discover
from theory._witnesses import Kind, Rows, Table, kind_of

__all__ = ["COMMAND", "Evaluation", "blind", "complaints", "evaluate", "main", "rows", "scaled", "unnoticed"]

COMMAND = "python -m tests.theory.worst_ratios"

# Geometrically halfway between no change and one of 20 percent: as much room for other platforms as against edits.
TOLERANCE = math.sqrt(1.2)
# A ratio below this is not looked at: left-hand sides of relative accuracy 1e-13 are far more accurate than a tenth of
# it where the bound is up to 1e5 times as large.
NOTHING = 1e-7
# Late rounds fall out: what is below this share of the largest left-hand side of its case may be rounding.
LATE = 1e-7
# Bounds are numbers of problems whose sizes are near one; a right-hand side that never exceeds this is a tolerance.
LARGEST_TOLERANCE = 1.1e-5

ALL_CASES = "all cases"
# Where a subgradient method starts at a kink, rounding chooses the subgradient: counts differ by platform from round 1.
FIRST_ROUND_ALONE = {"theorem_3_4"}


class Evaluation(NamedTuple):
    """A case with its verdict and all the inequalities that led there."""

    result: Result
    inequalities: Sequence[Inequality]


class Sides(float):
    """A deviation, with the least one that a factor of 2 in one of the sides makes of it."""

    mistaken: float = math.nan


def _sides(a: Any, b: Any, *, scale: float | None = None) -> Sides:
    """Return what ``deviation`` returns, and what it would return if one side were doubled or halved."""
    a, b = np.asarray(a), np.asarray(b)
    found = Sides(_deviation(a, b, scale=scale))
    found.mistaken = min(_deviation(p * a, q * b, scale=scale) for p, q in ((2, 1), (1, 2), (0.5, 1), (1, 0.5)))
    return found


_deviation = theory._claims.deviation


@contextmanager
def _with_sides() -> Iterator[None]:
    """Let claims compute :class:`Sides` in place of deviations."""
    modules = [m for name, m in sys.modules.items() if name.startswith("theory.")]
    users = [m for m in modules if getattr(m, "deviation", None) is _deviation]
    for module in users:
        vars(module)["deviation"] = _sides
    try:
        yield
    finally:
        for module in users:
            vars(module)["deviation"] = _deviation


@cache
def evaluate(chapter: Chapter) -> tuple[Evaluation, ...]:
    """Judge a claim on its quick cases, and keep its inequalities; once in a process."""
    found = []
    with _with_sides():
        for case, expected in chapter.cases(True):
            kept: list[Inequality] = []

            def keeping(case: Any, kept: list[Inequality] = kept) -> list[Inequality]:
                kept.extend(chapter.claim.compare(case))
                return kept

            verdict = check(replace(chapter.claim, compare=keeping), case)
            found.append(Evaluation(Result(verdict, expected), kept))
    return tuple(found)


def rows(evaluations: Iterable[Evaluation], kinds: Mapping[str, Kind] | None = None) -> dict[str, Rows]:
    """Return the rows of a claim: by kind what they hold, and the numbers by cases.

    Parameters
    ----------
    evaluations : iterable of Evaluation
        Of one claim.
    kinds : mapping of str to "ratio" or "bound", optional
        What rows of a kind hold; decided by the numbers where it is not given.
    """
    grouped: dict[str, dict[str, list[Inequality]]] = {}
    for result, inequalities in evaluations:
        for q in inequalities:
            if q.n > 0 and result.verdict.claim in FIRST_ROUND_ALONE:
                continue
            grouped.setdefault(kind_of(q.what), {}).setdefault(result.verdict.case, []).append(q)
    table = {}
    for what, cases in grouped.items():
        kind: Kind = (kinds or {}).get(what) or _kind(cases)
        if kind == "ratio":
            table[what] = Rows(kind, {case: _ratios(of) for case, of in cases.items()})
        else:
            table[what] = Rows(kind, {ALL_CASES: [max(map(_largest_bound, cases.values()))]})
    return table


def _kind(cases: Mapping[str, Sequence[Inequality]]) -> Kind:
    """Return whether right-hand sides are tolerances, or all left-hand sides are rounding."""
    largest = max(map(_largest_bound, cases.values()))
    rounding = all(max(q.lhs for q in of) <= 1e-9 * _largest_bound(of) for of in cases.values())
    return "bound" if rounding or largest <= LARGEST_TOLERANCE else "ratio"


def _largest_bound(inequalities: Sequence[Inequality]) -> float:
    return max((float(q.rhs) for q in inequalities if math.isfinite(q.rhs)), default=0.0)


def _ratios(inequalities: Sequence[Inequality]) -> list[float]:
    """Return the largest and the median ratio; 0 when it is not looked at, infinity when a bound is but rounding."""
    least = LATE * max((q.lhs for q in inequalities if math.isfinite(q.lhs)), default=0.0)
    compared = [q for q in inequalities if q.lhs != 0 and not q.lhs < least]
    ratios = [float(q.lhs / q.rhs) if q.rhs > 0 else math.inf for q in compared] or [0.0]

    def shown(ratio: float) -> float:
        return math.inf if ratio > 1.0 / NOTHING else ratio if ratio > NOTHING else 0.0

    return [shown(max(ratios)), shown(statistics.median(ratios))]


def complaints(found: Mapping[str, Rows], expected: Mapping[str, Rows]) -> list[str]:
    """Return what is not as in the table, row by row.

    Examples
    --------
    >>> table = {"error": Rows("ratio", {"a quadratic": [0.5, 0.4]})}
    >>> complaints({"error": Rows("ratio", {"a quadratic": [0.6, 0.4]})}, table)
    ['error, a quadratic: ratio [0.6, 0.4] where the table has [0.5, 0.4]']
    >>> complaints({}, table), complaints(table, {})
    (['error, a quadratic: in the table alone'], ['error, a quadratic: not in the table'])
    """
    said = []
    for what in dict.fromkeys([*found, *expected]):
        new, old = (rows[what].numbers if what in rows else {} for rows in (found, expected))
        for case in dict.fromkeys([*new, *old]):
            if case not in old:
                said.append(f"{what}, {case}: not in the table")
            elif case not in new:
                said.append(f"{what}, {case}: in the table alone")
            elif not _agree(new[case], old[case]):
                kind = expected[what].kind
                said.append(f"{what}, {case}: {kind} {_show(new[case])} where the table has {_show(old[case])}")
    return said


def _agree(found: Sequence[float], expected: Sequence[float]) -> bool:
    def near(a: float, b: float) -> bool:
        return a == b or (min(a, b) > 0 and math.isfinite(max(a, b)) and max(a, b) <= TOLERANCE * min(a, b))

    return len(found) == len(expected) and all(map(near, found, expected))


def _show(numbers: Sequence[float]) -> str:
    """Return numbers as TOML has them."""
    texts = [f"{x:.4g}" for x in numbers]
    return f"[{', '.join(text if re.search(r'[.en]', text) else f'{text}.0' for text in texts)}]"


def scaled(
    evaluations: Iterable[Evaluation], what: str, *, lhs: float = 1.0, rhs: float = 1.0
) -> tuple[Evaluation, ...]:
    """Return the inequalities of one kind, their sides multiplied by factors."""

    return tuple(
        e._replace(inequalities=[q._replace(lhs=lhs * q.lhs, rhs=rhs * q.rhs) for q in e.inequalities])
        for e in _of_kind(evaluations, what)
    )


def _of_kind(evaluations: Iterable[Evaluation], what: str) -> tuple[Evaluation, ...]:
    return tuple(e._replace(inequalities=[q for q in e.inequalities if kind_of(q.what) == what]) for e in evaluations)


def unnoticed(evaluations: Sequence[Evaluation], expected: Mapping[str, Rows], factors: Sequence[float]) -> list[str]:
    """Return the changes of one side, in all inequalities of a kind, that the table does not complain about.

    Bounds are multiplied by every factor, and so are left-hand sides unless they are rounding: what a factor does there
    to the sides of the identity is the matter of :func:`blind`.
    """
    kinds: dict[str, Kind] = {what: rows.kind for what, rows in expected.items()}
    missed = []
    for what, kind in kinds.items():
        if kind == "bound" and not any(map(any, expected[what].numbers.values())):
            continue  # two numbers that are equal without rounding: there is no tolerance to change
        own = _of_kind(evaluations, what)
        parts = [(own, expected[what])]
        if kind == "ratio":  # every case has a row of its own, and one that complains is enough
            cases = expected[what].numbers.items()
            parts = [
                ([e for e in own if e.result.verdict.case == case], Rows(kind, {case: numbers}))
                for case, numbers in cases
            ]
        for factor in factors:
            changes = [{"rhs": factor}] + ([{"lhs": factor}] if kind == "ratio" else [])
            for change in changes:
                if not any(complaints(rows(scaled(of, what, **change), kinds), {what: row}) for of, row in parts):
                    missed.append(f"{what}: {change}")
    return missed


def blind(evaluations: Sequence[Evaluation], expected: Mapping[str, Rows]) -> list[str]:
    """Return the identities that would hold with a factor of 2 in one of their sides.

    An erratum sees such a mistake if what is printed violates it.
    """

    def sees(q: Inequality) -> bool:
        return (q.lhs.mistaken if isinstance(q.lhs, Sides) else q.lhs) > q.rhs

    seen = {kind_of(q.what) for e in evaluations for q in e.inequalities if sees(q)}
    return [what for what, rows in expected.items() if rows.kind == "bound" and what not in seen]


def written(table: Table) -> str:
    """Return the table as TOML: a heading per claim and kind, a line per case."""
    lines = [
        f"# Written by `{COMMAND}`: how near claims come to their bounds on the quick cases.",
        "# ratio: the largest and the median lhs/rhs of a case; bound: the largest rhs, where every lhs is rounding.",
    ]
    for name, kinds in table.items():
        for what, (kind, numbers) in kinds.items():
            lines += ["", f"[{name}.{json.dumps(what)}.{kind}]"]
            lines += [f"{json.dumps(case)} = {_show(some)}" for case, some in numbers.items()]
    return "\n".join([*lines, ""])


def main(file: Callable[[str], Any] = sys.stdout.write) -> None:
    """Judge all claims and write the table."""
    file(written({name: rows(evaluate(chapter)) for name, chapter in discover().items()}))


if __name__ == "__main__":
    main()
