"""Beside Figure 1 (a) of the DualFL paper: the primal methods of Remark 7.1, all tuned, and DualFL."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from dualopt.runs.trace import Trace
from figures._methods import draw_methods, method_traces, tuning
from figures._settings import Settings
from figures._table2 import PRIMAL
from figures.fig1a_methods import tabulate as errors_after

__all__ = ["caption", "compute", "draw", "tabulate"]

TIME = "5 minutes"
NAMES = ("dualfl", *PRIMAL)


def compute(settings: Settings) -> dict[str, Trace]:
    """Tune FedAvg, FedCM, FedSAM and DualFL on a part of the rows, and run the winners on all of them.

    "We also conducted experiments with several primal federated learning algorithms such as FedAvg, FedCM, and FedSAM
    [...] we do not present their results as their performances were not competitive" (Remark 7.1). Grids are ours.
    """
    return method_traces(settings, NAMES)


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the error over the communication rounds."""
    return draw_methods(traces, settings, x="communications", xlabel="communication rounds")


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say how the methods were tuned."""
    return tuning(settings, untuned=False)


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return what was tuned, and the rows of ``fig1a_methods``."""
    rows = errors_after(traces)
    return [
        {"method": row["method"], "tuned": trace.parameters["search"]["tuned"], **row}
        for row, trace in zip(rows, traces.values(), strict=True)
    ]
