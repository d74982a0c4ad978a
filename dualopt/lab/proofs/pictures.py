"""The pictures of proofs: rounds against kappa, worst cases against rounds."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from dualopt.lab.proofs import Rate, WorstCase
from dualopt.runs import plotting

__all__ = ["picture", "picture_of_errors"]


@plotting.styled()
def picture(rates: dict[float, Rate], *, title: str, width: str) -> Figure:
    """Draw the rounds that a tenth of the mean square takes against kappa: proved, promised, and on some clients."""
    figure, ((axes,),) = plotting.panels(height=4.0, width=width)
    plotting.titled(figure, title.replace("$", r"\$"))
    curves: dict[str, dict[float, Any]] = {
        "theorem": {k: r.claimed for k, r in rates.items()},
        "proved": {k: r.factor for k, r in rates.items() if r.proved},
        "quadratic clients": {k: r.lower_bound for k, r in rates.items()},
    }
    for (name, curve), marker, dash, colour in zip(
        curves.items(), "sov", ("--", "-", ":"), plotting.COLOURS, strict=False
    ):
        known = {k: math.log(10.0) / -math.log(x) for k, x in curve.items() if x is not None and 0 < x < 1}
        if known:
            axes.plot(
                list(known), list(known.values()), dash, marker=marker, label=name, color=colour, fillstyle="none"
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(list(rates), [f"{kappa:g}" for kappa in rates])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(r"$\kappa = L/\mu$")
    axes.set_ylabel("rounds to a tenth of the mean square")
    figure.unnamed.append([axes])
    return figure


@plotting.styled()
def picture_of_errors(found: dict[int, WorstCase], *, title: str, symbol: str, width: str) -> Figure:
    """Draw worst cases against rounds, with what a theorem allows."""
    figure, ((axes,),) = plotting.panels(height=4.0, width=width)
    plotting.titled(figure, title.replace("$", r"\$"))
    curves = {
        "theorem": {n: w.claimed for n, w in found.items() if w.claimed is not None and math.isfinite(w.claimed)},
        "worst case": {n: w.value for n, w in found.items() if math.isfinite(w.value)},
    }
    for (name, curve), marker, dash, colour in zip(curves.items(), "so", ("--", "-"), plotting.COLOURS, strict=False):
        if curve:
            numbers = list(curve.values())
            axes.plot(list(curve), numbers, dash, marker=marker, label=name, color=colour, fillstyle="none")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rounds")
    axes.set_ylabel(f"{symbol}, over the size of the start")
    figure.unnamed.append([axes])
    return figure
