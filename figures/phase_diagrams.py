"""Phase diagrams: with which steps, on how different clients, methods converge, are biased, or diverge."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dualopt.lab.chance import Event, coin, subsets
from dualopt.methods import AFedPD, FedADMM, FedAvg, FedPD
from dualopt.runs import plotting
from dualopt.runs.trace import Trace
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import Steps
from dualopt.spec import described
from figures._settings import Settings
from theory.phase_maps import CONVERGES, Clients, LimitStatistics, limit_statistics, phase_map

__all__ = [
    "KINDS",
    "Panel",
    "caption",
    "centres",
    "clients",
    "compute",
    "draw",
    "kind",
    "limit_of",
    "panels",
    "tabulate",
]

TIME = "40 seconds"
N = 6
ACTIVE = 2
LOCAL_STEPS = 8
STEPS = (0.02, 20.0)  # of the horizontal axis
TITLE = 2.0  # inches
HETEROGENEITY = (0.1, 100.0)
CELLS = {False: (54, 45), True: (7, 6)}  # 1 is an edge between two rows

# words of each kind and its colour; shades of one colour for errors of the limit
KINDS = {
    "converges to the solution": "#0072B2",
    "ends within 1% of it": "#FEE8C8",
    "within 10%": "#FDBB84",
    "farther off": "#E34A33",
    "diverges": "#333333",
    "local problems without solution": "#FFFFFF",
}
LEVELS = (CONVERGES, 1e-2, 1e-1)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A method with its steps, and what is proved about it.

    Parameters
    ----------
    title : str
        The method, and who takes part.
    method : callable
        ``method(step)`` for clients with ``L = 1``.
    outcomes : sequence of Event
        What may happen in a round.
    proximal : bool
        Whether local problems have a proximal term, of weight ``1/step``.
    limits : dict of str to float
        Steps below which convergence, or a limit, is proved, and words for them.
    """

    title: str
    method: Callable[[float], Any]
    outcomes: Sequence[Event]
    proximal: bool = True
    limits: Mapping[str, float]


def panels() -> dict[str, Panel]:
    """Return the panels by name."""
    everybody, some = subsets(N, N), subsets(N, ACTIVE)
    exactly = Exact()
    return {
        "fedavg": Panel(
            title=f"FedAvg, {LOCAL_STEPS} local steps, all clients",
            method=lambda step: FedAvg(solver=Gradient(step=step), stop=Steps(steps=LOCAL_STEPS)),
            outcomes=everybody,
            proximal=False,
            limits={"2, convex clients": 2.0},
        ),
        "fedpd": Panel(
            title="FedPD = A-FedPD = FedADMM, all clients",
            method=lambda step: FedPD(eta=step, solver=exactly),
            outcomes=everybody,
            limits={r"$(\sqrt{5}-1)/4$": (math.sqrt(5.0) - 1.0) / 4.0, "1/2": 0.5},
        ),
        "fedpd:skip": Panel(
            title="FedPD, half of the rounds skipped",
            method=lambda step: FedPD(eta=step, solver=exactly),
            outcomes=coin(N, 0.5),
            limits={},
        ),
        "a-fedpd": Panel(
            title=f"A-FedPD, {ACTIVE} of {N} active",
            method=lambda step: AFedPD(rho=1.0 / step, solver=exactly),
            outcomes=some,
            limits={},
        ),
        "fedadmm:1": Panel(
            title=rf"FedADMM, $\eta_s = 1$, {ACTIVE} of {N} active",
            method=lambda step: FedADMM(rho=1.0 / step, server_step=1.0, solver=exactly),
            outcomes=some,
            limits={},
        ),
        "fedadmm:P/N": Panel(
            title=rf"FedADMM, $\eta_s = P/N$, {ACTIVE} of {N} active",
            method=lambda step: FedADMM(rho=1.0 / step, solver=exactly),
            outcomes=some,
            limits={},
        ),
    }


