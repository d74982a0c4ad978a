"""The comparison of Figure 1 (a, d): every method tuned, run on all rows, and drawn against what it spent.

Beside the paper's methods stand those without a parameter to tune: L-BFGS and Newton-CG at the server, which an expert
would ask for, and AndersonFedSplit as it is suggested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dualopt.methods import AndersonFedSplit, DistributedLBFGS, DistributedNewtonCG
from dualopt.runs import plotting
from dualopt.runs.trace import Trace
from dualopt.solvers.stopping import GradientReduction
from figures._curves import Curve, Problem, data_problem, trace_curves
from figures._drawing import drawable, lowest_decade
from figures._settings import Settings
from figures._table2 import METHODS, TUNED, Method, in_words, to_candidate
from figures._tuned import CLIENTS, TARGET, Search, Tuned

__all__ = [
    "LEVELS",
    "UNTUNED",
    "at_communications",
    "cost_table",
    "draw_methods",
    "first_cost",
    "level_name",
    "method_traces",
    "title",
    "tuning",
]

LEVELS = (1e-3, 1e-6, 1e-9)
# With the usual factor of 0.1 errors on the digits are off by up to 118% (FedDyn), with this one by 6% (FedDR).
CAREFUL = GradientReduction(factor=0.01)
TOP = 1e1
# Methods that are run as they are suggested.
UNTUNED = {
    "distributed-lbfgs": (Method(title="L-BFGS at the server", symbols={}), DistributedLBFGS()),
    "distributed-newton-cg": (Method(title="Newton-CG at the server", symbols={}), DistributedNewtonCG()),
    "anderson-fedsplit": (Method(title="AndersonFedSplit", symbols={}), AndersonFedSplit()),
}


def method_traces(settings: Settings, names: Iterable[str] | None = None) -> dict[str, Trace]:
    """Tune the methods on a part of the rows, run the winners and the rest on all, and return the rows after uploads.

    Parameters
    ----------
    settings : Settings
        Data, communications, and where results are stored.
    names : iterable of str, optional
        Methods that are tuned; those of the paper, with the rest of Figure 1 (a) beside, when not given.

    Returns
    -------
    dict of str to Trace
        By the name of the method. The column ``floats`` counts numbers sent up and down; ``parameters["search"]``
        says in words what was ``tuned``, and how many communications to the target that needed on the ``part`` of the
        rows.
    """
    search = Search(settings)
    tuned = {name: search.tuned(name) for name in (METHODS if names is None else names)}
    problem = data_problem(settings, CLIENTS)
    curves = {name: _curve(name, winner, problem, settings) for name, winner in tuned.items()}
    for name, (_, method) in UNTUNED.items() if names is None else ():
        curves[name] = Curve(problem=problem, algorithm=method, rounds=settings.rounds)
    traces = {}
    for name, trace in trace_curves(curves, settings).items():
        found: dict[str, Any] = {"tuned": "as suggested", "part": None}
        if name in tuned:
            found = {"tuned": in_words(name, tuned[name].point), "part": tuned[name].reached}
        traces[name] = replace(at_communications(trace), parameters={**trace.parameters, "search": found})
    return traces


def _curve(name: str, tuned: Tuned, problem: Problem, settings: Settings) -> Curve:
    stop = CAREFUL if settings.stop == GradientReduction() else settings.stop
    chosen = to_candidate(name, tuned.point, stop=stop, communications=settings.rounds)
    rounds = settings.rounds if chosen.rounds is None else chosen.rounds
    return Curve(problem=problem, algorithm=chosen.algorithm, participation=chosen.participation, rounds=rounds)


def at_communications(trace: Trace) -> Trace:
    """Return the start and the rounds in which something was sent; between them the model does not change.

    Examples
    --------
    >>> columns = {"communications": [0, 0, 1, 1], "floats_up": [0, 0, 5, 5], "floats_down": [0, 0, 6, 6]}
    >>> at_communications(Trace(columns=columns, status="max_rounds", theta=None))["floats"].tolist()
    [0.0, 11.0]
    """
    sent = np.diff(trace["communications"], prepend=-1.0) > 0
    columns = {name: column[sent] for name, column in trace.columns.items()}
    return replace(trace, columns={**columns, "floats": columns["floats_up"] + columns["floats_down"]})


def title(name: str) -> str:
    """Return the name of a method in legends and tables.

    Examples
    --------
    >>> title("fivegcs"), title("distributed-lbfgs")
    ('5GCS', 'L-BFGS at the server')
    """
    return UNTUNED[name][0].title if name in UNTUNED else TUNED[name].title


def first_cost(trace: Trace, column: str, level: float) -> float | None:
    """Return what was spent when the error was first at most ``level``; None if it never was.

    Examples
    --------
    >>> trace = Trace(columns={"floats": [0, 11], "error": [1.0, 0.1]}, status="max_rounds", theta=None)
    >>> first_cost(trace, "floats", 0.5), first_cost(trace, "floats", 0.01)
    (11.0, None)
    """
    hits = np.flatnonzero(trace["error"] <= level)
    return float(trace[column][hits[0]]) if len(hits) else None


def level_name(level: float) -> str:
    """Return the name of the column of a table that belongs to a level.

    Examples
    --------
    >>> level_name(1e-3)
    '<=1e-3'
    """
    return f"<={level:.0e}".replace("e-0", "e-")


def cost_table(traces: Mapping[str, Trace], column: str) -> list[dict[str, str]]:
    """Return for every method what was spent up to each of ``LEVELS``, and in the whole run with its last error."""
    rows = []
    for name, trace in traces.items():
        costs = {level_name(level): first_cost(trace, column, level) for level in LEVELS}
        row = {"method": title(name), "tuned": trace.parameters["search"]["tuned"]}
        row |= {level: "-" if cost is None else f"{cost:,.0f}" for level, cost in costs.items()}
        rows.append(row | {"in all": f"{trace.last[column]:,.0f}", "last": f"{trace.last['error']:.1e}"})
    return rows


def tuning(settings: Settings, *, untuned: bool = True) -> str:
    """Say in a caption how the methods were tuned, and which of them were not."""
    rows = settings.whole.objective.sizes[0]
    part = "all" if rows <= settings.part else f"{settings.part:,} of {rows:,}"
    several = ", ".join(method.title for method, _ in UNTUNED.values())
    said = f"{CLIENTS} clients. Methods are tuned on {part} rows for the fewest communications to {TARGET:.0e}"
    return f"{said}; {several} are run as suggested." if untuned else f"{said}."


def draw_methods(
    traces: Mapping[str, Trace], settings: Settings, *, x: str, xlabel: str, log: bool = False, bottom: float = 1e-12
) -> Figure:
    """Draw relative energy errors against a column, each method in its own style.

    Parameters
    ----------
    traces : dict of str to Trace
        What :func:`method_traces` returns.
    settings : Settings
        For the title.
    x, xlabel : str
        The column of the horizontal axis, and its name.
    log : bool, default False
        Whether the horizontal axis is logarithmic; the start, which costs nothing, is then left out.
    bottom : float, default 1e-12
        The lowest error in view, or the end of the decade that holds the lowest of all, if that is higher.
    """
    shown = {name: drawable(_after_start(trace) if log else trace) for name, trace in traces.items()}
    figure = plotting.convergence(shown, x=x, y="error", title=settings.title, width=settings.width)
    (axes,) = figure.axes
    for name, line in zip(shown, axes.lines, strict=True):
        line.set_label(title(name))
        if name == "dualfl":
            line.set(linewidth=2.0, zorder=3)
    axes.set_ylim(max(bottom, lowest_decade(axes)), TOP)
    axes.set_xlabel(xlabel)
    if log:
        axes.set_xscale("log")
    axes.margins(x=0.01)  # markers at both ends stay whole
    return figure


def _after_start(trace: Trace) -> Trace:
    return replace(trace, columns={name: column[1:] for name, column in trace.columns.items()})
