"""Pictures of traces: logarithmic, readable without colour, and the same style for a method in every picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from dualopt.runs.plotting.labels import name_curves
from dualopt.runs.plotting.page import Picture, panels, styled, titled
from dualopt.runs.plotting.palette import Style, numbered, proper_name, styles
from dualopt.runs.plotting.widths import check_width
from dualopt.runs.trace import Trace

__all__ = ["LABELS", "convergence", "curve", "single_run"]

MARKS_PER_LINE = 12
HEIGHTS = {"page": 4.0, "column": 2.6, "panel": 2.8}  # inches of one panel, and of one of several
DRAWN = (1e-200, 1e200)  # beyond, the ticks of Matplotlib overflow

SHARES = ("test_accuracy",)  # of what is right: the rest is drawn, which tells good models apart

LABELS = {
    "round": "rounds",
    "communications": "communication rounds",
    "gradients": "local gradients per client",
    "floats_up": "numbers uploaded by all clients",
    "floats_down": "numbers sent to all clients",
    "bits_up": "bits uploaded by all clients",
    "bits_down": "bits sent to all clients",
    "bits_measuring_up": "bits uploaded to measure and certify",
    "bits_measuring_down": "bits sent to measure and certify",
    "seconds": "seconds of computing",
    "energy": r"energy $E$",
    "error": r"relative error $(E - E^*)/|E^*|$",
    "certificate": r"certified bound of $E - E^*$",
    "certified_error": r"certified bound of $(E - E^*)/E^*$",
    "gradient_norm": r"gradient norm $|\nabla E|$",
    "test_accuracy": "share of the test data that is mistaken",
}


def convergence(
    traces: Mapping[str, Trace],
    *,
    x: str | Sequence[str] = "round",
    y: str = "certified_error",
    title: str | None = None,
    width: str = "page",
    figsize: tuple[float, float] | None = None,
    ax: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw one curve per trace, logarithmic in ``y``; of an accuracy, what is missing to 1.

    Names of methods are written as in papers. A name stands at the end of its curve, where there is room for all in the
    last panel; else there is a legend. What the user has set in ``rcParams`` counts.

    Parameters
    ----------
    traces : dict of str to Trace
        The label of each curve and what it shows.
    x : str or sequence of str, default "round"
        Columns for the horizontal axis; several give panels side by side.
    y : str, default "certified_error"
        Column for the vertical axis. Numbers that have no logarithm (infinite, zero, negative by rounding), or are
        beyond 1e200 or below 1e-200, are left out.
    title : str, optional
        Title of the figure.
    width : {"column", "page"}, default "page"
        Of the figure: 3.5 or 7.2 inches.
    figsize : (float, float), optional
        Its width and height in inches, instead.
    ax : Axes or sequence of Axes, optional
        Where to draw, one for each column ``x``; a new figure when not given.

    Returns
    -------
    Figure
        That of ``ax``, else a new one, which belongs to no window: a notebook shows it, and :func:`save` writes it.

    Raises
    ------
    ValueError
        If there is no trace, a trace has no such column, the width is none of the two, or there are not as many axes as
        columns ``x``.

    Examples
    --------
    >>> trace = Trace(columns={"round": [0, 1], "energy": [1.0, 0.5]}, status="max_rounds", theta=None)
    >>> figure = convergence({"dualfl": trace}, y="energy")
    >>> figure.axes[0].get_yscale(), figure.axes[0].lines[0].get_label()
    ('log', 'DualFL')
    """
    if not traces:
        raise ValueError("traces must hold at least one trace.")
    columns = [x] if isinstance(x, str) else list(x)
    for label, trace in traces.items():
        for name in (*columns, y):
            if name not in trace.columns:
                raise ValueError(f"column {name!r} is not in trace {label!r}, which has {', '.join(trace.columns)}.")
    look = styles(traces, {label: str(trace.parameters.get("algorithm", "")) for label, trace in traces.items()})
    with styled():
        figure, grid = _panels(len(columns), title, width, figsize, ax)
        for axes, column in zip(grid, columns, strict=True):
            for position, (label, trace) in enumerate(traces.items()):
                curve(axes, trace[column], _heights(trace, y), look[label], proper_name(label), offset=position)
            _name_x(axes, column)
        grid[0].set_ylabel(LABELS.get(y, y))
        _named(figure, grid)
    return figure


