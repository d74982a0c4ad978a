"""The tables of docs/which_method.md and of the pages behind it in Markdown, and how they come between its markers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from dualopt.app.markdown import table_of_rows
from dualopt.runs.costs import EXPECTED, SENT
from dualopt.runs.rules import RULES, Facts, choose
from figures._advice_rows import AIMS, aim_rows, of_tables, problem_rows, problems
from figures._cells import GROUPS
from figures._contestants import TARGETS
from figures._which_rows import FAR, NAMES, UNMEASURED, Row, best, misses, savings, to_facts

__all__ = ["decision", "fill", "sections", "whole_tables"]

# Which columns a short table has: those that are among the best of a problem, and the usual ones to compare with.
LEADING = 2
PAPERS = ("dualfl", "fedsplit", "feddyn", "scaffold")
OUTSIDE = ("scipy-lbfgs", "scikit-learn")


def decision(
    cells: Sequence[Row],
    facts: Sequence[Row],
    checked: Sequence[Row],
    advice_cells: Sequence[Row] = (),
    advice_facts: Sequence[Row] = (),
) -> dict[str, str]:
    """Return the generated parts of the page of the rules by the names of their markers."""
    found = {"rules": table_of_rows(_rule_rows()), "expected": table_of_rows(_expected_rows())}
    if cells:
        found["advice"] = _advice(cells, facts)
    if checked:
        found["checked"] = _checked(checked)
    if advice_cells:
        measured = [*of_tables(cells, facts), *problems(advice_cells, advice_facts)]
        found["aims"] = table_of_rows(aim_rows(measured))
        found["judged"] = table_of_rows(problem_rows(measured, AIMS[0]))
    return found


def _expected_rows() -> list[dict[str, str]]:
    """Return rounds and gradients that are to be expected, a row for each class of problems and method."""
    shown = {name: f"{sent.vectors:g} d + {sent.scalars:g}" for name, sent in SENT.items()}
    rows = [{"rounds; gradients": "numbers up in a round", **{f"`{name}`": text for name, text in shown.items()}}]
    for kind, methods in EXPECTED.items():
        row = {"rounds; gradients": kind}
        row |= {f"`{name}`": f"{_or_dash(of.rounds)}; {_or_dash(of.gradients)}" for name, of in methods.items()}
        rows.append(row)
    return rows


def _or_dash(number: float) -> str:
    return f"{number:.2g}" if math.isfinite(number) else "-"


def sections(cells: Sequence[Row], facts: Sequence[Row]) -> dict[str, str]:
    """Return the generated parts of the page of the tables by the names of their markers."""
    found = {}
    for group in GROUPS:
        inside = [row for row in cells if row["group"] == group]
        if inside:
            found[group] = _short_table(inside, {row["problem"]: to_facts(row) for row in facts})
    return found


def _checked(rows: Sequence[Row]) -> str:
    """Say how the rules fared on data that they were not made from."""
    cases = [(row, f"factor to {name}") for row in rows for name in NAMES.values() if row[f"factor to {name}"] != "-"]
    near = sum(float(row[column]) <= FAR for row, column in cases)
    l1 = sum("l1" in row["problem"] for row, _ in cases)
    worst = max(float(row[column]) for row, column in cases)
    text = (
        f"The rules are within a factor of {FAR} of the best method in {near} of {len(cases)} cases; the {l1} with an "
        f"l1 regulariser are easy, as few methods take one. The largest factor is {worst:.2f}."
    )
    return f"{text}\n\n{table_of_rows([_checked_row(row) for row in rows])}"


def _checked_row(row: Row) -> dict[str, str]:
    found = {name: row[name] for name in ("problem", "kappa", "similarity")}
    found["recommended"] = f"`{row['recommended']}`"
    for name in NAMES.values():
        found |= {f"best to {name}": f"`{row[f'best to {name}']}`", f"factor to {name}": row[f"factor to {name}"]}
    return found


def _advice(cells: Sequence[Row], facts: Sequence[Row]) -> str:
    """Say in how many cells the rules are right, and list the others."""
    off, known = misses(cells, facts), savings(cells, facts)
    asked = sum(1 for row in facts for target in TARGETS if best(cells, row["problem"], target))
    text = (
        f"Of {asked} measured cases ({len(facts)} problems to two accuracies, where any method arrives) the rules are "
        f"within a factor of {FAR} of the best method in vectors in {asked - len(off)}; the rules were made from these "
        f"cases, so that less is to be expected of others. A sketch of the features or an "
        "average of local minimisers first (`--coordinates`, `--start`), which the rules leave out, saves at least a "
        f"fifth of the best method's vectors in {sum(saved >= 1.25 for saved in known)} of {len(known)} cases."
    )
    lines = []
    for (problem, target), number in off.items():
        row = next(row for row in facts if row["problem"] == problem)
        words = f"{number:.2g} times" if math.isfinite(number) else "not reached, unlike by"
        first, chosen = best(cells, problem, target), choose(to_facts(row)).label
        lines.append(f"* {problem}, to {NAMES[target]}: `{chosen}`, {words} the best, `{first}`")
    return "\n".join([text, *(["", "The others:", "", *lines] if lines else [])])


def _rule_rows() -> list[dict[str, str]]:
    rows = []
    for number, rule in enumerate(RULES, start=1):
        given = "" if rule.scales == "none" else f" with `--scales {rule.scales}`"
        runner_up = "-" if rule.runner_up is None else f"`{rule.runner_up}`"
        rows.append(
            {
                "": f"{number}",
                "your problem": rule.when,
                "use": f"**`{rule.method}`**{given}",
                "runner-up": runner_up,
                "because": rule.because,
            }
        )
    rows.append(
        {
            "": f"{len(RULES) + 1}",
            "your problem": "smooth and strongly convex, everybody takes part",
            "use": "**the least expected cost**",
            "runner-up": "the next",
            "because": "Means over measured problems of the same class, times the price of what is to be kept small.",
        }
    )
    return rows


def _short_table(cells: Sequence[Row], facts: Mapping[str, Facts]) -> str:
    """Return the vectors and gradients of the methods that lead on some problem, and name the rest."""
    problems = list(dict.fromkeys(row["problem"] for row in cells))
    inside = {(row["problem"], row["method"]): row for row in cells}
    methods = [m for m in dict.fromkeys(row["method"] for row in cells) if m not in OUTSIDE]
    shown = [m for m in methods if m in _leading(cells, problems) or m in PAPERS]
    shown = [m for m in shown if not all(inside[p, m]["end"].startswith("refuses") for p in problems)]
    rows = []
    for problem in problems:
        row = {"vectors; gradients": problem, "kappa; similarity": _known(facts[problem])}
        row |= {method: _in_short(inside[problem, method]) for method in shown}
        rows.append(row | {"L-BFGS of SciPy, seconds": _pair(inside[problem, OUTSIDE[0]], "seconds", 2)})
    never = [
        m
        for m in methods
        if m not in shown and not any(inside[p, m][f"vectors to {NAMES[TARGETS[0]]}"] for p in problems)
    ]
    behind = [m for m in methods if m not in shown and m not in never]
    lines = [table_of_rows(rows)]
    words = []
    if behind:
        words.append(f"Behind the best two on every problem: {_quoted(behind)}.")
    if never:
        words.append(f"Not at {NAMES[TARGETS[0]]} within the limits on any, or refusing them: {_quoted(never)}.")
    return "\n\n".join([lines[0], " ".join(words)] if words else lines)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _known(facts: Facts) -> str:
    """Return the condition number and the similarity as the tables show them."""
    kappa = f"{facts.kappa:,.0f}" if math.isfinite(facts.kappa) else "-"
    return kappa if facts.similarity is None else f"{kappa}; {facts.similarity:.2g}"


def _leading(cells: Sequence[Row], problems: Sequence[str]) -> set[str]:
    """Return the methods that are among the best of some problem at some target."""
    found: set[str] = set()
    for problem in problems:
        for target in TARGETS:
            column = f"vectors to {NAMES[target]}"
            rows = [row for row in cells if row["problem"] == problem and row[column]]
            found |= {row["method"] for row in sorted(rows, key=lambda row: float(row[column]))[:LEADING]}
    return found


def _in_short(row: Row) -> str:
    if row["end"] == UNMEASURED:
        return UNMEASURED
    if row["end"].startswith("refuses"):
        return "refuses"
    return f"{_pair(row, 'vectors')}; {_pair(row, 'gradients')}"


def _pair(row: Row, column: str, digits: int = 0) -> str:
    """Return what both targets took."""
    texts = (row[f"{column} to {name}"] for name in NAMES.values())
    return " / ".join(f"{float(text):,.{digits}f}" if text else "-" for text in texts)


def whole_tables(cells: Sequence[Row], facts: Sequence[Row]) -> str:
    """Return the page of all tables: every problem with every method and everything that was counted."""
    lines = [
        "# All measurements",
        "Written by `python -m figures which_method`; see [which_method.md](which_method.md). What it took to a "
        "relative error of 1e-4 / 1e-10: *vectors* and *gradients* of a client on average, *seconds* of CPU time of "
        "the method, *numbers* sent up and down by and to all clients, *bits* sent up. A dash: not reached; the last "
        "column says why: the limit that cut the run off, or what the method can do at most.",
    ]
    for fact in facts:
        known = to_facts(fact)
        lines.append(f"## {fact['problem']}")
        alike = "" if known.similarity is None else f", similarity {known.similarity:.2g}"
        kappa = f"{known.kappa:,.0f}" if math.isfinite(known.kappa) else "infinite"
        lines.append(f"{known.n_clients} clients, participation {fact['participation']}, kappa {kappa}{alike}.")
        rows = [row for row in cells if row["problem"] == fact["problem"] and not row["end"].startswith("refuses")]
        lines.append(table_of_rows([_whole_row(row) for row in sorted(rows, key=_order)]))
        refusing = [r["method"] for r in cells if r["problem"] == fact["problem"] and r["end"].startswith("refuses")]
        if refusing:
            lines.append(f"Not for this problem: {_quoted(refusing)}.")
    return "\n\n".join(lines) + "\n"


def _whole_row(row: Row) -> dict[str, str]:
    found = {"method": row["method"] + (" (certified)" if row["certified"] == "yes" else "")}
    found |= {column: _pair(row, column, 2 * (column == "seconds")) for column in ("vectors", "gradients", "seconds")}
    for title, column in (("numbers up", "numbers_up"), ("numbers down", "numbers_down"), ("bits up", "bits_up")):
        texts = (row[f"{column} to {name}"] for name in NAMES.values())
        found[title] = " / ".join(f"{float(text):.3g}" if text else "-" for text in texts)
    return found | {"ended": row["end"]}


def _order(row: Row) -> tuple[float, float]:
    first, last = (row[f"vectors to {name}"] for name in NAMES.values())
    return (float(last) if last else math.inf, float(first) if first else math.inf)


def fill(page: str, parts: Mapping[str, str]) -> str:
    r"""Return a page with the parts between their markers.

    Raises
    ------
    ValueError
        If the page has no marker for a part, or one without a part.

    Examples
    --------
    >>> fill("a\n<!-- t -->\nold\n<!-- end -->\nb\n", {"t": "new"})
    'a\n<!-- t -->\nnew\n<!-- end -->\nb\n'
    """
    pattern = re.compile(r"<!-- (\w+) -->\n.*?<!-- end -->", flags=re.DOTALL)
    if sorted(found := pattern.findall(page)) != sorted(parts):
        raise ValueError(f"page must have the markers {', '.join(sorted(parts))}; it has {', '.join(sorted(found))}.")
    return pattern.sub(lambda match: f"<!-- {match[1]} -->\n{parts[match[1]]}\n<!-- end -->", page)
