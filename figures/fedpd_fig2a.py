"""Figure 2 (a) of the FedPD paper: on weakly non-iid clients, which methods reach a stationary point."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from dualopt.runs.trace import Trace
from figures._fedpd import compute_gaps, draw_gaps, tabulate
from figures._settings import Settings

__all__ = ["compute", "draw", "tabulate"]

TIME = "about 2 minutes"


def compute(settings: Settings) -> dict[str, Trace]:
    """Run every method on clients with random labels."""
    return compute_gaps("synthetic-fedpd-weak", settings)


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the squared norm of the gradient."""
    return draw_gaps(
        traces, "Penalised logistic regression, 100 clients with random labels (weakly non-iid)", settings.width
    )
