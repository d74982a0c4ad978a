"""Theorem 2 of FedPD v1: on a zero chain the server gains one entry per communication, whatever the clients compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dualopt.runs.plotting import style, style_axes
from dualopt.runs.trace import Trace
from figures._settings import Settings
from theory._cases import Case
from theory.lower_bounds._races import STEPS, CentralisedFedAvg, races, reach

__all__ = ["caption", "compute", "draw", "tabulate"]

TIME = "3 seconds"
CLIENTS = 6
ENTRIES = {False: 24, True: 8}
BEYOND = 8  # communications after the last entry has opened
CHEAT = "FedAvg that reads gradients"
LOOKS = {
    "FedAvg": style("fedavg"),
    "SCAFFOLD": style("scaffold"),
    "Scaffnew": style("scaffnew"),
    "FedPD": style("fedpd"),
    "FedDyn": style("feddyn"),
    "FedAvg, long steps": ("#E69F00", "h"),
    "A-FedPD, half": style("a-fedpd"),
    "linear span": ("#8C6BB1", "*"),
    CHEAT: ("#8B0000", "d"),
}
LEGEND = {
    "A-FedPD, half": "A-FedPD, half of the clients",
    "linear span": "a random linear-span method",
    CHEAT: "FedAvg whose clients read all gradients",
}


def compute(settings: Settings) -> dict[str, Trace]:
    r"""Return the entries that are not zero and :math:`|\nabla E|^2` over the communications, by method.

    Six clients, split by thirds, ``L = eps = 1``; 20 local gradient steps between two communications.
    """
    d = ENTRIES[settings.quick]
    return {name: _trace(race) for name, race in _races(d)}


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw both over the communications; what no linear-span method can reach is shaded."""
    figure = Figure(figsize=(10.0, 4.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    d, end = int(next(iter(traces.values())).parameters["entries"]), 0
    for place, (name, trace) in enumerate(traces.items()):
        colour, marker = LOOKS[name]
        end = len(trace) - 1
        every = (place % 4, 4)  # of lines that coincide, each shows its markers
        for axes, column in ((left, "entries"), (right, "squared_gradient")):
            axes.plot(
                trace["communications"],
                trace[column],
                color=colour,
                marker=marker,
                markersize=6,
                markevery=every,
                linewidth=1.3,
                label=LEGEND.get(name, name),
            )
    n = np.arange(end + 1)
    left.fill_between(n, np.minimum(n, d), d, where=n <= d, color="0.92", zorder=0)
    words = {"color": "0.35", "ha": "center", "fontsize": "small"}
    left.text(0.54 * d, 0.84 * d, "out of reach for\nlinear-span methods", **words)
    arrow = {"arrowstyle": "-", "color": "0.6", "shrinkB": 6}
    left.annotate("one entry per communication", (0.3 * d, 0.3 * d), (0.75 * d, 0.2 * d), arrowprops=arrow, **words)
    left.set_ylabel("entries of the model that are not zero")
    left.set_ylim(0, 1.06 * d)
    right.set_yscale("log")
    bottom = 0.5 * min(float(np.min(trace["squared_gradient"])) for trace in traces.values())
    right.fill_between([0, d - 1], bottom, 1.0, color="0.92", zorder=0)
    right.text(0.5 * (d - 1), 3.0 * bottom, f"out of reach for\nT = {d - 1} communications", **words)
    right.set_ylim(bottom=bottom)
    right.set_ylabel(r"$|\nabla E|^2 / \epsilon$ of the server's model")
    for axes in (left, right):
        _finish(axes, end)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    title = f"Zero chain of {d} entries, {CLIENTS} clients, {STEPS} local gradient steps per communication"
    figure.suptitle(title, fontsize="medium")
    return figure


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return, for each method, the entries after some communications, and when they are all open and eps is reached."""
    rows = []
    for name, trace in traces.items():
        d = trace.parameters["entries"]
        rows.append(
            {
                "method": name,
                **{f"entries after {n}": f"{trace['entries'][n]:g}" for n in (1, 2, 5)},
                "all entries": _first(trace["entries"] >= d),
                "|grad E|^2 < eps": _first(trace["squared_gradient"] < 1.0),
            }
        )
    return rows


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say in words, from the traces, whether the bound was kept and by how little."""
    reached = {name: _first(trace["squared_gradient"] < 1.0) for name, trace in traces.items()}
    d = next(iter(traces.values())).parameters["entries"]
    honest = [int(first) for name, first in reached.items() if name != CHEAT and first != "-"]
    words = f"The bound is {d} communications to |grad E|^2 < eps"
    if honest:
        words += f", the fastest method needs {min(honest)}"
    return words + (f" and the one that cheats {reached[CHEAT]}." if reached[CHEAT] != "-" else ".")


def _races(d: int) -> Iterator[tuple[str, Case]]:
    chosen = {race.name: race for race in races(CLIENTS, d) if race.name in LOOKS}
    yield from chosen.items()
    fair = chosen["FedAvg"]
    yield CHEAT, fair.but(algorithm=CentralisedFedAvg(solver=fair.algorithm.solver, stop=fair.algorithm.stop))


def _trace(race: Case) -> Trace:
    rows = [(0.0, 0.0, race.squared_gradient(race.objective.zeros()))]
    for n, shot in enumerate(race.but(rounds=race.objective.shape[0] + BEYOND).snapshots(), start=1):
        theta = shot.server.theta
        rows.append((float(n), float(reach(theta)), race.squared_gradient(theta)))
    communications, entries, squares = (list(column) for column in zip(*rows, strict=True))
    columns = {"communications": communications, "entries": entries, "squared_gradient": squares}
    return Trace(
        columns=columns,
        status="max_rounds",
        theta=None,
        parameters={"entries": race.objective.shape[0], "method": race.name},
    )


def _first(there: np.ndarray) -> str:
    """Return the first communication with a property, or a dash."""
    return str(int(np.argmax(there))) if np.any(there) else "-"


def _finish(axes: Axes, end: int) -> None:
    axes.set_xlim(0, end)
    axes.set_xlabel("communication rounds")
    style_axes(axes)
