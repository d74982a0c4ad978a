"""The measurements of `which_method` as rows: written as CSV, read again, and compared with the rules."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from dualopt.runs.costs import FAR
from dualopt.runs.rules import Facts, Rule, choose
from dualopt.runs.trace import Trace, write_atomically
from figures._contestants import COLUMNS, TARGETS
from figures.vectors import PREPARED

__all__ = [
    "FAR",
    "NAMES",
    "UNMEASURED",
    "Row",
    "advice_rows",
    "best",
    "cell_rows",
    "fact_rows",
    "factor",
    "merged",
    "misses",
    "named",
    "read_rows",
    "rows_if_there",
    "savings",
    "to_facts",
    "without_holes",
    "write_rows",
]

Row = Mapping[str, str]
SPENT = COLUMNS[:-1]
UNMEASURED = "not measured"
Chooser = Callable[[Facts], Rule]


def named(target: float) -> str:
    """Return a target as columns name it.

    Examples
    --------
    >>> named(1e-4)
    '1e-4'
    """
    return f"{target:.0e}".replace("e-0", "e-")


NAMES = {target: named(target) for target in TARGETS}


def cell_rows(traces: Mapping[str, Trace], targets: Sequence[float] = TARGETS) -> list[dict[str, str]]:
    """Return a row for every cell: what was spent to each target, empty if it was not reached, and how it ended."""
    rows = []
    for label, trace in traces.items():
        problem, _, method = label.rpartition(": ")
        rows.append(
            {
                "problem": problem,
                "group": trace.parameters["facts"]["group"],
                "method": method,
                **_spent(trace, targets),
            }
        )
    return rows


def _spent(trace: Trace, targets: Sequence[float]) -> dict[str, str]:
    row = {"end": str(trace.parameters["end"]), "certified": "yes" if trace.parameters["certified"] else "no"}
    for target in targets:
        hits = np.flatnonzero(trace["error"] <= target)
        for column in SPENT:
            number = trace[column][hits[0]] if len(hits) else math.nan
            row[f"{column} to {named(target)}"] = f"{number:.6g}" if math.isfinite(number) else ""
    return row


def fact_rows(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return a row for every problem: what the rules look at."""
    facts = {label.rpartition(": ")[0]: trace.parameters["facts"] for label, trace in traces.items()}
    return [
        {"problem": problem, **{name: _written(x) for name, x in known.items()}} for problem, known in facts.items()
    ]


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.6g}"


def to_facts(row: Row) -> Facts:
    """Return what :func:`fact_rows` wrote as the rules take it.

    Examples
    --------
    >>> row = {"n_clients": "8", "mu": "0.01", "L": "6.5", "least_L": "5.9", "fraction": "1", "size": "31"}
    >>> to_facts({**row, "partial": "0", "smooth": "1", "regularised": "0", "similarity": "nan"}).kappa
    650.0
    """
    similarity, step, seconds = (_known(row, name) for name in ("similarity", "dane_step", "gradient_seconds"))
    return Facts(
        n_clients=int(row["n_clients"]),
        size=int(row["size"]),
        mu=float(row["mu"]),
        L=float(row["L"]),
        least_L=float(row["least_L"]),
        fraction=float(row["fraction"]),
        needs=frozenset({"partial"} if row["partial"] == "1" else ()),
        smooth=row["smooth"] == "1",
        regularised=row["regularised"] == "1",
        similarity=similarity,
        dane_step=step,
        gradient_seconds=seconds,
    )


def _known(row: Row, name: str) -> float | None:
    """Return a number that was measured, else None."""
    number = float(row.get(name) or math.nan)
    return None if math.isnan(number) else number


def factor(cells: Sequence[Row], problem: str, method: str, target: float) -> float:
    """Return the vectors of a method to a target, relative to the best method of the package without a preparation.

    1 where none arrives, infinite where another does.
    """
    found = _arrived(cells, problem, target)
    return found.get(method, math.inf) / min(found.values()) if found else 1.0


def _arrived(cells: Sequence[Row], problem: str, target: float, *, prepared: bool = False) -> dict[str, float]:
    """Return the vectors to a target, by the methods that arrive: those with a preparation, or those without."""
    column = f"vectors to {NAMES[target]}"
    of_problem = (row for row in cells if row["problem"] == problem and row[column])
    return {row["method"]: float(row[column]) for row in of_problem if (row["method"] in PREPARED) == prepared}