def clients(s: float) -> Clients:
    r"""Return clients of curvatures :math:`1 - s` and :math:`1 + s`, half of each, in units of :math:`L = 1 + s`.

    Gradients at the solution are spread evenly over [-1, 1], in the same units. Beyond ``s = 1`` half of the clients
    are not convex; their mean always is.

    Examples
    --------
    >>> clients(3.0).curvature.tolist()
    [-0.5, -0.5, -0.5, 1.0, 1.0, 1.0]
    """
    curvature = np.repeat([1.0 - s, 1.0 + s], N // 2) / (1.0 + s)
    return Clients(curvature, curvature - np.linspace(-1.0, 1.0, N) / (1.0 + s))


def limit_of(panel: Panel, step: float, s: float) -> LimitStatistics:
    """Return how the method of a panel ends; NaN where local problems have no solution."""
    weight = 1.0 / step if panel.proximal else math.inf
    return limit_statistics(panel.method(step), clients(s), panel.outcomes, weight=weight)


def kind(found: LimitStatistics) -> int:
    """Return the position in ``KINDS``.

    Examples
    --------
    >>> [kind(LimitStatistics(*found)) for found in ((0.5, 1e-13), (0.5, 0.05), (1.1, np.nan), (np.nan, np.nan))]
    [0, 2, 4, 5]
    """
    if not found.radius < 1.0:
        return 5 if math.isnan(found.radius) else 4
    return int(np.searchsorted(LEVELS, found.error))


def centres(low: float, high: float, cells: int) -> np.ndarray:
    """Return the middles of cells of equal length on a logarithmic axis.

    Examples
    --------
    >>> centres(1.0, 1e4, 2).tolist()
    [10.0, 1000.0]
    """
    return np.geomspace(low, high, 2 * cells + 1)[1::2]


def compute(settings: Settings) -> dict[str, Trace]:
    """Return, cell by cell, the factor per round and the error of the limit of every panel."""
    columns, rows = CELLS[settings.quick]
    steps, levels = centres(*STEPS, columns), centres(*HETEROGENEITY, rows)
    grid = [(step, s) for s in levels for step in steps]
    traces = {}
    for name, panel in panels().items():

        def cells(panel: Panel = panel) -> dict[str, Any]:
            step, s = np.transpose(grid)
            axes = {"steps": steps, "heterogeneity": levels, "proximal": panel.proximal}
            found = phase_map(panel.method, clients, panel.outcomes, **axes)
            return {"step": step, "heterogeneity": s, "radius": found.radius.ravel(), "limit": found.error.ravel()}

        description = {
            "figure": "phase_diagrams",
            "algorithm": described(panel.method(1.0)),
            "panel": name,
            "grid": grid,
            "clients": N,
            "active": ACTIVE,
        }
        traces[name] = settings.stored_columns(f"the panel {name!r}", description, cells)
    return traces


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Colour every cell by the limit of the method there."""
    figure, grid = plotting.panels(2, 3, height=2.2, width=settings.width, least=1.6, sharex=True, sharey=True)
    for axes, (name, panel) in zip(grid.flat, panels().items(), strict=True):
        _colour(axes, traces[name])
        axes.set_title(plotting.wrapped(panel.title, TITLE))
        axes.axhline(1.0, color="black", linestyle=(0, (1, 2)), linewidth=1.0)
        top = HETEROGENEITY[1] if panel.proximal else 1.0  # without a proximal term, convex clients only
        for words, limit in panel.limits.items():
            axes.vlines(limit, HETEROGENEITY[0], top, color="white", linewidth=3.0)
            axes.vlines(limit, HETEROGENEITY[0], top, color="black", linewidth=1.2)
            left = limit > 1.0 or limit == min(panel.limits.values()) < max(panel.limits.values())
            axes.annotate(
                words,
                (limit, HETEROGENEITY[0]),
                (-3 if left else 3, 4),
                textcoords="offset points",
                ha="right" if left else "left",
                color="white",
                bbox={"facecolor": "0.2", "edgecolor": "none", "pad": 1.0},
            )
    for axes in grid[:, 0]:
        axes.set_ylabel("heterogeneity $s$")
    for axes in grid[-1]:
        axes.set_xlabel(r"step: $\eta L$, or $L/\rho$")
    patches = [
        Patch(facecolor=colour, edgecolor="0.5", label=words, hatch="" if colour != "#FFFFFF" else "///")
        for words, colour in KINDS.items()
    ]
    figure.legend(handles=patches, loc="outside lower center", ncols=2 if settings.width == "column" else 3)
    title = rf"{N} quadratic clients, half of curvature $1-s$, half of $1+s$: where methods converge"
    plotting.titled(figure, title)
    return figure


def caption(traces: Mapping[str, Trace], settings: Settings) -> str:
    """Say which clients these are, and where methods first fail."""
    steps = {name: f"eta L = {first:.2g}" for name, first in failures(traces).items() if np.isfinite(first)}
    everybody, some, averaged = (steps.get(name, "no step") for name in ("fedpd", "a-fedpd", "fedadmm:P/N"))
    return (
        f"Above the dotted line half of the {N} clients are not convex. Vertical lines: what is proved. The smallest "
        f"step that fails: with all clients {everybody}; with {ACTIVE} of {N}, A-FedPD {some}, FedADMM (server step "
        f"P/N) {averaged}."
    )


def failures(traces: Mapping[str, Trace]) -> dict[str, float]:
    """Return the smallest step with which each method ends off the solution or diverges; infinite if none does."""
    found = {}
    for name, trace in traces.items():
        cells = kinds(trace)
        found[name] = float(np.min(trace["step"][(cells > 0) & (cells < len(KINDS) - 1)], initial=np.inf))
    return found


def kinds(trace: Trace) -> np.ndarray:
    """Return the kind of every cell."""
    return np.array([kind(LimitStatistics(*cell)) for cell in zip(trace["radius"], trace["limit"], strict=True)])


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return for every panel the shares of the kinds, and the smallest step that fails."""
    rows, failed = [], failures(traces)
    for name, trace in traces.items():
        counts = np.bincount(kinds(trace), minlength=len(KINDS)) / len(trace)
        row = {"panel": name} | {words: f"{share:.0%}" for words, share in zip(KINDS, counts, strict=True)}
        rows.append(row | {"first fails at": f"{failed[name]:.3g}"})
    return rows


def _colour(axes: Axes, trace: Trace) -> None:
    steps, levels = np.unique(trace["step"]), np.unique(trace["heterogeneity"])
    cells = kinds(trace).reshape(len(levels), len(steps))
    edges = [np.geomspace(*ends, n + 1) for ends, n in ((STEPS, len(steps)), (HETEROGENEITY, len(levels)))]
    axes.set_facecolor("white")
    axes.patch.set(hatch="///", edgecolor="0.6")
    shown = np.ma.masked_equal(cells, len(KINDS) - 1)
    axes.pcolormesh(*edges, shown, cmap=ListedColormap(list(KINDS.values())), vmin=-0.5, vmax=len(KINDS) - 0.5)
    axes.set_xscale("log")
    axes.set_yscale("log")
