"""What no method can do, what DualFL does, what its theorems promise: on chains that are hard for every method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dualopt.methods import ConsensusFedSplit, DualFL, OptimizedDualFL
from dualopt.runs import plotting
from dualopt.runs.trace import Trace
from figures._panels import plain_ticks
from figures._settings import Settings
from theory._cases import Case
from theory.lower_bounds._convex_chain import geometric, power, tails
from theory.lower_bounds._convex_methods import chain_case, distances, theorem
from theory.lower_bounds.convex_rounds import ACCURACY, chain, needed

__all__ = ["caption", "compute", "draw", "tabulate"]

TIME = "3 seconds"
LEGEND = {"dualfl": "DualFL", "optimized-dualfl": "OptimizedDualFL", "fedsplit": "FedSplit"}
SMOOTH: dict[str, Any] = {
    "dualfl": DualFL(),
    "optimized-dualfl": OptimizedDualFL(),
    "fedsplit": ConsensusFedSplit(),
}
KINKED: dict[str, Any] = {"dualfl": DualFL(rho=0.0), "optimized-dualfl": OptimizedDualFL(rho=0.0)}
KAPPA = 100.0
TITLE = 1.5  # inches
KAPPAS = {False: (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0), True: (10.0, 100.0)}
ROUNDS = {False: 240, True: 60}  # on the geometric chain; in 240 every promise comes to the accuracy
LENGTH = {False: 300, True: 60}  # rounds on the power chain, of ten times as many coordinates
COLUMNS = ("at", "least", "measured", "theorem")
BOTTOM, TOP = 1e-9, 1e3
MARKS = 0.12  # from one to the next, as a fraction of the diagonal of a panel
Columns = dict[str, list[float]]


def compute(settings: Settings) -> dict[str, Trace]:
    r"""Return for every method the least, the measured and the promised numbers.

    In ``error`` and ``nonsmooth`` they are :math:`|\theta^n - \theta^*|^2/|\theta^*|^2` ``at`` every round n, on the
    geometric chain with :math:`\kappa = 100` and on the power chain; in ``rounds`` the rounds to the accuracy 1e-8
    ``at`` every :math:`\kappa`. What is promised is NaN where no theorem is quoted.
    """
    kappas, rounds, length = KAPPAS[settings.quick], ROUNDS[settings.quick], LENGTH[settings.quick]
    hard, kinked = geometric(KAPPA, 2 * rounds), power(10 * length)
    curves: dict[str, Callable[[], Columns]] = {}
    for name, method in SMOOTH.items():
        curves[f"error: {name}"] = lambda method=method: _errors(chain_case(hard, method, rounds))
        curves[f"rounds: {name}"] = lambda method=method: _rounds(chain(kappa, method) for kappa in kappas)
    for name, method in KINKED.items():
        curves[f"nonsmooth: {name}"] = lambda method=method: _errors(chain_case(kinked, method, length))
    common = {"figure": "lower_bounds", "kappas": kappas, "rounds": rounds, "length": length}
    return {
        label: settings.stored_columns(f"the curve {label!r}", common | {"curve": label}, columns)
        for label, columns in curves.items()
    }


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the least numbers as the edge of what is impossible, methods with markers, promises dashed."""
    figure, grid = plotting.panels(1, 3, height=3.0, width=settings.width)
    distance, decades = r"$|\theta^n - \theta^*|^2 \, / \, |\theta^*|^2$", round(math.log10(ACCURACY))
    words = {
        "error": (rf"smooth, strongly convex, $\kappa$ = {KAPPA:g}", "communication rounds $n$", distance),
        "rounds": (f"the same: rounds to $10^{{{decades}}}$", r"condition number $\kappa$", "communication rounds"),
        "nonsmooth": (r"nonsmooth, strongly convex, $\rho$ = 0", "communication rounds $n$", distance),
    }
    panels: dict[str, Axes] = dict(zip(words, grid.flat, strict=True))
    for kind, axes in panels.items():
        title, xlabel, ylabel = words[kind]
        axes.set_title(plotting.wrapped(title, TITLE))
        axes.set(xlabel=xlabel, ylabel=ylabel, yscale="log", xscale="linear" if kind == "error" else "log")
        _curves(axes, {name: traces[f"{kind}: {name}"] for name in LEGEND if f"{kind}: {name}" in traces})
    panels["error"].axhline(ACCURACY, color="0.4", linewidth=0.9, linestyle=":", zorder=1, label="_accuracy")
    panels["error"].set_ylim(BOTTOM, TOP)
    plain_ticks(panels["rounds"])
    plotting.titled(figure, "Rounds on the hardest problems: no method is below the black line")
    figure.unnamed.append([panels["nonsmooth"], panels["rounds"], panels["error"]])  # the last one has all curves
    return figure


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say in words how far apart the three numbers of rounds are."""
    trace = traces["rounds: dualfl"]
    above, below = trace["measured"] / trace["least"], trace["theorem"] / trace["measured"]
    attained = bool((traces["rounds: fedsplit"]["measured"] == trace["least"]).all())
    return (
        f"Rounds of DualFL: {min(above):.1f} to {max(above):.1f} times the least of any method"
        + (", which FedSplit attains" if attained else "")
        + f"; those of its theorem: {min(below):.1f} to {max(below):.1f} times those of DualFL."
    )


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return rounds to the accuracy for every method and condition number, with both factors."""
    rows = []
    for name, words in LEGEND.items():
        for kappa, least, measured, most in zip(*(traces[f"rounds: {name}"][c] for c in COLUMNS), strict=True):
            rows.append(
                {
                    "method": words,
                    "kappa": f"{kappa:g}",
                    "least": f"{least:.0f}",
                    "rounds": f"{measured:.0f}",
                    "theorem": f"{most:.0f}" if math.isfinite(most) else "-",
                    "rounds/least": f"{measured / least:.2f}",
                    "theorem/rounds": f"{most / measured:.2f}" if math.isfinite(most) else "-",
                }
            )
    return rows


