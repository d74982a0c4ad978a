"""Claims and their verdicts for readers: a row of a table, a JSON record, a Markdown page."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dualopt.app.markdown import table_lines
from theory._claims import Chapter, Result
from theory._statements import Statement
from theory._witnesses import section as witnesses_of
from theory.proofs import proved_exactly

__all__ = ["overview", "record", "report", "statement_row", "statements_page", "table"]

Checked = tuple[Chapter, Sequence[Result]]

HEADER = """# Theorems and their verdicts

Written by `python -m theory --report theory/REPORT.md`. Claims have explicit constants and are checked at every
round without fitting; where a paper hides its constant, the statement says so and the order is estimated. Theorems in
expectation are checked with the exact expectation, over every subset of the clients and both sides of a coin. The
*ratio* of an inequality is its left-hand side, less what rounding may have added to it, over the right-hand side, which
includes the relative rounding that the claim allows; the *worst ratio* is the largest of them: up to 1 the claim holds,
and a number near 1 says that the inequality is tight there. A claim is also asked about problems outside its
assumptions, or where its bound says nothing: such cases are kept to show the limits of a theorem, and errata to show
its slips. Data sets that are not embedded (a9a) appear where `DUALOPT_DATA_HOME` holds them.
"""


def table(chapter: Chapter, results: Sequence[Result]) -> dict[str, str]:
    """Return the row of a claim; the worst ratios are in the order of the verdicts to which they belong.

    Where the theorem has proofs in rational numbers, each for one class of problems, they are checked and named with
    their factors.
    """
    verdicts = Counter(result.verdict.verdict for result in results)
    said = [f"{count} {verdict}" for verdict, count in verdicts.items()]
    exact = [f"proved exactly: {name}, {float(rho):.5f}" for name, rho in proved_exactly(chapter.claim.name).items()]
    return {
        "claim": chapter.claim.name,
        "source": chapter.claim.source,
        "cases": str(len(results)),
        "verdicts": "; ".join([", ".join(said), *exact]),
        "worst ratios": ", ".join(_ratio(_worst(results, verdict)) or "-" for verdict in verdicts),
        "as expected": _agreement(results),
    }


def record(chapter: Chapter, results: Sequence[Result]) -> dict[str, Any]:
    """Return everything about a claim in plain types."""
    return {
        "name": chapter.claim.name,
        "paper": chapter.paper,
        "source": chapter.claim.source,
        "statement": chapter.claim.statement,
        "constant": chapter.claim.constant,
        "corrects": chapter.claim.corrects,
        "proved_exactly": {name: str(rho) for name, rho in proved_exactly(chapter.claim.name).items()},
        "results": [
            {
                "case": r.verdict.case,
                "verdict": r.verdict.verdict,
                "expected": r.expected,
                "worst_ratio": r.verdict.worst_ratio,
                "compared": r.verdict.compared,
                "failed_assumptions": list(r.verdict.failed),
                "witness": None if r.verdict.witness is None else r.verdict.witness._asdict(),
            }
            for r in results
        ],
    }


def report(checked: Iterable[Checked], known: Iterable[Statement] = ()) -> str:
    """Return the Markdown page of all claims, paper by paper, that of DualFL first, after the known statements."""
    papers: dict[str, list[Checked]] = {}
    for chapter, results in sorted(checked, key=lambda pair: not pair[0].module.startswith("theory.dualfl.")):
        papers.setdefault(chapter.paper, []).append((chapter, results))
    parts = [HEADER, "## Contents\n", *(_entry(paper, pairs) for paper, pairs in papers.items())]
    rows = [{"paper": _link(paper)} | _counts(pairs) for paper, pairs in papers.items()]
    parts += ["\n## Summary\n", *_table(["paper", *_counts([])], rows)]
    parts += _statements(known)
    for paper, pairs in papers.items():
        parts += [f"\n## {paper}\n", *(_section(chapter, results) for chapter, results in pairs)]
    parts.append(witnesses_of(chapter for pairs in papers.values() for chapter, _ in pairs))
    return "\n".join(parts)


def _entry(paper: str, pairs: Sequence[Checked]) -> str:
    claims = ", ".join(_link(chapter.claim.name) for chapter, _ in pairs)
    return f"* {_link(paper)}: {claims}"


def overview(checked: Iterable[Checked]) -> list[dict[str, str]]:
    """Return a row for each subpackage, by the name that selects it, with its errata."""
    folders: dict[str, list[Checked]] = {}
    for chapter, results in checked:
        folders.setdefault(chapter.folder, []).append((chapter, results))
    return [{"chapter": folder} | _counts(pairs) for folder, pairs in folders.items()]


def _counts(pairs: Sequence[Checked]) -> dict[str, str]:
    """Return the number of claims of a paper, and of cases with each verdict."""
    results = [result for _, of in pairs for result in of]
    verdicts = Counter(result.verdict.verdict for result in results)
    counts = {verdict: str(verdicts[verdict]) for verdict in ("holds", "vacuous", "outside assumptions", "violated")}
    return {
        "claims": str(sum(not chapter.claim.corrects for chapter, _ in pairs)),
        "errata": str(sum(bool(chapter.claim.corrects) for chapter, _ in pairs)),
        **counts,
        "worst ratio where it holds": _ratio(_worst(results, "holds")),
        "as expected": _agreement(results),
    }


def _statements(known: Iterable[Statement]) -> list[str]:
    """Return the table of the statements, each with links to its claims or the reason why there is none."""
    rows = []
    for statement in known:
        row = statement_row(statement)
        *_, last = row
        rows.append(row | {last: _checked_by(statement, map(_link, statement.claims))})
    return ["\n## Statements of the papers\n", *_table(rows[0], rows)] if rows else []


def statement_row(statement: Statement) -> dict[str, str]:
    """Return the row of a statement."""
    row = {"paper": statement.paper, "statement": statement.label, "covered": statement.covered}
    return row | {"checked by, and why no more": _checked_by(statement, statement.claims)}


def _checked_by(statement: Statement, claims: Iterable[str]) -> str:
    return ". ".join(filter(None, (", ".join(claims), statement.reason)))


def statements_page(known: Iterable[Statement]) -> str:
    """Return the statements as the table of a Markdown page."""
    rows = [statement_row(statement) for statement in known]
    return "\n".join(_table(rows[0], rows)) + "\n"


def _table(head: Iterable[str], rows: Iterable[dict[str, str]]) -> Iterator[str]:
    return table_lines([*head], [[_cell(text) for text in row.values()] for row in rows])


def _section(chapter: Chapter, results: Sequence[Result]) -> str:
    claim = chapter.claim
    corrects = f" Corrects {_link(claim.corrects)}." if claim.corrects and "_" in claim.corrects else ""
    lines = [f"### {claim.name}", "", f"{claim.source}. {_mathematics(claim.statement)}{corrects}", ""]
    rows = []
    for r in results:
        v = r.verdict
        note = str(v.witness).removeprefix(f"{v.case}: ") if v.witness else ", ".join(f"fails: {f}" for f in v.failed)
        surprise = "" if r.as_expected else f" (expected: {r.expected})"
        cells = (v.case, f"{v.verdict}{surprise}", _ratio(v.worst_ratio), str(v.compared), note)
        rows.append([_cell(cell) for cell in cells])
    lines += table_lines(("instance", "verdict", "worst ratio", "compared", ""), rows)
    return "\n".join([*lines, ""])


def _mathematics(statement: str) -> str:
    r"""Return the statement with :math:`$x$` written as GitHub reads it without touching what is between the signs.

    Examples
    --------
    >>> _mathematics(r"For $c\\,x_1 \\le y_1$ and $z$.")
    'For $`c\\\\,x_1 \\\\le y_1`$ and $`z`$.'
    """
    return re.sub(r"\$([^$]+)\$", r"$`\1`$", statement)


def _cell(text: str) -> str:
    """Return a text as a cell: links stay what they are."""
    return text if text.startswith("[") else _plain(text)


def _plain(words: str) -> str:
    """Return words that neither end a cell of a table nor become italic."""
    return re.sub(r"([|*<])", r"\\\1", words)


def _link(title: str) -> str:
    """Return a link to a heading, by the name that GitHub gives it."""
    anchor = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{anchor})"


def _agreement(results: Sequence[Result]) -> str:
    return "yes" if all(result.as_expected for result in results) else "NO"


def _worst(results: Sequence[Result], verdict: str) -> float:
    """Return the worst ratio among the cases with a verdict."""
    ratios = (r.verdict.worst_ratio for r in results if r.verdict.verdict == verdict)
    return max((ratio for ratio in ratios if not math.isnan(ratio)), default=math.nan)


def _ratio(ratio: float) -> str:
    return "" if math.isnan(ratio) else f"{ratio:.3g}"
