"""Bits that every client sends: methods with compressed uploads, and without."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from dualopt.methods import AndersonFedSplit, DistributedLBFGS, FedDyn, FedSplit
from dualopt.methods.compressors import CoordinateCohorts, NaturalCompression, RandK, RandomQuantisation, Rounding
from dualopt.problem.build import build_problem
from dualopt.problem.options import ProblemOptions
from dualopt.runs import plotting
from dualopt.runs.recording import run
from dualopt.runs.reference import newton
from dualopt.runs.trace import Trace
from dualopt.spec import described
from figures._settings import Settings

__all__ = ["CURVES", "compute", "draw", "first", "options", "tabulate"]

TIME = "20 seconds"
TARGETS = (1e-4, 1e-10)
CLIENTS = 20
MOST_ROUNDS = {False: 2000, True: 30}
SEED = 0


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A method with what compresses its uploads; its name gives the colour, its compressor the dashes."""

    title: str
    algorithm: Any
    method: str
    compressor: Any = None
    dashes: Any = "-"


SPLIT = {
    "none": ("", None, "-"),
    "natural": (", natural (9 bits)", NaturalCompression(), (0, (5, 1.5))),
    "quantisation": (", 15 levels (4 bits)", RandomQuantisation(levels=7), (0, (5, 1.5, 1, 1.5))),
    "rand-k": (", a tenth of the numbers, at random", RandK(size=1), (0, (1, 1.2))),
}
COHORTS = {20: "-", 5: (0, (5, 1.5)), 1: (0, (1, 1.2))}
CURVES = {
    **{
        f"fedsplit {name}": Entry(
            title=f"FedSplit{words}", algorithm=FedSplit(), method="fedsplit", compressor=c, dashes=dashes
        )
        for name, (words, c, dashes) in SPLIT.items()
    },
    **{
        f"feddyn {c}": Entry(
            title="FedDyn" if c == CLIENTS else f"FedDyn, each number from {c} of {CLIENTS}",
            algorithm=FedDyn(),
            method="feddyn",
            compressor=None if c == CLIENTS else CoordinateCohorts(size=c),
            dashes=dashes,
        )
        for c, dashes in COHORTS.items()
    },
    **{
        f"{name} {c.digits} bits" if c else name: Entry(
            title=f"{title}, rounded to {c.digits} bits" if c else title,
            algorithm=algorithm,
            method=method,
            compressor=c,
            dashes=(0, (5, 1.5)) if c else "-",
        )
        for name, title, algorithm, method in (
            ("distributed-lbfgs", "L-BFGS at the server", DistributedLBFGS(), "distributed-lbfgs"),
            ("anderson-fedsplit", "AndersonFedSplit", AndersonFedSplit(), "anderson-fedsplit"),
        )
        for c in (None, Rounding(digits=6))
    },
}


def options(settings: Settings) -> ProblemOptions:
    """Return the problem: rows sorted by label, in twenty parts."""
    return ProblemOptions(
        data=settings.data,
        data_home=settings.data_home,
        rows=settings.rows,
        clients=CLIENTS,
        partition="by-label",
        mu=settings.mu,
        seed=SEED,
    )


def compute(settings: Settings) -> dict[str, Trace]:
    """Run every curve to 1e-10; ``up`` counts what a client has sent, in bits, ``numbers`` in numbers."""
    problem = cache(lambda: _with_reference(options(settings)))
    known = {key: str(value) for key, value in asdict(options(settings)).items() if key != "data_home"}
    traces = {}
    for name, entry in CURVES.items():
        rounds = MOST_ROUNDS[settings.quick]
        parts = {"algorithm": described(entry.algorithm), "compressor": described(entry.compressor)}
        description = {"figure": "compression", "problem": known, **parts}
        traces[name] = settings.stored_columns(
            f"the curve {name!r}",
            description | {"rounds": rounds},
            lambda entry=entry, rounds=rounds: _run(entry, *problem(), rounds),
        )
        settings.console.print(f"  {entry.title}: {_words(traces[name], 'up', 1e-6)} Mbit", highlight=False)
    return traces


def _with_reference(options: ProblemOptions) -> tuple[Any, float]:
    f = build_problem(options).objective
    return f, newton(f, tol=1e-13).energy


def _run(entry: Entry, f: Any, least: float, rounds: int) -> dict[str, Any]:
    compressor = entry.compressor
    if isinstance(compressor, RandK):
        compressor = RandK(size=max(1, math.prod(f.shape) // 10))
    trace = run(
        entry.algorithm,
        f,
        rounds=rounds,
        seed=SEED,
        reference=least,
        stop=lambda _, row: row["error"] <= TARGETS[-1],
        compressor=compressor,
    )
    return {
        "communications": trace["communications"],
        "up": trace["bits_up"] / f.n_clients,
        "numbers": trace["floats_up"] / f.n_clients,
        "gradients": trace["gradients"],
        "error": trace["error"],
    }


def first(trace: Trace, column: str, target: float) -> float | None:
    """Return what had been spent when the error was first at most ``target``; None if it never was.

    Examples
    --------
    >>> trace = Trace(columns={"up": [0.0, 9.0], "error": [1.0, 1e-5]}, status="converged", theta=None)
    >>> first(trace, "up", 1e-4), first(trace, "up", 1e-10)
    (9.0, None)
    """
    hits = np.flatnonzero(trace["error"] <= target)
    return float(trace[column][hits[0]]) if len(hits) else None


def _words(trace: Trace, column: str, unit: float = 1.0) -> str:
    """Return what both targets took, three digits of it."""
    found = (first(trace, column, target) for target in TARGETS)
    return " / ".join("-" if spent is None else _short(unit * spent) for spent in found)


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return a row for every curve: what 1e-4 / 1e-10 took, per client."""
    return [
        {
            "method": CURVES[name].title,
            "rounds": _words(trace, "communications"),
            "Mbit up": _words(trace, "up", 1e-6),
            "numbers up": _words(trace, "numbers"),
            "local gradients": _words(trace, "gradients"),
        }
        for name, trace in traces.items()
    ]


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw the error over the bits that a client has sent, and over the rounds; a colour is a method."""
    figure, (panels,) = plotting.panels(1, 2, height=4.0, width=settings.width, sharey=True)
    lowest = min(np.min(trace["error"]) for trace in traces.values())
    for axes, column, unit, words in zip(
        panels, ("up", "communications"), (1e-6, 1.0), ("megabits sent by each client", "rounds"), strict=True
    ):
        for name, trace in traces.items():
            entry = CURVES[name]
            sent = trace[column] > 0
            axes.plot(
                unit * trace[column][sent],
                np.maximum(trace["error"][sent], 1e-16),
                color=plotting.style(entry.method).color,
                linestyle=entry.dashes,
                label=entry.title,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(max(TARGETS[-1], 10.0 ** np.floor(np.log10(max(lowest, 1e-16)))), 10.0)
        axes.yaxis.set_major_locator(LogLocator(numticks=8))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel(words)
    panels[0].set_ylabel(plotting.LABELS["error"])
    name = settings.whole.name if settings.data != "digits" else "digits"
    plotting.titled(figure, f"{name} by label, {CLIENTS} clients: what compressed uploads cost and save")
    figure.unnamed.append(list(panels))
    return figure
