"""DualFL and OptimizedDualFL without tuning: rounds to a certified accuracy, with and without restarts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dualopt.methods import (
    AdaptiveDualFL,
    DualFL,
    GapRestartedDualFL,
    OptimizedDualFL,
    RestartedDualFL,
    RestartedOptimizedDualFL,
)
from dualopt.problem.build import build_problem
from dualopt.problem.data._files import home
from dualopt.problem.options import ProblemOptions
from dualopt.runs import plotting
from dualopt.runs.recording import run
from dualopt.runs.trace import Trace
from dualopt.spec import described
from figures._settings import Settings

__all__ = ["METHODS", "TUNED", "compute", "draw", "problems", "tabulate"]

TIME = "about 5 minutes"

MOST_ROUNDS = {False: 600, True: 60}
MULTIPLES = (1.0, 3.0, 10.0, 30.0)
METHODS: dict[str, tuple[type, dict[str, Any]]] = {
    "OptimizedDualFL, suggested": (OptimizedDualFL, {}),
    "OptimizedDualFL, rho = 0": (OptimizedDualFL, {"rho": 0.0}),
    "OptimizedDualFL, gradient restart": (RestartedOptimizedDualFL, {}),
    "DualFL, suggested": (DualFL, {}),
    "DualFL, rho = 0": (DualFL, {"rho": 0.0}),
    "DualFL, gradient restart": (RestartedDualFL, {}),
    "DualFL, gap restart": (GapRestartedDualFL, {}),
    "DualFL, adaptive": (AdaptiveDualFL, {}),
}
TUNED = {"OptimizedDualFL, best rho": OptimizedDualFL, "DualFL, best rho": DualFL}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Where the methods are compared, and to which certified relative accuracy."""

    options: ProblemOptions
    tol: float


def problems(settings: Settings) -> dict[str, Problem]:
    """Return the problems by their names: smooth clients, and clients with kinks.

    a9a is in the user's folder of data sets and left out without one; whoever names another data set than digits gets
    that one alone.
    """
    common: dict[str, Any] = {"data_home": settings.data_home, "partition": "by-label", "clients": 8}
    by_label = ProblemOptions(**common, data="digits", mu=1e-2)
    if settings.data != "digits":
        options = replace(by_label, data=settings.data, mu=settings.mu, rows=settings.rows)
        return {settings.whole.name: Problem(options=options, tol=1e-8)}
    cancer = replace(by_label, data="breast_cancer")
    found = {
        "digits": Problem(options=by_label, tol=1e-8),
        "breast cancer": Problem(options=cancer, tol=1e-8),
    }
    if settings.quick:
        return found
    if home(settings.data_home) is not None:
        a9a = replace(by_label, data="a9a", mu=1e-3, clients=10, partition="consecutive", storage="dense")
        found["a9a"] = Problem(options=a9a, tol=1e-8)
    hinge = replace(cancer, loss="hinge")
    found["breast cancer, hinge, mu = 0.1"] = Problem(options=replace(hinge, mu=0.1), tol=1e-5)
    found["breast cancer, hinge"] = Problem(options=hinge, tol=1e-4)
    return found


def compute(settings: Settings) -> dict[str, Trace]:
    """Run every method on every problem until the certificate is small enough.

    The traces, by ``problem: method``, have a row after every round: ``rounds``, ``vectors`` sent by a client,
    ``gradients``, its local gradients, and the relative ``certificate``, which is to reach the ``target``. With "best
    rho" it is the run of the multiple of nu/L, from 1 to 30, that needs the fewest rounds, and ``multiple`` is in every
    row.
    """
    traces: dict[str, Trace] = {}
    most = MOST_ROUNDS[settings.quick]
    for title, problem in problems(settings).items():
        built = cache(lambda problem=problem: build_problem(problem.options).objective)
        smooth = math.isfinite(float(np.max(built().L)))
        runs: dict[str, Any] = {name: kind(**parameters) for name, (kind, parameters) in METHODS.items()}
        if smooth:
            runs |= {name: kind() for name, kind in TUNED.items()}
        else:  # rho = 0 is what is suggested
            runs = {name: method for name, method in runs.items() if "suggested" not in name}
        for name, method in runs.items():
            label = f"{title}: {name}"
            description = {
                "figure": "restarts",
                "problem": {key: str(v) for key, v in asdict(problem.options).items() if key != "data_home"},
                "tol": problem.tol,
                "algorithm": described(method),
                "multiples": MULTIPLES if name in TUNED else None,
                "rounds": most,
            }

            go = _best if name in TUNED else _run
            traces[label] = settings.stored_columns(
                f"the run {label!r}",
                description,
                lambda go=go, method=method, built=built, tol=problem.tol: go(method, built(), tol, most),
            )
            settings.console.print(f"  {label}: {_words(traces[label])}", highlight=False, markup=False)
    return traces


