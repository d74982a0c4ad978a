"""Figure 2 (b) of the FedPD paper: on strongly non-iid clients, which methods reach a stationary point."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from dualopt.runs.trace import Trace
from figures._fedpd import compute_gaps, draw_gaps, tabulate
from figures._settings import Settings

__all__ = ["compute", "draw", "tabulate"]

TIME = "about 3 minutes"


def compute(settings: Settings) -> dict[str, Trace]:
    """Run every method on clients with a model each, drawn by the recipe of the authors' code."""
    return compute_gaps("synthetic-fedpd-strong", settings, recipe="code")


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the squared norm of the gradient."""
    return draw_gaps(
        traces, "Penalised logistic regression, 100 clients with a model each (strongly non-iid)", settings.width
    )
