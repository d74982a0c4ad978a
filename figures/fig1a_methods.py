"""Figure 1 (a, d) of the DualFL paper: DualFL and the methods that it is compared with, all tuned."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from dualopt.runs.trace import Trace
from figures._methods import LEVELS, draw_methods, first_cost, level_name, method_traces, title, tuning
from figures._settings import Settings

__all__ = ["caption", "compute", "draw", "tabulate"]

TIME = "about 5 minutes"
AFTER = (1, 3, 5, 10, 30, 100)


def compute(settings: Settings) -> dict[str, Trace]:
    """Tune every method over the grid of Table 2 on a part of the rows, and run the winners on all of them."""
    return method_traces(settings)


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the error over the communication rounds."""
    return draw_methods(traces, settings, x="communications", xlabel="communication rounds")


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say how the methods were tuned."""
    return tuning(settings)


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return errors after some communications, and communications to some errors.

    ``part`` is the number of communications to 1e-6 on the part of the rows that served for tuning.
    """
    rows = []
    for name, trace in traces.items():
        part, error = (
            trace.parameters["search"]["part"],
            dict(zip(trace["communications"], trace["error"], strict=True)),
        )
        row = {"method": title(name), "part": "-" if part is None else f"{part}"}
        row |= {f"at {n}": f"{error[n]:.1e}" if n in error else "-" for n in AFTER}
        costs = {level_name(level): first_cost(trace, "communications", level) for level in LEVELS}
        rows.append(row | {level: "-" if cost is None else f"{cost:.0f}" for level, cost in costs.items()})
    return rows
