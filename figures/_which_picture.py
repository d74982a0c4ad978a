"""The picture of `which_method`: methods by problems, coloured by how far from the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dualopt.runs import plotting
from figures._contestants import TARGETS
from figures._outsiders import OUTSIDERS
from figures._which_rows import UNMEASURED

__all__ = ["draw_grid"]

LEVELS = (1.0, 1.25, 2.0, 5.0, math.inf)  # times the vectors of the best: the ends of the colours
WORDS = ("within a quarter of the best", "up to twice", "up to 5 times", "more", "not within the limits")
NEAR = 1.25  # times the best: who is never so near has no row
MISSED = "0.85"
LETTER = 0.055  # inches of a letter in the name of a problem


def draw_grid(cells: Sequence[Mapping[str, str]], width: str = "page") -> Figure:
    """Draw a panel for each target: a square is coloured by the vectors of a method over those of the best.

    Methods that are nowhere within a quarter of the best have no row. A square is empty where a method refuses.
    """
    methods = [m for m in dict.fromkeys(row["method"] for row in cells) if m not in OUTSIDERS]
    problems = list(dict.fromkeys(row["problem"] for row in cells))
    inside = {(row["method"], row["problem"]): row for row in cells}
    columns = [f"vectors to {target:.0e}".replace("e-0", "e-") for target in TARGETS]
    ratios = {c: _ratios(np.array([[_number(inside[m, p][c]) for p in problems] for m in methods])) for c in columns}
    near = [i for i in range(len(methods)) if any((found[i] <= NEAR).any() for found in ratios.values())]
    order = sorted(near or range(len(methods)), key=lambda i: -sum(_lead(found)[i] for found in ratios.values()))
    tried = np.array([[_tried(inside[methods[i], p]["end"]) for p in problems] for i in order])
    size = {"height": 0.35 + 0.135 * len(order), "width": width, "least": plotting.WIDTHS[width]}
    figure, grid = plotting.panels(len(columns), 1, **size, sharex=True)
    figure.set_figheight(figure.get_figheight() + 0.3 + LETTER * max(map(len, problems)))
    colours = [*colormaps["viridis_r"](np.linspace(0.0, 1.0, len(LEVELS) - 1)), MISSED]
    for axes, (column, found) in zip(grid.flat, ratios.items(), strict=True):
        kinds = np.where(np.isnan(found[order]), len(LEVELS) - 1, np.digitize(found[order], LEVELS[1:-1], right=True))
        shown = np.ma.masked_array(kinds, ~tried & np.isnan(found[order]))
        norm = BoundaryNorm(np.arange(len(colours) + 1) - 0.5, len(colours))
        axes.pcolormesh(shown, cmap=ListedColormap(colours), norm=norm, edgecolors="white", linewidth=0.5)
        axes.set_ylim(len(order), 0)
        axes.set_yticks(np.arange(len(order)) + 0.5, [_words(methods[i]) for i in order])
        axes.set_title(f"{column}, methods as suggested")
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    grid.flat[-1].set_xticks(np.arange(len(problems)) + 0.5, problems, rotation=90)
    patches = [Patch(facecolor=colour, label=words) for colour, words in zip(colours, WORDS, strict=True)]
    figure.legend(handles=patches, loc="outside upper center", ncols=3 if width == "column" else 5, handlelength=1.2)
    return figure


def _words(method: str) -> str:
    """Return how papers write a method, with what happens before its rounds."""
    name, comma, before = method.partition(", ")
    return plotting.proper_name(name) + comma + before.replace("scales=suggested", "a scale for each client")


def _tried(end: str) -> bool:
    return not (end == UNMEASURED or end.startswith("refuses"))


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _ratios(found: np.ndarray) -> np.ndarray:
    """Return the numbers over the best of their column, NaN where there is none."""
    least = np.min(np.where(np.isnan(found), np.inf, found), axis=0)
    return found / least


def _lead(ratios: np.ndarray) -> np.ndarray:
    """Return how near to the best every method is, on average."""
    return np.mean(np.nan_to_num(1.0 / ratios), axis=1)
