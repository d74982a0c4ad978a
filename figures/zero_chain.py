"""Theorem 2 of FedPD v1: on a zero chain the server gains one entry per communication, whatever the clients compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dualopt.runs import plotting
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
METHODS = {"A-FedPD, half": "a-fedpd"}  # whose style it has
LABELS = (
    *("FedAvg", "SCAFFOLD", "Scaffnew", "FedPD", "FedDyn"),
    *("FedAvg, long steps", "A-FedPD, half", "linear span", CHEAT),
)
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
    figure, ((left, right),) = plotting.panels(1, 2, height=3.6, width=settings.width)
    looks = plotting.styles(LABELS, METHODS)
    d, end = int(next(iter(traces.values())).parameters["entries"]), 0
    for place, (name, trace) in enumerate(traces.items()):
        end = len(trace) - 1
        every = (place % 4, 4)  # of lines that coincide, each shows its markers
        for axes, column in ((left, "entries"), (right, "squared_gradient")):
            axes.plot(
                trace["communications"],
                trace[column],
                **looks[name]._asdict(),
                markevery=every,
                label=LEGEND.get(name, name),
            )
    n = np.arange(end + 1)
    left.fill_between(n, np.minimum(n, d), d, where=n <= d, color="0.92", zorder=0)
    words = {"color": "0.35", "ha": "center", "fontsize": 7.0}
    left.text(0.53 * d, 0.79 * d, "out of reach\nfor linear-span\nmethods", **words)
    arrow = {"arrowstyle": "-", "color": "0.6", "shrinkB": 6}
    left.annotate("one entry per\ncommunication", (0.3 * d, 0.3 * d), (0.95 * d, 0.2 * d), arrowprops=arrow, **words)
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
    figure.unnamed.append([left, right])
    title = f"Zero chain of {d} entries, {CLIENTS} clients, {STEPS} local gradient steps per communication"
    plotting.titled(figure, title)
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
    chosen = {race.name: race for race in races(CLIENTS, d) if race.name in LABELS}
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
