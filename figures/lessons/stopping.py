r"""When may a client stop? Its gap (3.6) says how far it is from its local solution, and a schedule what is admitted.

Theorems: ``gap_3_6`` (the gap and its bound), ``theorem_3_4`` and ``theorem_3_5`` (so many steps are enough for (3.7),
(3.8)), and ``theorem_3_2_inexact``, ``theorem_3_3_inexact``: what errors cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from dualopt.algorithms import DualFL
from dualopt.claims import Claim, Inequality, Verdict, check, claim
from dualopt.objectives import Quadratic
from dualopt.solvers import Exact, Gradient
from dualopt.stopping import LinearSchedule, Steps, SublinearSchedule
from figures.lessons import Answer, Chart, Curve, Judged, Row, Scene, Slider, Table
from figures.lessons._gaps import watched
from figures.lessons._runs import accuracy
from theory._cases import Case
from theory._valleys import valleys
from theory.dualfl.inexact_solutions import gap_3_6, theorem_3_2_inexact, theorem_3_3_inexact
from theory.dualfl.local_steps import theorem_3_4, theorem_3_5

TITLE = "When may a client stop?"
QUESTION = "What is the smallest number K of local steps in a round with which no client ever stops too early?"
STEPS = (1, 2, 3, 5, 8, 12, 16, 20, 30)
SHOWN = (*range(11), 12, 14, 17, 20, 25, 30)  # the steps at which the gap is drawn
SCHEDULES = ("(3.7), without smoothness", "(3.8), with smoothness")
SLIDERS = (
    Slider(name="steps", label="local steps K", values=STEPS, start=2),
    Slider(name="kappa", label="condition number κ", values=(4, 8, 12), start=8),
    Slider(name="schedule", label="what is admitted", values=SCHEDULES, start=SCHEDULES[1]),
)
ROUNDS = 16
NU = 0.5  # half of mu, for which the bound of the gap is |r|^2/(2 nu), what the theorems on errors need
COLOURS = (3, 4)


@claim(source="a question, not a theorem", statement=r"After K steps $\frac{|r_j|^2}{2(\mu-\nu)}$ is at most admitted.")
def soon_enough(case: Case) -> Iterator[Inequality]:
    """Compare the bound of every client's gap with the schedule, in every round."""
    seen = watched(case, case.algorithm.stop.steps)
    for n, (bounds, most) in enumerate(zip(seen.bound[:, :, -1], admitted(case), strict=True), start=1):
        yield Inequality(n, float(np.max(bounds)), most, "gap of a client")


def admitted(case: Case) -> list[float]:
    """Return what is admitted in every round: (3.7) where rho is 0, else (3.8)."""
    rho = case.algorithm.rho
    schedule = SublinearSchedule(nu=NU) if rho == 0 else LinearSchedule(rho=rho)
    return [schedule(s.round) for s in case.snapshots()]


@cache
def run(steps: int, kappa: float, schedule: str) -> Case:
    """Return DualFL on two valleys with so many local gradient steps; exact for 0."""
    f = valleys(2, kappa=kappa)
    f = Quadratic(A=f.A, b=f.b)  # minima that are not 0: claims allow for rounding by a share of the energies
    local: dict[str, Any] = {"solver": Gradient(), "stop": Steps(steps=steps)} if steps else {"solver": Exact()}
    rho = 0.0 if schedule == SCHEDULES[0] else NU / kappa
    return Case.of(DualFL(nu=NU, rho=rho, corrected=True, **local), f, rounds=ROUNDS, name="DualFL")


@cache
def judged(steps: int, kappa: float, schedule: str) -> Verdict:
    """Judge whether no client stops too early."""
    return check(soon_enough, run(steps, kappa, schedule))


