"""What Figure 1 (a, d) of the DualFL paper leaves out: the error against the numbers that were sent."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from dualopt.runs.trace import Trace
from figures._methods import cost_table, draw_methods, method_traces, tuning
from figures._settings import Settings

__all__ = ["caption", "compute", "draw", "tabulate"]

TIME = "about 5 minutes"


def compute(settings: Settings) -> dict[str, Trace]:
    """Return the traces of ``fig1a_methods``."""
    return method_traces(settings)


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the error over the numbers that were sent."""
    return draw_methods(traces, settings, x="floats", xlabel="numbers sent, up and down")


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say how the methods were tuned."""
    return tuning(settings)


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return the numbers that were sent up to some errors, and in the whole run."""
    return cost_table(traces, "floats")
