"""Table 2 of the DualFL paper: the tuned parameters, and what it costs to tune badly."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dualopt.runs.trace import Trace
from figures._methods import draw_methods
from figures._settings import Settings
from figures._table2 import METHODS, Point, as_number, paper_values, per_row
from figures._tuned import CLIENTS, Search

__all__ = ["compute", "draw", "tabulate"]

TIME = "about 5 minutes"
PAPER_ROWS = {"cifar10": 50_000 / CLIENTS}  # of a client; else those of MNIST


def compute(settings: Settings) -> dict[str, Trace]:
    """Return, for every value of the first parameter of every method, the error when the winner had reached the target.

    It is the lowest over the other parameters, after as many communications as the winner needed on the part of the
    rows that served for tuning. The column ``step`` counts the steps of the grid from the winner's value.
    """
    search = Search(settings)
    traces = {}
    for name in METHODS:
        points, tuned = search.points(name), search.tuned(name)
        parameter = next(iter(METHODS[name].symbols))
        lowest: dict[float, float] = {}
        for n, outcome in search.outcomes(name).items():
            value = as_number(points[n][parameter])
            within = [e for cost, e in zip(outcome.costs, outcome.errors, strict=True) if cost <= tuned.outcome.cost]
            last = within[-1] if within and outcome.status != "diverged" else math.nan
            lowest[value] = float(np.fmin(lowest.get(value, math.nan), last))
        values = sorted(lowest)
        start = values.index(as_number(tuned.point[parameter]))
        columns = {
            "step": [float(n - start) for n in range(len(values))],
            "value": values,
            "error": [lowest[value] for value in values],
        }
        rows = _rows(name, points, tuned.point, settings, search.rows / CLIENTS)
        reached = "-" if tuned.reached is None else f"{tuned.reached}"
        table = [row | {"rounds": reached, "error": f"{tuned.outcome.error:.1e}"} for row in rows]
        traces[name] = Trace(columns=columns, status="converged", theta=None, parameters={"table": table})
    return traces


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw these errors over the steps of the grid."""
    xlabel = "steps of the grid away from the best value (factors of 10; 0.001 of $\\rho$)"
    figure = draw_methods(traces, settings, x="step", xlabel=xlabel, bottom=1e-8)
    (axes,) = figure.axes
    axes.set_ylabel(r"relative error when the best value is done")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return one row per parameter: our values and the paper's, both for means and for sums over rows.

    ``rounds`` are the communications to 1e-6 on the part of the rows that served for tuning, with the ``error`` at
    the end.
    """
    return [row for trace in traces.values() for row in trace.parameters["table"]]


def _rows(
    name: str, points: list[Point], winner: Point, settings: Settings, rows_per_client: float
) -> list[dict[str, str]]:
    theirs = paper_values(name, settings.data)
    their_rows = PAPER_ROWS.get(settings.data, 60_000 / CLIENTS)
    rows = []
    for parameter, symbol in METHODS[name].symbols.items():
        tried = sorted({as_number(point[parameter]) for point in points})
        own = as_number(winner[parameter])
        paper = theirs.get(parameter)
        rows.append(
            {
                "method": METHODS[name].title,
                "parameter": symbol,
                "tried": f"{tried[0]:.2g}" if len(tried) == 1 else f"{tried[0]:.2g} ... {tried[-1]:.2g} ({len(tried)})",
                "tuned": f"{own:.3g}",
                "of a sum": f"{per_row(name, parameter, own, rows_per_client=rows_per_client):.3g}",
                "paper": "-"
                if paper is None
                else f"{per_row(name, parameter, paper, rows_per_client=1.0 / their_rows):.3g}",
                "paper, of a sum": "-" if paper is None else f"{paper:.3g}",
            }
        )
    return rows