def scene(*, steps: int, kappa: float, schedule: str) -> Scene:
    """Run DualFL with few local steps and with exact local solutions, and watch the gaps close."""
    case, exact = run(steps, kappa, schedule), run(0, kappa, schedule)
    seen, k, n = watched(case, max(STEPS)), np.array(SHOWN), np.arange(1, ROUNDS + 1)
    most, linear = admitted(case), schedule == SCHEDULES[1]
    enough, inexact = (theorem_3_5, theorem_3_3_inexact) if linear else (theorem_3_4, theorem_3_2_inexact)
    curves, rows = [], []
    for j, colour in enumerate(COLOURS):
        named = {"label": f"client {j + 1}", "colour": colour, "moving": True}
        curves.append(Curve(x=k, y=seen.gap[:, j, k], **named))
        curves.append(Curve(x=k, y=seen.bound[:, j, k], role="certificate", **named))
        cells = [seen.gap[:, j, steps], seen.bound[:, j, steps], most]
        rows.append(Row(label=f"client {j + 1}", cells=cells, colour=colour))
    line = np.repeat(np.array(most)[:, None], 2, axis=1)
    curves.append(Curve(x=k[[0, -1]], y=line, label=f"admitted by {schedule[:5]}", role="theorem", moving=True))
    local = Chart(
        curves=curves,
        x_label="local steps in the round shown",
        y_label="gap of a client",
        log_y=True,
        marks=[(steps, "stops")],
        y_range=(1e-12, 1e3),
    )
    (error, gap), (best, _) = accuracy(case), accuracy(exact)
    cost = Chart(
        curves=[
            Curve(x=n, y=error, label=f"K = {steps}", colour=0),
            Curve(x=n, y=gap, label=f"K = {steps}", colour=0, role="certificate"),
            Curve(x=n, y=best, label="exact local solutions", colour=2),
            Curve(x=n, y=promise(inexact, case), label="theorem, with these errors", colour=1, role="theorem"),
        ],
        x_label="round",
        y_label="E − E*",
        log_y=True,
        rounds=True,
    )
    asked, fewer = judged(steps, kappa, schedule), judged(STEPS[max(STEPS.index(steps) - 1, 0)], kappa, schedule)
    ends = f"After {ROUNDS} rounds E − E* is {error[-1]:.1e}, with exact local solutions {best[-1]:.1e}."
    early = f"Too early: {Judged.of(soon_enough, asked, '').detail}." if asked.witness else "Fewer steps would do."
    return Scene(
        charts=[local, cost],
        table=Table(first="in this round", columns=["gap (3.6) when it stops", "its bound", "admitted"], rows=rows),
        verdicts=[
            Judged.of(gap_3_6, check(gap_3_6, case), "gap (3.6) between its bounds"),
            Judged.of(enough, check(enough, exact), "steps that are enough"),
            Judged.of(inexact, check(inexact, case), "the rate with these errors"),
        ],
        answer=Answer.of(
            fewer,
            right=lambda v: asked.verdict == "holds" and (v.verdict == "violated" or steps == STEPS[0]),
            yes=f"With K = {steps} no client stops too early, with fewer one does. {ends}",
            no=f"{early} {ends}",
        ),
        rounds=ROUNDS,
        shown=3,
    )


def promise(theorem: Claim, case: Case) -> list[float]:
    """Return what a theorem says of E - E* in every round: L/2 times its bound of the squared distance."""
    bounds = [q.rhs for q in theorem.compare(case) if q.what.startswith("N nu/2")]
    return [case.L / (case.n_clients * NU) * bound for bound in bounds]


def expected(*, steps: int, kappa: float, schedule: str) -> dict[str, str]:
    """Return the verdicts: the theorem with errors is true, and says less than nothing where the errors are large."""
    inexact = theorem_3_3_inexact if schedule == SCHEDULES[1] else theorem_3_2_inexact
    case = run(steps, kappa, schedule)
    says = [q.rhs for q in inexact.compare(case)][-1] < inexact.trivial(case)
    return {
        "gap (3.6) between its bounds": "holds",
        "steps that are enough": "holds",
        "the rate with these errors": "holds" if says else "vacuous",
    }
