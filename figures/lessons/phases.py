r"""Where it converges: a map of steps and clients for FedPD and FedAvg, and the orbit of one cell.

Theorems: ``afedpd_small_rho`` (on two clients of opposite curvature FedPD, which is A-FedPD where all take part,
converges up to a step in closed form) and ``fedavg_bias`` (where FedAvg ends on convex clients). The maps are computed
from the rounds (``theory/phase_maps.py``), by eigenvalues instead of long runs.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np

from dualopt.lab.chance import coin
from dualopt.methods import AFedPD, Algorithm, FedAvg
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import Steps
from figures.lessons._charts import Chart
from figures.lessons._planes import Cells, Dots, Lines, Plane, way
from figures.lessons._runs import Accuracy, accuracy, error_curves
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Judged, Table, judge
from theory._cases import Case
from theory.baselines.bias import enough, factor, fedavg_bias
from theory.counterexamples._recursion import on_quadratics
from theory.counterexamples.primal_dual import afedpd_small_rho
from theory.limits import afedpd_least_rho
from theory.phase_maps import CONVERGES, Clients, phase_map

TITLE = "Where it converges"
QUESTION = (
    "Each cell is a step and a pair of clients of curvatures 1 − s and 1 + s. Click one where FedPD diverges although"
    " both local problems have solutions. Where does that begin?"
)
METHODS = ("FedPD", "FedAvg, 4 local steps")
STEPS = tuple(float(f"{step:.3g}") for step in np.geomspace(0.25, 8.0, 24))
APART = (0.3, 0.5, 0.7, 0.9, 1.2, 1.5, 1.8, 2.2, 2.6, 3.0, 3.5, 4.2, 5.0, 6.0)
SLIDERS = (
    Slider(name="method", label="method", values=METHODS, start="FedPD"),
    Slider(name="step", label="step ηL", values=STEPS, start=STEPS[4], exported=(*STEPS[::2], STEPS[13], STEPS[15])),
    Slider(name="s", label="heterogeneity s", values=APART, start=0.7, exported=(0.3, 0.7, 1.2, 1.5, 2.2, 3.0)),
)
KINDS = ("converges", "ends elsewhere", "diverges", "has no local solution")
INK = (0, 5, 1, 2)
ROUNDS, FAR, LOCAL = 40, 1e4, 4


def clients(s: float) -> Clients:
    """Return clients of the curvatures 1 + s and 1 - s in units of L = 1 + s, pulled apart; the solution is 1."""
    curvature = np.array([1.0 + s, 1.0 - s]) / (1.0 + s)
    return Clients(curvature, curvature - np.array([-1.0, 1.0]) / (1.0 + s))


def algorithm(method: str, step: float) -> Algorithm:
    """Return the method; FedPD with all clients is A-FedPD with rho = 1/eta (``identity_full_participation``)."""
    if method == "FedPD":
        return AFedPD(rho=1.0 / step, solver=Exact())
    return FedAvg(solver=Gradient(step=step), stop=Steps(steps=LOCAL))


@cache
def cells(method: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the factor per round of every cell, and the position in ``KINDS``, shapes (len(APART), len(STEPS))."""
    axes = {"steps": STEPS, "heterogeneity": APART, "proximal": method == "FedPD"}
    radius, error = phase_map(partial(algorithm, method), clients, coin(2, 1.0), **axes)
    return radius, np.select([np.isnan(radius), radius >= 1.0, error > CONVERGES], [3, 2, 1], 0)


def longest(s: float) -> float:
    """Return the step up to which FedPD converges; for convex clients every one is short enough."""
    return 1.0 / afedpd_least_rho(1.0, (1.0 - s) / (1.0 + s)) if s > 1 else math.inf


