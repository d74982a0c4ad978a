r"""Averaging is biased: FedAvg ends where its local steps lead, which is not at the solution.

Theorem: ``fedavg_bias``, the limit in closed form. It is the solution for one local step, or clients that agree.
"""

from __future__ import annotations

import numpy as np

from dualopt.methods import FedAvg
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from figures.lessons._charts import Chart, Curve
from figures.lessons._planes import Dots, Lines, Plane, contours, minimisers, way
from figures.lessons._runs import accuracy, error_curves
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Table, asked, judge
from theory._cases import Case
from theory._valleys import own_minimisers, valleys
from theory.baselines.bias import enough, factor, fedavg_bias
from theory.limits import fedavg_limit

TITLE = "Averaging is biased"
QUESTION = (
    "Which is the first number K of local steps on the slider for which FedAvg ends at a distance of 1 or more from the"
    " solution?"
)
STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
APART = tuple(round(0.1 * k, 1) for k in range(16))
SLIDERS = (
    Slider(name="steps", label="local steps K", values=STEPS, start=1),
    Slider(name="apart", label="how different the clients are", values=APART, start=1.2, exported=(*APART[::4], 1.5)),
)


def scene(*, steps: int, apart: float) -> Scene:
    """Run FedAvg on two clients until it rests; its limit has a closed form."""
    f = valleys(2, kappa=16.0, apart=apart, angle=1.0)
    step, k = 1.0 / float(np.max(f.L)), STEPS.index(steps)
    rounds = enough(factor(step * float(np.min(f.mu)), 1.0, steps))
    case = Case.of(FedAvg(solver=Gradient(step=step), stop=Steps(steps=steps)), f, rounds=rounds, name="FedAvg")
    limits = np.stack([fedavg_limit(f, step=step, K=K) for K in STEPS])
    away, models = np.linalg.norm(limits - case.theta, axis=1), case.models()
    measured = np.linalg.norm(models - case.theta, axis=1)
    n = min(rounds, 60)  # are shown; the claim looks at all until the limit
    error, gap = found = accuracy(case, n)
    limit = Curve.level(case.error(limits[k]), (1, max(n, 2)), "its limit", colour=1)
    against = [
        Curve(x=STEPS, y=away, label="limit, in closed form", colour=1, role="limit"),
        Curve(x=[steps], y=measured[-1:], label=f"FedAvg after {rounds} rounds", colour=0, role="points"),
        Curve.level(1.0, (1, 64), "a distance of 1", role="theorem"),
    ]
    cells = {"distance from θ*": measured[:n], "that of its limit": away[k], "E − E*": error, "certificate": gap}
    ends = f"With K = {steps} FedAvg ends {away[k]:.3f} from the solution"
    other = "fewer are enough." if away[k] > 1 else "more are needed, or clients that differ more."
    marks = [
        *contours(f, (3, 4), levels=(0.2, 0.8)),
        Dots(points=minimisers(f), colours=[3, 4], label="minimiser of a client"),
        Lines(lines=[limits], colour=1, label="limits for K = 1 to 64", faint=False),
        *way(models[:n], colour=0, label="model of FedAvg"),
        Dots(points=[limits[k]], shape="star", colours=1, label="its limit"),
        Dots(points=[case.theta], shape="cross", label="solution θ*"),
    ]
    seen = np.concatenate([own_minimisers(2, apart=1.5), limits])
    return Scene(
        planes=[Plane.around(seen, margin=0.3, marks=marks)],
        charts=[
            Chart(curves=against, x_label="local steps K", y_label="distance from the solution", log_x=True),
            Chart.over_rounds("E − E*", [*error_curves("FedAvg", 0, found), limit]),
        ],
        table=Table.of("method", {f"FedAvg, K = {steps}": cells}),
        verdicts=[judge(fedavg_bias, case, "closed form of the limit")],
        answer=Answer.of(
            (asked((away[max(k - 1, 0)], 1.0), (1.0, away[k])), "holds"),  # fewer steps, these steps
            yes=f"{ends}, and with the next smaller number of the slider nearer than 1.",
            no=f"{ends}: {other}",
        ),
        rounds=n,
        shown=n,
    )
