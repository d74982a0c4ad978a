"""What `recommend` is worth: costs of methods on data that its rules were chosen on, and on data that they were not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from dualopt.arrays._checks import require
from dualopt.runs import plotting
from dualopt.runs.costs import SENT
from dualopt.runs.recommendation import facts_of, gradient_seconds, similarity
from dualopt.runs.trace import Trace
from figures._advice_problems import advice_cases
from figures._advice_rows import AIMS, TARGETS, Problem, best_alone, factors, of_tables, problem_rows, problems
from figures._by_cell import ONLY
from figures._cells import Case, built
from figures._contestants import measured
from figures._settings import Settings
from figures._which_rows import Row, cell_rows, fact_rows, rows_if_there, write_rows
from figures.which_method import beside, fill_page, page_rows

__all__ = ["compute", "draw", "tabulate"]

TIME = "half an hour"
PREFIX = "advice_"  # of the files beside the page
FACTS = ("n_clients", "size", "mu", "L", "least_L", "fraction", "smooth", "regularised", "partial")
SHOWN = (0, 1, 3, 5)  # of AIMS, in the picture
FARTHEST = 4.0  # times the best, where the picture ends


def compute(settings: Settings) -> dict[str, Trace]:
    """Measure the methods that costs are known of on every problem; the traces are named ``problem: method``.

    With ``settings.page`` the measurements are stored beside it, and its tables written; with ``settings.only`` there
    are the cells alone whose labels match.

    Raises
    ------
    ValueError
        If nothing matches ``only``.
    """
    found: dict[str, Trace] = {}
    for case in advice_cases(settings):
        wanted = [method for method in SENT if settings.wants(f"{case.name}: {method}")]
        if not wanted:
            continue
        known = {"group": case.group, **_stored("facts", case, settings, partial(_facts, case)).last}
        for method in wanted:
            trace = _stored(method, case, settings, partial(measured, method, case))
            found[f"{case.name}: {method}"] = replace(trace, parameters={**trace.parameters, "facts": known})
        settings.console.print(f"  {case.name}", highlight=False, markup=False, soft_wrap=True)
    require(bool(found), ONLY, settings.only)
    if settings.page is not None:
        for path, rows in zip(beside(settings.page, PREFIX), _rows(found, settings), strict=True):
            write_rows(path, rows)
        fill_page(settings.page)
    return found


def _stored(method: str, case: Case, settings: Settings, compute: partial[Trace]) -> Trace:
    description = {"figure": "advice", **case.described(), "method": method}
    return settings.stored(f"the cell '{case.name}: {method}'", description, compute)


def _facts(case: Case) -> Trace:
    """Return what the rules look at, as a trace of one row."""
    objective, _ = built(case)
    known, alike = facts_of(objective, case.parsed), similarity(objective)
    numbers = {name: float(getattr(known, name)) for name in FACTS}
    numbers |= {"similarity": alike.factor, "dane_step": alike.dane_step}
    numbers["gradient_seconds"] = gradient_seconds(objective)
    columns = {name: [number] for name, number in numbers.items()}
    return Trace(columns=columns, status="stopped", theta=None, parameters={"end": "known"})


def _rows(traces: Mapping[str, Trace], settings: Settings) -> tuple[list[Row], list[Row]]:
    """Return the rows of the cells, and of the problems: with ``only``, the others of the page too."""
    order = {"problem": [case.name for case in advice_cases(settings)], "method": [*SENT]}
    return page_rows(traces, settings, order, prefix=PREFIX, targets=TARGETS)


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return what is recommended for few vectors and what is best, for every judged problem that is measured whole.

    Where there is none, the rows are what was measured.
    """
    cells, facts = cell_rows(traces, TARGETS), fact_rows(traces)
    whole = [row for row in facts if all(f"{row['problem']}: {method}" in traces for method in SENT)]
    return problem_rows(problems(cells, whole), AIMS[0]) or cells


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the share of the judged cases in which a choice costs at most so many times the least.

    The other choice is the one method that is near the best most often on the problems of choice.
    """
    known = problems(*_rows(traces, settings))
    if settings.page is not None:
        known += of_tables(*map(rows_if_there, beside(settings.page)))
    return shares(known, settings.width)


def shares(known: Sequence[Problem], width: str) -> Figure:
    """Draw the panels of :func:`draw` for measured problems, in a picture of that width."""
    judged = [problem for problem in known if problem.group == "judged"]
    figure, grid = plotting.panels(1, len(SHOWN), height=2.0, width=width, least=1.7, sharey=True)
    for axes, aim in zip(grid.flat, (AIMS[i] for i in SHOWN), strict=True):
        alone = best_alone(known, aim)
        colour = plotting.style(alone).color
        found, of_one = factors(judged, aim), factors(judged, aim, alone)
        axes.ecdf(np.minimum(found, 2 * FARTHEST), label="recommended", color="0.6", linewidth=2.0)
        label = plotting.proper_name(alone)
        axes.ecdf(np.minimum(of_one, 2 * FARTHEST), label=label, color=colour, linestyle=(0, (4, 1.5)))
        axes.set_title(str(aim).replace(", ", "\n"))
        axes.set_xlim(1.0, FARTHEST)
        axes.set_xlabel("times the best")
        axes.legend(loc="lower right", handlelength=1.6)
    grid.flat[0].set_ylabel("share of the judged cases")
    return figure