def _curves(axes: Axes, traces: Mapping[str, Trace]) -> None:
    """Draw one panel: the least numbers are the same for all methods."""
    look = plotting.styles(LEGEND)
    for name, trace in traces.items():
        (colour, marker, _), at = look[name], trace["at"]
        line: dict[str, Any] = {"color": colour, "label": LEGEND[name]}
        if np.isfinite(trace["theorem"]).any():
            (promised,) = axes.plot(at, trace["theorem"], linestyle=(0, (4, 2)), **line)
            promised.set_label(f"{LEGEND[name]}: theorem")
        axes.plot(at, _visible(trace["measured"]), marker=marker, markevery=MARKS, **line)
    first, bottom = next(iter(traces.values())), axes.get_ylim()[0]
    edge = _visible(first["least"])
    axes.fill_between(first["at"], bottom, edge, color="0.87", linewidth=0, zorder=0)
    axes.plot(first["at"], edge, color="black", linewidth=1.8, zorder=1.9, label="no method is below")
    axes.set_ylim(bottom=bottom)
    axes.margins(x=0.02)


def _visible(numbers: np.ndarray) -> np.ndarray:
    return np.where(numbers > 0.1 * BOTTOM, numbers, np.nan)


def _errors(case: Case) -> Columns:
    """Return relative squared distances."""
    square = float(case.theta @ case.theta)
    promised = theorem(case) if _quoted(case) else repeat(math.nan)
    numbers = zip(tails(case.theta), distances(case), promised, strict=False)
    return _columns((n, *(number / square for number in row)) for n, row in enumerate(numbers, start=1))


def _rounds(cases: Iterable[Case]) -> Columns:
    """Return rounds to the accuracy."""
    rows = []
    for case in cases:
        level = ACCURACY * float(case.theta @ case.theta)
        promised = needed(theorem(case), level) if _quoted(case) else math.nan
        counted = needed(tails(case.theta), level), needed(distances(case), level), promised
        rows.append((float(np.max(case.objective.L)), *counted))
    return _columns(rows)


def _quoted(case: Case) -> bool:
    """Tell whether a theorem on the method is quoted."""
    return isinstance(case.algorithm, DualFL | OptimizedDualFL)


def _columns(rows: Iterable[tuple[float, ...]]) -> Columns:
    return {name: list(column) for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)}
