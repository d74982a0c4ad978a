r"""One round, one link: on a chain no method is faster than its lower bound, and one attains it.

Theorems: ``convex_span`` (n rounds reach n coordinates), ``convex_strong_bound`` (so no method is nearer to the
solution than the bound) and ``convex_strong_attained`` (FedSplit is as near as that).
"""

from __future__ import annotations

import numpy as np

from dualopt.methods import ConsensusFedSplit, DualFL, FedAvg, FedPD, OptimizedDualFL
from dualopt.solvers import Gradient
from figures.lessons._charts import Chart, Curve
from figures.lessons._runs import accuracy
from figures.lessons._scene import Scene, Slider
from figures.lessons._words import Answer, Table, judge
from theory.lower_bounds._convex_chain import geometric, tails
from theory.lower_bounds._convex_methods import ConjugateGradients, chain_case
from theory.lower_bounds.convex import convex_span, convex_strong_attained, convex_strong_bound

TITLE = "One round, one link"
QUESTION = "No method comes below the dashed line, whatever its clients compute. Which one touches it in every round?"
ATTAINS = "FedSplit, mean of the zⱼ"
METHODS = {  # with the parameters that they suggest; FedAvg takes one gradient step of length 1/L
    "DualFL": lambda L: DualFL(),
    "OptimizedDualFL": lambda L: OptimizedDualFL(),
    "conjugate gradients": lambda L: ConjugateGradients(),
    "FedAvg": lambda L: FedAvg(solver=Gradient(step=1.0 / L)),
    "FedPD": lambda L: FedPD(),
    ATTAINS: lambda L: ConsensusFedSplit(),
}
SLIDERS = (
    Slider(name="method", label="method", values=tuple(METHODS), start="DualFL"),
    Slider(name="kappa", label="condition number κ", values=(4, 10, 30, 100, 300, 1000), start=30),
)
LINKS = 24  # coordinates
ROUNDS = LINKS - 1


def scene(*, method: str, kappa: float) -> Scene:
    """Run a method on the chain whose links belong to two clients in turn."""
    instance = geometric(kappa, LINKS)
    case = chain_case(instance, METHODS[method](instance.L), ROUNDS, remember=True)
    case = case.but(lowest=case.value(case.theta))
    models, least = case.models(), tails(case.theta)
    distance = np.sum((models - case.theta) ** 2, axis=1)
    reached = np.array([np.flatnonzero(theta)[-1] + 1 if theta.any() else 0 for theta in models])
    error, gap = accuracy(case)
    cells = {"coordinates reached": reached, "|θⁿ − θ*|²": distance, "least possible": least}
    cells |= {"E − E*": error, "certificate": gap}
    coordinates = [
        Curve(x=np.arange(1, LINKS + 1), y=models, label=f"model of {method}", colour=0, role="bars", moving=True),
        Curve(y=case.theta, label="solution", role="limit"),
    ]
    race = [
        Curve(y=distance, label=method, colour=0),
        Curve(y=least, label="no method is below", colour=1, role="theorem"),
    ]
    expected = "holds" if method == ATTAINS else "violated"
    attained = judge(convex_strong_attained, case, "this method attains it", expected)
    return Scene(
        charts=[
            Chart(curves=coordinates, x_label="coordinate of the model", y_label="value"),
            Chart.over_rounds("|θⁿ − θ*|²", race),
        ],
        table=Table.of("method", {method: cells}),
        verdicts=[
            judge(convex_span, case, "one coordinate a round"),
            judge(convex_strong_bound, case, "no method is faster"),
            attained,
        ],
        answer=Answer.of(
            (attained, "holds"),
            yes=f"{method} touches the line in every round: no method can be nearer to the solution.",
            no=f"After {ROUNDS} rounds {method} is at {distance[-1]:.2g}, where {least[-1]:.2g} is possible.",
        ),
        rounds=ROUNDS,
        shown=6,
    )
