"""The picture of `which_method`: methods by problems, coloured by how far from the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from figures._contestants import TARGETS
from figures._outsiders import OUTSIDERS
from figures._which_rows import UNMEASURED

__all__ = ["draw_grid"]

WORST = 20.0  # times the vectors of the best: the end of the colours


def draw_grid(cells: Sequence[Mapping[str, str]]) -> Figure:
    """Draw a panel for each target: a square is coloured by its vectors over those of the best, and shows them."""
    methods = [m for m in dict.fromkeys(row["method"] for row in cells) if m not in OUTSIDERS]
    problems = list(dict.fromkeys(row["problem"] for row in cells))
    inside = {(row["method"], row["problem"]): row for row in cells}
    columns = [f"vectors to {target:.0e}".replace("e-0", "e-") for target in TARGETS]
    numbers = {
        column: np.array([[_number(inside[m, p][column]) for p in problems] for m in methods]) for column in columns
    }
    order = np.argsort(
        [
            -np.mean([np.isfinite(found[i]).mean() + _lead(found)[i] for found in numbers.values()])
            for i in range(len(methods))
        ]
    )
    figure = Figure(figsize=(3.5 + 0.42 * len(problems), 4.5 + 0.4 * len(methods)))
    figure.set_layout_engine("constrained")
    panels = figure.subplots(len(columns), 1, sharex=True, squeeze=False)[:, 0]
    image = None
    for axes, (column, found) in zip(panels, numbers.items(), strict=True):
        found = found[order]
        ratios = _ratios(found)
        image = axes.imshow(ratios, norm=LogNorm(1.0, WORST), cmap="viridis_r", aspect="auto")
        for (i, j), number in np.ndenumerate(found):
            end = inside[methods[order[i]], problems[j]]["end"]
            empty = end == UNMEASURED or end.startswith("refuses")
            text = f"{number:,.0f}" if math.isfinite(number) else "" if empty else "-"
            dark = math.isfinite(ratios[i, j]) and ratios[i, j] > 4.0
            axes.text(j, i, text, ha="center", va="center", fontsize=6, color="white" if dark else "0.2")
        axes.set_yticks(range(len(methods)), [methods[i] for i in order], fontsize=7)
        axes.set_title(f"{column}, methods as suggested", fontsize=9)
        axes.tick_params(length=0)
    panels[-1].set_xticks(range(len(problems)), problems, rotation=60, ha="right", rotation_mode="anchor", fontsize=7)
    if image is not None:
        bar = figure.colorbar(image, ax=list(panels), shrink=0.4, label="times the vectors of the best")
        bar.set_ticks([1, 2, 5, 10, 20], labels=["1", "2", "5", "10", "20"])
        bar.ax.yaxis.set_minor_locator(NullLocator())
    return figure


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _ratios(found: np.ndarray) -> np.ndarray:
    """Return the numbers over the best of their column, NaN where there is none."""
    least = np.min(np.where(np.isnan(found), np.inf, found), axis=0)
    return found / least


def _lead(found: np.ndarray) -> np.ndarray:
    """Return how near to the best every method is, on average."""
    return np.mean(np.nan_to_num(1.0 / _ratios(found)), axis=1)
