"""Vectors that every client sends to reach 1e-4 and 1e-10: all exact methods, as suggested, on six problems.

Some of them once more after a step before the rounds, whose numbers count too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dualopt.engine.rounds import iterate
from dualopt.methods import (
    GIANT,
    AdaptiveAccSDANE,
    AndersonDANE,
    AndersonFedSplit,
    APDAInexact,
    DistributedLBFGS,
    DistributedNewtonCG,
    DualFL,
    DualLBFGS,
    FedPD,
    FedSplit,
    FiveGCS,
    GradientDescent,
    OptimizedDualFL,
    Scaffnew,
    Scaffold,
)
from dualopt.methods.participation import CommunicateWithProbability
from dualopt.methods.preparation import OneShotAverage, SketchedMetric, prepared_by
from dualopt.problem.build import build_problem
from dualopt.problem.data._files import home
from dualopt.problem.options import ProblemOptions
from dualopt.runs import plotting
from dualopt.runs.reference import newton
from dualopt.runs.trace import Trace
from dualopt.spec import described
from figures._settings import Settings

__all__ = ["ENTRIES", "METHODS", "PREPARED", "compute", "draw", "first", "problems", "tabulate"]

TIME = "an hour"
TARGETS = (1e-4, 1e-10)
LEAST = 0.85  # inches that a panel takes
MOST_VECTORS = {False: 200.0, True: 40.0}
MOST_GRADIENTS = {False: 1000.0, True: 100.0}  # local gradients per client
SEED = 0


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A method, as it is suggested, with its name in the picture and the name that gives it its style.

    ``prepare`` is what happens before its first round.
    """

    title: str
    algorithm: Any
    look: str
    prepare: Any = None


METHODS = {
    "anderson-fedsplit": Entry(title="AndersonFedSplit", algorithm=AndersonFedSplit(), look="anderson-fedsplit"),
    "anderson-dane": Entry(title="AndersonDANE", algorithm=AndersonDANE(), look="anderson-dane"),
    "giant": Entry(title="GIANT", algorithm=GIANT(), look="giant"),
    "adaptive-acc-s-dane": Entry(title="Acc-S-DANE", algorithm=AdaptiveAccSDANE(), look="adaptive-acc-s-dane"),
    "dual-lbfgs": Entry(title="L-BFGS on DualFL's dual", algorithm=DualLBFGS(), look="dual-lbfgs"),
    "distributed-lbfgs": Entry(title="L-BFGS at the server", algorithm=DistributedLBFGS(), look="distributed-lbfgs"),
    "distributed-newton-cg": Entry(
        title="Newton-CG at the server", algorithm=DistributedNewtonCG(), look="distributed-newton-cg"
    ),
    "fedsplit": Entry(title="FedSplit", algorithm=FedSplit(), look="fedsplit"),
    "optimized-dualfl": Entry(title="OptimizedDualFL", algorithm=OptimizedDualFL(), look="optimized-dualfl"),
    "dualfl": Entry(title="DualFL", algorithm=DualFL(), look="dualfl"),
    "fedpd": Entry(title="FedPD, FedDyn, FedDR, FedADMM", algorithm=FedPD(), look="fedpd"),
    "scaffnew": Entry(title="Scaffnew", algorithm=Scaffnew(), look="scaffnew"),
    "apda-inexact": Entry(title="APDA-Inexact", algorithm=APDAInexact(), look="apda-inexact"),
    "fivegcs": Entry(title="5GCS", algorithm=FiveGCS(), look="fivegcs"),
    "scaffold": Entry(title="SCAFFOLD", algorithm=Scaffold(), look="scaffold"),
    "gradient-descent": Entry(title="gradient descent", algorithm=GradientDescent(), look="gradient-descent"),
}


def _prepared(words: str, prepare: Any, *names: str) -> dict[str, Entry]:
    """Return methods after a preparation."""
    return {
        f"{name}, {words}": replace(METHODS[name], title=f"{METHODS[name].title} {words}", prepare=prepare)
        for name in names
    }