def single_run(
    trace: Trace,
    *,
    x: str = "round",
    title: str | None = None,
    width: str = "page",
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw one run: the certified bound and, when the trace knows ``E*``, the error below it.

    Where no relative error is certified, because ``E*`` may be 0, it is the certified gap. Where nothing is, because
    ``E`` is not strongly convex, it is what is missing to the accuracy on test data
    if that was measured, else the norm of the gradient if it was, else the energy.

    Parameters
    ----------
    trace : Trace
        With the column ``certified_error``, and perhaps the others.
    x : str, default "round"
        Column for the horizontal axis.
    title, width, figsize, ax
        As in :func:`convergence`.

    Examples
    --------
    >>> columns = {"round": [0, 1], "certified_error": [0.3, 0.1], "error": [0.2, 0.05]}
    >>> figure = single_run(Trace(columns=columns, status="max_rounds", theta=None))
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['certified bound', 'error']
    """
    column = _telling(trace)
    relative = column == "certified_error"
    curves = {"certified bound": column, "error": "error"} if relative else {LABELS[column]: column}
    with styled():
        figure, (axes,) = _panels(1, title, width, figsize, ax)
        for i, (label, name) in enumerate(curves.items()):
            if name in trace.columns:
                curve(axes, trace[x], _heights(trace, name), numbered(i), label, offset=i)
        _name_x(axes, x)
        axes.set_ylabel(r"relative error of $E$" if relative else LABELS[column])
        if relative:
            _named(figure, [axes])
    return figure


def curve(
    axes: Axes,
    x: np.ndarray,
    y: np.ndarray,
    style: Style,
    label: str,
    *,
    offset: int,
    marks: int = MARKS_PER_LINE,
    **options: Any,
) -> None:
    """Draw what has a logarithm, with markers that are seen where curves coincide.

    Parameters
    ----------
    axes : Axes
        Where.
    x, y : array
        The points.
    style : Style
        Colour, marker and dashes.
    label : str
        The name.
    offset : int
        Number of the curve on these axes: their markers begin one after the other.
    marks : int, default 12
        About how many markers a curve has.
    **options
        What else :meth:`matplotlib.axes.Axes.plot` takes.
    """
    drawable = (y > DRAWN[0]) & (y < DRAWN[1])
    x, y = x[drawable], y[drawable]  # a certificate of every tenth round has NaN in between: join what there is
    every = max(1, len(y) // marks)
    label = f" {label}" if label.startswith("_") else label  # a legend leaves out what begins with an underscore
    axes.plot(x, y, label=label, markevery=(offset % every, every), **{**style._asdict(), **options})


def _heights(trace: Trace, name: str) -> np.ndarray:
    return 1.0 - trace[name] if name in SHARES else trace[name]


def _telling(trace: Trace) -> str:
    """Name the column that says most about one run: the first of these that is a curve, not a single number."""
    candidates = ("certified_error", "certificate", "test_accuracy", "gradient_norm", "energy")
    curves = (name for name in candidates if name in trace.columns and np.isfinite(trace[name]).sum() > 1)
    return next(curves, "energy")


def _panels(
    count: int,
    title: str | None,
    width: str,
    figsize: tuple[float, float] | None,
    ax: Axes | Sequence[Axes] | None,
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, or those of the user."""
    check_width(width)
    if ax is None:
        height = HEIGHTS[width] if count == 1 else HEIGHTS["panel"]
        figure, grid = panels(1, count, height=height, width=width, sharey=True, figsize=figsize)
        titled(figure, title)
        found = list(grid.flat)
    else:
        found = [ax] if isinstance(ax, Axes) else list(ax)
        if len(found) != count:
            raise ValueError(f"ax must be one for each column x: {count}, not {len(found)}.")
        figure = found[0].get_figure(root=True)
        assert figure is not None
        if title is not None:
            found[0].set_title(title)
    for axes in found:
        axes.set_yscale("log")
    return figure, found


def _named(figure: Figure, grid: Sequence[Axes]) -> None:
    """Name the curves: of a new picture when it is drawn for the first time, as axes may change before."""
    if isinstance(figure, Picture):
        figure.unnamed.append(grid)
    else:
        name_curves(grid)


def _name_x(axes: Axes, column: str) -> None:
    axes.set_xlabel(LABELS.get(column, column))
    if column in ("round", "communications"):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    elif column.startswith(("floats", "bits")):
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))  # 300k instead of 300000
