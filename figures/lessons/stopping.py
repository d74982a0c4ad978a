r"""When may a client stop? Its gap (3.6) says how far it is from its local solution, and a schedule what is admitted.

Theorems: ``gap_3_6`` (the gap and its bound), ``theorem_3_4`` and ``theorem_3_5`` (so many steps are enough for (3.7),
(3.8)), and ``theorem_3_2_inexact``, ``theorem_3_3_inexact``: what errors cost.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dualopt.methods import CorrectedDualFL
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact, Gradient
from dualopt.solvers.stopping import LinearSchedule, Steps, SublinearSchedule
from figures.lessons._charts import Chart, Curve
from figures.lessons._runs import accuracy, error_curves
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Judged, Table, asked, compared, judge, promised
from theory._cases import Case
from theory._valleys import valleys
from theory.dualfl._gaps import watched
from theory.dualfl.inexact_solutions import gap_3_6, theorem_3_2_inexact, theorem_3_3_inexact
from theory.dualfl.local_steps import theorem_3_4, theorem_3_5

TITLE = "When may a client stop?"
QUESTION = "What is the smallest number K of local steps on the slider with which no client ever stops too early?"
STEPS = (1, 2, 3, 5, 8, 12, 16, 20, 30)
SHOWN = np.array([*range(11), 12, 14, 17, 20, 25, 30])  # the steps at which the gap is drawn
SCHEDULES = ("(3.7), without smoothness", "(3.8), with smoothness")
SLIDERS = (
    Slider(name="steps", label="local steps K", values=STEPS, start=2),
    Slider(name="kappa", label="condition number κ", values=(4, 8, 12), start=8),
    Slider(name="schedule", label="what is admitted", values=SCHEDULES, start=SCHEDULES[1]),
)
ROUNDS = 16
NU = 0.5  # half of mu, for which the bound of the gap is |r|^2/(2 nu), what the theorems on errors need
COST = "N nu/2 |theta - theta*|^2"  # what the theorems on errors compare


@cache
def run(steps: int, kappa: float, schedule: str) -> Case:
    """Return DualFL on two valleys with so many local gradient steps; exact for 0."""
    f = valleys(2, kappa=kappa)
    f = Quadratic(A=f.A, b=f.b)  # minima that are not 0: claims allow for rounding by a share of the energies
    local: dict[str, Any] = {"solver": Gradient(), "stop": Steps(steps=steps)} if steps else {"solver": Exact()}
    rho = 0.0 if schedule == SCHEDULES[0] else NU / kappa
    return Case.of(CorrectedDualFL(nu=NU, rho=rho, **local), f, rounds=ROUNDS, name="DualFL")


@cache
def soon_enough(steps: int, kappa: float, schedule: str) -> Judged:
    """Judge whether the bound of every client's gap is at most admitted when it stops, in every round."""
    case = run(steps, kappa, schedule)
    bounds = watched(case, steps).bound[:, :, -1].max(axis=1)
    return asked(*zip(bounds, admitted(case), strict=True), what="gap of a client")


def admitted(case: Case) -> list[float]:
    """Return what is admitted in every round: (3.7) where rho is 0, else (3.8)."""
    rho = case.algorithm.rho
    schedule = LinearSchedule(rho=rho) if rho else SublinearSchedule(nu=NU)
    return [schedule(s.round) for s in case.snapshots()]


def scene(*, steps: int, kappa: float, schedule: str) -> Scene:
    """Run DualFL with few local steps and with exact local solutions, and watch the gaps close."""
    case, exact, linear = run(steps, kappa, schedule), run(0, kappa, schedule), schedule == SCHEDULES[1]
    seen, most = watched(case, max(STEPS)), admitted(case)
    enough, inexact = (theorem_3_5, theorem_3_3_inexact) if linear else (theorem_3_4, theorem_3_2_inexact)
    curves, rows = [], {}
    for j, label in enumerate(("client 1", "client 2")):
        gap, bound, common = seen.gap[:, j], seen.bound[:, j], {"x": SHOWN, "label": label, "colour": 3 + j}
        curves.append(Curve(y=gap[:, SHOWN], moving=True, **common))
        curves.append(Curve(y=bound[:, SHOWN], moving=True, role="certificate", **common))
        rows[label] = {"gap (3.6) when it stops": gap[:, steps], "its bound": bound[:, steps], "admitted": most}
    line = {"x": SHOWN[[0, -1]], "y": np.stack([most, most], axis=1), "label": f"admitted by {schedule[:5]}"}
    local = Chart(
        curves=[*curves, Curve(role="theorem", moving=True, **line)],
        x_label="local steps in the round shown",
        y_label="gap of a client",
        log_y=True,
        marks=[(steps, "stops")],
        y_range=(1e-12, 1e3),
    )
    found, best = accuracy(case), accuracy(exact).error
    bound = promised(inexact, case, COST, case.L / (case.n_clients * NU))
    cost = [
        *error_curves(f"K = {steps}", 0, found),
        Curve(y=best, label="exact local solutions", colour=2),
        Curve(y=bound, label="theorem, with these errors", colour=1, role="theorem"),
    ]
    early = soon_enough(steps, kappa, schedule)
    fewer = soon_enough(STEPS[max(STEPS.index(steps) - 1, 0)], kappa, schedule)
    why = f"Too early: {early.detail}." if early.verdict == "violated" else "Fewer steps would do."
    ends = f"After {ROUNDS} rounds E − E* is {found.error[-1]:.1e}, with exact local solutions {best[-1]:.1e}."
    # The theorem with errors is true, and says less than nothing where the errors are large.
    says = compared(inexact, case)[-1].rhs < inexact.trivial(case)
    return Scene(
        charts=[local, Chart.over_rounds("E − E*", cost)],
        table=Table.of("in this round", rows, colours=(3, 4)),
        verdicts=[
            judge(gap_3_6, case, "gap (3.6) between its bounds"),
            judge(enough, exact, "steps that are enough"),
            judge(inexact, case, "the rate with these errors", "holds" if says else "vacuous"),
        ],
        answer=Answer.of(
            (early, "holds"),
            (fewer, "violated"),
            yes=f"With K = {steps} no client stops too early, with the next smaller K of the slider one does. {ends}",
            no=f"{why} {ends}",
        ),
        rounds=ROUNDS,
        shown=3,
    )
