"""Figure 2 of the FedPD paper: runs, picture and table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dualopt.engine.rounds import Snapshot
from dualopt.runs.plotting import style, style_axes
from dualopt.runs.trace import Trace
from figures._curves import Curve, Problem, stationarity, trace_curves
from figures._fedpd_methods import methods, problem
from figures._settings import Settings

__all__ = ["compute_gaps", "draw_gaps", "tabulate"]

ROUNDS = 600
MARKS = 9
LEVELS = (1e-6, 1e-9)
TAIL = 10  # rounds: stochastic curves scatter

# As in the paper, a colour for each family, that of the method in all figures; the marker tells its members apart.
FEDPD, FEDAVG = style("fedpd"), style("fedavg")
LOOKS = {
    "FedPD-GD, p = 0": (*FEDPD, "-"),
    "FedPD-GD, p = 0, Algorithm 2": ("#0072B2", "x", "--"),
    "FedPD-GD, p = 0.5": (FEDPD[0], "v", "-"),
    "FedPD-VR": ("#56B4E9", "D", "-"),
    "FedPD-SGD": ("#56B4E9", "P", ":"),
    "FedAvg-GD": (*FEDAVG, "-"),
    "FedAvg-SGD": (FEDAVG[0], "s", ":"),
    "FedProx-VR": (*style("fedprox"), "-"),
}


def compute_gaps(data: str, settings: Settings, **options: Any) -> dict[str, Trace]:
    r"""Return the trace of every curve.

    Row ``n`` is the state before round ``n``: the column ``error`` is :math:`|\nabla E|^2` at the server's model, for
    FedPD at the mean of the clients' :math:`x_{0,j}`, which rounds without communication move too; ``communications``
    counts the averages so far, ``floats_up`` and ``floats_down`` the numbers sent, ``gradients`` the passes over a
    client's rows.
    """
    objective = problem(data, **options)
    at_start = stationarity(objective, objective.zeros())
    shared = Problem(
        # with other rows the gradient at the start would be another
        description={"figure": "fedpd_fig2", "data": data, **options, "at_start": f"{at_start:.10e}"},
        build=lambda: objective,
        options=lambda f: {"measure": {"error": lambda snapshot: stationarity(f, _model(snapshot))}},
    )
    rounds = min(settings.rounds, ROUNDS) if settings.quick else ROUNDS
    curves = {
        label: Curve(problem=shared, algorithm=algorithm, participation=participation, rounds=rounds)
        for label, (algorithm, participation) in methods(settings.quick).items()
    }
    return trace_curves(curves, settings)


def draw_gaps(traces: Mapping[str, Trace], title: str) -> Figure:
    """Draw the stationarity over the communications and over the rounds, which differ where some are skipped."""
    figure = Figure(figsize=(9.6, 5.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, column in zip(panels, ("communications", "round"), strict=True):
        for position, (label, trace) in enumerate(traces.items()):
            colour, marker, line = LOOKS[label]
            every = max(1, len(trace) // MARKS)
            axes.semilogy(
                trace[column],
                trace["error"],
                color=colour,
                linestyle=line,
                marker=marker,
                markersize=5,
                markevery=(position * every // len(traces), every),  # lines that coincide all show
                linewidth=1.3,
                label=label,
            )
        axes.set_xlabel("communications" if column == "communications" else "rounds, with or without communication")
        style_axes(axes)
    panels[0].set_ylabel(r"$|\nabla E|^2$")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(title, fontsize="medium")
    return figure


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return for every curve how far it comes, and what it takes to fall below two levels."""
    rows = []
    for label, trace in traces.items():
        row = {"curve": label, "rounds": f"{trace.last['round']:.0f}"}
        row |= {name: f"{trace.last[name]:.0f}" for name in ("communications", "gradients")}
        row["floats up"] = f"{trace.last['floats_up']:.2e}"
        for level in LEVELS:
            n = trace.first_below("error", level)
            row[f"to {level:.0e}"] = "-" if n is None else f"{n} ({trace['communications'][n]:.0f})"
        tail = trace["error"][-TAIL:]
        rows.append(row | {f"median of the last {TAIL}": f"{np.median(tail):.1e}", "largest": f"{tail.max():.1e}"})
    return rows


def _model(snapshot: Snapshot) -> Any:
    copies = getattr(snapshot.clients, "x0", None)
    return snapshot.server.theta if copies is None else np.mean(copies, axis=0)
