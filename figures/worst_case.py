"""Theorem, exact worst case and measurement on one axis: how tight Theorem 3.2 is, and what one more term gains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dualopt.engine.rounds import iterate
from dualopt.lab.proofs import worst_case
from dualopt.methods import Algorithm, DualFL, OptimizedDualFL
from dualopt.objectives import Quadratic
from dualopt.runs import plotting
from dualopt.runs.trace import Trace
from dualopt.solvers import Exact
from figures._settings import Settings
from theory.optimized_dualfl._runs import growths

__all__ = ["compute", "draw"]

TIME = "about 2 minutes"
ROUNDS = {False: 20, True: 6}
PROBLEMS = {False: 300, True: 30}
METHODS = {"DualFL": DualFL(rho=0.0, nu=1.0), "OptimizedDualFL": OptimizedDualFL(rho=0.0, nu=1.0)}


def compute(settings: Settings) -> dict[str, Trace]:
    r"""Return bounds, worst cases and measurements of :math:`|\theta^n - \theta^*|^2` for ``rho = 0``, any convex loss.

    The unit is :math:`\sum_j |\xi_j^*|^2/\nu^2`, for two clients. Measured is the largest error over random quadratics
    of condition numbers up to 1e5.
    """
    rounds, problems = ROUNDS[settings.quick], PROBLEMS[settings.quick]
    traces: dict[str, Trace] = {}
    for method, algorithm in METHODS.items():
        curves: dict[str, Callable[[], list[float]]] = {
            f"{method}: theorem": lambda m=method: promised(m, rounds),
            f"{method}: worst case": lambda a=algorithm: [largest(a, n) for n in range(1, rounds + 1)],
            f"{method}: measured": lambda a=algorithm: _measured(a, rounds, problems),
        }
        for label, values in curves.items():

            def columns(values: Callable[[], list[float]] = values) -> dict[str, Any]:
                return {"round": list(range(1, rounds + 1)), "error": values()}

            description = {"figure": "worst_case", "curve": label, "rounds": rounds, "problems": problems}
            traces[label] = settings.stored_columns(f"the curve {label!r}", description, columns)
    return traces


def draw(traces: Mapping[str, Trace], settings: Settings) -> Figure:
    """Draw theorems dashed, worst cases with markers, measurements thin."""
    figure, ((axes,),) = plotting.panels(height=4.0, width=settings.width)
    kinds = {"theorem": {"linestyle": "--"}, "worst case": {"linewidth": 0}, "measured": {"linewidth": 0.9}}
    for label, trace in traces.items():
        method, kind = label.split(": ")
        colour, marker, _ = plotting.style(method)
        hollow = {"marker": marker, "markerfacecolor": "none"}  # those that coincide both show
        shown = kinds[kind] | (hollow if kind == "worst case" else {})
        axes.loglog(trace["round"], trace["error"], color=colour, label=label, **shown)
    axes.set_xlabel("communication rounds $n$")
    axes.set_ylabel(r"largest $|\theta^n - \theta^*|^2 \, \nu^2 / \, \Sigma_j |\xi_j^*|^2$")
    axes.set_title(r"Any convex loss, $\rho = 0$, 2 clients, exact local solutions")
    axes.grid(which="minor", color="0.92", linewidth=0.6)
    ticks = [n for n in (1, 2, 3, 5, 10, 20) if n <= max(trace["round"][-1] for trace in traces.values())]
    axes.set_xticks(ticks, labels=[str(n) for n in ticks], minor=False)
    axes.set_xticks([], minor=True)
    figure.unnamed.append([axes])
    return figure


def promised(method: str, rounds: int) -> list[float]:
    """Return the bounds of Theorem 3.2, or of the theorem of OptimizedDualFL, in the unit of the figure."""
    if method == "DualFL":
        return [2.0 / (n + 1) ** 2 for n in range(1, rounds + 1)]
    return [1.0 / A for A in islice(growths(0.0), rounds)]


def largest(algorithm: Algorithm, n: int) -> float:
    r"""Return the worst case over all convex losses, where :math:`\sum_j|\xi_j^*|^2 \le 1`.

    That sum is :math:`2|\theta^*|^2 + \sum_j|\nabla f_j(\theta^*)|^2`, because the gradients add up to zero.
    """
    return worst_case(algorithm, mu=1.0, L=math.inf, clients=2, rounds=n, start=(2.0, 1.0)).value


def _measured(algorithm: Algorithm, rounds: int, problems: int) -> list[float]:
    """Return the largest error of every round over random quadratics of two clients."""
    rng = np.random.default_rng(0)
    worst = np.zeros(rounds)
    method = replace(algorithm, solver=Exact())
    for _ in range(problems):
        d = int(rng.integers(1, 4))
        shape = (2, d)
        eigenvalues = 1.0 + 10.0 ** rng.uniform(-2, 5, shape)
        bases = np.linalg.qr(rng.standard_normal((2, d, d)))[0]
        A = (bases * eigenvalues[:, None, :]) @ np.swapaxes(bases, 1, 2)
        f = Quadratic(A=0.5 * (A + np.swapaxes(A, 1, 2)), b=rng.standard_normal(shape) * 10.0 ** rng.uniform(-2, 2))
        theta = f.minimiser()
        unit = float(np.sum((f.gradient(theta) - theta) ** 2))  # sum_j |xi_j*|^2 with nu = 1
        shots = islice(iterate(method, f), rounds)
        worst = np.maximum(worst, [float(np.sum((s.server.theta - theta) ** 2)) / unit for s in shots])
    return worst.tolist()
