"""Tables, verdicts and answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

from dualopt.lab.claims import Claim, Inequality, Verdict, check, claim

__all__ = ["Answer", "Judged", "Row", "Table", "asked", "compared", "judge", "promised"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table: cells are numbers, strings, or one number for every round."""

    label: str
    cells: Sequence[Any]
    colour: int | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """Numbers: the heading of the first column, those of the others, and the rows."""

    first: str
    columns: Sequence[str]
    rows: Sequence[Row]

    @classmethod
    def of(cls, first: str, rows: Mapping[str, Mapping[str, Any]], *, colours: Sequence[int | None] = ()) -> Self:
        """Return the table of ``rows[label][column]``; colours count from 0 when not given.

        Examples
        --------
        >>> made = Table.of("method", {"FedAvg": {"E − E*": 0.5}, "DualFL": {"E − E*": 0.1}})
        >>> made.columns, [(row.label, row.cells, row.colour) for row in made.rows]
        (['E − E*'], [('FedAvg', [0.5], 0), ('DualFL', [0.1], 1)])
        """
        columns = list(next(iter(rows.values())))
        inks = colours or range(len(rows))
        made = [
            Row(label=label, cells=[row[column] for column in columns], colour=ink)
            for (label, row), ink in zip(rows.items(), inks, strict=True)
        ]
        return cls(first=first, columns=columns, rows=made)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A theorem and the verdict on it, with the one that theory ``expected``."""

    label: str
    claim: str
    source: str
    file: str
    verdict: str
    detail: str
    expected: str = "holds"

    @classmethod
    def of(cls, claim: Claim, verdict: Verdict, label: str, expected: str = "holds") -> Self:
        """Return what is shown of a verdict of :func:`dualopt.lab.claims.check`."""
        if verdict.failed:
            detail = "; ".join(verdict.failed)
        elif verdict.witness is not None:
            q = verdict.witness
            what = f", {q.what}" if q.what else ""
            detail = f"at n = {q.n}{what}: {q.lhs:.3g} > {q.rhs:.3g}"
        elif math.isfinite(verdict.worst_ratio):
            detail = f"{verdict.compared} inequalities, the tightest at {verdict.worst_ratio:.3g} of its bound"
        else:
            detail = "nothing to compare"
        about = {
            "claim": claim.name,
            "source": claim.source,
            "file": f"{claim.compare.__module__.replace('.', '/')}.py",
        }
        return cls(label=label, verdict=verdict.verdict, detail=detail, expected=expected, **about)


@lru_cache(maxsize=64)
def compared(claim: Claim, case: Any) -> tuple[Inequality, ...]:
    """Return what a claim compares on a case; computed once, for the verdict and the picture."""
    return tuple(claim.compare(case))


def judge(claim: Claim, case: Any, label: str = "", expected: str = "holds", **options: Any) -> Judged:
    """Check a claim on a case, with the options of :func:`dualopt.lab.claims.check`; return what is shown of it.

    Parameters
    ----------
    claim : Claim
        The theorem.
    case : Case
        Where.
    label : str
        What is written before the verdict.
    expected : str, default "holds"
        The verdict that theory says, which tests compare.
    **options
        Such as ``check_assumptions``.
    """
    once = replace(claim, compare=lambda case: compared(claim, case))
    return Judged.of(claim, check(once, case, **options), label, expected)


def promised(claim: Claim, case: Any, what: str, times: float = 1.0) -> list[float]:
    """Return the right-hand sides of those inequalities of a claim that compare ``what``, to draw them."""
    return [times * float(q.rhs) for q in compared(claim, case) if q.what == what]


def measured(claim: Claim, case: Any, what: str) -> list[float]:
    """Return their left-hand sides."""
    return [float(q.lhs) for q in compared(claim, case) if q.what == what]


def asked(*inequalities: tuple[float, float], what: str = "") -> Judged:
    """Judge the question of a lesson, which is no theorem: every left-hand side is at most the right one.

    Examples
    --------
    >>> asked((0.5, 1.0), (1.0, 2.0)).verdict, asked((2.0, 1.0), what="error").detail
    ('holds', 'at n = 1, error: 2 > 1')
    """

    @claim(source="a question, not a theorem", statement="What is asked.")
    def question(pairs: Sequence[tuple[float, float]]) -> Iterator[Inequality]:
        return (Inequality(n, float(lhs), float(rhs), what) for n, (lhs, rhs) in enumerate(pairs, start=1))

    return Judged.of(question, check(question, inequalities), "")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Whether the position of the sliders answers the question, in a sentence."""

    right: bool
    text: str

    @classmethod
    def of(cls, *wanted: tuple[Judged, str], yes: str, no: str) -> Self:
        """Let verdicts decide: the answer is right where each is the one that stands beside it.

        Examples
        --------
        >>> Answer.of((asked((2.0, 1.0)), "violated"), yes="It fails here.", no="It holds here.")
        Answer(right=True, text='It fails here.')
        """
        found = all(one.verdict == verdict for one, verdict in wanted)
        return cls(right=found, text=yes if found else no)