def savings(cells: Sequence[Row], facts: Sequence[Row]) -> list[float]:
    """Return for every problem and target the vectors of the best method over those of the best with a preparation.

    Infinite where only the latter arrives, 0 where only the former does; nothing where none does.
    """
    found = []
    for row in facts:
        for target in TARGETS:
            plain, prepared = (_arrived(cells, row["problem"], target, prepared=flag) for flag in (False, True))
            if plain or prepared:
                least = [min(of.values(), default=math.inf) for of in (plain, prepared)]
                found.append(0.0 if math.isinf(least[1]) else least[0] / least[1])
    return found


def misses(cells: Sequence[Row], facts: Sequence[Row], choose: Chooser = choose) -> dict[tuple[str, float], float]:
    """Return where the recommended method takes more than ``FAR`` times the vectors of the best: problem and target."""
    found = {}
    for row in facts:
        method = choose(to_facts(row)).label
        for target in TARGETS:
            if (number := factor(cells, row["problem"], method, target)) > FAR:
                found[row["problem"], target] = number
    return found


def best(cells: Sequence[Row], problem: str, target: float) -> str | None:
    """Return the method with the fewest vectors to a target, without a preparation; None where none arrives."""
    found = _arrived(cells, problem, target)
    return min(found, key=lambda name: found[name]) if found else None


def advice_rows(cells: Sequence[Row], facts: Sequence[Row]) -> list[dict[str, str]]:
    """Return for every problem what the rules recommend, the best method in vectors, and the factor between them."""
    rows = []
    for row in facts:
        known, problem = to_facts(row), row["problem"]
        rule = choose(known)
        line = {
            "problem": problem,
            "kappa": f"{known.kappa:,.0f}" if math.isfinite(known.kappa) else "-",
            "similarity": "-" if known.similarity is None else f"{known.similarity:.2g}",
            "recommended": rule.label,
        }
        for target in TARGETS:
            first = best(cells, problem, target)
            number = factor(cells, problem, rule.label, target)
            words = f"{number:.2f}" if math.isfinite(number) else "not reached"
            line[f"best to {NAMES[target]}"] = first or "none"
            line[f"factor to {NAMES[target]}"] = words if first else "-"
        rows.append(line)
    return rows


def merged(kept: Sequence[Row], new: Sequence[Row], order: Mapping[str, Sequence[str]]) -> list[Row]:
    """Return rows of a table with new ones in place of those of the same keys, in the order of the keys' values.

    A row with a value that the order does not have keeps its place at the end.

    Examples
    --------
    >>> kept = [{"problem": "b", "x": "1"}, {"problem": "a", "x": "2"}]
    >>> merged(kept, [{"problem": "b", "x": "3"}], {"problem": "ab"})
    [{'problem': 'a', 'x': '2'}, {'problem': 'b', 'x': '3'}]
    """
    found = {tuple(row[key] for key in order): row for row in (*kept, *new)}
    places = [{value: place for place, value in enumerate(values)} for values in order.values()]

    def place(keys: tuple[str, ...]) -> list[int]:
        return [of.get(value, len(of)) for value, of in zip(keys, places, strict=True)]

    return [found[keys] for keys in sorted(found, key=place)]


def without_holes(cells: Sequence[Row]) -> list[Row]:
    """Return the rows with one more, ended ``UNMEASURED``, wherever a problem lacks a method that another one has.

    Examples
    --------
    >>> rows = [{"problem": p, "method": m, "group": "g", "end": "reached"} for p, m in ("ax", "ay", "bx")]
    >>> [row["end"] for row in without_holes(rows)]
    ['reached', 'reached', 'reached', 'not measured']
    """
    found = {(row["problem"], row["method"]): row for row in cells}
    groups = {row["problem"]: row["group"] for row in cells}
    methods = dict.fromkeys(row["method"] for row in cells)
    blank = dict.fromkeys(cells[0], "") if cells else {}
    return [
        found.get((p, m), {**blank, "problem": p, "method": m, "group": group, "end": UNMEASURED})
        for p, group in groups.items()
        for m in methods
    ]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV."""

    def write(file: IO[Any]) -> None:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

    write_atomically(path, write)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read what :func:`write_rows` wrote."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def rows_if_there(path: Path) -> list[dict[str, str]]:
    """Read what :func:`write_rows` wrote; no rows where there is no file."""
    return read_rows(path) if path.exists() else []
