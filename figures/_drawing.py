"""What the pictures of DualFL share: errors over rounds, dashed outside the range of its theorem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dualopt.runs import plotting
from dualopt.runs.trace import Trace

__all__ = ["draw_errors", "drawable", "in_range", "lowest_decade", "parameter"]

FLOOR = 1e-14  # below it, errors are rounding
MOST, TOP = 1e-2, 1e1  # the lower end is where the curves end, but at most this


def parameter(trace: Trace, name: str) -> float:
    """Return a hyperparameter of the method that made the trace."""
    (parameters,) = trace.parameters["hyperparameters"].values()
    return float(parameters[name])


def in_range(trace: Trace) -> bool:
    r"""Tell whether the method said that Theorem 3.3 covers it: :math:`0 < \rho \le \nu / L`, the largest ``L_j``."""
    return trace.parameters["guarantee"].startswith("Theorem 3.3")


def draw_errors(traces: Mapping[str, Trace], *, title: str, legend: Mapping[str, str], width: str = "page") -> Figure:
    """Draw relative energy errors over rounds, dashed where ``rho`` is outside the range of Theorem 3.3.

    Parameters
    ----------
    traces : dict of str to Trace
        The curves.
    title : str
        Title of the figure.
    legend : dict of str to str
        The words of each curve.
    width : {"column", "page"}
        Of the figure.
    """
    shown = {label: drawable(trace) for label, trace in traces.items()}
    figure = plotting.convergence(shown, y="error", title=title, width=width)
    (axes,) = figure.axes
    for label, line in zip(traces, axes.lines, strict=True):
        line.set_label(legend[label])
        line.set_linestyle("-" if in_range(traces[label]) else (0, (5, 2)))
    axes.set_ylim(lowest_decade(axes), TOP)
    axes.margins(x=0.01)  # markers at both ends stay whole
    return figure


def lowest_decade(axes: Axes) -> float:
    """Return the power of ten below the lowest point of the curves, but at most ``MOST``."""
    heights = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines])
    return min(MOST, float(10.0 ** np.floor(np.log10(np.nanmin(heights)))))


def drawable(trace: Trace) -> Trace:
    """Return the trace without errors that are rounding."""
    error = trace["error"]
    return replace(trace, columns={**trace.columns, "error": np.where(error < FLOOR, np.nan, error)})
