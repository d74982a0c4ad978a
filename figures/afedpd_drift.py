"""Figure 1 of the A-FedPD paper: what happens to primal-dual methods while ever fewer clients take part."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from dualopt.runs.trace import Trace
from figures._drift import CLIENTS, KINDS, RHO, drift_traces, name_of
from figures._panels import Panel, draw_panels
from figures._settings import Settings

__all__ = ["caption", "compute", "draw"]

TIME = "about 3 minutes"
PERCENTS = {False: (5, 10, 20, 50, 100), True: (10, 100)}
LEGEND = {
    "fedadmm": r"FedADMM, $\eta_s = 1$ (ends where $E$ explodes)",
    "active-fedadmm": "FedADMM as the A-FedPD paper has it",
    "feddyn": "FedDyn",
    "a-fedpd": "A-FedPD",
}
YLABELS = {"convex": r"$(E - E^*)/|E^*|$", "nonconvex": r"$|\nabla E|^2$"}
TOP = {"convex": 1e3, "nonconvex": 1e1}
CLEARLY = 1.1
HUGE = 1e3  # times the first energy: from there on a run has diverged, though its numbers be finite
LAST = 10  # rounds: their median is the level that a curve has reached


def compute(settings: Settings) -> dict[str, Trace]:
    """Run the primal-dual methods with the same ``rho`` on both problems and with all shares of active clients."""
    return drift_traces(settings, percents=PERCENTS[settings.quick], names=LEGEND)


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw error or stationarity over the rounds; one row per problem, one column per share of active clients."""
    percents = PERCENTS[settings.quick]
    rows = []
    for kind in KINDS:
        chosen = {p: {name: traces[name_of(kind, p, name)] for name in LEGEND} for p in percents}
        lowest = min(np.nanmin(t["error"][t["error"] > 0]) for row in chosen.values() for t in row.values())
        rows.append(
            [
                Panel(
                    lines={name: (trace["round"], trace["error"]) for name, trace in chosen[percent].items()},
                    title=f"{percent}%" if kind == KINDS[0] else "",
                    xlabel="rounds" if kind == KINDS[-1] else "",
                    ylabel=f"{kind}\n{YLABELS[kind]}" if percent == percents[0] else "",
                    ylim=(0.5 * lowest, TOP[kind]),
                )
                for percent in percents
            ]
        )
    title = f"{settings.title.partition(',')[0]}, shares of {CLIENTS} Dirichlet(0.3) clients, $\\rho=\\alpha$ = {RHO:g}"
    return draw_panels(rows, legend=LEGEND, title=title, width=settings.width)


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say in words, from the traces, which claims of the paper they bear out."""
    partial = [(kind, p) for kind in KINDS for p in PERCENTS[settings.quick] if p < 100]
    reached = {case: {name: level(traces[name_of(*case, name)]) for name in LEGEND} for case in partial}
    lost = sum(values["fedadmm"] == np.inf for values in reached.values())
    worse = sum(values["active-fedadmm"] > CLEARLY * values["a-fedpd"] for values in reached.values())
    ahead = sum(values["feddyn"] > CLEARLY * values["a-fedpd"] for values in reached.values())
    behind = sum(values["a-fedpd"] > CLEARLY * values["feddyn"] for values in reached.values())
    return (
        f"Of the {len(partial)} panels with partial participation, FedADMM (server step 1) diverges in {lost}, the "
        f"paper's form of it is clearly behind A-FedPD in {worse}; A-FedPD is clearly ahead of FedDyn in {ahead} and "
        f"clearly behind it in {behind} (a factor above {CLEARLY:g} between the medians of the last {LAST} rounds)."
    )


def level(trace: Trace) -> float:
    """Return the median error of the last rounds, infinite for a run that diverged, or ends at a huge energy.

    Examples
    --------
    >>> columns = {"round": range(3), "error": [9.0, 3.0, 1.0], "energy": [2.0, 1.0, 0.5]}
    >>> level(Trace(columns=columns, status="max_rounds", theta=None))
    3.0
    >>> level(Trace(columns=columns, status="diverged", theta=None))
    inf
    >>> level(Trace(columns=columns | {"energy": [2.0, 1e4, 1e9]}, status="max_rounds", theta=None))
    inf
    """
    energy = trace["energy"]
    explodes = trace.status == "diverged" or not energy[-1] <= HUGE * abs(energy[0])
    return float(np.inf if explodes else np.median(trace["error"][-LAST:]))
