r"""Where it converges: a map of steps and clients for FedPD and FedAvg, and the orbit of one cell.

Theorems: ``afedpd_small_rho`` (on two clients of opposite curvature FedPD, which is A-FedPD where all take part,
converges up to a step in closed form) and ``fedavg_bias`` (where FedAvg ends on convex clients). The maps are computed
from the rounds (``figures/_phase.py``), by eigenvalues instead of long runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dualopt.algorithms import AFedPD, FedAvg
from dualopt.claims import check
from dualopt.solvers import Exact, Gradient
from dualopt.stopping import Steps
from figures._phase import CONVERGES, Clients, LimitStatistics, limit_statistics
from figures.lessons import Answer, Cells, Chart, Curve, Dots, Judged, Lines, Path, Plane, Row, Scene, Slider, Table
from figures.lessons._runs import accuracy
from theory._cases import Case
from theory._chance import coin
from theory.baselines.bias import enough, factor, fedavg_bias
from theory.counterexamples._recursion import Run, on_quadratics
from theory.counterexamples.primal_dual import afedpd_small_rho, least_rho

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
FEDPD, FEDAVG = "FedPD converges up to a step in closed form", "FedAvg ends at a point in closed form"


def clients(s: float) -> Clients:
    """Return clients of the curvatures 1 + s and 1 - s in units of L = 1 + s, pulled apart; the solution is 1."""
    curvature = np.array([1.0 + s, 1.0 - s]) / (1.0 + s)
    return Clients(curvature, curvature - np.array([-1.0, 1.0]) / (1.0 + s))


def algorithm(method: str, step: float) -> Any:
    """Return the method; FedPD with all clients is A-FedPD with rho = 1/eta (``identity_full_participation``)."""
    if method == "FedPD":
        return AFedPD(rho=1.0 / step, solver=Exact())
    return FedAvg(solver=Gradient(step=step), stop=Steps(steps=LOCAL))


def ends(method: str, step: float, s: float) -> tuple[int, LimitStatistics]:
    """Return the position in ``KINDS``, and how the method ends; NaN where a local problem has no solution."""
    own = clients(s)
    if method == "FedPD" and 1.0 / step + np.min(own.curvature) <= 0:
        return 3, LimitStatistics(np.nan, np.nan)
    found = limit_statistics(algorithm(method, step), own, coin(2, 1.0))
    return (int(found.error > CONVERGES) if found.radius < 1.0 else 2), found


MAPS = {method: [[ends(method, step, s)[0] for step in STEPS] for s in APART] for method in METHODS}


def scene(*, method: str, step: float, s: float) -> Scene:
    """Run the method from the model 0 for the cell that is chosen."""
    kind, found = ends(method, step, s)
    f, steep, flat = clients(s).repeated(1), 1.0, (1.0 - s) / (1.0 + s)
    longest = 1.0 / least_rho(steep, flat) if flat < 0 else np.inf  # for convex clients every step is short enough
    run = on_quadratics(f"s = {s:g}", algorithm("FedPD", step), f, converges=step < longest, theta0=0.0)
    case = Case.of(algorithm(method, step), f, rounds=ROUNDS, theta0=run.theta0, name=method)
    models = [float(shot.server.theta[0]) for shot in case.snapshots()] if kind < 3 else []
    rounds = next((n for n, theta in enumerate(models, start=1) if abs(theta) > FAR), len(models))
    told = check(afedpd_small_rho, run.but(converges=False))  # the claim, told that FedPD diverges in this cell
    answer = Answer.of(
        told,
        right=lambda v: method == "FedPD" and v.verdict == "holds",
        yes=f"FedPD diverges. For s = {s:g} it converges for ηL < {longest:.3g}, and its local problems have solutions"
        f" for ηL < {-1 / flat:.3g}.",
        no=f"With ηL = {step:g} and s = {s:g} {method} {KINDS[kind]}."
        + (" Choose FedPD." if method != "FedPD" else ""),
    )
    error, gap = accuracy(case, rounds) if rounds and s < 1 else ([case.error(np.array([m])) for m in models], None)
    columns, cells = ["factor per round", "model θ", "E − E*"], [found.radius, models[:rounds], error[:rounds]]
    if gap:
        columns, cells = [*columns, "certificate"], [*cells, gap]
    return Scene(
        planes=[plane(method, step, s, longest), *([orbit(case, rounds)] if rounds else [])],
        charts=[errors(method, error[:rounds], gap)] if rounds else [],
        table=Table(
            first="method",
            columns=columns,
            rows=[Row(label=method, cells=cells if rounds else ["none"] * 3, colour=0)],
        ),
        verdicts=[judged(method, step, run)],
        answer=answer,
        rounds=rounds,
        shown=max(1, min(rounds, 6)),
    )


def judged(method: str, step: float, run: Run) -> Judged:
    """Return the verdict on the theorem of a method; that of FedAvg looks at all rounds until the limit."""
    if method == "FedPD":
        return Judged.of(afedpd_small_rho, check(afedpd_small_rho, run), FEDPD)
    arrives = run.mu > 0 and step < 2.0
    rounds = enough(factor(step * run.mu, step * run.L, LOCAL)) if arrives else 1
    case = Case.of(algorithm(method, step), run.objective, rounds=rounds)
    return Judged.of(fedavg_bias, check(fedavg_bias, case), FEDAVG)


def plane(method: str, step: float, s: float, longest: float) -> Plane:
    """Return the map of a method, its theorem's border and the cell that is shown."""
    marks: list[Any] = [
        Cells(x=STEPS, y=APART, classes=MAPS[method], names=KINDS, colours=INK, on_x="step", on_y="s"),
        Lines(lines=[[(STEPS[0], 1.0), (STEPS[-1], 1.0)]], label="above: one is not convex", faint=False),
    ]
    if method == "FedPD":
        far = np.geomspace(1.05, APART[-1], 40)
        border = [(1.0 / least_rho(1.0, (1.0 - a) / (1.0 + a)), a) for a in far]
        marks.append(Lines(lines=[border], colour=1, label="theorem", faint=False))
    marks.append(Dots(points=[(step, s)], shape="ring", label="this cell"))
    x, y = (STEPS[0] * 0.93, STEPS[-1] * 1.07), (APART[0] * 0.8, APART[-1] * 1.1)
    return Plane(
        marks=marks, x=x, y=y, x_label="step ηL", y_label="heterogeneity s", equal=False, log_x=True, log_y=True
    )