LBFGS, SPLIT = "distributed-lbfgs", "anderson-fedsplit"
PREPARED = {
    **_prepared("in the sketch", SketchedMetric(), SPLIT, LBFGS, "fedsplit"),
    **_prepared("in own sketches", SketchedMetric(common=False), SPLIT, LBFGS),
    **_prepared("from one-shot", OneShotAverage(), SPLIT, LBFGS),
    **_prepared("in the sketch from one-shot", (SketchedMetric(), OneShotAverage()), SPLIT, LBFGS),
}
ENTRIES = METHODS | PREPARED
QUICK = (
    *("anderson-fedsplit", "anderson-dane", "distributed-lbfgs", "fedsplit", "optimized-dualfl", "dualfl"),
    *("anderson-fedsplit, in the sketch", "distributed-lbfgs, from one-shot"),
)


def problems(settings: Settings) -> dict[str, ProblemOptions]:
    """Return the problems by their names: three data sets, dealt out at random and by label.

    MNIST (6,000 rows) and a9a are in the user's folder of data sets; without one, breast_cancer takes their places.
    Whoever names another data set than digits gets that one alone.
    """
    common: dict[str, Any] = {"data_home": settings.data_home, "client_weights": "rows", "seed": SEED, "clients": 8}
    chosen: dict[str, dict[str, Any]] = {"digits": {"data": "digits", "mu": 1e-2}}
    if settings.data != "digits":
        chosen = {settings.whole.name: {"data": settings.data, "mu": settings.mu, "rows": settings.rows}}
    elif not settings.quick and home(settings.data_home) is not None:
        chosen["MNIST"] = {"data": "mnist", "mu": 1e-2, "rows": 6000}
        chosen["a9a"] = {"data": "a9a", "mu": 1e-3, "clients": 10, "storage": "dense"}
    elif not settings.quick:
        chosen["breast cancer"] = {"data": "breast_cancer", "mu": 1e-2}
    return {
        f"{name}, {words}": ProblemOptions(**{**common, **options, "partition": partition})
        for name, options in chosen.items()
        for words, partition in (("by label", "by-label"), ("at random", "iid"))
    }


def compute(settings: Settings) -> dict[str, Trace]:
    """Run every method on every problem until 1e-10, or until it has sent too much or worked too long.

    The traces, by ``problem: method``, have a row after every round: ``vectors`` is what a client has sent, in units
    of the model, scalars included; ``gradients`` its local gradients; ``error`` the relative error of the energy.
    """
    methods = QUICK if settings.quick else ENTRIES
    most = {"vectors": MOST_VECTORS[settings.quick], "gradients": MOST_GRADIENTS[settings.quick]}
    traces = {}
    for problem, options in problems(settings).items():
        built = cache(lambda options=options: _with_reference(options))
        for name in methods:
            label = f"{problem}: {name}"
            description = {
                "figure": "vectors",
                "problem": {key: str(value) for key, value in asdict(options).items() if key != "data_home"},
                "algorithm": described(ENTRIES[name].algorithm),
                "method": name,
                "most": most,
            }
            if ENTRIES[name].prepare is not None:
                description["prepare"] = repr(ENTRIES[name].prepare)
            traces[label] = settings.stored_columns(
                f"the run {label!r}", description, lambda name=name, built=built: _run(name, *built(), most)
            )
            settings.console.print(f"  {label}: {_words(traces[label])}", highlight=False, markup=False)
    return traces


def _with_reference(options: ProblemOptions) -> tuple[Any, float]:
    f = build_problem(options).objective
    return f, newton(f, tol=1e-13).energy


