"""Figure 1 (e, f) of the DualFL paper with --data cifar10: more clients and other rho, beside L-BFGS on all rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dualopt.methods import FedAvg
from dualopt.runs import plotting
from dualopt.runs.trace import Trace
from dualopt.solvers import LBFGS
from dualopt.solvers.stopping import Steps
from figures import fig1b_clients, fig1c_rho
from figures._curves import Curve, data_problem, trace_curves
from figures._drawing import drawable, parameter
from figures._methods import first_cost, level_name
from figures._settings import Settings

__all__ = ["compute", "draw", "tabulate"]

TIME = "about 1 minute"
POOLED, BETTER = "L-BFGS", "L-BFGS, preconditioned"
LOWEST = 1e-10  # of the errors that are drawn
REFERENCES = {POOLED: "-", BETTER: ":"}
STEPS = 5  # of L-BFGS for a round of DualFL: a client takes about as many in a round
LEVELS = (1e-3, 1e-4, 1e-5, 1e-6)
AFTER = (1, 3, 10, 30, 100)
MARKS = 8


def compute(settings: Settings) -> dict[str, Trace]:
    """Run DualFL as in ``fig1b_clients`` and ``fig1c_rho``, and plain L-BFGS on all rows.

    Whoever has the rows at one place would take L-BFGS. Without, a server that averages gradients can run it too, one
    round for each gradient. The clients' own L-BFGS is preconditioned with the inverse of a Gram matrix, which takes
    the rows; for the work there is such a one on all rows beside it.
    """
    curves = {}
    for label in REFERENCES:
        # A client that is alone and keeps its curvature pairs from step to step: the average of its model is its model.
        alone = FedAvg(solver=LBFGS(precondition=label == BETTER), stop=Steps(steps=1))
        curves[label] = Curve(problem=data_problem(settings, 1), algorithm=alone, rounds=STEPS * settings.rounds)
    return fig1b_clients.compute(settings) | fig1c_rho.compute(settings) | trace_curves(curves, settings)


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the error over the rounds, by the number of clients and by ``rho``, and over passes over the rows."""
    figure, grid = plotting.panels(1, 3, height=2.6, width=settings.width, least=3.0, sharey=True)
    left, middle, right = grid.flat
    letters = "ef" if settings.data == "cifar10" else "bc"
    clients = {label: trace for label, trace in traces.items() if label.startswith("N")}
    rhos = {label: trace for label, trace in traces.items() if label.startswith("rho")}
    fewest = fig1c_rho.CLIENTS
    reference = {POOLED: traces[POOLED]}
    look = plotting.styles(list(rhos))
    _panel(
        left,
        clients | reference,
        plotting.styles(list(clients)),
        "round",
        f"({letters[0]}) clients, " + rf"$\rho$ = {settings.tuned_rho:g}",
    )
    _panel(middle, rhos | reference, look, "round", rf"({letters[1]}) $\rho$, {fewest} clients; dashed: in no theorem")
    chosen = (f"rho = {settings.tuned_rho:g}", fig1c_rho.SUGGESTED)
    work = {label: rhos[label] for label in chosen} | {label: traces[label] for label in REFERENCES}
    _panel(right, work, look, "gradients", f"work, {fewest} clients")
    for axes in (left, middle):
        axes.set_xlabel("communication rounds; of L-BFGS, gradients")
        axes.set_xlim(0, 1.02 * max(trace.last["round"] for trace in (clients | rhos).values()))
    right.set_xlabel("gradients of each client = passes over all rows")
    right.set_xlim(0, 1.05 * max(trace.last["gradients"] for label, trace in work.items() if label in rhos))
    left.set_ylabel(r"relative error $(E - E^*)/|E^*|$")
    lowest = min(float(np.nanmin(drawable(trace)["error"])) for trace in (clients | rhos).values())
    start = traces[POOLED]["error"][0]
    left.set_ylim(max(LOWEST, 10.0 ** np.floor(np.log10(lowest))), 10.0 ** np.ceil(np.log10(start)))
    for axes in (left, middle, right):
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
    rows = settings.whole.objective.sizes[0]
    plotting.titled(figure, rf"DualFL with $\nu = \mu$; {settings.title}, {rows:,} in all")
    figure.unnamed += [[axes] for axes in grid.flat]
    return figure


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return errors after some rounds, rounds to some errors, and gradients of a client in all.

    Of L-BFGS gradients are counted in place of rounds.
    """
    rows = []
    for label, trace in traces.items():
        column = "gradients" if label in REFERENCES else "round"
        costs = {level_name(level): first_cost(trace, column, level) for level in LEVELS}
        row = {"curve": label} | {f"at {n}": _after(trace, column, n) for n in AFTER}
        row |= {level: "-" if cost is None else f"{cost:.0f}" for level, cost in costs.items()}
        rows.append(row | {"gradients": f"{trace.last['gradients']:.0f}", "last": f"{trace.last['error']:.1e}"})
    return rows


def _after(trace: Trace, column: str, cost: int) -> str:
    """Return the last error that costs no more than this, ``-`` if the trace ends before."""
    spent = trace[column]
    return f"{trace['error'][spent <= cost][-1]:.1e}" if spent[-1] >= cost else "-"


def _panel(axes: Axes, traces: Mapping[str, Trace], look: Mapping[str, plotting.Style], x: str, title: str) -> None:
    for position, (label, trace) in enumerate(traces.items()):
        style = look.get(label, plotting.Style("0.4", "", REFERENCES.get(label)))
        if label not in REFERENCES:
            style = style._replace(linestyle=(0, (5, 2)) if trace.parameters["guarantee"].startswith("none") else "-")
        along = trace["gradients" if label in REFERENCES else x]
        error = drawable(trace)["error"]
        plotting.curve(axes, along, error, style, _words(label, trace), offset=position, marks=MARKS)
    axes.set_yscale("log")
    axes.set_title(title)


def _words(label: str, trace: Trace) -> str:
    if label in REFERENCES:
        return label.replace("L-BFGS", "L-BFGS on all rows")
    rho = parameter(trace, "rho")
    if label == fig1c_rho.SUGGESTED:
        return rf"$\rho = 1/\kappa$ = {rho:.2g}"
    return f"${label}$" if label.startswith("N") else rf"$\rho$ = {rho:g}"
