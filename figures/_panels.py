"""Panels side by side that share a legend: one line per method, in the method's own style."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from dualopt.runs import plotting

__all__ = ["Panel", "draw_panels", "plain_ticks"]

MARKS = 6
LETTERS_PER_INCH = 13  # of a title
NARROW = 4.0  # between the ends of an axis that is too short for ticks at 1, 2 and 5


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What one panel shows.

    Parameters
    ----------
    lines : dict of str to (array, array)
        The method's name, and its line.
    title, xlabel, ylabel : str
        Words around it.
    ylim : (float, float), optional
        Limits of the vertical axis; lines may leave the panel.
    level : float, optional
        Where a dashed horizontal line is.
    """

    lines: Mapping[str, tuple[np.ndarray, np.ndarray]]
    title: str = ""
    xlabel: str = ""
    ylabel: str = ""
    ylim: tuple[float, float] | None = None
    level: float | None = None


def draw_panels(
    rows: Sequence[Sequence[Panel]], *, legend: Mapping[str, str], title: str, width: float = 2.5, share_y: bool = True
) -> Figure:
    """Draw logarithmic panels.

    Parameters
    ----------
    rows : sequence of sequence of Panel
        Rows of equal lengths.
    legend : dict of str to str
        The words of each method, in the order in which they are listed.
    title : str
        Title of the figure, its findings included; long lines are wrapped at spaces, so formulas must hold none.
    width : float, default 2.5
        Of a panel, in inches.
    share_y : bool, default True
        Whether the panels of one row share their vertical axis.
    """
    columns = len(rows[0])
    figure = Figure(figsize=(1.6 + width * columns, 1.5 + 2.6 * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), columns, sharex="col", sharey="row" if share_y else "none", squeeze=False)
    look = plotting.styles(legend)
    for panels, axes_of_row in zip(rows, grid, strict=True):
        for panel, axes in zip(panels, axes_of_row, strict=True):
            axes.set_yscale("log")
            plotting.style_axes(axes)
            axes.set_title(panel.title, fontsize="medium")
            axes.set_xlabel(panel.xlabel)
            axes.set_ylabel(panel.ylabel)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True, steps=[1, 2, 5, 10]))
            for position, (name, (x, y)) in enumerate(panel.lines.items()):
                colour, marker = look[name]
                drawable = np.isfinite(y) & (y > 0)
                every = max(1, int(drawable.sum()) // MARKS)
                axes.plot(
                    x[drawable],
                    y[drawable],
                    color=colour,
                    marker=marker,
                    markersize=4.5,
                    markevery=(position * every // max(1, len(panel.lines)), every),  # lines that coincide all show
                    linestyle=plotting.dashes(colour, marker),
                    linewidth=1.3,
                    label=legend[name],
                )
            if panel.level is not None:
                axes.axhline(panel.level, color="0.4", linestyle=(0, (5, 3)), linewidth=1.0, zorder=1)
            if panel.ylim is not None:
                axes.set_ylim(*panel.ylim)
    handles, labels = max((axes.get_legend_handles_labels() for axes in grid.flat), key=lambda found: len(found[0]))
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), columns + 1), frameon=False)
    figure.suptitle("\n".join(_wrapped(line, figure) for line in title.splitlines()), fontsize="medium")
    return figure


def _wrapped(line: str, figure: Figure) -> str:
    return textwrap.fill(line, int(LETTERS_PER_INCH * figure.get_figwidth()), break_on_hyphens=False)


def plain_ticks(axes: Axes) -> None:
    """Label a short logarithmic vertical axis with plain numbers, 1, 2, 5 or round ones."""
    bottom, top = axes.get_ylim()
    narrow = top < NARROW * bottom
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6) if narrow else LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