def scene(*, method: str, step: float, s: float) -> Scene:
    """Run the method from the model 0 for the cell that is chosen."""
    radius, kind = (found[APART.index(s)][STEPS.index(step)] for found in cells(method))
    f, flat = clients(s).repeated(1), (1.0 - s) / (1.0 + s)
    run = on_quadratics(f"s = {s:g}", algorithm("FedPD", step), f, converges=step < longest(s), theta0=0.0)
    case = Case.of(algorithm(method, step), f, rounds=ROUNDS, theta0=run.theta0, name=method)
    models = case.models()[:, 0] if kind < 3 else np.array([])
    rounds = next((n for n, theta in enumerate(models, start=1) if abs(theta) > FAR), len(models))
    row: dict[str, Any] = dict.fromkeys(("factor per round", "model θ", "E − E*"), "none")
    charts, orbits = [], []
    if rounds:
        errors = [case.error(theta) for theta in case.models()[:rounds]]  # certified where all clients are convex
        found = accuracy(case, rounds) if s < 1 else Accuracy(errors, [])
        row = {"factor per round": radius, "model θ": models[:rounds], "E − E*": found.error}
        row |= {"certificate": found.certificate} if s < 1 else {}
        charts, orbits = [Chart.over_rounds("E − E*", error_curves(method, 0, found))], [orbit(case, rounds)]
    told = judge(afedpd_small_rho, run.but(converges=False))  # the claim, told that FedPD diverges in this cell
    here = f"With ηL = {step:g} and s = {s:g} {method} {KINDS[kind]}."
    answer = Answer.of(
        (told, "holds" if method == "FedPD" else "not asked"),
        yes=f"FedPD diverges. For s = {s:g} it converges for ηL < {longest(s):.3g}, and its local problems have"
        f" solutions for ηL < {-1 / flat:.3g}.",
        no=here if method == "FedPD" else f"{here} Choose FedPD.",
    )
    return Scene(
        planes=[plane(method, step, s), *orbits],
        charts=charts,
        table=Table.of("method", {method: row}),
        verdicts=[judged(method, step, s, run)],
        answer=answer,
        rounds=rounds,
        shown=max(1, min(rounds, 6)),
    )


def judged(method: str, step: float, s: float, run: Case) -> Judged:
    """Return the verdict on the theorem of a method; that of FedAvg looks at all rounds until the limit."""
    if method == "FedPD":
        speaks = "holds" if s > 1 and 1.0 / step > (s - 1.0) / (s + 1.0) else "outside assumptions"
        return judge(afedpd_small_rho, run, "FedPD converges up to a step in closed form", speaks)
    speaks = "holds" if s < 1 and step < 2.0 else "outside assumptions"
    rounds = enough(factor(step * run.mu, step * run.L, LOCAL)) if speaks == "holds" else 1
    case = Case.of(algorithm(method, step), run.objective, rounds=rounds)
    return judge(fedavg_bias, case, "FedAvg ends at a point in closed form", speaks)


def plane(method: str, step: float, s: float) -> Plane:
    """Return the map of a method, its theorem's border and the cell that is shown."""
    far = np.geomspace(1.05, APART[-1], 40)
    border = Lines(lines=[[(longest(a), a) for a in far]], colour=1, label="theorem", faint=False)
    marks = [
        Cells(x=STEPS, y=APART, classes=cells(method)[1], names=KINDS, colours=INK, on_x="step", on_y="s"),
        Lines(lines=[[(STEPS[0], 1.0), (STEPS[-1], 1.0)]], label="above: one is not convex", faint=False),
        *([border] if method == "FedPD" else []),
        Dots(points=[(step, s)], shape="ring", label="this cell"),
    ]
    return Plane(
        marks=marks,
        x=(STEPS[0] * 0.93, STEPS[-1] * 1.07),
        y=(APART[0] * 0.8, APART[-1] * 1.1),
        x_label="step ηL",
        y_label="heterogeneity s",
        equal=False,
        log_x=True,
        log_y=True,
    )


def orbit(case: Case, rounds: int) -> Plane:
    """Return the local models of the first client against those of the second one."""
    local = case.local_models()[:rounds, :, 0]
    marks = [
        Lines(lines=[[(-FAR, -FAR), (FAR, FAR)]], label="the clients agree"),
        *way(local, colour=0, label="local models of both clients"),
        Dots(points=[(1.0, 1.0)], shape="cross", label="solution"),
    ]
    seen_first = np.concatenate([local[:8], [(1.0, 1.0)]])
    return Plane.around(seen_first, marks=marks, x_label="local model of client 1", y_label="of client 2")
