"""Figure 7 of the A-FedPD paper: the ratio of primal to dual residuals while a tenth of the clients take part."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from dualopt.runs.trace import Trace
from figures._drift import CLIENTS, KINDS, RHO, drift_traces, name_of
from figures._panels import Panel, draw_panels
from figures._settings import Settings

__all__ = ["caption", "compute", "draw"]

TIME = "about 1 minute"
PERCENT = 10
LEGEND = {
    "fedadmm": r"FedADMM, $\eta_s = 1$",
    "active-fedadmm": "FedADMM as the A-FedPD paper has it",
    "feddyn": "FedDyn",
    "a-fedpd": "A-FedPD",
    "fedavg": "FedAvg, 10 local steps",
}
SHORT = {
    "fedadmm": "FedADMM",
    "active-fedadmm": "FedADMM (paper)",
    "feddyn": "FedDyn",
    "a-fedpd": "A-FedPD",
    "fedavg": "FedAvg",
}
WINDOW = 10  # rounds of a geometric mean: with chance in every round, single ratios scatter


def compute(settings: Settings) -> dict[str, Trace]:
    """Run the methods on both problems with 10% participation; the runs are those of ``afedpd_drift``."""
    return drift_traces(settings, percents=(PERCENT,), names=LEGEND)


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the ratio over the rounds, averaged over the last ones."""
    panels = []
    for kind in KINDS:
        chosen = {name: traces[name_of(kind, PERCENT, name)] for name in LEGEND}
        lines = {name: (trace["round"][WINDOW:], smoothed(ratio(trace))) for name, trace in chosen.items()}
        ylabel = r"$p^t / d^t$" if kind == KINDS[0] else ""
        panels.append(Panel(lines=lines, title=kind, xlabel="rounds $t$", ylabel=ylabel))
    data = settings.title.partition(",")[0]
    where = f"{data}, {PERCENT}% of {CLIENTS} Dirichlet(0.3) clients, $\\rho$ = {RHO:g}"
    return draw_panels([panels], legend=LEGEND, title=where, width=settings.width, height=2.6, plain=True)


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say what the residuals are, and put the methods in order."""
    found = "; ".join(f"{kind}: {order(traces, kind)}" for kind in KINDS)
    lost = any(traces[name_of(kind, PERCENT, name)].status == "diverged" for kind in KINDS for name in LEGEND)
    return (
        "Primal residual p = mean of |theta - theta_j|, dual residual d = rho |theta - theta before|, averaged over "
        f"{WINDOW} rounds. Median ratios p/d over the second half of the rounds, {found}."
        + (" A star: the run diverged." if lost else "")
    )


def ratio(trace: Trace) -> np.ndarray:
    """Return ``p^t / d^t`` of every round, from the first on.

    Examples
    --------
    >>> columns = {"round": range(3), "primal": [np.nan, 4.0, 3.0], "dual": [np.nan, 2.0, 0.0]}
    >>> ratio(Trace(columns=columns, status="max_rounds", theta=None)).tolist()
    [2.0, nan]
    """
    primal, dual = trace["primal"][1:], trace["dual"][1:]
    return primal / np.where(dual > 0, dual, np.nan)


def smoothed(ratios: np.ndarray) -> np.ndarray:
    """Return the geometric means over ``WINDOW`` rounds in a row, none when there are fewer rounds."""
    if len(ratios) < WINDOW:
        return ratios[:0]
    return np.exp(np.convolve(np.log(ratios), np.full(WINDOW, 1.0 / WINDOW), mode="valid"))


def order(traces: Mapping[str, Trace], kind: str) -> str:
    """Name the methods from the smallest median ratio to the largest, a star at those that diverged."""
    own = {name: traces[name_of(kind, PERCENT, name)] for name in LEGEND}
    ratios = {name: ratio(trace) for name, trace in own.items()}
    medians = {name: float(np.nanmedian(values[len(values) // 2 :])) for name, values in ratios.items()}
    stars = {name: "*" if trace.status == "diverged" else "" for name, trace in own.items()}
    return ", ".join(
        f"{SHORT[name]}{stars[name]} {medians[name]:.1f}" for name in sorted(medians, key=medians.__getitem__)
    )
