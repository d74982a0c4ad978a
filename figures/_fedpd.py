"""Figure 2 of the FedPD paper: runs, picture and table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dualopt.engine.rounds import Snapshot
from dualopt.runs import plotting
from dualopt.runs.trace import Trace
from figures._curves import Curve, Problem, stationarity, trace_curves
from figures._fedpd_methods import methods, problem
from figures._settings import Settings

__all__ = ["compute_gaps", "draw_gaps", "tabulate"]

ROUNDS = 600
MARKS = 9
LEVELS = (1e-6, 1e-9)
TAIL = 10  # rounds: stochastic curves scatter

METHODS = {"FedPD-GD, p = 0": "fedpd", "FedAvg-GD": "fedavg", "FedProx-VR": "fedprox"}  # whose styles they have
LABELS = (
    "FedPD-GD, p = 0",
    "FedPD-GD, p = 0, Algorithm 2",
    "FedPD-GD, p = 0.5",
    "FedPD-VR",
    "FedPD-SGD",
    "FedAvg-GD",
    "FedAvg-SGD",
    "FedProx-VR",
)


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


def draw_gaps(traces: Mapping[str, Trace], title: str, width: str) -> Figure:
    """Draw the stationarity over the communications and over the rounds, which differ where some are skipped."""
    figure, grid = plotting.panels(1, 2, height=3.4, width=width, sharey=True)
    looks = plotting.styles(LABELS, METHODS)
    for axes, column in zip(grid.flat, ("communications", "round"), strict=True):
        for position, (label, trace) in enumerate(traces.items()):
            plotting.curve(axes, trace[column], trace["error"], looks[label], label, offset=position, marks=MARKS)
        axes.set_yscale("log")
        axes.set_xlabel("communications" if column == "communications" else "rounds, with or without communication")
    grid[0, 0].set_ylabel(r"$|\nabla E|^2$")
    plotting.titled(figure, title)
    figure.unnamed.append(list(grid.flat))
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