def _run(name: str, f: Any, least: float, most: Mapping[str, float]) -> dict[str, list[float]]:
    """Run a method, and return the columns; what happens before the first round makes a row if anything is sent."""
    prepared = prepared_by(ENTRIES[name].prepare, f, f.zeros())
    algorithm, participation = ENTRIES[name].algorithm.suggested(prepared.objective), None
    if isinstance(algorithm, Scaffnew):
        participation = CommunicateWithProbability(probability=algorithm.probability)
    size = f.n_clients * math.prod(f.shape)
    spent = {"vectors": prepared.floats_up / size, "gradients": sum(prepared.gradients) / f.n_clients}
    columns: dict[str, list[float]] = {"vectors": [], "gradients": [], "error": []}

    def add(theta: Any) -> None:
        error = (float(f.mean(f.value(prepared.in_user_coordinates(theta)))) - least) / least
        for column, number in (*spent.items(), ("error", error)):
            columns[column].append(number)

    if prepared.floats_up:
        add(prepared.theta0)
    rounds = iterate(algorithm, prepared.objective, theta0=prepared.theta0, participation=participation, seed=SEED)
    for s in rounds:
        assert s.solution is not None  # everybody takes part
        spent["vectors"] += s.floats_up / size
        spent["gradients"] += float(np.mean(s.solution.gradients))
        sent = s.floats_up > 0
        if sent:  # otherwise the model is the old one
            add(s.server.theta)
        if any(spent[column] >= limit for column, limit in most.items()):
            break
        if sent and (columns["error"][-1] <= TARGETS[-1] or not math.isfinite(columns["error"][-1])):
            break
    return columns


def first(trace: Trace, target: float) -> tuple[float, float] | None:
    """Return the vectors and the local gradients when the error was first at most ``target``; None if never.

    Examples
    --------
    >>> columns = {"vectors": [1.0, 2.0], "gradients": [5.0, 8.0], "error": [1.0, 1e-5]}
    >>> trace = Trace(columns=columns, status="converged", theta=None)
    >>> first(trace, 1e-4), first(trace, 1e-10)
    ((2.0, 8.0), None)
    """
    hits = np.flatnonzero(trace["error"] <= target)
    return (float(trace["vectors"][hits[0]]), float(trace["gradients"][hits[0]])) if len(hits) else None


def _words(trace: Trace, column: int = 0) -> str:
    """Return what both targets took, rounded."""
    found = (first(trace, target) for target in TARGETS)
    return " / ".join("-" if spent is None else f"{spent[column]:,.0f}" for spent in found)


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return a row of vectors and one of local gradients for every method: to 1e-4 / to 1e-10."""
    names = list(dict.fromkeys(label.split(": ")[1] for label in traces))
    rows = []
    for column, what in enumerate(("vectors", "local gradients")):
        for name in names:
            row = {"method": ENTRIES[name].title, "what": what}
            for problem in dict.fromkeys(label.split(": ")[0] for label in traces):
                row[problem] = _words(traces[f"{problem}: {name}"], column)
            rows.append(row)
    return rows


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw a panel for every problem and a line for every method, from 1e-4 (hollow) to 1e-10 (filled)."""
    names = list(dict.fromkeys(label.split(": ")[1] for label in traces))
    shown = list(dict.fromkeys(label.split(": ")[0] for label in traces))
    size = {"height": 0.9 + 0.15 * len(names), "width": settings.width, "least": LEAST}
    figure, grid = plotting.panels(1, len(shown), **size, sharey=True)
    for axes, problem in zip(grid.flat, shown, strict=True):
        _panel(axes, problem, {name: traces[f"{problem}: {name}"] for name in names})
    figure.supxlabel("vectors sent per client")
    words = "Vectors to a relative error of 1e-4 (hollow) and 1e-10 (filled), methods as suggested"
    plotting.titled(figure, f"{words}; no mark: not within the limits")
    return figure


def _panel(axes: Axes, title: str, traces: Mapping[str, Trace]) -> None:
    for place, (name, trace) in enumerate(traces.items()):
        colour, marker, _ = plotting.style(ENTRIES[name].look)
        ends = [None if spent is None else spent[0] for spent in (first(trace, target) for target in TARGETS)]
        known = [end for end in ends if end is not None]
        axes.plot(known, [place] * len(known), color=colour, zorder=2)
        for end, face in zip(ends, ("white", colour), strict=True):
            if end is not None:
                axes.plot(end, place, marker=marker, color=colour, markerfacecolor=face, zorder=3)
    axes.set_xscale("log")
    axes.set_xlim(0.8, 2.0 * MOST_VECTORS[False])
    axes.set_yticks(range(len(traces)), [ENTRIES[name].title for name in traces])
    axes.set_ylim(len(traces) - 0.4, -0.6)
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_xticks([], minor=True)
    axes.set_title(title.replace(", ", "\n"))
