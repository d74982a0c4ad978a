"""Counts that grow like powers of the condition number: the exponents in a table, and lines in a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from dualopt.lab.rates import Order
from dualopt.runs import plotting
from dualopt.runs.trace import Trace
from theory.baselines._communications import exponent

__all__ = ["draw_powers", "exponent_cells", "grows"]

SLOPES = ((r"$\sqrt{\kappa}$", 0.5), (r"$\kappa$", 1.0))


def grows(counts: np.ndarray) -> bool:
    """Tell whether an exponent says anything: all are known and they differ."""
    return bool(np.isfinite(counts).all() and counts.max() > counts.min())


def exponent_cells(found: Order | None) -> dict[str, str]:
    """Return the cells of a table for an exponent and its interval."""
    if found is None:
        return {"exponent": "-", "interval": "-"}
    return {"exponent": f"{found.value:.2f}", "interval": f"{found.low:.2f} to {found.high:.2f}"}


def draw_powers(
    axes: Axes,
    traces: Mapping[str, Trace],
    labels: Sequence[str],
    column: str,
    *,
    looks: Mapping[str, str],
    exponents: bool = True,
) -> None:
    """Draw a column of each method against kappa, named with its exponent, above the slopes of kappa and its root.

    Parameters
    ----------
    axes : Axes
        Where.
    traces : dict of str to Trace
        With the columns ``kappa``, as :func:`theory.baselines._communications.kappas` gives them, and ``column``.
    labels : sequence of str
        The traces to draw, whose counts are all known.
    column : str
        The counts.
    looks : dict of str to str
        The method in whose style each label of the picture is drawn, in all its panels; what differs in a parameter
        gets a style of its own.
    exponents : bool, default True
        Whether the names have exponents; counts near one follow no power.
    """
    styles = plotting.styles(looks, looks)
    for position, label in enumerate(sorted(labels, key=lambda label: -float(traces[label][column][-1]))):
        trace, name = traces[label], label
        if exponents:
            found = exponent(trace[column])
            name = f"{label}: {found.value:.2f} ± {found.high - found.value:.2f}"
        marks = [n - 1 for n in (1, 2, 3, 5, 10, 18, 32) if n <= len(trace)]
        axes.plot(
            trace["kappa"],
            trace[column],
            **styles[label]._asdict(),
            markevery=marks[position % 2 :: 2],  # lines that coincide still show all their markers
            label=name,
        )
    kappa = traces[labels[0]]["kappa"]
    low = 0.7 * min(float(traces[label][column].min()) for label in labels)
    for name, slope in SLOPES:
        axes.plot(
            kappa, low * (kappa / kappa[0]) ** slope, color="0.5", linewidth=0.9, linestyle=":", zorder=1, label=name
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.9 * low)
    axes.set_xlabel(r"condition number $\kappa = L/\mu$")
    axes.margins(x=0.01)