def orbit(case: Case, rounds: int) -> Plane:
    """Return the local models of the first client against those of the second one."""
    seen = list(case.snapshots())[:rounds]
    local = np.stack([np.asarray(s.local_models)[:, 0] for s in seen])
    marks = [
        Lines(lines=[[(-FAR, -FAR), (FAR, FAR)]], label="the clients agree"),
        Path(points=local, colour=0, label="local models of both clients"),
        Dots(points=local[:, None], colours=0),
        Dots(points=[(1.0, 1.0)], shape="cross", label="solution"),
    ]
    seen_first = np.concatenate([local[:8], [(1.0, 1.0)]])
    return Plane.around(seen_first, marks=marks, x_label="local model of client 1", y_label="of client 2")


def errors(method: str, error: list[float], gap: list[float] | None) -> Chart:
    """Return the errors, and their certificates where all clients are convex."""
    n = np.arange(1, len(error) + 1)
    curves = [Curve(x=n, y=error, label=method, colour=0)]
    curves += [Curve(x=n, y=gap, label=method, colour=0, role="certificate")] if gap else []
    return Chart(curves=curves, x_label="round", y_label="E − E*", log_y=True, rounds=True)


def expected(*, method: str, step: float, s: float) -> dict[str, str]:
    """Return the verdicts: both theorems hold where they speak."""
    if method == "FedPD":
        return {FEDPD: "holds" if s > 1 and 1.0 / step > (s - 1.0) / (s + 1.0) else "outside assumptions"}
    return {FEDAVG: "holds" if s < 1 and step < 2.0 else "outside assumptions"}
