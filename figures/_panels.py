"""Panels side by side that share a legend: one line per method, in the method's own style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from dualopt.runs import plotting

__all__ = ["Panel", "draw_panels", "plain_ticks"]

MARKS = 6
LEAST, LEAST_WITH_TICKS = 1.3, 2.2  # inches that a panel takes
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
    rows: Sequence[Sequence[Panel]],
    *,
    legend: Mapping[str, str],
    title: str,
    width: str,
    height: float = 1.9,
    share_y: bool = True,
    plain: bool = False,
) -> Figure:
    """Draw logarithmic panels.

    Parameters
    ----------
    rows : sequence of sequence of Panel
        Rows of equal lengths.
    legend : dict of str to str
        The words of each method, in the order in which they are listed.
    title : str
        Title of the figure, its findings included; long lines are wrapped.
    width : {"column", "page"}
        Of the figure.
    height : float, default 1.9
        Of a panel, in inches.
    share_y : bool, default True
        Whether the panels of one row share their vertical axis.
    plain : bool, default False
        Whether vertical axes are short and have plain numbers.
    """
    least = LEAST if share_y else LEAST_WITH_TICKS
    shape = {"height": height, "width": width, "least": least}
    figure, grid = plotting.panels(len(rows), len(rows[0]), **shape, sharex=True, sharey=share_y)
    look = plotting.styles(legend)
    for panels, axes_of_row in zip(rows, grid, strict=True):
        for panel, axes in zip(panels, axes_of_row, strict=True):
            axes.set_yscale("log")
            axes.set_title(panel.title)
            axes.set_xlabel(panel.xlabel)
            axes.set_ylabel(panel.ylabel)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True, steps=[1, 2, 5, 10]))
            for position, (name, (x, y)) in enumerate(panel.lines.items()):
                plotting.curve(axes, x, y, look[name], legend[name], offset=position, marks=MARKS)
            if panel.level is not None:
                axes.axhline(panel.level, color="0.4", linestyle=(0, (5, 3)), linewidth=1.0, zorder=1, label="_level")
            if panel.ylim is not None:
                axes.set_ylim(*panel.ylim)
    for axes in grid.flat if plain else ():
        plain_ticks(axes)
    plotting.titled(figure, title)
    figure.unnamed.append(list(grid.flat))
    return figure


def plain_ticks(axes: Axes) -> None:
    """Label a short logarithmic vertical axis with plain numbers, 1, 2, 5 or round ones."""
    bottom, top = axes.get_ylim()
    narrow = top < NARROW * bottom
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6) if narrow else LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
