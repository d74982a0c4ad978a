r"""One round, one link: on a chain no method is faster than its lower bound, and one attains it.

Theorems: ``convex_span`` (n rounds reach n coordinates), ``convex_strong_bound`` (so no method is nearer to the
solution than the bound) and ``convex_strong_attained`` (FedSplit is as near as that).
"""

from __future__ import annotations

import numpy as np

from dualopt.algorithms import Algorithm, DualFL, FedAvg, FedPD, FedSplit, OptimizedDualFL
from dualopt.claims import check
from dualopt.solvers import Gradient
from figures.lessons import Answer, Chart, Curve, Judged, Row, Scene, Slider, Table
from figures.lessons._runs import accuracy
from theory.lower_bounds._convex_chain import geometric, tails
from theory.lower_bounds._convex_methods import ConjugateGradients, chain_case
from theory.lower_bounds.convex import convex_span, convex_strong_attained, convex_strong_bound

TITLE = "One round, one link"
QUESTION = "No method comes below the dashed line, whatever its clients compute. Which one touches it in every round?"
METHODS = ("DualFL", "OptimizedDualFL", "conjugate gradients", "FedAvg", "FedPD", "FedSplit, mean of the zⱼ")
SLIDERS = (
    Slider(name="method", label="method", values=METHODS, start="DualFL"),
    Slider(name="kappa", label="condition number κ", values=(4, 10, 30, 100, 300, 1000), start=30),
)
LINKS = 24  # coordinates


def method_of(name: str, L: float) -> Algorithm:
    """Return a method with the parameters that it suggests; FedAvg takes one gradient step of length 1/L."""
    return {
        "DualFL": DualFL(),
        "OptimizedDualFL": OptimizedDualFL(),
        "conjugate gradients": ConjugateGradients(),
        "FedAvg": FedAvg(solver=Gradient(step=1.0 / L)),
        "FedPD": FedPD(),
        METHODS[-1]: FedSplit(model="consensus"),
    }[name]


def scene(*, method: str, kappa: float) -> Scene:
    """Run a method on the chain whose links belong to two clients in turn."""
    instance = geometric(kappa, LINKS)
    case = chain_case(instance, method_of(method, instance.L), LINKS - 1, remember=True)
    case = case.but(lowest=case.value(case.theta))
    models = np.stack([s.server.theta for s in case.snapshots()])
    distance = np.sum((models - case.theta) ** 2, axis=1)
    least = tails(case.theta)
    reached = np.array([np.flatnonzero(theta)[-1] + 1 if theta.any() else 0 for theta in models])
    error, gap = accuracy(case)

    n, k = np.arange(1, LINKS), np.arange(1, LINKS + 1)
    coordinates = Chart(
        curves=[
            Curve(x=k, y=models, label=f"model of {method}", colour=0, role="bars", moving=True),
            Curve(x=k, y=case.theta, label="solution", role="limit"),
        ],
        x_label="coordinate of the model",
        y_label="value",
    )
    race = Chart(
        curves=[
            Curve(x=n, y=distance, label=method, colour=0),
            Curve(x=n, y=least, label="no method is below", colour=1, role="theorem"),
        ],
        x_label="round",
        y_label="|θⁿ − θ*|²",
        log_y=True,
        rounds=True,
    )
    columns = ["coordinates reached", "|θⁿ − θ*|²", "least possible", "E − E*", "certificate"]
    table = Table(
        first="method",
        columns=columns,
        rows=[Row(label=method, cells=[reached, distance, least, error, gap], colour=0)],
    )
    attained = check(convex_strong_attained, case)
    return Scene(
        charts=[coordinates, race],
        table=table,
        verdicts=[
            Judged.of(convex_span, check(convex_span, case), "one coordinate a round"),
            Judged.of(convex_strong_bound, check(convex_strong_bound, case), "no method is faster"),
            Judged.of(convex_strong_attained, attained, "this method attains it"),
        ],
        answer=Answer.of(
            attained,
            right=lambda v: v.verdict == "holds",
            yes=f"{method} touches the line in every round: no method can be nearer to the solution.",
            no=f"After {LINKS - 1} rounds {method} is at {distance[-1]:.2g}, where {least[-1]:.2g} is possible.",
        ),
        rounds=LINKS - 1,
        shown=6,
    )


def expected(*, method: str, kappa: float) -> dict[str, str]:
    """Return the verdicts: both lower bounds hold for all methods, and one attains them."""
    return {
        "one coordinate a round": "holds",
        "no method is faster": "holds",
        "this method attains it": "holds" if method == METHODS[-1] else "violated",
    }
