"""Which method should I use: what every method spends, as suggested, on every measured problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from dualopt.arrays._checks import require
from dualopt.runs._sources import sources
from dualopt.runs._workers import Limit, Workers
from dualopt.runs.recommendation import facts_of, similarity
from dualopt.runs.trace import Trace, write_atomically
from figures._by_cell import ONLY
from figures._cells import Case, built, cases
from figures._contestants import TARGETS, contestants, measured
from figures._outsiders import OUTSIDERS
from figures._settings import Settings
from figures._store import NotStoredError, missing, stored_trace
from figures._which_picture import draw_grid
from figures._which_rows import (
    NAMES,
    UNMEASURED,
    Row,
    advice_rows,
    cell_rows,
    fact_rows,
    merged,
    rows_if_there,
    without_holes,
    write_rows,
)
from figures._which_tables import decision, fill, sections, whole_tables

__all__ = ["beside", "compute", "draw", "fill_page", "page_rows", "publish", "tabulate"]

TIME = "about 200 minutes"


@dataclass(frozen=True)
class Cell:
    """A method on a problem."""

    case: Case
    method: str

    @property
    def label(self) -> str:
        """The name of its trace."""
        return f"{self.case.name}: {self.method}"


FACTS = ("n_clients", "size", "mu", "L", "least_L", "fraction", "smooth", "regularised")


def facts(case: Case) -> Trace:
    """Return what the rules look at, as a trace of one row: similarity NaN where the rules do not ask for it."""
    objective, _ = built(case)
    known = facts_of(objective, case.parsed)
    alike = similarity(objective) if known.similarity_matters else None
    numbers: dict[str, float] = {"partial": float(known.partial)}
    numbers["similarity"] = math.nan if alike is None else alike.factor
    numbers["dane_step"] = math.nan if alike is None else alike.dane_step
    for name in FACTS:
        numbers[name] = float(getattr(known, name))
    columns = {name: [number] for name, number in numbers.items()}
    return Trace(columns=columns, status="stopped", theta=None, parameters={"end": "known"})


OTHERS: dict[str, Callable[[Case], Trace]] = {"facts": facts, **OUTSIDERS}


@dataclass(frozen=True)
class Measure:
    """Return the stored trace of a cell, else measure and store it."""

    cache: Path
    stored_only: bool
    keep_stale: bool = False

    def __call__(self, cell: Cell, limit: Limit) -> Trace:
        """Return the trace."""
        name, case = cell.method, cell.case
        other = OTHERS.get(name)
        plain = (
            [*FACTS, "similarity if it matters"]
            if other is facts
            else None
            if other
            else contestants()[name].described()
        )
        description = {"figure": "which_method", **case.described(), "method": name, "algorithm": plain}
        compute = (lambda: other(case)) if other else (lambda: measured(name, case))
        allowed = None if self.stored_only else compute
        stale = _taken if self.keep_stale else None
        return stored_trace(self.cache, f"the cell {cell.label!r}", description, allowed, stale)


def _taken(what: str) -> None:
    """Take what other code has computed: the line of its cell says so, which a process beside cannot print."""


def compute(settings: Settings) -> dict[str, Trace]:
    """Measure every method on every problem; the traces are named ``problem: method``.

    A method that refuses a problem has a trace without rows, whose ``parameters["end"]`` is the sentence. What is known
    of the problem is in ``parameters["facts"]``. Where nothing may be computed, problems that are not measured whole
    are left out. With ``settings.only`` there are the cells alone whose labels match.

    Raises
    ------
    ValueError
        If nothing matches ``only``, or nothing is stored and nothing may be computed.
    """
    measure = Measure(settings.cache, settings.stored_only, settings.keep_stale)
    now = sources(packages=("theory", "figures"))
    wanted = [cell for case in cases(settings) for cell in _matching(case, settings)]
    require(bool(wanted), ONLY, settings.only)
    cells = _stored_problems(wanted, measure) if settings.stored_only else wanted
    found, waiting = {}, iter(cells)
    for cell, trace in Workers(measure, settings.jobs).results(lambda: next(waiting, None), lambda: False):
        found[cell.label] = trace
        if cell.method != "facts":
            stale = "" if trace.parameters["key"]["sources"] == now else ", computed by other code (--keep-stale)"
            line = f"  {cell.label}: {_words(trace)}{stale}"
            settings.console.print(line, highlight=False, markup=False, soft_wrap=True)
    if not cells:
        raise missing("a whole problem", settings.cache)
    traces = {cell.label: _with_facts(cell, found) for cell in cells if cell.method != "facts"}
    if settings.page is not None:
        publish(settings.page, *_rows(traces, settings))
    return traces


def _matching(case: Case, settings: Settings) -> list[Cell]:
    """Return the cells of a problem whose labels match, after what is known of it; none if none matches."""
    cells = [Cell(case, name) for name in (*contestants(), *OUTSIDERS)]
    found = [cell for cell in cells if settings.wants(cell.label)]
    return [Cell(case, "facts"), *found] if found else []


def _stored_problems(cells: Iterable[Cell], measure: Measure) -> list[Cell]:
    """Return the cells of the problems of which all cells are stored."""
    found = []
    for _, group in groupby(cells, lambda cell: cell.case):
        of_problem = list(group)
        try:
            for cell in of_problem:
                measure(cell, lambda: math.inf)
        except NotStoredError:
            continue
        found += of_problem
    return found


def _rows(traces: Mapping[str, Trace], settings: Settings) -> tuple[list[Row], list[Row]]:
    """Return the rows of cells and problems: those just measured and, with ``only``, the others of the page."""
    order = {"problem": [case.name for case in cases(settings)], "method": [*contestants(), *OUTSIDERS]}
    cells, problems = page_rows(traces, settings, order)
    return without_holes(cells), problems


def page_rows(
    traces: Mapping[str, Trace],
    settings: Settings,
    order: Mapping[str, Sequence[str]],
    *,
    prefix: str = "",
    targets: Sequence[float] = TARGETS,
) -> tuple[list[Row], list[Row]]:
    """Return the rows of cells and problems: those just measured and, with ``only``, the others beside the page.

    Parameters
    ----------
    traces : dict of str to Trace
        What was measured, by ``problem: method``.
    settings : Settings
        The page, and what of it is measured.
    order : dict of str to sequence of str
        The names of ``problem`` and ``method`` in the order in which they are written.
    prefix : str, optional
        Of the files beside the page.
    targets : sequence of float
        The relative errors that are asked for.
    """
    cells: list[Row] = [*cell_rows(traces, targets)]
    problems: list[Row] = [*fact_rows(traces)]
    if settings.only is None or settings.page is None:
        return cells, problems
    kept = [rows_if_there(path) for path in beside(settings.page, prefix)]
    return merged(kept[0], cells, order), merged(kept[1], problems, {"problem": order["problem"]})


def beside(page: Path, prefix: str = "") -> tuple[Path, Path]:
    """Return the files that a page is made from: of cells, and of problems."""
    cells, problems = (page.with_name(f"{page.stem}_{prefix}{what}.csv") for what in ("cells", "problems"))
    return cells, problems


def _with_facts(cell: Cell, found: Mapping[str, Trace]) -> Trace:
    """Return the trace of a cell with what is known of its problem."""
    trace, case = found[cell.label], cell.case
    known = {"group": case.group, "participation": case.participation, **found[f"{case.name}: facts"].last}
    return replace(trace, parameters={**trace.parameters, "facts": known})


def _words(trace: Trace) -> str:
    """Return the vectors to both targets, and how the run ended."""
    hits = [np.flatnonzero(trace["error"] <= target) for target in TARGETS]
    shown = ["-" if not len(hit) else f"{trace['vectors'][hit[0]]:,.3g}" for hit in hits]
    return f"{' / '.join(shown)} vectors ({trace.parameters['end']})"


def publish(page: Path, cells: Sequence[Row], problems: Sequence[Row]) -> None:
    """Write the measurements beside a page, their tables, and the page.

    For ``page = which_method.md`` these are ``which_method_cells.csv``, ``which_method_problems.csv``,
    ``which_method_all.md``, and ``which_method_tables.md`` between its markers.

    Raises
    ------
    ValueError
        If one of the two pages lacks a marker of a table.
    """
    for path, rows in zip(beside(page), (cells, problems), strict=True):
        write_rows(path, rows)
    _write(page.with_name(f"{page.stem}_all.md"), whole_tables(cells, problems))
    tables = page.with_name(f"{page.stem}_tables.md")
    _write(tables, fill(tables.read_text(), sections(cells, problems)))
    fill_page(page)


def fill_page(page: Path) -> None:
    """Write the rules, and how they fared, into a page between its markers.

    What is there beside it decides: the measurements of `which_method`, those of `advice`, and for
    ``page = which_method.md`` the table ``which_method_checked.csv`` of the rules that `advice` does not measure.
    """
    checked = page.with_name(f"{page.stem}_checked.csv")
    paths = (*beside(page), checked, *beside(page, "advice_"))
    cells, problems, others, *advice = map(rows_if_there, paths)
    _write(page, fill(page.read_text(), decision(cells, problems, others, advice[0], advice[1])))


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text))


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return what the rules recommend and what was best, for every problem on which all methods were measured."""
    cells = without_holes(cell_rows(traces))
    measured = {(row["problem"], row["method"]) for row in cells if row["end"] != UNMEASURED}
    whole = [f for f in fact_rows(traces) if all((f["problem"], name) in measured for name in contestants())]
    return advice_rows(cells, whole) if whole else [{name: row[name] for name in _SHOWN} for row in cells]


_SHOWN = ("problem", "method", *(f"vectors to {name}" for name in NAMES.values()), "end")


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the vectors of every method on every problem, relative to the best."""
    return draw_grid(_rows(traces, settings)[0], settings.width)