def _run(method: Any, f: Any, tol: float, most: int) -> dict[str, list[float]]:
    """Return the columns of a run."""
    trace = run(method, f, rounds=most, tol=tol, interruptible=False)
    size = f.n_clients * math.prod(f.shape)
    rows = {
        "rounds": trace["round"],
        "vectors": trace["floats_up"] / size,
        "gradients": trace["gradients"],
        "certificate": trace["certified_error"],
        "target": np.full(len(trace), tol),
    }
    return {name: [float(x) for x in column] for name, column in rows.items()}


def _best(method: Any, f: Any, tol: float, most: int) -> dict[str, list[float]]:
    """Return the columns of the best multiple of nu/L; a run that is no better than one before it is cut off."""
    limit = float(np.min(f.mu) / np.max(f.L))
    best: dict[str, list[float]] = {}
    for multiple in MULTIPLES:
        found = _run(replace(method, rho=multiple * limit), f, tol, most)
        if found["certificate"][-1] <= tol:
            most = len(found["rounds"]) - 2
            best = found | {"multiple": [multiple] * len(found["rounds"])}
        best = best or found | {"multiple": [multiple] * len(found["rounds"])}
    return best


def _words(trace: Trace) -> str:
    """Return the rounds and local gradients until the certificate was small enough."""
    if not trace["certificate"][-1] <= trace["target"][-1]:
        return f"> {trace['rounds'][-1]:.0f}"
    tuned = f" (rho = {trace['multiple'][-1]:g} nu/L)" if "multiple" in trace.columns else ""
    return f"{trace['rounds'][-1]:.0f}; {trace['gradients'][-1]:.0f}{tuned}"


def tabulate(traces: Mapping[str, Trace]) -> list[dict[str, str]]:
    """Return a row for every method: rounds; local gradients, to the certified accuracy of the problem."""
    shown = list(dict.fromkeys(label.split(": ")[0] for label in traces))
    names = list(dict.fromkeys(label.split(": ")[1] for label in traces))
    rows = []
    for name in names:
        row = {"method": name}
        for problem in shown:
            trace = traces.get(f"{problem}: {name}")
            row[problem] = "" if trace is None else _words(trace)
        rows.append(row)
    return rows


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw a panel for every problem: the certificate over the rounds."""
    shown = list(dict.fromkeys(label.split(": ")[0] for label in traces))
    names = list(dict.fromkeys(label.split(": ")[1] for label in traces))
    lines = {
        "suggested": ":",
        "rho = 0": "-",
        "gradient restart": "-",
        "gap restart": "--",
        "adaptive": "-",
        "best rho": "-.",
    }
    columns = 2 if len(shown) == 4 else min(3, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure, grid = plotting.panels(rows, columns, height=2.2, width=settings.width, least=2.0)
    for axes, problem in zip(grid.flat, shown, strict=False):
        for name in names:
            trace = traces.get(f"{problem}: {name}")
            if trace is None:
                continue
            method, words = name.split(", ")
            colour = plotting.style("AdaptiveDualFL" if words == "adaptive" else method).color
            width, shade = (
                (1.1 if words in ("suggested", "rho = 0", "best rho") else 1.8),
                (0.35 if words == "rho = 0" else 1.0),
            )
            axes.semilogy(
                trace["rounds"],
                trace["certificate"],
                color=colour,
                linestyle=lines[words],
                linewidth=width,
                alpha=shade,
                label=name,
            )
        ends = [traces[label]["rounds"][-1] for label in traces if label.startswith(f"{problem}: ")]
        axes.set_xlim(0, 1.05 * min(max(ends), 2.0 * float(np.median(ends))))
        axes.set_title(problem)
        axes.set_xlabel("rounds")
    for axes in list(grid.flat)[len(shown) :]:
        axes.set_visible(False)
    for row in grid:
        row[0].set_ylabel("certified relative error")
    figure.unnamed.append(list(grid.flat))
    return figure
